"""The forecast: answers, participants, hours and cost until stopping, as ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from lore_active.simulation.cost import (
    SECONDS_PER_TRIAL,
    Pay,
    about,
    cost,
    is_little,
    money,
    money_range,
)
from lore_active.stopping.criteria import from_stored
from lore_active.stopping.forecast import AuditStatus, CriterionStatus, forecast
from server.monitor.answers import Columns, Numbers
from server.status.counting import AnswerCounts, is_under_way, present
from server.store.collection import StudyState
from server.store.summaries import DecisionRow, ParticipantSummary

Range = tuple[float, float]
FINISHED = ("feedback", "finished")
NO_DIMENSION = "no dimension is reported yet"
UNLIKE = "this study is unlike all studies that the forecast was calibrated with"
HINT = "Set [pay] in study.toml to see the cost here."


@dataclass(frozen=True)
class Crowd:
    """Participants, for the forecast; simulated ones cost neither time nor money.

    finished, hours: how many finished, and their total time. under_way, trials_left: how many are
    under way, and their remaining trials. trial_hours: mean duration of a trial over all who
    answered. simulated: whether there are also simulated participants.
    """

    finished: int
    hours: float
    under_way: int
    trials_left: int
    trial_hours: float
    simulated: bool = False


def crowd(
    participants: Sequence[ParticipantSummary], times: SessionTimes, now: int, idle_minutes: int
) -> Crowd:
    """Count the participants for the forecast."""
    everybody, participants = (
        participants,
        [participant for participant in participants if not participant.simulated],
    )
    since, until = present(now, idle_minutes)
    done = [participant for participant in participants if participant.stage in FINISHED]
    there = [participant for participant in participants if is_under_way(participant, since, until)]
    answered = [participant for participant in participants if participant.done > 0]
    trials = sum(participant.done for participant in answered)
    spent = sum(int(times.ms[participant.id]) for participant in answered) / HOUR_MS
    return Crowd(
        finished=len(done),
        hours=sum(int(times.ms[participant.id]) for participant in done) / HOUR_MS,
        under_way=len(there),
        trials_left=sum(participant.trials - participant.done for participant in there),
        trial_hours=spent / trials if trials and spent else SECONDS_PER_TRIAL / 3600,
        simulated=len(participants) < len(everybody),
    )


@dataclass(frozen=True)
class Ahead:
    """What is still to come until stopping, as 90 % ranges; None: no forecast.

    answers: without practice, as the budget counts them; `middle` is their median. participants:
    further ones, who have not started. hours: of participants' time. met: the stopping rule is
    already met. reason: why there is no forecast, where that is known.
    """

    answers: Range | None = None
    participants: Range | None = None
    hours: Range | None = None
    met: bool = False
    reason: str = ""
    middle: int | None = None


def ahead(
    decision: DecisionRow | None,
    state: StudyState,
    counts: AnswerCounts,
    audited: int,
    items: int,
    crowd: Crowd,
) -> Ahead:
    """Forecast from the criteria; `audited` is the number of answers in the last audit."""
    if decision is None or state.status == "stopped":
        return Ahead()
    criteria = tuple(
        CriterionStatus(reason.name, float(reason.value), float(reason.threshold), reason.passed)
        for reason in map(from_stored, decision.reasons)
    )
    status = AuditStatus(items, audited, decision.rank, criteria)
    if status.met:
        return Ahead((0, 0), (0, 0), (0.0, 0.0), met=True)
    predicted = forecast(status)
    if predicted is None:
        return Ahead(reason=UNLIKE if decision.rank else NO_DIMENSION)
    # Answers to catch trials, skips and answers of excluded participants use up the budget as well.
    each = counts.answers / counts.counted if counts.counted else 1.0
    low = max(1.0, (predicted.low - counts.fitted) * each)
    answers = (
        _rounded(low, floor),
        _rounded(max(low, (predicted.high - counts.fitted) * each), ceil),
    )
    to_come = [max(0.0, end - crowd.trials_left) for end in answers]
    return Ahead(
        answers,
        (ceil(to_come[0] / state.trials), ceil(to_come[1] / state.trials)),
        (answers[0] * crowd.trial_hours, answers[1] * crowd.trial_hours),
        middle=_rounded(max(low, (predicted.middle - counts.fitted) * each), round),
    )


def _rounded(count: float, how: Any) -> int:
    """Rounded to two significant digits."""
    size = 10 ** max(0, floor(log10(max(1.0, count))) - 1)
    return int(how(count / size) * size)


def message(coming: Ahead, state: StudyState, collected: int) -> str:
    """The forecast as text."""
    if state.status == "stopped":
        return "Collection has ended; participants already under way can finish."
    if coming.met:
        return "Until stopping: criteria met."
    if coming.answers is None or coming.participants is None or coming.hours is None:
        return f"No forecast yet: {coming.reason}." if coming.reason else "No forecast yet."
    low, high = coming.answers
    text = f"{about(number_range(low, high))} more {plural(high, 'answer')} until stopping"
    median = f"median: {coming.middle:,}; " if coming.middle else ""
    more = f"{_participants(coming.participants)}, {_hours(coming.hours)}"
    text = f"{text[0].upper()}{text[1:]} (90 % range; {median}{more})."
    left = max(0, state.budget_answers - collected)
    if not left:
        text += " The budget is used up."
    elif high > left:
        verb = "will" if low > left else "may"
        text += f" The budget {verb} run out first: {left:,} {plural(left, 'answer')} left."
    return text


def number_range(low: float, high: float, form: str = ",.0f") -> str:
    """`400 to 1,100`; `up to 1,100` where the lower end is negligible."""
    ends = format(low, form), format(high, form)
    if ends[0] == ends[1]:
        return ends[1]
    return f"up to {ends[1]}" if is_little(low, high) else " to ".join(ends)


def plural(count: float, noun: str) -> str:
    """The noun in singular or plural: `answer` or `answers`."""
    return noun if count == 1 else f"{noun}s"


def _participants(count: Range) -> str:
    if count[1] == 0:
        return "no further participants"
    return f"{number_range(*count)} further {plural(count[1], 'participant')}"


def _hours(hours: Range) -> str:
    if hours[1] < 1:
        low, high = (max(1.0, round(60 * end)) for end in hours)
        return f"{number_range(low, high)} {plural(high, 'minute')} of participants' time"
    form = ",.0f" if hours[1] >= 10 else ".1f"
    return f"{number_range(*hours, form)} hours of participants' time"


def costs(pay: Pay, crowd: Crowd, trials: int, coming: Ahead) -> dict[str, Any]:
    """What was spent, and the forecast until stopping; `currency` is None where no pay is set."""
    if not pay.is_set:
        return {"currency": None, "message": HINT}
    spent = cost(pay, crowd.finished, crowd.hours)
    hours = crowd.hours / crowd.finished if crowd.hours else trials * crowd.trial_hours
    per_participant = cost(pay, 1, hours)
    under_way = crowd.under_way * per_participant
    more: Range | None = None
    if coming.participants is not None:
        more = (
            under_way + coming.participants[0] * per_participant,
            under_way + coming.participants[1] * per_participant,
        )
    total = None if more is None else (spent + more[0], spent + more[1])
    return {
        "currency": pay.currency.strip(),
        "participants": crowd.finished,
        "hours": round(crowd.hours, 3),
        "spent": round(spent, 2),
        "under_way": round(under_way, 2),
        "per_participant": round(per_participant, 2),
        "to_stop": _cents(more),
        "total": _cents(total),
        "shown": money(spent, pay.currency),
        "message": _cost_message(pay, crowd, under_way, more, coming),
    }


def _cost_message(
    pay: Pay, crowd: Crowd, under_way: float, more: Range | None, coming: Ahead
) -> str:
    text = f"for {crowd.finished:,} {plural(crowd.finished, 'participant')} who finished"
    text += " (simulated ones cost nothing)" * crowd.simulated
    if more is not None and not coming.met:
        return f"{text}; {about(money_range(*more, pay.currency))} more until stopping"
    if under_way:
        return f"{text}; {money(under_way, pay.currency)} more for {crowd.under_way:,} under way"
    return text


def _cents(amounts: Range | None) -> list[float] | None:
    return None if amounts is None else [round(amount, 2) for amount in amounts]


MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class SessionTimes:
    """The total time of every participant, updated incrementally.

    A pause counts as `idle_minutes` at most: a lunch break is not working time.
    """

    def __init__(self, idle_minutes: int) -> None:
        self._longest = idle_minutes * MINUTE_MS
        self._read = 0
        self._last: Numbers = np.zeros(0, dtype=np.int64)
        self.ms: Numbers = np.zeros(0, dtype=np.int64)

    def update(self, columns: Columns, participants: Sequence[ParticipantSummary]) -> None:
        """Add the answers since the last update; `ms` is indexed by the participant's number."""
        known = len(self.ms)
        size = max((participant.id for participant in participants), default=-1) + 1
        if size > known:
            grown = np.zeros(size - known, dtype=np.int64)
            self._last, self.ms = np.append(self._last, grown), np.append(self.ms, grown)
            for participant in participants:
                if participant.id >= known:
                    self._last[participant.id] = participant.arrived_at
        new = columns.since(self._read)
        self._read = len(columns.seq)
        order = np.lexsort((new.received_at, new.participant))
        who, at = new.participant[order], new.received_at[order]
        first = np.append(True, who[1:] != who[:-1])[: len(who)]
        before = np.where(first, self._last[who], np.roll(at, 1))
        np.add.at(self.ms, who, np.clip(at - before, 0, self._longest))
        last = np.append(first[1:], True)[: len(who)]
        self._last[who[last]] = at[last]
