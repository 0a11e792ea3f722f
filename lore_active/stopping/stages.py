"""The stages of a study: how each is recognised and what is said then, by every page and command.

One table, from which the monitor, the report and its methods text, `replay`, `simulate` and the
reference take their sentences, so that none of them can contradict another. Needs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lore_active.stopping.criteria import CRITERIA, Criterion, without_rank

# Audits that are looked at for a rank that comes back, if the rule does not ask for more.
MIN_WINDOW = 3


@dataclass(frozen=True)
class Findings:
    """What a learner has found by its last audit.

    rank: dimensions reported; 0: none. ranks: those of the last audits, the newest last.
    only_a_bound: one dimension is reported because predictions are better than chance, while
    held-out answers cannot tell yet how many there are.
    """

    rank: int
    settled: bool
    criteria: tuple[Criterion, ...] = ()
    ranks: tuple[int, ...] = ()
    only_a_bound: bool = False

    def criterion(self, name: str) -> Criterion | None:
        """One of the criteria, if the rule has it."""
        return next((one for one in self.criteria if one.name == name), None)

    def met(self, name: str) -> bool:
        """Whether a criterion holds."""
        one = self.criterion(name)
        return one is not None and one.passed

    @property
    def audited(self) -> bool:
        """Whether there has been an audit of the answers that count."""
        held = self.criterion("audits_unchanged")
        return held is None or held.value > 0

    @property
    def alternating(self) -> tuple[int, ...]:
        """The ranks that lately were left and come back to, in order; none if there are none."""
        held = self.criterion("audits_unchanged")
        if held is None or held.passed:
            return ()
        lately = self.ranks[-max(MIN_WINDOW, int(held.threshold)) :]
        turns = [rank for k, rank in enumerate(lately) if k == 0 or rank != lately[k - 1]]
        left = next((k for k, rank in enumerate(turns) if rank in turns[k + 1 :]), len(turns))
        return tuple(sorted(set(turns[left:])))


@dataclass(frozen=True)
class Collection:
    """How collection stands.

    answers: collected, practice aside. counted: those for the model, `imported` ones included.
    simulated: how many of the answers are of simulated participants; simulated_left_out: how many
    of theirs are not among them. not_counted: how many are not for the model, and why.
    until_first: answers that the first audit still needs. by_rule: the stopping rule ended it.
    budget: what has been used up, in words; empty if nothing.
    """

    status: str = "running"
    started: bool = True
    answers: int = 0
    counted: int = 0
    imported: int = 0
    simulated: int = 0
    simulated_left_out: int = 0
    not_counted: tuple[tuple[int, str], ...] = ()
    until_first: int = 0
    by_rule: bool = False
    budget: str = ""

    @property
    def ended(self) -> bool:
        """Whether no more answers are to be expected."""
        return self.status == "stopped" or bool(self.budget)


@dataclass(frozen=True)
class Stage:
    """A row of the table; the first row that applies is the stage that a study is in.

    when: how it is recognised, in words. headline, explanation and methods (past tense, for a
    paper) have places for figures in braces. criteria: those that are shown. ending: whether the
    explanation says already why collection has ended.
    """

    name: str
    when: str
    applies: Callable[[Collection, Findings | None], bool]
    headline: str
    explanation: str
    methods: str
    criteria: tuple[str, ...] = ()
    ending: bool = False

    @property
    def has_rank(self) -> bool:
        """Whether a number of dimensions is reported, and with it a map and its accuracy."""
        return len(self.criteria) > len(WITHOUT_RANK)

    def shows(self, name: str) -> bool:
        """Whether a criterion makes sense at this stage; also one of a rule that was added."""
        return self.has_rank or (bool(self.criteria) and name in without_rank())


ALL = tuple(CRITERIA)
WITHOUT_RANK = without_rank()
NOT_SETTLED = "The number of dimensions was not settled; the best estimate was {dimensions}."
STAGES: tuple[Stage, ...] = (
    Stage(
        "no answers",
        "no answers, collected or imported",
        lambda c, f: c.answers == 0 and c.counted == 0,
        "No answers yet.",
        "The first estimate needs about {until_first} answers.",
        "There were no answers.",
    ),
    Stage(
        "none counted",
        "there are answers, but none of them counts for the model",
        lambda c, f: c.counted == 0,
        "No answers to learn from.",
        "Of {answers}, {not_counted}.",
        "None of the answers counted for the model.",
    ),
    Stage(
        "too few",
        "no audit yet: fewer than two answers per item that count",
        lambda c, f: f is None or not f.audited,
        "Too few answers for an estimate.",
        "The first estimate needs about {until_first} more.",
        "There were too few answers for an estimate of the number of dimensions.",
    ),
    Stage(
        "something",
        "no dimension is reported, but the criterion “better than chance” is met",
        lambda c, f: f is not None and f.rank == 0 and f.met("better_than_chance"),
        "Possibly some structure, but no number of dimensions{yet}.",
        "Some questions are predicted better than chance (95 % confidence interval: at least "
        "{accuracy}; chance: 50 %), but that happens with mere guesses, too. More answers are "
        "needed to tell.",
        "Some questions were predicted better than chance, but no number of dimensions predicted "
        "held-out answers clearly better than guessing.",
        WITHOUT_RANK,
    ),
    Stage(
        "early",
        "no dimension is reported, “better than chance” is not met, and there are fewer answers "
        "than the least to begin with (stopping.min_answers, or four per item)",
        lambda c, f: f is not None and f.rank == 0 and not f.met("answers"),
        "Too few answers to distinguish them from guessing.",
        "{fitted} of at least {needed} answers are in the model; so far they are not predicted "
        "better than chance.",
        "There were too few answers to distinguish them from guessing.",
        WITHOUT_RANK,
    ),
    Stage(
        "nothing found",
        "no dimension is reported, “better than chance” is not met, and there are enough answers",
        lambda c, f: f is not None and f.rank == 0,
        "Nothing found{so_far}: the answers cannot be distinguished from guessing.",
        "With {fitted} answers in the model, no number of dimensions predicts held-out answers "
        "clearly better than guessing. Look at the quality of responses, and whether the question "
        "is understood.",
        "The answers could not be distinguished from guessing: no number of dimensions predicted "
        "held-out answers clearly better.",
        WITHOUT_RANK,
    ),
    Stage(
        "settled",
        "every criterion of the stopping rule is met",
        lambda c, f: f is not None and f.settled,
        "{Dimensions}, settled.",
        "Neither fewer nor more dimensions are supported, and the number was the same in the last "
        "{held} audits.",
        "The number of dimensions was settled: {dimensions}.",
        ALL,
    ),
    Stage(
        "no longer settled",
        "the stopping rule ended the study, but its criteria are not all met any more",
        lambda c, f: c.status == "stopped" and c.by_rule,
        "{Dimensions}, no longer settled.",
        "The stopping rule ended the study. What changed since then, late answers or exclusions, "
        "leaves the number uncertain: {met} of {all} criteria are met. Reopen the study to go on.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "stopped",
        "dimensions are reported, and the experimenter stopped the study",
        lambda c, f: c.status == "stopped",
        "{Dimensions}, not settled: the study was stopped before.",
        "The experimenter stopped the study when {met} of {all} criteria were met.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "budget spent",
        "dimensions are reported, and the budget of answers or participants is used up",
        lambda c, f: bool(c.budget),
        "{Dimensions}, not settled: the budget is used up.",
        "{Budget}, and {met} of {all} criteria are met. A larger budget lets the study go on.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "wavering",
        "dimensions are reported, and within as many audits as stopping.audits asks for the number "
        "has left a value and come back to it",
        lambda c, f: f is not None and bool(f.alternating),
        "{Dimensions}: the number still changes from audit to audit.",
        "More answers are needed to decide between them; {met} of {all} criteria are met.",
        NOT_SETTLED,
        ALL,
    ),
    Stage(
        "a rank",
        "dimensions are reported, and none of the above applies",
        lambda c, f: True,
        "{Dimensions} so far, not settled yet.",
        "More answers are needed to be sure; {met} of {all} criteria are met.",
        NOT_SETTLED,
        ALL,
    ),
)
