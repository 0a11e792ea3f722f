"""The verdict of a study from its database, for every page and command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lore_active.learner.cadence import FIRST_AUDIT
from lore_active.stopping.criteria import from_stored
from lore_active.stopping.stages import Collection, Findings
from lore_active.stopping.verdict import Verdict, only_a_bound, verdict
from server.status.counting import (
    AnswerCounts,
    ParticipantCounts,
    answer_counts,
    participant_counts,
    simulated_left_out,
)
from server.store import collection as store
from server.store import models, summaries
from server.store.collection import StudyState
from server.store.database import Connection
from server.store.sqlite.former_names import model_summary
from server.store.summaries import DecisionRow
from server.study.config import LoadedStudy

# The author of decisions made by the stopping rule.
RULE = "stopping rule"


def read(c: Connection, study: LoadedStudy, now: int) -> Verdict:
    """The current verdict of a study."""
    collection, current = parts(c, study, now)
    return verdict(collection, current)


def parts(c: Connection, study: LoadedStudy, now: int) -> tuple[Collection, Findings | None]:
    """The state of collection and the findings, from which the verdict follows."""
    state = store.state(c)
    assert state is not None
    participants = participant_counts(
        summaries.participants(c), now, study.settings.session.idle_minutes, simulated_left_out(c)
    )
    by_rule = summaries.stopped_by(c) == RULE
    collection = collection_of(state, answer_counts(c), participants, len(study.items), by_rule)
    return collection, findings(c)


def findings(c: Connection) -> Findings | None:
    """The current findings; None before the first decision."""
    model = models.latest_model(c)
    evidence = [] if model is None else model_summary(model.summary)["evidence"]
    return findings_of(summaries.decision(c), summaries.audited_ranks(c), evidence)


def collection_of(
    state: StudyState,
    answers: AnswerCounts,
    participants: ParticipantCounts,
    items: int,
    by_rule: bool,
) -> Collection:
    """The state of data collection."""
    counted = answers.counted + answers.imported
    reasons = (
        (answers.excluded, f"{_verb(answers.excluded)} from excluded participants"),
        (answers.quarantined, "cannot be used"),
        (answers.catches, f"{_verb(answers.catches)} to catch trials"),
        (answers.skipped, f"{'was' if answers.skipped == 1 else 'were'} skipped"),
        (answers.timed_out, "timed out"),
    )
    return Collection(
        status=state.status,
        started=participants.arrived > 0,
        answers=answers.answers,
        counted=counted,
        imported=answers.imported,
        simulated=answers.simulated,
        simulated_left_out=answers.simulated_left_out,
        not_counted=tuple(reason for reason in reasons if reason[0]),
        until_first=FIRST_AUDIT * items - counted,
        by_rule=by_rule and state.status == "stopped",
        budget=_spent(state, answers, participants),
    )


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _spent(state: StudyState, answers: AnswerCounts, participants: ParticipantCounts) -> str:
    """Which budget is used up, as a clause; empty if none is."""
    if answers.answers >= state.budget_answers:
        budget = state.budget_answers
        return f"the budget of {budget:,} answer{'s' * (budget != 1)} is used up"
    limit = state.budget_participants
    if limit and participants.answered >= limit and not participants.under_way:
        return f"the budget of {limit:,} participant{'s' * (limit != 1)} is used up"
    return ""


def findings_of(
    decision: DecisionRow | None,
    ranks: tuple[int, ...],
    evidence: Iterable[Mapping[str, Any]],
) -> Findings | None:
    """The findings from the latest decision, audits and model."""
    if decision is None:
        return None
    guessing = next((row for row in evidence if row["rank"] == 0), None)
    gap = None if guessing is None else (float(guessing["difference"]), float(guessing["error"]))
    return Findings(
        decision.rank,
        decision.settled,
        tuple(from_stored(reason) for reason in decision.reasons),
        ranks,
        only_a_bound(decision.rank, gap),
    )
