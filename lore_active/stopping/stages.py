"""The stages of a study: when each applies, and the texts that pages and commands show then.

One table, from which the monitor, the report and its methods text, `replay`, `simulate` and the
reference take their texts, so that they cannot contradict each other. Does not import numba.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lore_active.stopping.criteria import CRITERIA, Criterion, without_rank

# Audits in which a rank that changes back and forth is looked for, unless the rule needs more.
MIN_WINDOW = 3


@dataclass(frozen=True)
class Findings:
    """What has been found by the last audit.

    rank: dimensions reported; 0: none. ranks: those of the last audits, the latest last.
    only_a_bound: one dimension is reported because predictions are better than chance, but
    held-out answers do not determine yet how many there are.
    """

    rank: int
    settled: bool
    criteria: tuple[Criterion, ...] = ()
    ranks: tuple[int, ...] = ()
    only_a_bound: bool = False

    def criterion(self, name: str) -> Criterion | None:
        """The criterion with this name, if the rule has it."""
        return next((criterion for criterion in self.criteria if criterion.name == name), None)

    def met(self, name: str) -> bool:
        """Whether a criterion is met."""
        criterion = self.criterion(name)
        return criterion is not None and criterion.passed

    @property
    def audited(self) -> bool:
        """Whether there has been an audit of the answers that count."""
        unchanged = self.criterion("audits_unchanged")
        return unchanged is None or unchanged.value > 0

    @property
    def alternating(self) -> tuple[int, ...]:
        """The ranks between which recent audits changed back and forth, in order; may be empty."""
        unchanged = self.criterion("audits_unchanged")
        if unchanged is None or unchanged.passed:
            return ()
        recent = self.ranks[-max(MIN_WINDOW, int(unchanged.threshold)) :]
        runs = [rank for k, rank in enumerate(recent) if k == 0 or rank != recent[k - 1]]
        first = next((k for k, rank in enumerate(runs) if rank in runs[k + 1 :]), len(runs))
        return tuple(sorted(set(runs[first:])))


@dataclass(frozen=True)
class Collection:
    """The state of data collection.

    answers: collected, without practice. counted: used for the model, including `imported` ones.
    simulated: how many of the answers are from simulated participants; simulated_left_out: how many
    of theirs are left out. not_counted: how many are not used for the model, and why.
    until_first: answers until the first audit. by_rule: the stopping rule ended collection.
    budget: which budget is used up, as a clause; empty if none.
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
        """Whether no more answers are expected."""
        return self.status == "stopped" or bool(self.budget)


@dataclass(frozen=True)
class Stage:
    """A row of the table; a study is in the first stage that applies.

    when: the condition in words. headline, explanation and methods (past tense, for a paper) have
    placeholders for figures in braces. criteria: those that are shown. ending: the explanation
    already says why collection has ended.
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
        "The first estimate comes after about {until_first} answers.",
        "There were no answers.",
    ),
    Stage(
        "none counted",
        "there are answers, but none is used for the model",
        lambda c, f: c.counted == 0,
        "No usable answers.",
        "Of {answers}, {not_counted}.",
        "None of the answers could be used for the model.",
    ),
    Stage(
        "too few",
        "no audit yet: fewer than two usable answers per item",
        lambda c, f: f is None or not f.audited,
        "Too few answers for an estimate.",
        "The first estimate comes after about {more_answers}.",
        "There were too few answers to estimate the number of dimensions.",
    ),
    Stage(
        "something",
        "no dimension is reported, but the criterion “better than chance” is met",
        lambda c, f: f is not None and f.rank == 0 and f.met("better_than_chance"),
        "Possibly some structure, but no dimensions reported{yet}.",
        "Some questions are predicted better than chance (95 % confidence interval: at least "
        "{accuracy}; chance: 50 %), but this can also happen with random answers. More answers are "
        "needed.",
        "Some questions were predicted better than chance, but no number of dimensions predicted "
        "held-out answers clearly better than guessing.",
        WITHOUT_RANK,
    ),
    Stage(
        "early",
        "no dimension is reported, “better than chance” is not met, and there are fewer answers "
        "than the minimum (stopping.min_answers, or four per item)",
        lambda c, f: f is not None and f.rank == 0 and not f.met("answers"),
        "Too few answers to distinguish them from guessing.",
        "The model has {fitted} answers and needs at least {needed}; so far, it does not predict "
        "better than chance.",
        "There were too few answers to distinguish them from guessing.",
        WITHOUT_RANK,
    ),
    Stage(
        "nothing found",
        "no dimension is reported, “better than chance” is not met, and there are enough answers",
        lambda c, f: f is not None and f.rank == 0,
        "No structure found{so_far}: the answers cannot be distinguished from guessing.",
        "With {fitted} answers in the model, no number of dimensions predicts held-out answers "
        "clearly better than guessing. Check response quality, and whether participants understand "
        "the question.",
        "The answers could not be distinguished from guessing: no number of dimensions predicted "
        "held-out answers clearly better than guessing.",
        WITHOUT_RANK,
    ),
    Stage(
        "settled",
        "every criterion of the stopping rule is met",
        lambda c, f: f is not None and f.settled,
        "{Dimensions}, settled.",
        "{not_supported}, and the number was the same in the last {stable_audits}.{weaker}",
        "The number of dimensions was settled: {dimensions}.{weaker}{ruled_out}",
        ALL,
    ),
    Stage(
        "no longer settled",
        "the stopping rule ended the study, but not all of its criteria are still met",
        lambda c, f: c.status == "stopped" and c.by_rule,
        "{Dimensions}, no longer settled.",
        "The stopping rule ended the study. Late answers or exclusions have since made the number "
        "uncertain, with {met} of {all} criteria met. Reopen the study to continue.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "stopped",
        "dimensions are reported, and the experimenter stopped the study",
        lambda c, f: c.status == "stopped",
        "{Dimensions}, not settled: the study was stopped early.",
        "The experimenter stopped the study with {met} of {all} criteria met.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "budget spent",
        "dimensions are reported, and the budget of answers or participants is used up",
        lambda c, f: bool(c.budget),
        "{Dimensions}, not settled: the budget is used up.",
        "{Budget}, with {met} of {all} criteria met. Increase the budget to continue.",
        NOT_SETTLED,
        ALL,
        ending=True,
    ),
    Stage(
        "wavering",
        "dimensions are reported, and their number has changed back and forth within the last "
        "audits (as many as stopping.audits requires)",
        lambda c, f: f is not None and bool(f.alternating),
        "{Dimensions}: the number still changes from audit to audit.",
        "More answers are needed to decide between these numbers: {met} of {all} criteria met.",
        NOT_SETTLED,
        ALL,
    ),
    Stage(
        "a rank",
        "dimensions are reported, and none of the above applies",
        lambda c, f: True,
        "{Dimensions} so far, not settled yet.",
        "More answers are needed: {met} of {all} criteria met.",
        NOT_SETTLED,
        ALL,
    ),
)
