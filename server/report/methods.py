"""The methods section of a report: what was done in this study, as text to paste into a paper."""

from __future__ import annotations

from lore_active.learner.running_counts import WINDOW
from lore_active.simulation.cost import pay_in_words
from lore_active.stopping.criteria import CRITERIA
from lore_active.stopping.verdict import share_by_guessing
from lore_active.wording import listed, many
from server.monitor.figures import known_sensitivity
from server.monitor.messages import exactly, in_methods
from server.report import figures as report_figures
from server.report import kinds
from server.report.data import ReportData
from server.report.modelling import modelling, question_selection
from server.report.references import named
from server.report.stopping_rule import stopping
from server.report.wording import percent, quoted

# Above this number, reasons for exclusion are only in the report's table.
MAX_REASONS = 8
MEDIA = {"text": "text", "image": "images", "audio": "audio clips", "video": "videos"}
QUESTIONS = {
    "cover": "of the coverage design",
    "active": "selected by the acquisition model",
    "random": "drawn at random",
    "catch": "with a known answer (catch trials)",
    "repeat": "that were repeated with the options in reverse order",
}


def paragraphs(report: ReportData) -> list[tuple[str, str]]:
    """(heading, text) of each part."""
    return [
        ("Participants", participants(report)),
        ("Procedure", procedure(report)),
        ("Question selection", question_selection(report)),
        ("Model and number of dimensions", modelling(report)),
        ("Stopping rule", stopping(report)),
        ("Outcome", outcome(report)),
        ("Software", software(report)),
    ]


def participants(report: ReportData) -> str:
    """How many took part, who was excluded and why."""
    counts, received = report.summary.participant_counts, report.summary.columns.received_at
    if not counts.arrived:
        return "There are no participants yet."
    first = min(participant.arrived_at for participant in report.summary.participants)
    last = int(received[-1]) if len(received) else first
    days = report_figures.day(first), report_figures.day(last)
    when = f"On {days[0]}" if days[0] == days[1] else f"Between {days[0]} and {days[1]}"
    outcomes = [
        text
        for count, text in (
            (counts.declined, f"{counts.declined:,} did not consent"),
            (counts.left, f"{counts.left:,} dropped out"),
            (counts.under_way, f"{counts.under_way:,} had not finished at the time of writing"),
            (counts.finished, f"{counts.finished:,} completed their session"),
        )
        if count
    ]
    bots = sum(bool(participant.simulated) for participant in report.summary.participants)
    who = many(counts.arrived, "person", "people")
    if bots:
        who = many(bots, "simulated participant")
        if others := counts.arrived - bots:
            who = f"{many(others, 'person', 'people')} and {who}"
    text = f"{when} (UTC), {who} opened the study: {listed(outcomes)}."
    if report.summary.answers.answers:
        text += (
            f" In total, {many(counts.answered, 'participant')} gave "
            f"{many(report.summary.answers.answers, 'answer')} (practice trials not counted); "
            "answers of participants who did not finish were included."
        )
    pay = report.study.settings.pay
    if pay.is_set:
        text += f" Payment for a completed session was {pay_in_words(pay)}."
    simulated = in_methods(report.summary.answers, counts, report.study.settings.bots)
    return f"{text} {_exclusions(report)} {simulated}".strip()


def _exclusions(report: ReportData) -> str:
    excluded = report_figures.exclusions(report)
    if not excluded:
        return "No participants were excluded."
    answers = many(sum(exclusion.answers for exclusion in excluded), "answer was", "answers were")
    text = (
        f"{many(len(excluded), 'participant was', 'participants were')} excluded by the "
        f"experimenter, and their {answers} omitted from the model and from all results based on it"
    )
    if len(excluded) > MAX_REASONS:
        return text + " (the report lists the reasons)."
    reasons = [f"P{exclusion.participant}: {quoted(exclusion.reason)}" for exclusion in excluded]
    return f"{text} ({'; '.join(reasons)})."


def procedure(report: ReportData) -> str:
    """The items, the question, the session."""
    settings, items = report.study.settings, report.study.items
    media = listed([MEDIA[kind] for kind in sorted({item.kind for item in items})])
    text = (
        f"The stimuli were {len(items):,} items ({media}). On each trial, participants "
        f"{kinds.task(settings.trial, report.summary.kind)} The background colour was "
        f"{settings.trial.background} (sRGB)."
    )
    if settings.trial.skip:
        text += f" Participants could also respond “{settings.texts.cant_tell}”."
    if settings.trial.timeout_ms:
        text += f" Trials timed out after {settings.trial.timeout_ms:,} ms."
    if settings.trial.min_view_ms:
        text += (
            f" Responses were accepted from {settings.trial.min_view_ms:,} ms after stimulus onset."
        )
    return f"{text} {_session(report)} {_question_types(report)}".strip()


def _session(report: ReportData) -> str:
    session, state = report.study.settings.session, report.summary.state
    trials = [participant.trials for participant in report.summary.participants] or [state.trials]
    low, high = min(trials), max(trials)
    each = many(high, "trial") if low == high else f"{low:,} to {high:,} trials"
    text = f"A session had {each}"
    if session.practice:
        text += f", preceded by {many(session.practice, 'practice trial')} with feedback"
    if session.break_every and session.break_every < high:
        text += f", with a break after every {many(session.break_every, 'trial')}"
    return (
        f"{text}. Apart from repeats and catch trials, no participant was asked the same question "
        "twice."
    )


def _question_types(report: ReportData) -> str:
    rows = [row for row in report_figures.by_kind(report) if row["purpose"] != "practice"]
    total = sum(row["all"] for row in rows)
    if not total:
        return ""
    parts = [
        f"{row['all']:,} ({percent(row['all'] / total)}) {'was' if row['all'] == 1 else 'were'} to "
        f"questions {QUESTIONS[row['purpose']]}"
        for row in rows
    ]
    text = f"Of the {many(total, 'answer')}, {listed(parts)}."
    skipped, timed_out = sum(row["skipped"] for row in rows), sum(row["timeout"] for row in rows)
    if skipped or timed_out:
        text += f" {many(skipped, 'trial was', 'trials were')} skipped and {timed_out:,} timed out."
    times = report_figures.totals(report).times
    if times is not None:
        text += (
            f" The median response time was {times[1]:,.0f} ms (interquartile range: "
            f"{times[0]:,.0f} to {times[2]:,.0f} ms)."
        )
    return text


def outcome(report: ReportData) -> str:
    """How collection ended, and the results."""
    return " ".join(filter(None, [_ended(report), _rank(report), _accuracy(report)]))


def _ended(report: ReportData) -> str:
    end, total = report_figures.ending(report), report.summary.answers.answers
    answers = many(end.answers, "answer")
    after = (
        " Participants already under way finished their sessions, which brought the total to "
        f"{many(total, 'answer')}."
    )
    after *= total > end.answers
    if end.how == "rule":
        return f"The stopping rule ended collection after {answers}.{after}"
    if end.how == "hand":
        why = f" ({quoted(end.reason)})" * bool(end.reason)
        return f"The experimenter ended collection after {answers}{why}.{after}"
    if end.how == "simulated":
        return (
            f"The stopping rule was met after {answers}, including simulated ones; no further "
            "simulated participants were admitted, and the study remained open to people."
        )
    if end.how == "budget":
        return f"Collection ended when its budget was used up ({answers})."
    return f"Collection had not ended at the time of writing ({answers} so far)."


def _rank(report: ReportData) -> str:
    """The verdict, and the evidence for it where a number of dimensions is reported."""
    verdict, criteria = report.summary.verdict, report.shown["stopping"]["criteria"]
    quoted = {name for name, text in CRITERIA.items() if text.evidence}
    evidence = [
        criterion["message"].rstrip(".") for criterion in criteria if criterion["name"] in quoted
    ]
    if not evidence:
        return verdict.methods
    parts = "; ".join(part[0].lower() + part[1:] for part in evidence)
    return f"{verdict.methods} The evidence was as follows: {parts}.{_sensitivity(report)}"


def _sensitivity(report: ReportData) -> str:
    """The smallest share that was ruled out, at the last test."""
    known = known_sensitivity(report.summary.history, report.summary.verdict)
    if known is None or known.ruled_out is None:
        return ""
    return (
        f" With {many(known.answers, 'answer')}, the smallest share of a further dimension that "
        f"was ruled out ({known.odds:.3g} : 1) was {percent(known.ruled_out)} of the differences "
        "between items."
    )


def _accuracy(report: ReportData) -> str:
    share = report.shown["accuracy"]
    if not share["count"]:
        return ""
    text = (
        "Prequential accuracy (cf. Dawid, 1984) was assessed on the last "
        f"{many(share['count'], 'random question')} (at most {WINDOW}), each predicted by the "
        f"model of the time before it was answered: {percent(share['value'])} were predicted "
        f"correctly (95 % confidence interval: {percent(share['low'])} to "
        f"{percent(share['high'])}; Wilson, 1927; chance: "
        f"{share_by_guessing(report.summary.kind.chance)})."
    )
    kind = report.summary.kind
    if kind.pick > 1:
        text += f" An answer counted as predicted correctly only if {exactly(kind)}."
    if share["ceiling"] is not None:
        agreement = "q² + (1 − q)²"
        if kind.answers > 2:
            agreement += f" / {kind.answers - 1:,}, with all other answers equally probable"
        text += (
            " The noise ceiling, estimated from how often participants gave the same answer to a "
            f"repeated question, was {percent(share['ceiling'])} (the accuracy q for which the "
            f"observed agreement is {agreement}). Repeated questions were random or selected; "
            "selected ones are harder, so the ceiling of random questions alone may be higher."
        )
    return text


def software(report: ReportData) -> str:
    """Software versions and the seed."""
    used = [models.fingerprint for models in report.made_with]
    names = named(used[-1]) if used else named("")
    return (
        f"The study was run with {listed(names)} (NumPy: Harris et al., 2020; SciPy: Virtanen et "
        "al., 2020; numba: Lam et al., 2015). All random choices derive from the seed "
        f"{report.summary.state.seed}; every model, question and decision can be reproduced from "
        "the study’s log."
    )
