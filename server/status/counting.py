"""Counts of answers, answers in the model and participants, with one definition for all uses.

docs/counting.md documents the definitions. Every page, report, replay and export takes its numbers
from here, so that they cannot differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from server.store import collection, imports, journal, models, summaries
from server.store.collection import UNDER_WAY
from server.store.database import Connection
from server.store.summaries import AnswerGroup, ParticipantSummary

# How a stored answer is counted. The first group that applies is the one, so the groups add up.
Fate = Literal["practice", "excluded", "quarantined", "catches", "skipped", "timed_out", "counted"]
MINUTE_MS = 60_000


@dataclass(frozen=True)
class AnswerCounts:
    """A study's answers.

    Answers of simulated participants count like all others until a real one has answered (or for
    good, if the study is set so); after that they are only in simulated_left_out.
    answers: finished trials without practice; the sum of the next six. excluded: from participants
    who are excluded now. quarantined: rows that no model can use. catches: to catch trials.
    skipped, timed_out: trials without a choice. counted: all others, including late ones and
    repeats; the model uses these. imported: imported answers, which the model uses as well. fitted:
    answers in the latest model. simulated: answers of simulated participants, part of `answers`.
    simulated_left_out: answers of simulated participants that are not.
    """

    practice: int
    answers: int
    excluded: int
    quarantined: int
    catches: int
    skipped: int
    timed_out: int
    counted: int
    imported: int
    fitted: int
    simulated: int = 0
    simulated_left_out: int = 0

    @property
    def waiting(self) -> int:
        """Answers that count but are not in the latest model yet; 0 once no participant is left."""
        return max(0, self.counted + self.imported - self.fitted)

    def plain(self) -> dict[str, int]:
        """For JSON."""
        return {**asdict(self), "waiting": self.waiting}


@dataclass(frozen=True)
class ParticipantCounts:
    """A study's participants, simulated ones among them where their answers count.

    arrived: all who opened the study; the sum of the next four. finished: answered all trials.
    declined: did not consent. under_way: may still answer. left: have been idle for
    session.idle_minutes, or came back too late. answered: gave at least one answer, not counting
    practice. excluded: are excluded now. simulated: simulated participants, part of `answered`.
    simulated_left_out: simulated participants that are in none of these.
    """

    arrived: int
    finished: int
    declined: int
    under_way: int
    left: int
    answered: int
    excluded: int
    simulated: int = 0
    simulated_left_out: int = 0


def fate(purpose: str, side: str, excluded: bool, quarantined: bool) -> Fate:
    """The group in which an answer is counted; `side` is left, right, skip or timeout."""
    if purpose == "practice":
        return "practice"
    if excluded:
        return "excluded"
    if quarantined:
        return "quarantined"
    if purpose == "catch":
        return "catches"
    if side == "skip":
        return "skipped"
    return "timed_out" if side == "timeout" else "counted"


class CountsByGroup:
    """Running counts of answers by group; reading takes time only for what is new."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, str, str, str], AnswerGroup] = {}
        # As if no participant were excluded: in total, and for each participant.
        self._fates: Counter[Fate] = Counter()
        self._of: defaultdict[int, Counter[Fate]] = defaultdict(Counter)
        self._last = 0

    def read(self, c: Connection) -> None:
        """Add the answers since the last reading."""
        self._last, new = summaries.answer_groups(c, self._last)
        for counted in new:
            key = (counted.participant, counted.purpose, counted.origin, counted.side)
            known = self._groups.get(key)
            self._groups[key] = counted if known is None else known.plus(counted)
            group = fate(counted.purpose, counted.side, False, False)
            self._fates[group] += counted.count
            self._of[counted.participant][group] += counted.count

    @property
    def groups(self) -> list[AnswerGroup]:
        """All answers by participant, purpose, origin and outcome, practice included."""
        return list(self._groups.values())

    def counts(self, c: Connection, participants: Iterable[ParticipantSummary]) -> AnswerCounts:
        """The counts with the current exclusions, imports and models."""
        fates = self._fates.copy()
        participants, out = list(participants), simulated_left_out(c)
        bots = {
            participant.id for participant in participants if participant.simulated
        } & self._of.keys()
        simulated = sum(self._of[bot].total() - self._of[bot]["practice"] for bot in bots)
        for bot in bots if out else ():
            fates -= self._of[bot]
        excluded = {
            participant.id
            for participant in participants
            if participant.excluded and not (out and participant.simulated)
        }
        for number in excluded & self._of.keys():
            fates -= self._of[number]
            fates["practice"] += self._of[number]["practice"]
            fates["excluded"] += self._of[number].total() - self._of[number]["practice"]
        for answer in summaries.quarantined(c):
            if out and answer.participant in bots:
                continue
            gone = answer.participant in excluded
            fates[fate(answer.purpose, answer.side, gone, False)] -= answer.count
            fates[fate(answer.purpose, answer.side, gone, True)] += answer.count
        return AnswerCounts(
            practice=fates["practice"],
            answers=fates.total() - fates["practice"],
            excluded=fates["excluded"],
            quarantined=fates["quarantined"],
            catches=fates["catches"],
            skipped=fates["skipped"],
            timed_out=fates["timed_out"],
            counted=fates["counted"],
            imported=imports.counting(c),
            fitted=models.latest_fitted(c)[0],
            simulated=0 if out else simulated,
            simulated_left_out=simulated if out else 0,
        )


def answer_counts(c: Connection) -> AnswerCounts:
    """The current counts."""
    running = CountsByGroup()
    running.read(c)
    return running.counts(c, summaries.participants(c))


def simulated_left_out(c: Connection) -> bool:
    """Whether answers of simulated participants are left out because others have answered."""
    return collection.simulated_out(c) is not None


def counting(
    participants: Iterable[ParticipantSummary], left_out: bool
) -> list[ParticipantSummary]:
    """The participants who count: without simulated ones, where these are left out."""
    return [participant for participant in participants if not (left_out and participant.simulated)]


class Fates:
    """How single answers are counted, for files with one answer per row."""

    def __init__(self, c: Connection) -> None:
        self._quarantined = journal.quarantined_answers(c)
        self._up_to_seq = models.latest_fitted(c)[1]
        self.simulated_left_out = simulated_left_out(c)

    def counted(
        self, seq: int, purpose: str, side: str, excluded: bool, simulated: bool = False
    ) -> bool:
        """Whether the model uses an answer."""
        if simulated and self.simulated_left_out:
            return False
        return fate(purpose, side, excluded, seq in self._quarantined) == "counted"

    def fitted(
        self, seq: int, purpose: str, side: str, excluded: bool, simulated: bool = False
    ) -> bool:
        """Whether an answer is in the latest model."""
        return seq <= self._up_to_seq and self.counted(seq, purpose, side, excluded, simulated)


def present(now: int, idle_minutes: int) -> tuple[int, int]:
    """The time window in which a participant who has not left must have been seen.

    After a clock was set back, participants may seem to have been seen in the future. Those still
    there will be seen again; for the others no quota is reserved until then.
    """
    idle = idle_minutes * MINUTE_MS
    return now - idle, now + idle


def is_under_way(participant: ParticipantSummary, since: int, until: int) -> bool:
    """Whether a participant may still answer; `since` and `until` are those of `present`."""
    return participant.stage in UNDER_WAY and since <= participant.seen_at <= until


def participant_counts(
    everybody: Sequence[ParticipantSummary], now: int, idle_minutes: int, left_out: bool = False
) -> ParticipantCounts:
    """Counts of participants by how far they got; `left_out` is `simulated_left_out`."""
    participants = counting(everybody, left_out)
    finished = sum(participant.stage in ("feedback", "finished") for participant in participants)
    declined = sum(participant.stage == "declined" for participant in participants)
    since, until = present(now, idle_minutes)
    under_way = sum(is_under_way(participant, since, until) for participant in participants)
    return ParticipantCounts(
        arrived=len(participants),
        finished=finished,
        declined=declined,
        under_way=under_way,
        left=len(participants) - finished - declined - under_way,
        answered=sum(participant.done > 0 for participant in participants),
        excluded=sum(bool(participant.excluded) for participant in participants),
        simulated=sum(
            bool(participant.simulated) and participant.done > 0 for participant in participants
        ),
        simulated_left_out=len(everybody) - len(participants),
    )
