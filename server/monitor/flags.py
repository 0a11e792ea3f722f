"""Flags in plain words: what each is called, when it is raised, and what the evidence says."""

from __future__ import annotations

from lore_active.people.honest_answering import FAST_MS, MIN_WRONG
from lore_active.people.response_quality import (
    ALPHA,
    MAX_BLURRED,
    MAX_FAST,
    MAX_IMPLAUSIBLE,
    MAX_ODDS,
    MAX_SIDE,
    SHARES,
    Evidence,
)


def percent(share: float) -> str:
    """`20 %`."""
    return f"{100 * share:.0f} %"


# What each flag is called where there is little room.
NAMES = {
    "side": "side bias",
    "catch": "catch trials",
    "guessing": "guessing",
    "consistency": "inconsistent",
    "agreement": "disagrees",
    "fast": "too fast",
    "implausible": "implausible times",
    "blurred": "other window",
}
_RULES = {
    "side": "The same side, or sides in turn, more often than honest answering allows. Sides are "
    f"drawn at random; a preference for one side of up to {percent(MAX_SIDE)} counts as honest.",
    "catch": "More catch trials wrong than by lapses: honest participants get "
    f"{100 * MIN_WRONG:.1f} % wrong, or as many as the others do of the same questions.",
    "guessing": "Catch trials, repeats and predictions together are more like coin tosses than "
    "like the answers of a rather noisy honest participant of this study.",
    "consistency": "Repeated questions are answered differently more often than the others' "
    "repeat consistency allows.",
    "agreement": "The answers differ from what the map predicted before they were given more often "
    "than those of a rather noisy honest participant. Somebody who sees the items "
    "differently may be honest, too.",
    "fast": f"Answers within {FAST_MS:.0f} ms, or within a limit far below the other participants' "
    f"times, by the page's clock or by the server's; up to {percent(MAX_FAST)} count as honest.",
    "implausible": "Impossible response times: longer than the server saw pass, negative or "
    f"incomplete; up to {percent(MAX_IMPLAUSIBLE)} count as honest.",
    "blurred": "Looks at another window during a trial; up to "
    f"{percent(MAX_BLURRED)} of trials count as honest.",
}
RULES = {
    flag: f"{_RULES[flag]} Raised at 1 in {1.0 / (ALPHA * share):,.0f}."
    for flag, share in SHARES.items()
}
OVERALL = (
    "Each flag is a test of honest answering that may be looked at after every trial. Together "
    f"they hit at most {percent(ALPHA)} of honest participants in a whole session."
)
_SEEN = {
    "left": "Chose the left option in {count} of {of} trials",
    "right": "Chose the right option in {count} of {of} trials",
    "alternating": "Chose the other side than in the trial before in {count} of {of} trials",
    "wrong": "Answered {count} of {of} catch trials wrong",
    "unlike": "Answered {count} of {of} repeated questions differently the second time",
    "missed": "Answered {count} of {of} trials against the map's prediction, where at most about "
    "{expected:.0f} would be expected",
    "guessing": "Missed {count} of {of} known answers, own earlier answers and predictions, where "
    "at most about {expected:.0f} would be expected",
    "fast": "Answered {count} of {of} trials within {floor_ms:,.0f} ms",
    "implausible": "Sent impossible response times in {count} of {of} trials",
    "blurred": "Looked at another window in {count} of {of} trials",
}


def statement(one: Evidence, floor_ms: float = FAST_MS) -> str:
    """The evidence as a sentence: what was seen, and its chance under honest answering."""
    seen = _SEEN[one.pattern].format(
        count=one.count, of=one.of, expected=one.expected, floor_ms=floor_ms
    )
    since = f", from trial {one.first} on" if one.first > 1 else ""
    return f"{seen}{since}; {chance(one.odds)}."


def chance(odds: float) -> str:
    """`the chance of that under honest answering is at most 1 in 1,200`."""
    if odds >= MAX_ODDS:
        return "the chance of that under honest answering is less than 1 in a billion"
    if odds < 2.0:
        return "that is nothing unusual under honest answering"
    return f"the chance of that under honest answering is at most 1 in {rounded(odds):,}"


def rounded(odds: float) -> int:
    """Downwards, large ones to two digits: never more than there is."""
    whole = int(odds)
    step = 1 if whole < 1000 else int(10 ** (len(str(whole)) - 2))
    return whole // step * step
