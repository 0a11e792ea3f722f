"""Response quality: figures and flags of each participant, updated incrementally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan, log

import numpy as np

from lore_active.participants.honest_answering import Reference, Trials, nobody
from lore_active.participants.response_quality import Evidence, assess, every_test, usual
from lore_active.questions.kinds import Kind
from lore_active.row_table import NOTHING
from lore_active.trials.prediction import most_probable
from lore_active.types import Flags, Floats
from server.monitor.answers import CATCH, PARTIAL, PURPOSES, REPEAT, Columns, Numbers, Whole
from server.store import models
from server.store.database import Connection
from server.store.summaries import AnswerRow, ParticipantSummary

ACTIVE = PURPOSES.index("active")
# A page's clock and the server's need not run at the same speed, nor count the same millisecond.
CLOCK_DRIFT, CLOCK_MS = 1.05, 100.0
# The reference that participants are compared with is estimated again when the study has grown by
# this factor, always from the first so many answers, so that all readers get the same result.
GROWTH = 1.05


@dataclass(frozen=True)
class Quality:
    """Figures of one participant; a share is None where its denominator is zero."""

    answers: int
    catches: int
    catch_right: int
    repeats: int
    repeats_alike: int
    overlap: float | None
    """Mean share of the choices that are the same in repeats."""
    places: tuple[float, ...]
    """Share of trials in which the option in each place was chosen; empty without answers."""
    sides: int
    median_ms: float | None
    times: int
    fast: float | None
    implausible: float | None
    blurred: float | None
    agreement: float | None
    agreements: int
    floor_ms: float
    """Response times below this are too fast in this study."""
    evidence: tuple[Evidence, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that are raised."""
        return tuple(evidence.flag for evidence in self.evidence)


COUNTS = (
    "answers",
    "catches",
    "catch_right",
    "repeats",
    "repeats_alike",
    "shared",
    "sides",
    "times",
    "implausible",
    "blurred",
    "judged",
    "agrees",
)


class Qualities:
    """Figures of all participants, updated only for those with new answers.

    `of` is indexed by the participant's number; index 0 is unused. Real participants are compared
    with real ones, simulated participants with simulated ones.
    """

    def __init__(self, items: int, kind: Kind) -> None:
        self.of: list[Quality] = []
        self._items, self._kind = items, kind
        self._taken = 0
        self._counts = np.zeros((len(COUNTS), 0), dtype=np.int64)
        self._places = np.zeros((kind.options, 0), dtype=np.int64)
        self._medians = np.zeros(0)
        self._catches: dict[int, int] = {}
        self._simulated = np.zeros(0, dtype=bool)
        # For real, and for simulated participants.
        self._usual: tuple[Reference, Reference] = (nobody(1, kind), nobody(1, kind))
        self._usual_of: tuple[int, bytes, bytes] = (0, b"", b"")

    def update(self, columns: Columns, participants: Sequence[ParticipantSummary]) -> None:
        """Add the answers since the last update."""
        size = max((participant.id for participant in participants), default=0) + 1
        missing = size - len(self.of)
        self._counts = np.pad(self._counts, ((0, 0), (0, missing)))
        self._places = np.pad(self._places, ((0, 0), (0, missing)))
        self._medians = np.pad(self._medians, (0, missing), constant_values=np.nan)
        self._simulated = np.zeros(size, dtype=bool)
        self._simulated[
            [participant.id for participant in participants if participant.simulated]
        ] = True
        self.of += [self._quality(who) for who in range(size - missing, size)]
        new = columns.since(self._taken)
        self._taken += len(new.seq)
        conditions = _conditions(new, self._kind)
        self._counts += np.array([self._counted(new, condition) for condition in conditions])
        self._places += np.array([self._counted(new, place) for place in new.picked.T])
        touched = np.unique(new.participant)
        _update_medians(self._medians, columns, touched)
        if self._estimate(columns, participants, size) or missing:
            touched = np.arange(size)
        mine = np.zeros(size, dtype=bool)
        mine[touched] = True
        evidence: dict[int, tuple[Evidence, ...]] = {}
        fast = np.zeros(size, dtype=np.int64)
        for kind, known in enumerate(self._usual):
            trials = self._trials(_of(columns, mine & (self._simulated == kind)))
            if len(trials):
                evidence |= assess(trials, known)
                below = trials.participant[trials.ms < known.floor_ms]
                fast += np.bincount(below, minlength=size)
        for who in touched.tolist():
            self.of[who] = self._quality(who, evidence.get(who, ()), int(fast[who]))

    def tests(self, participant: int, session: Columns) -> tuple[Evidence, ...]:
        """All tests of one participant's session, whether flagged or not."""
        return every_test(self._trials(session), self._usual[int(self._simulated[participant])])

    def _estimate(
        self, columns: Columns, participants: Sequence[ParticipantSummary], size: int
    ) -> bool:
        """Estimate the references again if needed; whether that was the case."""
        counts = np.zeros(size, dtype=bool)
        counts[[participant.id for participant in participants if not participant.excluded]] = True
        count = _grid(len(columns.seq))
        of = (count, counts.tobytes(), self._simulated.tobytes())
        if of == self._usual_of:
            return False
        self._usual_of = of
        trials = self._trials(columns.until(count))
        self._usual = (
            usual(trials, counts & ~self._simulated),
            usual(trials, counts & self._simulated),
        )
        return True

    def _trials(self, columns: Columns) -> Trials:
        catch = columns.decided & (columns.purpose == CATCH)
        numbers = np.full(len(columns.seq), NOTHING, dtype=np.int64)
        numbers[catch] = self._catch_numbers(columns, catch)
        return Trials(
            participant=columns.participant.astype(np.int64),
            picked=columns.picked,
            first=columns.first.astype(np.int64),
            predicted=columns.predicted.astype(np.float64),
            agrees=columns.agrees,
            searched=np.asarray(columns.purpose == ACTIVE),
            order=columns.seq,
            catch=numbers,
            as_known=np.where(catch, columns.as_known, NOTHING),
            as_before=np.where(_compared(columns), _alike(columns, self._kind), NOTHING),
            ms=_at_most_ms(columns),
            implausible=implausible(columns),
            blurred=np.asarray(columns.blurred > 0),
            kind=self._kind,
        )

    def _catch_numbers(self, columns: Columns, catch: Flags) -> list[int]:
        """Numbers of catch questions; those about an item and itself share one number."""
        anchor, known = (
            column[catch].astype(np.int64) for column in (columns.anchor, columns.known)
        )
        shown = np.sort(columns.options[catch], axis=1)
        itself = (anchor == known) | (shown[:, 1:] == shown[:, :-1]).any(axis=1)
        keys = np.where(itself, NOTHING, (anchor + 1) * self._items + known)
        return [self._catches.setdefault(key, len(self._catches)) for key in keys.tolist()]

    def _counted(self, columns: Columns, which: Whole) -> Numbers:
        who, size = columns.participant, len(self.of)
        if which.dtype == bool:
            return np.bincount(who[which], minlength=size).astype(np.int64)
        return np.bincount(who, which, minlength=size).astype(np.int64)

    def _quality(self, who: int, evidence: tuple[Evidence, ...] = (), fast: int = 0) -> Quality:
        of = dict(zip(COUNTS, self._counts[:, who].tolist(), strict=True))

        def share(part: float, whole: str) -> float | None:
            return part / of[whole] if of[whole] else None

        middle = float(self._medians[who])
        return Quality(
            answers=of["answers"],
            catches=of["catches"],
            catch_right=of["catch_right"],
            repeats=of["repeats"],
            repeats_alike=of["repeats_alike"],
            overlap=share(of["shared"] / self._kind.pick, "repeats"),
            places=tuple((self._places[:, who] / of["sides"]).tolist()) if of["sides"] else (),
            sides=of["sides"],
            median_ms=None if isnan(middle) else middle,
            times=of["times"],
            fast=share(fast, "times"),
            implausible=share(of["implausible"], "answers"),
            blurred=share(of["blurred"], "answers"),
            agreement=share(of["agrees"], "judged"),
            agreements=of["judged"],
            floor_ms=self._usual[int(self._simulated[who])].floor_ms,
            evidence=evidence,
        )


def response_ms(columns: Columns) -> Floats:
    """Response times measured by pages, capped at the time that passed on the server; else nan."""
    return np.where(np.isnan(columns.rt_ms), np.nan, _at_most_ms(columns))


def _grid(count: int) -> int:
    """The largest power of GROWTH, rounded down, that is not above `count`."""
    if count < 1:
        return 0
    return min(count, int(GROWTH ** int(log(count) / log(GROWTH))))


def _of(columns: Columns, participants: Flags) -> Columns:
    rows = participants[columns.participant]
    return Columns(**{name: column[rows] for name, column in columns.__dict__.items()})


def _at_most_ms(columns: Columns) -> Floats:
    """Upper bound of each response time, by the page's and the server's clock; nan: unknown."""
    elapsed = np.where(columns.elapsed_ms < 0, np.nan, columns.elapsed_ms)
    return np.asarray(np.fmin(columns.rt_ms, elapsed), dtype=np.float64)


def implausible(columns: Columns) -> Flags:
    """Answers with impossible or incomplete timings; pages without timings are not counted."""
    most = CLOCK_DRIFT * columns.elapsed_ms + CLOCK_MS
    too_long = (columns.elapsed_ms >= 0) & (columns.rt_ms > most)
    return np.asarray(too_long | (columns.timing == PARTIAL))


def _update_medians(medians: Floats, columns: Columns, touched: Numbers) -> None:
    """Recompute the median times of participants with new answers."""
    theirs = np.zeros(len(medians), dtype=bool)
    theirs[touched] = True
    measured = response_ms(columns)
    rows = np.flatnonzero(theirs[columns.participant] & ~np.isnan(measured))
    who, times = columns.participant[rows], measured[rows]
    times = times[np.lexsort((times, who))]
    participants, counts = np.unique(who, return_counts=True)
    begins = np.cumsum(counts) - counts
    medians[participants] = (times[begins + (counts - 1) // 2] + times[begins + counts // 2]) / 2


def _alike(columns: Columns, kind: Kind) -> Whole:
    """Whether an answer is alike to the one before; NOTHING where there is none."""
    none = columns.shared == NOTHING
    return np.where(none, NOTHING, columns.shared >= kind.min_alike)


def _compared(columns: Columns) -> Flags:
    """Repeats of an answered question."""
    return np.asarray((columns.purpose == REPEAT) & (columns.shared != NOTHING))


def _conditions(columns: Columns, kind: Kind) -> list[Whole]:
    """For each of COUNTS, which answers it counts, or how much each adds."""
    decided = columns.decided
    catch = decided & (columns.purpose == CATCH)
    repeat = decided & _compared(columns)
    # In a catch trial an option may be the anchor itself; predictions do not apply there.
    judged = decided & ~catch & ~np.isnan(columns.predicted)
    return [
        np.ones(len(columns.seq), dtype=bool),
        catch,
        catch & (columns.as_known == 1),
        repeat,
        repeat & (columns.shared >= kind.min_alike),
        np.where(repeat, columns.shared, 0),
        decided,
        ~np.isnan(_at_most_ms(columns)),
        implausible(columns),
        columns.blurred > 0,
        judged,
        judged & columns.agrees,
    ]


# Questions wait in a queue, so consecutive answers belong to a few different models.
MAX_KEPT = 8


class Predictor:
    """Predicts answers; reads each model when it is first needed, and keeps the latest ones."""

    def __init__(self, items: int, kind: Kind) -> None:
        self._items, self._kind = items, kind
        self._models: dict[int, tuple[Floats, float] | None] = {}

    def predicted(self, c: Connection, rows: Sequence[AnswerRow]) -> tuple[Numbers, Floats]:
        """The place of the most probable option and the probability that it is picked.

        NOTHING and nan where there was no model with a dimension.
        """
        likely, probabilities = np.full(len(rows), NOTHING), np.full(len(rows), np.nan)
        # Sorted by model, so that each is read only once.
        order = sorted(range(len(rows)), key=lambda at: rows[at].version)
        for version, places in groupby(order, key=lambda at: rows[at].version):
            model = self._model(c, version)
            if model is None:
                continue
            z, temperature = model
            at = list(places)
            asked = [(rows[row].anchor or 0, *rows[row].options) for row in at]
            likely[at], probabilities[at] = most_probable(
                z, temperature, np.array(asked), self._kind
            )
        return likely, probabilities

    def _model(self, c: Connection, version: int) -> tuple[Floats, float] | None:
        if version not in self._models:
            self._models[version] = self._read(c, version)
            if len(self._models) > MAX_KEPT:
                del self._models[next(iter(self._models))]
        return self._models[version]

    def _read(self, c: Connection, version: int) -> tuple[Floats, float] | None:
        stored = models.coordinates(c, version)
        if stored is None:
            return None
        rank, temperature, held = stored
        # A damaged model predicts nothing; the system status reports the damage.
        if not rank or not temperature > 0.0 or len(held) != 8 * self._items * rank:
            return None
        z = np.frombuffer(held).reshape(self._items, rank)
        return (z, temperature) if np.isfinite(z).all() else None
