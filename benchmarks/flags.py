"""Flags: how many honest participants they hit, and how soon they find careless ones.

One module, though long: a benchmark reads from its participants to its page.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.participants.honest_answering import Trials
from lore_active.participants.response_quality import assess, usual
from lore_active.questions.pool import draw
from lore_active.rank.significance import wilson
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.types import Flags, Floats
from server.study.schedule import REPEAT_LAG, schedule

# Thresholds were chosen with other seeds.
DEVELOPMENT, FRESH = 0, 200_000
DIMENSIONS, PRIOR = 2, 0.1
CARELESS_SHARE = 0.1
LOOKS = (0.1, 0.25, 0.5, 1.0)
# Of honest participants: who is quick by nature, and how much the answers of one differ (logs).
TYPICAL_MS, BETWEEN, WITHIN = 1400.0, 0.35, 0.45
FAST_MS = 180.0


@dataclass(frozen=True)
class World:
    """A study: its items, its sessions, and how its honest participants err.

    side: how often honest participants choose their preferred side of two equally near options.
    """

    items: int
    trials: int
    noise: float
    lapse: float = 0.02
    side: float = 0.5
    noise_spread: float = 0.0
    participants: int = 60
    answers: int = 2500
    catch: float = 0.05
    repeat: float = 0.05

    @property
    def n_participants(self) -> int:
        """As many as the answers allow."""
        return int(np.clip(self.answers // self.trials, 12, self.participants))


@dataclass(frozen=True)
class Session:
    """What one participant was asked: rows (anchor, left, right), and what was predicted."""

    questions: NDArray[np.int64]
    kinds: tuple[str, ...]
    predicted: Floats
    repeats: NDArray[np.int64]
    """The trial that each one repeats; -1 for none."""
    nearer: NDArray[np.int64]
    """The known answer of catch trials; -1 for none."""


Answerer = Callable[[Session, np.random.Generator], tuple[Flags, Floats]]


class Honest:
    """Answers from the space, with noise, lapses and a preference for one side."""

    def __init__(self, world: World, space: Floats) -> None:
        self.world, self.space = world, space

    def __call__(self, session: Session, rng: np.random.Generator) -> tuple[Flags, Floats]:
        """Which answers are left, and milliseconds."""
        world = self.world
        # So much nearer seems the side that is liked: Φ(bias / deviation) of ties go there.
        bias = float(np.sqrt(world.noise)) * {0.5: 0.0, 0.55: 0.1257, 0.6: 0.2533}[world.side]
        sign = rng.choice((-1.0, 1.0))
        observer_noise = ObserverNoise(world.noise, world.noise_spread, world.lapse, sign * bias)
        observer = Observer(self.space, observer_noise, int(rng.integers(2**62)))
        pace = TYPICAL_MS * rng.lognormal(0.0, BETWEEN)
        return observer.answers(session.questions), rng.lognormal(
            np.log(pace), WITHIN, len(session.kinds)
        )


def careless(world: World, space: Floats) -> dict[str, Answerer]:
    """All ways of not caring."""
    honest = Honest(world, space)

    def times(session: Session, rng: np.random.Generator, pace: float = TYPICAL_MS) -> Floats:
        return rng.lognormal(np.log(pace), WITHIN, len(session.kinds))

    def guess(session: Session, rng: np.random.Generator) -> Flags:
        return rng.random(len(session.kinds)) < 0.5

    def later(session: Session, rng: np.random.Generator, then: Flags) -> tuple[Flags, Floats]:
        answers, ms = honest(session, rng)
        half = len(answers) // 2
        return np.concatenate([answers[:half], then[half:]]), ms

    def every(session: Session, value: bool) -> Flags:
        return np.full(len(session.kinds), value)

    return {
        "always left": lambda one, rng: (every(one, True), times(one, rng)),
        "always right": lambda one, rng: (every(one, False), times(one, rng)),
        "alternating": lambda one, rng: (
            np.arange(len(one.kinds)) % 2 == rng.integers(2),
            times(one, rng),
        ),
        "random": lambda one, rng: (guess(one, rng), times(one, rng)),
        "too fast": lambda one, rng: (guess(one, rng), times(one, rng, FAST_MS)),
        "too fast, but right": lambda one, rng: (honest(one, rng)[0], times(one, rng, FAST_MS)),
        "random from the middle on": lambda one, rng: later(one, rng, guess(one, rng)),
        "left from the middle on": lambda one, rng: later(one, rng, every(one, True)),
    }


# ---- a study ------------------------------------------------------------------------------------


class Study:
    """Sessions and answers, with a MAP embedding that is fitted again while answers come in.

    The questions that a study's acquisition function would choose are near-ties here: half of the
    model's questions are the most uncertain of 50 drawn ones.
    """

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = np.random.default_rng([seed, 1])
        self.seed = seed
        self.space = gaussian_space(world.items, DIMENSIONS, seed)
        self.honest = Honest(world, self.space)
        self.careless = careless(world, self.space)
        self.sessions: list[Session] = []
        self.answers: list[tuple[Flags, Floats]] = []
        self.is_careless = self.rng.random(world.n_participants) < CARELESS_SHARE
        self._rows: list[NDArray[np.int64]] = []
        self._model: Floats | None = None
        self._fitted = 0
        kinds = list(self.careless.values())
        for number in range(world.n_participants):
            session = self._session(number)
            who: Answerer = self.honest
            if self.is_careless[number]:
                who = kinds[int(self.rng.integers(len(kinds)))]
            answers = who(session, self.rng)
            self.sessions.append(session)
            self.answers.append(answers)
            self._learn(session, answers[0])

    def _session(self, number: int) -> Session:
        world, rng = self.world, self.rng
        plan = schedule(self.seed, number + 1, world.trials, 0.1, world.catch, world.repeat)
        questions, kinds, repeats, nearer = [], list(plan.kinds), [], []
        for trial, (kind, swap) in enumerate(zip(plan.kinds, plan.swapped, strict=True)):
            again, known = -1, -1
            if kind == "repeat":
                early = [
                    t
                    for t in range(max(0, trial - REPEAT_LAG + 1))
                    if kinds[t] in ("model", "random") and t not in repeats
                ]
                if early:
                    again = int(rng.choice(early))
                    row = questions[again][[0, 2, 1]]
                else:
                    kinds[trial] = kind = "random"
            if kind == "catch":
                row = self._catch()
                known = int(row[1])
            elif kind == "model" and self._model is not None and rng.random() < 0.5:
                drawn = draw(world.items, 50, rng).astype(np.int64)
                row = drawn[np.abs(self._predict(drawn) - 0.5).argmin()]
            elif again < 0:
                kinds[trial] = "random" if kind == "model" else kind
                row = draw(world.items, 1, rng)[0].astype(np.int64)
            if swap and again < 0:
                row = row[[0, 2, 1]]
            questions.append(row)
            repeats.append(again)
            nearer.append(known)
        rows = np.array(questions)
        return Session(rows, tuple(kinds), self._predict(rows), np.array(repeats), np.array(nearer))

    def _catch(self) -> NDArray[np.int64]:
        """An anchor with its nearest and its farthest item: nobody who looks gets that wrong."""
        anchor = int(self.rng.integers(self.world.items))
        order = np.argsort(np.linalg.norm(self.space - self.space[anchor], axis=1))
        return np.array([anchor, order[1], order[-1]])

    def _predict(self, rows: NDArray[np.int64]) -> Floats:
        if self._model is None:
            return np.full(len(rows), np.nan)
        anchor, left, right = (self._model[rows[:, k]] for k in range(3))
        margin = np.linalg.norm(anchor - right, axis=1) - np.linalg.norm(anchor - left, axis=1)
        return np.asarray(1.0 / (1.0 + np.exp(-margin)))

    def _learn(self, session: Session, left: Flags) -> None:
        rows = session.questions[session.nearer < 0]
        left = left[session.nearer < 0]
        self._rows.append(np.where(left[:, None], rows, rows[:, [0, 2, 1]]))
        count = sum(map(len, self._rows))
        if count < 2 * self.world.items or count < 1.05 * self._fitted:
            return
        pairs = as_pairs(as_triplets(np.concatenate(self._rows), n_objects=self.world.items))
        if self._model is None:
            self._model = map_embedding.fits_by_rank(
                pairs, count, PRIOR, DIMENSIONS, True, DIMENSIONS
            )[DIMENSIONS][0]
        else:
            self._model = map_embedding.fitted(pairs, count, PRIOR, self._model, True)[0]
        self._fitted = count

    # ---- flags ----------------------------------------------------------------------------------

    def flags(self, who: Answerer | None, rng: np.random.Generator) -> list[set[str]]:
        """Of each session, if `who` had answered it in its participant's place (None: as it was).

        Flagged is who is flagged at any of some looks while the study grows, each with what was
        known then.
        """
        found: list[set[str]] = [set() for _ in self.sessions]
        given = [
            own if who is None else who(one, rng)
            for one, own in zip(self.sessions, self.answers, strict=True)
        ]
        for look in LOOKS:
            until = max(1, round(look * len(self.sessions)))
            real = as_trials(self.sessions[:until], self.answers[:until])
            known = usual(real, np.ones(until, dtype=bool))
            for number, evidence in assess(as_trials(self.sessions[:until], given), known).items():
                found[number] |= {one.flag for one in evidence}
        return found


def as_trials(sessions: Sequence[Session], answers: Sequence[tuple[Flags, Floats]]) -> Trials:
    """Sessions, one after the other."""
    parts: dict[str, list[Any]] = defaultdict(list)
    before = 0
    for number, (one, (left, ms)) in enumerate(zip(sessions, answers, strict=False)):
        count = len(left)
        parts["order"].append(before + 1 + np.arange(count))
        before += count
        chosen = np.where(left, one.questions[:, 1], one.questions[:, 2])
        other = one.repeats < 0
        parts["participant"].append(np.full(count, number))
        parts["side"].append(left.astype(np.int64))
        parts["predicted"].append(one.predicted)
        parts["searched"].append(np.array([kind == "model" for kind in one.kinds]))
        catch = one.nearer >= 0
        parts["catch"].append(np.where(catch, one.questions[:, 0], -1))
        parts["as_known"].append(np.where(catch, chosen == one.nearer, -1))
        parts["as_before"].append(np.where(other, -1, chosen == chosen[one.repeats]))
        parts["ms"].append(ms)
        parts["implausible"].append(np.zeros(count, dtype=bool))
        parts["blurred"].append(np.zeros(count, dtype=bool))
    return Trials.of_triplets(**{name: np.concatenate(part) for name, part in parts.items()})


# ---- tables -------------------------------------------------------------------------------------

ITEMS, NOISES = (10, 25, 100), (0.05, 0.2, 0.5, 1.0)
LENGTHS = (12, 24, 40, 80, 200)


def worlds() -> Iterator[World]:
    """Studies of all sizes; lapses, sides and differences between participants take turns."""
    observer_noise = (
        {"lapse": 0.0},
        {"lapse": 0.02, "side": 0.55},
        {"lapse": 0.05, "noise_spread": 0.5},
        {"lapse": 0.10, "side": 0.6},
    )
    for number, (items, noise, trials) in enumerate(product(ITEMS, NOISES, LENGTHS)):
        yield replace(World(items, trials, noise), **observer_noise[(number + number // 4) % 4])


@dataclass
class Counts:
    """Participants, and how many of them were flagged, by flag."""

    participants: int = 0
    flagged: int = 0
    by: Counter[str] | None = None

    def add(self, found: list[set[str]]) -> None:
        """Take in some more."""
        self.by = self.by or Counter()
        self.participants += len(found)
        self.flagged += sum(map(bool, found))
        for one in found:
            self.by.update(one)

    def cells(self) -> list[object]:
        """Share with its 95 % interval, and which flags."""
        share = wilson(self.flagged, self.participants)
        by = ", ".join(f"{name} {count}" for name, count in (self.by or Counter()).most_common(4))
        interval = f"{percent(share.low, 1)} to {percent(share.high, 1)}"
        return [self.participants, percent(share.value, 1), interval, by or "–"]


def measure(start: int, rounds: int) -> tuple[dict[object, Counts], dict[object, Counts]]:
    """Honest participants by what may matter; careless ones by kind and length."""
    honest: dict[object, Counts] = {}
    others: dict[object, Counts] = {}
    for number, world in enumerate(worlds()):
        study = Study(world, start + number)
        rng = np.random.default_rng([start + number, 2])
        for _ in range(rounds):
            found = study.flags(study.honest, rng)
            labels = [
                ("all", "all"),
                ("noise", f"{world.noise:g}"),
                ("items", world.items),
                ("trials", world.trials),
                ("lapses", percent(world.lapse)),
                ("preferred side, of ties", percent(world.side)),
                ("noise differs", "yes" if world.noise_spread else "no"),
            ]
            for label in labels:
                honest.setdefault(label, Counts()).add(found)
        for kind, who in study.careless.items():
            others.setdefault((kind, world.trials), Counts()).add(study.flags(who, rng))
            if kind.startswith("random"):
                key = (kind, world.trials, world.noise)
                others.setdefault(key, Counts()).add(study.flags(who, rng))
    return honest, others


def power(start: int, participants: int) -> list[list[object]]:
    """Random answers, by what there is to tell them from honest ones."""
    rows: list[list[object]] = []
    shares = ((0.05, 0.05), (0.15, 0.05), (0.5, 0.0), (1.0, 0.0), (0.05, 0.3))
    for noise in (0.05, 0.2, 1.0):
        for catch, repeat in shares:
            cells: list[object] = [f"{noise:g}", percent(catch), percent(repeat)]
            for trials in (12, 24, 48, 96, 192):
                counts = Counts()
                seed = start
                while counts.participants < participants:
                    world = World(25, trials, noise, catch=catch, repeat=repeat)
                    study = Study(world, seed)
                    rng = np.random.default_rng([seed, 3])
                    for _ in range(3):
                        counts.add(study.flags(study.careless["random"], rng))
                    seed += 1
                cells.append(_share(counts))
            rows.append(cells)
    return rows


def main() -> None:
    """Measure and write docs/benchmarks/flags.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--development", action="store_true", help="seeds for choosing thresholds")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--power", type=int, default=120, help="participants a cell")
    options = parser.parse_args()
    start = DEVELOPMENT if options.development else FRESH
    page = Page("flags", "Flags: honest and careless participants", "make bench-flags")
    page.text(
        "Simulated participants answer studies of 10, 25 and 100 items (two dimensions, noise "
        "variance .05 to 1, lapses 0 to 10 %, a preference for one side of up to 60 % of ties, "
        "sessions of 12 to 200 trials; 10 % random, 5 % catch trials, 5 % repeats, half of the "
        "others near-ties). Every tenth participant of each study is careless, so that the usual "
        "error rates are estimated from a mixture. Predictions are those of a MAP embedding that "
        "is refitted whenever there are 5 % more answers, each made before the answer. A "
        "participant counts as flagged if any flag is raised at any of four points during the "
        "study. Thresholds were chosen with "
        "other seeds (`--development`)."
    )
    honest, others = measure(start, options.rounds)
    page.text("## Honest participants\n\nAt most 2 % may be flagged, all flags together.")
    page.table(
        ("by", "value", "participants", "flagged", "95 % interval", "flags"),
        [[*label, *counts.cells()] for label, counts in sorted(honest.items(), key=_order)],  # type: ignore[misc]
    )
    page.text(
        "## Careless participants\n\nShare flagged. *Too fast*: a median of 180 ms. *From the "
        "middle on*: honest for the first half of the session."
    )
    kinds = list(dict.fromkeys(key[0] for key in others))  # type: ignore[index]
    page.table(
        ("answering", *(f"{trials} trials" for trials in LENGTHS)),
        [[kind, *(_share(others[kind, trials]) for trials in LENGTHS)] for kind in kinds],
    )
    page.table(
        ("answering", "noise", *(f"{trials} trials" for trials in LENGTHS)),
        [
            [kind, f"{noise:g}", *(_share(others[kind, trials, noise]) for trials in LENGTHS)]
            for kind in kinds
            if (kind, LENGTHS[0], NOISES[0]) in others
            for noise in NOISES
        ],
    )
    if options.power:
        page.text(
            "## Random answers: what it takes to detect them\n\nShare of random answerers flagged, "
            "by noise of the honest participants, shares of catch trials and repeats, and trials "
            "(25 items). A participant who guesses gets half of the catch trials right: 12 catch "
            "trials detect about 9 in 10 (24 trials, half of them catch trials; the first trial "
            "of a "
            "session is never one). Fewer do not suffice, and near-ties and noisy questions are "
            "answered alike by guessing and by careful judgement, so 12 trials of any other kind "
            "are not enough."
        )
        header = ("noise", "catch trials", "repeats")
        lengths = (f"{trials} trials" for trials in (12, 24, 48, 96, 192))
        page.table((*header, *lengths), power(start + 50_000, options.power))
    if not options.development:
        page.write()


def percent(share: float, digits: int = 0) -> str:
    """`2 %`."""
    return f"{100 * share:.{digits}f} %"


def _order(entry: tuple[object, Counts]) -> int:
    names = ["all", "noise", "noise differs", "items", "trials", "lapses"]
    name = entry[0][0]  # type: ignore[index]
    return names.index(name) if name in names else len(names)


def _share(counts: Counts) -> str:
    return percent(counts.flagged / counts.participants)


if __name__ == "__main__":
    main()
