"""The contents of a report: texts and tables for the template, data for the scripts."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active import __version__
from lore_active.stopping.verdict import share_by_guessing
from lore_active.wording import many
from server.monitor.flags import OVERALL, names, rules
from server.monitor.map import embedding_of
from server.report import figures as report_figures
from server.report import methods
from server.report.data import ReportData
from server.report.references import cited
from server.report.stimuli import Shown, name_of
from server.status.activity import described, is_automatic
from server.store.summaries import EventRow, ParticipantSummary
from server.study.descriptions import MEANINGS
from server.study.parsing import all_keys

MAX_PARTICIPANTS = 250
MAX_DOTS = 1000
MAX_CELLS = 8000
MAX_AUDITS = 60
MAX_EVENTS = 200
ENDS = 3
# Shorter IDs are too much like ordinary words and numbers to be replaced in texts.
MIN_ID = 4
# Codes, and settings for bots, do not belong in a report; texts are long, and the main ones are
# shown in a section of their own.
OMITTED = ("completion.", "bots.", "texts.")
STATUS = {"running": "running", "paused": "paused", "stopped": "ended"}


def contents(report: ReportData, items: Shown, with_names: bool) -> dict[str, Any]:
    """The variables of the template."""
    shown, settings = report.shown, report.study.settings
    end = report_figures.ending(report)
    return {
        "title": settings.title,
        "name": report.study.name,
        "study": settings,
        "shown": shown,
        "status": STATUS[shown["where"]["status"]],
        "made_at": report_figures.minute(shown["at"]),
        "summary": _summary(report),
        "stopping_title": {
            "rule": "Why did it stop?",
            "simulated": "Why did the rehearsal stop?",
            "hand": "Was it settled?",
            "budget": "Was it settled?",
        }.get(end.how, "Should we stop?"),
        "audits": _audits(report),
        "places": _places(report),
        "ends": _ends(report),
        "snapshots": len(report.snapshots),
        "items": len(report.study.items),
        "left_out": items.left_out,
        "participants": report.summary.participant_counts,
        "answers": report.summary.answers,
        "kinds": report_figures.by_kind(report),
        "totals": report_figures.totals(report),
        "exclusions": [
            {
                **exclusion.__dict__,
                "when": report_figures.minute(exclusion.at) if exclusion.at else "",
            }
            for exclusion in _private(report, report_figures.exclusions(report), with_names)
        ],
        "participant_rows": _participants(report)[:MAX_PARTICIPANTS],
        "all_participants": len(report.summary.participants),
        "with_names": with_names,
        "kind": report.summary.kind,
        "chance": share_by_guessing(report.summary.kind.chance),
        "flag_names": names(report.summary.kind),
        "rules": rules(report.summary.kind),
        "about_flags": OVERALL,
        "methods": [
            (heading, text if with_names else without_names(text, report.summary.participants))
            for heading, text in methods.paragraphs(report)
        ],
        "settings": _settings(report),
        "events": _events(report, with_names),
        "all_events": len(report.events),
        "made_with": report.made_with,
        "model": report.summary.model,
        "digest": report.digest,
        "program": f"lore-active {__version__}",
        "references": cited(
            settings.learning.selector, settings.stopping.rule, report.summary.kind
        ),
        "reason": shown["where"]["reason"]
        if with_names
        else without_names(shown["where"]["reason"], report.summary.participants),
    }


def data(report: ReportData, items: Shown) -> dict[str, Any]:
    """The data for the scripts; participants are in it by number only."""
    parts = ("dimensions", "stopping", "accuracy", "spectrum", "map")
    return {
        "kind": report.shown["kind"],
        "shown": {name: report.shown[name] for name in parts},
        "items": items.items,
        "snapshots": report.snapshots,
        "collected": report_figures.collected(report),
        "participants": [
            {
                "id": row["id"],
                "excluded": row["excluded"],
                "flags": row["flags"],
                "catch": _share(row["catch"]),
                "consistency": _share(row["repeats"]),
                "agreement": row["agreement"],
                "side": row["place"] and row["place"][1],
            }
            for row in _participants(report)[:MAX_DOTS]
            if row["id"] in {participant.id for participant in report.summary.participants}
        ],
    }


def without_names(text: str, participants: list[ParticipantSummary]) -> str:
    """A text in which recruitment IDs are replaced by the numbers of participants."""
    for participant in participants:
        external = participant.external or ""
        # As it is stored, `PROLIFIC_PID=…`, and the ID alone.
        for name in (external, external.partition("=")[2]):
            if len(name) >= MIN_ID:
                text = text.replace(name, f"P{participant.id}")
    return text


def _private(
    report: ReportData, excluded: list[report_figures.Exclusion], with_names: bool
) -> list[Any]:
    if with_names:
        return list(excluded)
    participants = report.summary.participants
    return [
        report_figures.Exclusion(
            exclusion.participant,
            exclusion.answers,
            exclusion.at,
            "",
            without_names(exclusion.reason, participants),
        )
        for exclusion in excluded
    ]


def _summary(report: ReportData) -> str:
    counts, received = report.summary.participant_counts, report.summary.columns.received_at
    parts = [many(report.summary.items, "item")]
    if counts.answered:
        answers = many(report.summary.answers.answers, "answer")
        bots = " (simulated)" if counts.simulated == counts.answered else ""
        parts.append(f"{answers} from {many(counts.answered, 'participant')}{bots}")
        first, last = report_figures.day(int(received[0])), report_figures.day(int(received[-1]))
        parts.append(first if first == last else f"{first} to {last}")
    return " · ".join(parts)


def _audits(report: ReportData) -> list[dict[str, Any]]:
    """The model at its audits, thinned to a readable number."""
    points = [point for point in report.summary.history.points if point.audit]
    indices = np.unique(np.linspace(0, len(points) - 1, min(len(points), MAX_AUDITS)).astype(int))
    return [points[at].__dict__ for at in indices] if points else []


def _places(report: ReportData) -> list[dict[str, Any]]:
    """Every item with its coordinates on principal axes; empty if there are too many."""
    z = embedding_of(report.summary.model, report.summary.items)
    if not z.shape[1] or z.size > MAX_CELLS:
        return []
    return [
        {"name": name_of(item), "values": row}
        for item, row in zip(report.study.items, z.tolist(), strict=True)
    ]


def _ends(report: ReportData) -> list[dict[str, Any]]:
    """The items at both ends of each principal axis, with its share of the variance."""
    z = embedding_of(report.summary.model, report.summary.items)
    names = [name_of(item) for item in report.study.items]
    squares = np.square(z - z.mean(axis=0)).sum(axis=0)
    rows = []
    for axis in range(z.shape[1]):
        order = np.argsort(z[:, axis], kind="stable")
        rows.append(
            {
                "low": [names[at] for at in order[:ENDS]],
                "high": [names[at] for at in order[::-1][:ENDS]],
                "share": float(squares[axis] / (squares.sum() or 1.0)),
            }
        )
    return rows


def _participants(report: ReportData) -> list[dict[str, Any]]:
    """Participants who answered, flagged and excluded ones first, as in the monitor."""
    rows = [shown for shown in report.shown["participants"]["rows"] if shown["done"]]
    return sorted(rows, key=lambda row: (not (row["flags"] or row["excluded"]), row["id"]))


def _share(part: list[int]) -> float | None:
    return part[0] / part[1] if part[1] else None


def _settings(report: ReportData) -> list[dict[str, Any]]:
    """Every setting with its meaning and its current value, also where it was changed later."""
    state = report.summary.state
    now = {
        "budget.answers": state.budget_answers,
        "budget.participants": state.budget_participants,
        "session.trials": state.trials,
        "seed": state.seed,
    }
    rows = []
    for key, field in all_keys().items():
        if not key.startswith(OMITTED):
            value: Any = report.study.settings
            for part in key.split("."):
                value = getattr(value, part)
            value = now.get(key, value)
            rows.append(
                {
                    "key": key,
                    "value": _shown(value),
                    "meaning": MEANINGS[key],
                    "changed": value != field.default,
                }
            )
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _events(report: ReportData, with_names: bool) -> list[dict[str, str]]:
    """The decisions, oldest first."""
    kept = report.events[-MAX_EVENTS:]
    return [_event(event, report.summary.participants, with_names) for event in kept]


def _event(
    event: EventRow, participants: list[ParticipantSummary], with_names: bool
) -> dict[str, str]:
    said = described(event)
    by = said.by if with_names or is_automatic(event.who) else "experimenter"
    return {
        "at": report_figures.minute(event.at),
        "what": said.what,
        "by": by,
        "reason": said.reason if with_names else without_names(said.reason, participants),
    }
