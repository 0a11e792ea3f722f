"""Honest answering in a study: error rates estimated from all other participants."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.types import Flags, Floats

# A lapse rate of 10 % with guessing gives 5 % errors on catch trials of triplets; slightly more is
# allowed. Nobody is expected to be worse than at nine tenths of the errors of guessing.
LAPSES, MARGIN, MAX_GUESSED = 0.10, 0.005, 0.9
# Weights of the priors on these rates, in trials, for studies with few data.
CATCH_PRIOR, REPEAT_PRIOR, PREDICTION_PRIOR = 8.0, 20.0, 4.0
# Participants differ in noise: the agreement of an honest one with the predictions exceeds chance
# by at least this share of the average. Estimated as the average minus so many standard deviations
# between participants.
MIN_SHARE, MAX_SHARE, DEVIATIONS = 0.35, 0.9, 2.0
DEVIATION_PRIOR, PRIOR_PARTICIPANTS = 0.16, 5.0
# Participants with less information about their own share are not used to estimate it.
MIN_INFORMATION = 4.0
MAX_AGREEMENT = 0.97
# The first predictions of a study are worse than later ones, so they are compared within epochs, in
# which the number of answers grows by this factor; from the 40th to the 60,000th answer.
EPOCH_GROWTH, FIRST_EPOCH, EPOCHS = 1.5, 9, 18
# Too short to see three stimuli and decide.
FAST_MS = 300.0
# The limit of a study: so many robust standard deviations (of log times) below the median.
TIME_DEVIATIONS, MIN_TIME_DEVIATION = 4.0, 0.35
MIN_TIMED_PARTICIPANTS, MIN_TIMES = 10, 5
MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True)
class Trials:
    """Answers to questions of one kind in order of arrival, without practice; arrays of equal
    length.

    picked: (trials, options) whether the option in each place was picked; none where the trial was
    skipped or timed out. first: place of the first pick, -1 if there is none. predicted:
    probability under the model before the answer that the most probable option is picked first; nan
    without a model. agrees: whether that option was picked. searched: whether the acquisition
    function selected the question. order: index of the answer in the study, from 1. catch: a number
    for each different question with a known answer, -1 for all others. as_known: whether the known
    option was picked, as_before: whether the answer is alike to the participant's own earlier one
    (`Kind.min_alike`); -1 where there is none. ms: upper bound of the response time; nan where it
    is unknown.
    """

    participant: NDArray[Any]
    picked: Flags
    first: NDArray[Any]
    predicted: Floats
    agrees: Flags
    searched: Flags
    order: NDArray[Any]
    catch: NDArray[Any]
    as_known: NDArray[Any]
    as_before: NDArray[Any]
    ms: Floats
    implausible: Flags
    blurred: Flags
    kind: Kind = TRIPLET

    @classmethod
    def of_triplets(cls, side: NDArray[Any], predicted: Floats, **others: Any) -> Self:
        """Answers to triplets. side: 1 left, 0 right, -1 none; predicted: probability of left."""
        left = side == 1
        return cls(
            picked=np.column_stack([left, side == 0]),
            first=np.where(side < 0, -1, np.where(left, 0, 1)),
            predicted=np.maximum(predicted, 1.0 - predicted),
            agrees=left == (predicted > 0.5),
            **others,
        )

    def take(self, rows: Any) -> Trials:
        """A subset of the trials."""
        columns = [field.name for field in fields(self) if field.name != "kind"]
        return Trials(**{name: getattr(self, name)[rows] for name in columns}, kind=self.kind)

    def __len__(self) -> int:
        return len(self.participant)

    @property
    def decided(self) -> Flags:
        """Answers with a choice, as opposed to skips and time-outs."""
        return np.asarray(self.first >= 0)

    @property
    def chance(self) -> float:
        """Probability that a guess picks a given option."""
        return self.kind.chance_overlap


@dataclass(frozen=True)
class Reference:
    """Sums over all participants who count, and for each of them, so that participants are not
    compared with themselves. Arrays are indexed by the participant's number."""

    catches: Floats
    """By question with a known answer: (trials, wrong)."""
    own_catches: NDArray[np.int64]
    """Sorted keys (participant · questions + question) of …"""
    own_catch_sums: Floats
    """… (trials, wrong)."""
    repeats: Floats
    """By participant: (trials, alike)."""
    products: Floats
    """By participant and kind of prediction: (Σ prediction², Σ prediction · answer), both of them
    minus chance."""
    share: float
    floor_ms: float
    kind: Kind


@dataclass(frozen=True)
class Honest:
    """The largest probability of each kind of error under honest answering, for each trial."""

    wrong: Floats
    unlike: Floats
    missed: Floats
    floor_ms: float


def reference(trials: Trials, counts: Flags) -> Reference:
    """Sums over the participants who count; `counts` is indexed by participant."""
    rows = trials.take(counts[trials.participant])
    size = len(counts)
    decided = rows.decided
    catch = decided & (rows.as_known >= 0)
    questions = int(rows.catch[catch].max(initial=-1)) + 1
    wrong = rows.as_known[catch] == 0
    keys, place = np.unique(
        rows.participant[catch].astype(np.int64) * questions + rows.catch[catch],
        return_inverse=True,
    )
    repeat = decided & ~catch & (rows.as_before >= 0)
    products = _products(rows, decided & ~catch, size)
    return Reference(
        catches=_sums(rows.catch[catch], wrong, questions),
        own_catches=keys,
        own_catch_sums=_sums(place, wrong, len(keys)),
        repeats=_sums(rows.participant[repeat], rows.as_before[repeat] == 1, size),
        products=products,
        share=_honest_share(products, rows.kind),
        floor_ms=_floor_ms(rows),
        kind=rows.kind,
    )


def nobody(size: int, kind: Kind = TRIPLET) -> Reference:
    """A reference without any participant."""
    none, off = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    picked = np.zeros((0, kind.options), dtype=bool)
    empty = Trials(
        *(none, picked, none, np.zeros(0), off, off, none, none, none, none, np.zeros(0)),
        *(off, off, kind),
    )
    return reference(empty, np.zeros(size, dtype=bool))


def honest(trials: Trials, known: Reference) -> Honest:
    """Error probabilities of honest participants in these trials."""
    return Honest(
        _wrong(trials, known), _unlike(trials, known), _missed(trials, known), known.floor_ms
    )


def relative_order(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index of each row within its group, from 0."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    begins = np.cumsum(counts) - counts
    indices = np.empty(len(groups), dtype=np.int64)
    indices[order] = np.arange(len(groups)) - np.repeat(begins, counts)
    return indices


def _sums(groups: NDArray[Any], event: Flags, size: int) -> Floats:
    total = np.bincount(groups, minlength=size)
    return np.column_stack([total, np.bincount(groups[event], minlength=size)]).astype(np.float64)


# ---- catch trials and repeats -------------------------------------------------------------------


def min_wrong(kind: Kind) -> float:
    """Share of catch trials that honest participants may get wrong in any study."""
    return LAPSES * (1.0 - kind.chance_overlap) + MARGIN


def _wrong(trials: Trials, known: Reference) -> Floats:
    """Catch errors; a question that others also get wrong says little about a participant."""
    questions = len(known.catches)
    others = np.zeros((len(trials), 2))
    inside = (trials.catch >= 0) & (trials.catch < questions)
    others[inside] = known.catches[trials.catch[inside]]
    keys = trials.participant.astype(np.int64) * questions + trials.catch
    if len(known.own_catches):
        at = np.minimum(np.searchsorted(known.own_catches, keys), len(known.own_catches) - 1)
        own = inside & (known.own_catches[at] == keys)
        others[own] -= known.own_catch_sums[at[own]]
    minimum = min_wrong(trials.kind)
    share = (others[:, 1] + minimum * CATCH_PRIOR) / (others[:, 0] + CATCH_PRIOR)
    return np.clip(share, minimum, MAX_GUESSED * (1.0 - trials.chance))


def _unlike(trials: Trials, known: Reference) -> Floats:
    """Inconsistent repeats: where answers exceed chance by a share s, consistency does by s²."""
    chance = trials.kind.chance_alike
    others = known.repeats.sum(axis=0) - known.repeats
    alike = (others[:, 1] + chance * REPEAT_PRIOR) / (others[:, 0] + REPEAT_PRIOR)
    beyond = np.maximum(0.0, alike - chance) * known.share**2
    return np.asarray(((1.0 - chance) - beyond)[trials.participant])


# ---- predictions --------------------------------------------------------------------------------


def _prediction_kinds(rows: Trials) -> NDArray[np.int64]:
    """Groups of about equally good predictions: by epoch, and by whether they were selected."""
    time = np.floor(np.log(np.maximum(rows.order, 1)) / np.log(EPOCH_GROWTH)).astype(np.int64)
    return np.asarray(2 * np.clip(time - FIRST_EPOCH, 0, EPOCHS - 1) + rows.searched)


def _products(rows: Trials, of: Flags, size: int) -> Floats:
    which = of & ~np.isnan(rows.predicted)
    some = rows.take(which)
    kinds = 2 * EPOCHS
    place = some.participant.astype(np.int64) * kinds + _prediction_kinds(some)
    x, y = some.predicted - some.chance, some.agrees - some.chance
    sums = [np.bincount(place, weight, size * kinds) for weight in (x * x, x * y)]
    return np.stack(sums, axis=-1, dtype=np.float64).reshape(size, kinds, 2)


def _slopes(products: Floats, kind: Kind) -> Floats:
    """Regression of others' answers on the predictions: 1 where these are calibrated."""
    others = products.sum(axis=0) - products
    # The prior shrinks slopes to 0 where there are no answers of others.
    slopes = others[..., 1] / (others[..., 0] + _variance(kind) * PREDICTION_PRIOR)
    return np.asarray(np.clip(slopes, 0.0, 1.5))


def _variance(kind: Kind) -> float:
    """Variance of a guess: ¼ for triplets."""
    return kind.chance_overlap * (1.0 - kind.chance_overlap)


def _honest_share(products: Floats, kind: Kind) -> float:
    """The smallest agreement beyond chance of an honest participant, as a share of the average."""
    slopes, variance_of_guess = _slopes(products, kind), _variance(kind)
    information = (slopes**2 * products[..., 0]).sum(axis=1)
    agreement = (slopes * products[..., 1]).sum(axis=1)
    some = information / variance_of_guess >= MIN_INFORMATION
    ratios, variances = agreement[some] / information[some], variance_of_guess / information[some]
    estimate = 0.0
    if some.any():
        middle = np.median(ratios)
        between = (MAD_TO_DEVIATION * np.median(np.abs(ratios - middle))) ** 2
        estimate = max(0.0, float(between - np.median(variances)))
    count = int(some.sum())
    variance = (count * estimate + PRIOR_PARTICIPANTS * DEVIATION_PRIOR**2) / (
        count + PRIOR_PARTICIPANTS
    )
    return float(np.clip(1.0 - DEVIATIONS * np.sqrt(variance), MIN_SHARE, MAX_SHARE))


def _missed(trials: Trials, known: Reference) -> Floats:
    slopes = _slopes(known.products, trials.kind)[trials.participant, _prediction_kinds(trials)]
    x = np.nan_to_num(trials.predicted, nan=trials.chance) - trials.chance
    agreement = trials.chance + known.share * slopes * np.maximum(x, 0.0)
    return np.asarray(1.0 - np.minimum(agreement, MAX_AGREEMENT))


# ---- times --------------------------------------------------------------------------------------


def _floor_ms(rows: Trials) -> float:
    """The limit below which answers are too fast: `FAST_MS`, or more in slow studies."""
    timed = ~np.isnan(rows.ms) & (rows.ms > 0.0)
    who, ms = rows.participant[timed], rows.ms[timed]
    order = np.lexsort((ms, who))
    _, counts = np.unique(who, return_counts=True)
    begins = np.cumsum(counts) - counts
    medians = np.log(ms[order][begins + counts // 2][counts >= MIN_TIMES])
    if len(medians) < MIN_TIMED_PARTICIPANTS:
        return FAST_MS
    middle = float(np.median(medians))
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(medians - middle)))
    below = TIME_DEVIATIONS * max(deviation, MIN_TIME_DEVIATION)
    return max(FAST_MS, float(np.exp(middle - below)))
