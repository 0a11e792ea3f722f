"""The methods section on question selection, the model and its number of dimensions."""

from __future__ import annotations

from lore_active.acquisition.registry import SELECTORS
from lore_active.learner.cadence import AUDIT_GROWTH
from lore_active.questions.kinds import TRIPLET
from lore_active.rank.cross_validation import LAMBDAS
from lore_active.rank.folds import FOLDS
from lore_active.rank.significance import (
    CLEARLY_WORSE,
    MIN_STANDARD_ERRORS,
    SUPPORTED_FROM,
    SUPPORTED_STILL,
)
from lore_active.wording import listed, many
from server.monitor.figures import FURTHER
from server.report import kinds
from server.report.data import ReportData


def question_selection(report: ReportData) -> str:
    """How the questions were selected."""
    selector = report.study.settings.learning.selector
    coverage = (
        "The first questions followed a coverage design, in which items appeared about equally "
        "often. "
    )
    if selector == "random":
        return coverage + "All later questions were drawn uniformly at random."
    model = (
        "Later questions were selected with an acquisition model: a maximum a posteriori embedding "
        "of all answers so far, with a logistic likelihood and a Gaussian prior on the "
        "coordinates, whose dimensionality and prior were chosen by cross-validated log-loss. Half "
        "of these questions were selected with one further dimension in the model, to test whether "
        "it was needed. "
    )
    kind = report.summary.kind
    if kind != TRIPLET:
        model = model.replace("a logistic likelihood", f"{kinds.likelihood(kind)},")
    return (
        f"{coverage}{model}{SELECTORS[selector].methods}; questions pending with other "
        f"participants were taken into account, and {'anchors' if kind.has_anchor else 'items'} "
        f"were balanced.{kinds.composed(kind, selector)} A share of the questions remained "
        "uniformly random; this share was larger while the model predicted poorly."
    )


def modelling(report: ReportData) -> str:
    """LORE, and how its rank was estimated."""
    lams = listed([f"{lam:g}" for lam in LAMBDAS])
    rows, nearer, farther = ("comparisons", "nearer", "farther")
    if report.summary.kind.n_comparisons == 1:
        rows, nearer, farther = ("answers", "chosen", "other")
    text = (
        "We modelled the answers by ordinal embedding with LORE (Anand et al., 2026): items are "
        f"points, and their coordinates minimise the mean over {rows} of softplus(1 + d(anchor, "
        f"{nearer}) − d(anchor, {farther})) plus λ times the sum of the square roots of the "
        "singular values of the coordinate matrix, a penalty that removes unnecessary dimensions. "
        "The "
        f"number of dimensions was estimated by {FOLDS}-fold cross-validation, with all answers to "
        "the same question in the same fold, each time the number of answers had grown by "
        f"{100 * (AUDIT_GROWTH - 1):.0f} % (an audit). In each fold, high-dimensional embeddings "
        "were fitted to the remaining answers, reduced by removing the weakest dimension one at a "
        f"time (λ = {lams}), and scored by the log-loss of the held-out answers. We chose the "
        "smallest dimensionality within one standard error of the minimum held-out log-loss "
        "(Breiman et al., 1984), with losses paired by answer, provided that the minimum was below "
        f"the log-loss of guessing by at least {MIN_STANDARD_ERRORS:g} standard errors. Otherwise, "
        "one dimension was reported if the acquisition model predicted answers to questions that "
        f"it had not selected better than guessing by at least {SUPPORTED_FROM:g} standard errors "
        f"({SUPPORTED_STILL:g} once a dimension had been reported), and none if it did not."
    )
    if report.summary.kind != TRIPLET:
        text += f" {kinds.comparisons(report.summary.kind)}"
    if report.summary.rule == FURTHER:
        text += (
            " Where a Bayes factor had shown a further dimension of interest at an earlier audit "
            "(see the stopping rule), the number was increased by one, unless the held-out "
            f"log-loss then was higher by more than {CLEARLY_WORSE:g} standard errors."
        )
    model = report.summary.model
    if model is not None:
        text += f" {_fitted(report)}"
        if model.rank:
            text += (
                f" The map was fitted with λ = {model.lam:g}; successive maps were aligned by "
                "orthogonal Procrustes rotation (Schönemann, 1966)."
            )
    return text


def _fitted(report: ReportData) -> str:
    """How the answers collected add up to the answers fitted."""
    counts = report.summary.answers
    removed = [
        f"{count:,} {what}"
        for count, what in (
            (counts.excluded, "from excluded participants"),
            (counts.quarantined, "unusable"),
            (counts.catches, "to catch trials"),
            (counts.skipped, "skipped"),
            (counts.timed_out, "timed out"),
            (counts.waiting, "not yet fitted"),
        )
        if count
    ]
    minus = f", minus {listed(removed)}" if removed else ""
    plus = f", plus {many(counts.imported, 'imported answer')}" if counts.imported else ""
    return (
        f"The latest model was fitted to {many(counts.fitted, 'answer')}: the {counts.answers:,} "
        f"collected{minus}{plus}."
    )
