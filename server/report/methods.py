"""The methods section: what was done in this study, in sentences to be pasted into a paper."""

from __future__ import annotations

from lore_active.acquisition.registry import SELECTORS
from lore_active.learner.cadence import AUDIT_GROWTH
from lore_active.learner.running_counts import WINDOW
from lore_active.rank.cross_validation import FOLDS, LAMBDAS
from lore_active.rank.significance import MIN_STANDARD_ERRORS, SUPPORTED_FROM, SUPPORTED_STILL
from lore_active.simulation.cost import pay_in_words
from lore_active.stopping.criteria import CRITERIA
from lore_active.stopping.registry import STOPPING_RULES
from lore_active.stopping.rules import LOG_BAYES_PER_ITEM
from server.monitor.messages import in_methods
from server.report import figures as report_figures
from server.report.data import ReportData
from server.report.references import named

# More exclusions than this are counted in the text and listed in the report.
MAX_REASONS = 8
MEDIA = {"text": "text", "image": "picture", "audio": "sound", "video": "film"}


def paragraphs(found: ReportData) -> list[tuple[str, str]]:
    """(heading, text) of each part."""
    return [
        ("Participants", participants(found)),
        ("Procedure", procedure(found)),
        ("Choice of questions", choosing(found)),
        ("Model and number of dimensions", modelling(found)),
        ("Stopping rule", stopping(found)),
        ("Outcome", outcome(found)),
        ("Software", software(found)),
    ]


def many(count: int, one: str, more: str = "") -> str:
    """`1 person`, `2 people`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def percent(share: float) -> str:
    """`78.0 %`."""
    return f"{100 * share:.1f} %"


def listed(parts: list[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def participants(found: ReportData) -> str:
    """Who came, who is left out and why."""
    came, received = found.facts.participants, found.facts.columns.received_at
    if not came.arrived:
        return "Nobody has taken part yet."
    first = min(one.arrived_at for one in found.facts.people)
    last = int(received[-1]) if len(received) else first
    days = report_figures.day(first), report_figures.day(last)
    when = f"On {days[0]}" if days[0] == days[1] else f"Between {days[0]} and {days[1]}"
    fates = [
        words
        for count, words in (
            (came.declined, f"{came.declined:,} did not consent"),
            (came.left, f"{came.left:,} left before the end"),
            (came.under_way, f"{came.under_way:,} had not finished when this was written"),
            (came.finished, f"{came.finished:,} completed their session"),
        )
        if count
    ]
    bots = sum(bool(one.simulated) for one in found.facts.people)
    who = many(came.arrived, "person", "people")
    if bots:
        who = many(bots, "simulated participant")
        if people := came.arrived - bots:
            who = f"{many(people, 'person', 'people')} and {who}"
    text = f"{when} (UTC), {who} opened the study: {listed(fates)}."
    if found.facts.answers.answers:
        text += (
            f" {many(came.answered, 'participant')} gave "
            f"{many(found.facts.answers.answers, 'answer')} (practice not counted); the answers of "
            "those who did not finish are used as well."
        )
    pay = found.study.settings.pay
    if pay.is_set:
        text += f" Those who completed it were paid {pay_in_words(pay)}."
    simulated = in_methods(found.facts.answers, came, found.study.settings.bots)
    return f"{text} {_left_out(found)} {simulated}".strip()


def _left_out(found: ReportData) -> str:
    out = report_figures.exclusions(found)
    if not out:
        return "Nobody was excluded."
    answers = many(sum(one.answers for one in out), "answer")
    text = (
        f"{many(len(out), 'participant was', 'participants were')} excluded by the experimenter, "
        f"and their {answers} left out of the model and of everything that follows from it"
    )
    if len(out) > MAX_REASONS:
        return text + " (the reasons are listed in the report)."
    reasons = [f"participant {one.participant}: {_quoted(one.reason)}" for one in out]
    return f"{text} ({'; '.join(reasons)})."


def _quoted(words: str) -> str:
    return f"“{words.strip().rstrip('.')}”" if words.strip() else "no reason given"


def procedure(found: ReportData) -> str:
    """The items, the question, the session."""
    settings, items = found.study.settings, found.study.items
    kinds = sorted({item.kind for item in items})
    what = listed([MEDIA[kind] + "s" * (kind != "text") for kind in kinds])
    where = "with two others below it" if settings.trial.layout == "above" else "between two others"
    text = (
        f"The stimuli were {len(items):,} items ({what}). In each trial participants saw one item "
        f"{where} and answered the question “{settings.trial.question.strip()}” by choosing one "
        "of the two; sides were balanced. The page around the stimuli had the colour "
        f"{settings.trial.background} (sRGB)."
    )
    if settings.trial.skip:
        text += f" They could also answer “{settings.texts.cant_tell}”."
    if settings.trial.timeout_ms:
        text += f" A trial went by unanswered after {settings.trial.timeout_ms:,} ms."
    if settings.trial.min_view_ms:
        text += f" An answer was taken after {settings.trial.min_view_ms:,} ms at the earliest."
    return f"{text} {_session(found)} {_mixture(found)}".strip()


def _session(found: ReportData) -> str:
    session, state = found.study.settings.session, found.facts.state
    given = [one.trials for one in found.facts.people] or [state.trials]
    low, high = min(given), max(given)
    each = f"{high:,}" if low == high else f"{low:,} to {high:,}"
    text = f"A session had {each} trials"
    if session.practice:
        text += f" after {many(session.practice, 'practice trial')} with feedback"
    if session.break_every and session.break_every < high:
        text += f", with a break after every {session.break_every}"
    return text + "; nobody was asked a question twice, repeats and catch trials aside."


def _mixture(found: ReportData) -> str:
    kinds = [one for one in report_figures.by_kind(found) if one["purpose"] != "practice"]
    whole = sum(one["all"] for one in kinds)
    if not whole:
        return ""
    parts = [
        f"{one['all']:,} ({percent(one['all'] / whole)}) were to questions {one['words']}"
        for one in kinds
    ]
    text = f"Of the {whole:,} answers, {listed(parts)}."
    gone = sum(one["skipped"] for one in kinds), sum(one["timeout"] for one in kinds)
    if any(gone):
        text += f" {gone[0]:,} were skips and {gone[1]:,} time-outs."
    times = report_figures.totals(found).times
    if times is not None:
        text += (
            f" The median response time was {times[1]:,.0f} ms (quartiles {times[0]:,.0f} and "
            f"{times[2]:,.0f} ms)."
        )
    return text


def choosing(found: ReportData) -> str:
    """How questions came about."""
    selector = found.study.settings.learning.selector
    begin = "The first questions covered the items evenly. "
    if selector == "random":
        return begin + "All later ones were drawn uniformly at random."
    acquisition = (
        "Later ones were chosen by a model of their own: an embedding fitted to all answers so "
        "far by their logistic likelihood with a Gaussian prior on the coordinates, its "
        "dimensionality and prior chosen by cross-validated loss; half of the choices were made "
        "for one dimension more, to show whether it is there. "
    )
    how = {
        "fisher": "Asked was the question whose answer was expected to reduce most the variance "
        "of the predicted margins of random questions, weighted by how undecided these are, under "
        "the inverse Fisher information of the coordinates (cf. MacKay, 1992; with more than 4,000 "
        "coordinates: the question with the smallest predicted margin)",
        "uncertainty": "Asked was the question with the smallest predicted margin (uncertainty "
        "sampling; Lewis & Gale, 1994)",
    }.get(selector, SELECTORS[selector].methods)
    return (
        f"{begin}{acquisition}{how}; questions still out with other participants were taken into "
        "account, and anchors took turns. A share of questions stayed uniformly random, larger "
        "while the model predicted badly."
    )


def modelling(found: ReportData) -> str:
    """LORE, and how its rank was found."""
    lams = listed([f"{one:g}" for one in LAMBDAS])
    text = (
        "Answers were modelled by ordinal embedding with LORE (Anand et al., 2026): items are "
        "points, and the coordinates minimise the mean over answers of softplus(1 + d(anchor, "
        "chosen) − d(anchor, other)) plus λ times the sum of the square roots of the coordinates’ "
        "singular values, which removes dimensions that are not needed. The number of dimensions "
        f"was found by cross-validation in {FOLDS} folds, all answers to one question in the same "
        f"fold, after the answers had grown by {100 * (AUDIT_GROWTH - 1):.0f} % each time (an "
        "audit). In each fold, embeddings with many dimensions were fitted to the other answers "
        f"and reduced by the weakest dimension, one by one (λ = {lams}), and scored by the "
        "logistic loss of the answers left out. Chosen was "
        "the lowest number of dimensions whose loss, compared answer by answer, was not above the "
        "lowest by more than one standard error (Breiman et al., 1984), provided that the lowest "
        f"was below that of guessing by {MIN_STANDARD_ERRORS:g} standard errors; otherwise one, if "
        "the model that chose the questions predicted answers to questions that no model had "
        f"chosen better than guessing by {SUPPORTED_FROM:g} standard errors ({SUPPORTED_STILL:g} "
        "once a dimension had been found), and none, if it did not."
    )
    model = found.facts.model
    if model is not None:
        text += f" {_fitted(found)}"
        if model.rank:
            text += (
                f" The map was fitted with λ = {model.lam:g}; successive maps were turned to lie "
                "on each other (Schönemann, 1966)."
            )
    return text


def _fitted(found: ReportData) -> str:
    """How the answers collected become the answers fitted."""
    counts = found.facts.answers
    out = [
        f"{count:,} {what}"
        for count, what in (
            (counts.excluded, "of excluded participants"),
            (counts.quarantined, "that could not be used"),
            (counts.catches, "to catch trials"),
            (counts.skipped, "skipped"),
            (counts.timed_out, "timed out"),
            (counts.waiting, "not fitted yet"),
        )
        if count
    ]
    less = f", less {listed(out)}" if out else ""
    more = f", and {many(counts.imported, 'imported answer')}" if counts.imported else ""
    return (
        f"The last model was fitted to {many(counts.fitted, 'answer')}: the {counts.answers:,} "
        f"collected{less}{more}."
    )


def stopping(found: ReportData) -> str:
    """The rule as it was set."""
    settings, state = found.study.settings.stopping, found.facts.state
    if settings.rule != "rank_settled":
        return _other_rule(found)
    least = settings.min_answers or 4 * found.facts.items
    return (
        "Collection was to end when every item had been seen, there were at least "
        f"{least:,} answers, answers to questions that no model had chosen were predicted better "
        "than chance by fits without them (lower end of the 95 % interval above 50 %), the number "
        f"of dimensions had been the same in {many(settings.audits, 'audit')} in a row, and "
        "held-out answers preferred it both to one dimension fewer and to one more (to one more on "
        "average of the published model and the one that chose the questions, by at least half as "
        "much in each), on average over these audits, by the standard errors that a one-sided "
        f"confidence of {settings.confidence:g} asks for; and when, in the last of them, all "
        "answers together were likelier with that number of dimensions (marginal likelihood of an "
        "embedding with logistic answers and a Gaussian prior on the coordinates, by Laplace’s "
        "approximation with the expected information; cf. Tierney & Kadane, 1986): than with one "
        f"fewer by odds of {settings.confidence / (1 - settings.confidence):.0f} to 1, than with "
        f"one more by log odds of {LOG_BAYES_PER_ITEM:g} for each item, divided by the number of "
        "dimensions; and in any case after "
        f"{state.budget_answers:,} answers"
        + (f" or {state.budget_participants:,} participants" if state.budget_participants else "")
        + "."
    )


def _other_rule(found: ReportData) -> str:
    state, rule = found.facts.state, STOPPING_RULES[found.study.settings.stopping.rule]
    people = state.budget_participants
    return (
        f"Collection was to end when {rule.methods or f'the rule {rule.name!r} was met'}; and in "
        f"any case after {many(state.budget_answers, 'answer')}"
        + (f" or {many(people, 'participant')}." if people else ".")
    )


def outcome(found: ReportData) -> str:
    """How it ended, and what came out."""
    return " ".join(filter(None, [_ended(found), _rank(found), _accuracy(found)]))


def _ended(found: ReportData) -> str:
    end, whole = report_figures.ending(found), found.facts.answers.answers
    after = f" Those in the middle of their session finished, which made {whole:,} answers."
    after = after if whole > end.answers else ""
    if end.how == "rule":
        return f"The rule ended collection after {end.answers:,} answers.{after}"
    if end.how == "hand":
        why = f" ({_quoted(end.reason)})" if end.reason else ""
        return f"The experimenter ended collection after {end.answers:,} answers{why}.{after}"
    if end.how == "simulated":
        return (
            f"The rule was met after {end.answers:,} answers, simulated ones among them; no more "
            "simulated participants were let in, and the study stayed open to people."
        )
    if end.how == "budget":
        return f"Collection ended when its budget of answers was used up ({end.answers:,} answers)."
    return f"Collection had not ended when this was written ({end.answers:,} answers so far)."


def _rank(found: ReportData) -> str:
    """The verdict, and the evidence for it where a number of dimensions is reported."""
    verdict, criteria = found.facts.verdict, found.shown["stopping"]["criteria"]
    quoted = {name for name, text in CRITERIA.items() if text.evidence}
    evidence = [one["words"] for one in criteria if one["name"] in quoted]
    return " ".join([verdict.methods, *evidence])


def _accuracy(found: ReportData) -> str:
    share = found.shown["accuracy"]
    if not share["count"]:
        return ""
    text = (
        f"Of the latest {share['count']:,} random questions (at most {WINDOW}), each predicted by "
        "the model of the time before it was answered (cf. Dawid, 1984), "
        f"{percent(share['value'])} were predicted correctly (95 % confidence interval: "
        f"{percent(share['low'])} to {percent(share['high'])}, Wilson, 1927; chance: 50 %)."
    )
    if share["ceiling"] is not None:
        text += (
            " From how often people gave the same answer to a question asked twice, a perfect "
            f"model could reach about {percent(share['ceiling'])} (noise ceiling: agreement "
            "c = q² + (1 − q)², solved for q)."
        )
    return text


def software(found: ReportData) -> str:
    """What it was made with."""
    used = [one.fingerprint for one in found.made_with]
    names = named(used[-1]) if used else named("")
    return (
        f"The study was run with {listed(names)} (NumPy: Harris et al., 2020; SciPy: Virtanen et "
        "al., 2020; numba: Lam et al., 2015). All random choices follow from the seed "
        f"{found.facts.state.seed}; the log of the study allows every model, question and decision "
        "to be computed again."
    )
