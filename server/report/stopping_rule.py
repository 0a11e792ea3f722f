"""The stopping rule of a study in the methods section of its report."""

from __future__ import annotations

from math import ceil, log

from lore_active.rank.significance import CLEARLY_WORSE, GUARD, LEAST, MOST, NONE, REFUTED
from lore_active.stopping.registry import STOPPING_RULES
from lore_active.stopping.rules import LOG_BAYES_PER_ITEM, RankSettled
from lore_active.stopping.sensitivity import DEFAULT_SHARE
from lore_active.stopping.smallest_dimension import PART_OF_INTEREST, SmallestDimension
from lore_active.wording import many
from server.monitor.figures import FURTHER
from server.report.data import ReportData


def stopping(report: ReportData) -> str:
    """The stopping rule with its settings."""
    settings = report.study.settings.stopping
    if report.summary.rule == FURTHER:
        return _smallest_dimension(report)
    if report.summary.rule != "rank_settled":
        return _other_rule(report)
    return (
        f"{_basic_criteria(report, RankSettled.audits)} (5) on "
        "average over these audits, its held-out log-loss was lower than that of one dimension "
        "fewer and that of one more, by the number of standard errors that corresponds to a "
        f"one-sided confidence of {settings.confidence:g} (against one more: on average of LORE "
        "and the acquisition model, with at least half of that difference in each); and (6) at the "
        "last of them, the log Bayes factor in favour of this number was at least "
        f"{log(settings.confidence / (1 - settings.confidence)):.1f} against one dimension fewer, "
        f"and at least {LOG_BAYES_PER_ITEM:g} per item, divided by the number of dimensions, "
        "against one more. Bayes factors were ratios of the marginal likelihoods of embeddings "
        f"with {_likelihood(report)} and a Gaussian prior on the coordinates, by Laplace’s "
        "approximation with the expected information (cf. Tierney & Kadane, 1986). In any case, "
        f"collection was to end after {_budget(report)}."
    )


def _likelihood(report: ReportData) -> str:
    if report.summary.kind.n_comparisons == 1:
        return "a logistic likelihood"
    return "the likelihood of Plackett and Luce"


def _basic_criteria(report: ReportData, default_audits: int) -> str:
    """The criteria that rules about the rank have in common."""
    settings = report.study.settings.stopping
    wanted = settings.audits or default_audits
    audits = int(_criterion(report, "audits_unchanged", "threshold", wanted))
    kind = report.summary.kind
    minimum = settings.min_answers or ceil(4 * report.summary.items / kind.bits)
    what = "answers" if kind.n_comparisons == 1 else "comparisons"
    return (
        "Collection was to stop once all of the following criteria were met: (1) every item had "
        f"appeared in an answered question; (2) there were at least {many(minimum, 'answer')}; "
        f"(3) held-out {what} of questions not selected by the model were predicted better than "
        "chance (lower bound of the 95 % confidence interval above 50 %); (4) the number of "
        f"dimensions had been the same in {many(audits, 'consecutive audit')};"
    )


def _smallest_dimension(report: ReportData) -> str:
    settings = report.study.settings.stopping
    share = _criterion(
        report,
        "further_dimension",
        "share",
        settings.smallest_dimension or DEFAULT_SHARE,
    )
    return (
        f"{_basic_criteria(report, SmallestDimension.audits)} (5) for one dimension, its held-out "
        "log-loss was lower than that of guessing, on average over these audits, by the number of "
        f"standard errors that corresponds to a one-sided confidence of {settings.confidence:g}; "
        f"for more, it was lower than with one dimension fewer by {REFUTED:g} standard errors, or "
        "a Bayes factor (computed as in 6) showed the last of them by at least "
        f"{settings.evidence:g} : 1, and held-out log-loss was not higher than with one dimension "
        f"fewer by more than {CLEARLY_WORSE:g} standard errors; and (6) a further dimension "
        f"that carries at least {100 * share:.3g} % of the differences between items (the smallest "
        "dimension of interest) was ruled out by a Bayes factor of at least "
        f"{settings.evidence:g} : 1, in favour of a weaker one or none, in the geometric mean of "
        "three successive tests, none of which fell short of its square root. In the model with "
        "a further dimension every item has a further coordinate with a Gaussian prior whose "
        f"variance is unknown; there was no such dimension with a prior probability of {NONE:g}, "
        "and otherwise its share had a log-uniform prior from "
        f"{100 * LEAST:g} to {100 * MOST:g} %. Ruled out was that the items had a further "
        f"principal axis of at least {GUARD:g} of the share of interest; the posterior odds were "
        "divided by the prior odds. Posteriors were sampled by "
        "Hamiltonian Monte Carlo along a path of growing shares, with the acceptance ratio "
        "(Bennett, 1976) between its points, in chains that started from the map and from a fit "
        "in one more dimension, each of which had to rule the share out. Thermodynamic "
        "integration over the same draws (Gelman & Meng, 1998) served as a check. Dimensions of "
        f"the map that carried less than {PART_OF_INTEREST:g} of the share of interest did not "
        f"count. In any case, collection was to end after {_budget(report)}."
    )


def _criterion(report: ReportData, name: str, part: str, default: float) -> float:
    """The value or threshold of a criterion of the last decision; the default if there is none."""
    for criterion in report.shown["stopping"]["criteria"]:
        if criterion["name"] == name and criterion.get(part) is not None:
            return float(criterion[part])
    return default


def _other_rule(report: ReportData) -> str:
    name = report.summary.rule
    what = (STOPPING_RULES[name].methods if name in STOPPING_RULES else "") or (
        f"the rule {name!r} was met"
    )
    return f"Collection was to end when {what}; and in any case after {_budget(report)}."


def _budget(report: ReportData) -> str:
    state = report.summary.state
    most = state.budget_participants
    return many(state.budget_answers, "answer") + (
        f" or {many(most, 'participant')}" if most else ""
    )
