"""Texts of the flags: the name of each, its rule, and its evidence as a sentence."""

from __future__ import annotations

from lore_active.participants.honest_answering import FAST_MS, min_wrong
from lore_active.participants.patterns import (
    MAX_BLURRED,
    MAX_FAST,
    MAX_IMPLAUSIBLE,
    MAX_SIDE,
    max_share,
)
from lore_active.participants.response_quality import ALPHA, MAX_ODDS, SHARES, Evidence
from lore_active.questions.kinds import TRIPLET, Kind


def percent(share: float) -> str:
    """A percentage: `20 %`."""
    return f"{100 * share:.0f} %"


# Short names, for tables.
_NAMES = {
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
    "guessing": "Catch trials, repeats and predictions taken together look more like random "
    "answers than like those of a rather noisy but honest participant of this study.",
    "consistency": "Repeated questions are answered differently more often than other "
    "participants' repeat consistency allows.",
    "agreement": "The answers differ from what the map predicted beforehand more often than those "
    "of a rather noisy but honest participant. Participants who perceive the items differently may "
    "be honest, too.",
    "fast": f"Answers within {FAST_MS:.0f} ms, or within a limit far below other participants' "
    "response times, by the clock of the page or of the server; up to "
    f"{percent(MAX_FAST)} of trials count as honest.",
    "implausible": "Impossible response times: longer than the time that passed on the server, "
    f"negative or incomplete; up to {percent(MAX_IMPLAUSIBLE)} of trials count as honest.",
    "blurred": "Switched to another window during a trial; up to "
    f"{percent(MAX_BLURRED)} of trials count as honest.",
}


def names(kind: Kind) -> dict[str, str]:
    """Short names of the flags."""
    return _NAMES if kind == TRIPLET else {**_NAMES, "side": "same place"}


def rules(kind: Kind) -> dict[str, str]:
    """When each flag is raised."""
    every = {
        "side": _place_rule(kind),
        "catch": "More errors on catch trials than lapses explain: honest participants get "
        f"{100 * min_wrong(kind):.1f} % wrong, or as many as other participants on the same "
        f"questions{_guessing(kind)}.",
        **_RULES,
        "consistency": _repeat_rule(kind),
    }
    return {
        flag: f"{every[flag]} Threshold: 1 in {1.0 / (ALPHA * share):,.0f}."
        for flag, share in SHARES.items()
    }


def _place_rule(kind: Kind) -> str:
    if kind == TRIPLET:
        return (
            "Always the same side, or sides in alternation, more often than is plausible under "
            "honest answering. Sides are randomised; choosing one side in up to "
            f"{percent(MAX_SIDE)} of trials counts as honest."
        )
    return (
        "Always the option in the same place, or places in turn, more often than is plausible "
        f"under honest answering. Places are randomised: by guessing, each has a choice in "
        f"{percent(kind.chance_overlap)} of trials; up to {percent(max_share(kind))} count as "
        "honest."
    )


def _guessing(kind: Kind) -> str:
    if kind == TRIPLET:
        return ""
    return f" (guesses: {percent(1.0 - kind.chance_overlap)})"


def _repeat_rule(kind: Kind) -> str:
    if kind.pick == 1:
        return (
            "Repeated questions are answered differently more often than other participants' "
            "repeat consistency allows."
        )
    return (
        f"Answers to repeated questions have fewer than {kind.min_alike} of {kind.pick} choices in "
        "common more often than other participants' repeat consistency allows (guesses: "
        f"{percent(1.0 - kind.chance_alike)})."
    )


OVERALL = (
    "Each flag is a sequential test of honest answering, valid after every trial. Together, the "
    f"flags are raised for at most {percent(ALPHA)} of honest participants in a whole session."
)
_SEEN = {
    "left": "Chose the left option in {count} of {of} trials",
    "right": "Chose the right option in {count} of {of} trials",
    "alternating": "Switched sides in {count} of {of} trials",
    "place": "Chose the option in place {place} in {count} of {of} trials",
    "to and fro": "Went back to the place before in {count} of {of} trials",
    "forwards": "First chose the place after that of the trial before in {count} of {of} trials",
    "backwards": "First chose the place before that of the trial before in {count} of {of} trials",
    "wrong": "Answered {count} of {of} catch trials incorrectly",
    "unlike": "Answered {count} of {of} repeated questions differently the second time",
    "missed": "Answered {count} of {of} trials against the map's prediction (at most about "
    "{expected:.0f} expected)",
    "guessing": "Missed {count} of {of} known answers, own earlier answers and predictions (at "
    "most about {expected:.0f} expected)",
    "fast": "Answered {count} of {of} trials within {floor_ms:,.0f} ms",
    "implausible": "Had impossible response times in {count} of {of} trials",
    "blurred": "Switched to another window in {count} of {of} trials",
}


def statement(evidence: Evidence, floor_ms: float = FAST_MS) -> str:
    """The evidence as a sentence: what was observed, and its chance under honest answering."""
    pattern, _, place = evidence.pattern.partition(" ")
    seen = _SEEN["place" if pattern == "place" else evidence.pattern].format(
        count=evidence.count,
        of=evidence.of,
        expected=evidence.expected,
        floor_ms=floor_ms,
        place=place,
    )
    since = f", from trial {evidence.first} on" if evidence.first > 1 else ""
    return f"{seen}{since}; {chance(evidence.odds)}."


def chance(odds: float) -> str:
    """The chance of the evidence under honest answering, as a clause."""
    if odds >= MAX_ODDS:
        return "the chance of that under honest answering is less than 1 in a billion"
    if odds < 2.0:
        return "that is nothing unusual under honest answering"
    return f"the chance of that under honest answering is at most 1 in {rounded(odds):,}"


def rounded(odds: float) -> int:
    """Rounded down, so as not to overstate the evidence; large odds to two digits."""
    whole = int(odds)
    step = 1 if whole < 1000 else int(10 ** (len(str(whole)) - 2))
    return whole // step * step
