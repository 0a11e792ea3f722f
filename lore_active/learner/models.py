"""The audits of a learner, and the models that they and refits have published."""

from __future__ import annotations

from lore_active.acquisition.model import AcquisitionModel
from lore_active.data.triplets import Triplets
from lore_active.embedding.solver import Solution
from lore_active.learner import updates
from lore_active.learner.model import Model
from lore_active.learner.pending_audit import AuditResult
from lore_active.rank.audit import Audit
from lore_active.rank.comparison import NO_STARTS, WarmStarts
from lore_active.rank.significance import Proportion, wilson


class Models:
    """All audits, the current model, its version, and the starts for the fits of the next audit."""

    def __init__(self, n_objects: int) -> None:
        self.n_objects = n_objects
        self.audits: list[Audit] = []
        self.current: Model | None = None
        self.version = 0
        self.warm: WarmStarts = NO_STARTS

    @property
    def held_out(self) -> Proportion:
        """Cross-validated accuracy of the acquisition model on model-independent questions."""
        if self.current is None:
            return wilson(0.0, 0)
        acquisition = self.current.acquisition
        return wilson(acquisition.accuracy * acquisition.judged, acquisition.judged)

    def take_in(self, result: AuditResult, triplets: Triplets | None, answers: int) -> Audit:
        """Publish what an audit found; `answers` count now, possibly more than were audited."""
        audit, previous = result.audit, self.current
        self.audits.append(audit)
        self.warm = result.warm
        if previous is not None and triplets is not None and answers > audit.answers:
            # Answers have come since the audit was started.
            fit = updates.refitted(triplets, audit, previous, result.acquisition)
            self._publish(*fit, answers)
        else:
            self._publish(audit.solution, result.acquisition, answers)
        return audit

    def refit(self, triplets: Triplets | None, answers: int) -> None:
        """Publish a fit of the answers that count at the rank and λ of the last audit, if any."""
        model = self.current
        if triplets is None or model is None:
            return
        fit = updates.refitted(triplets, self.audits[-1], model, model.acquisition)
        self._publish(*fit, answers)

    def _publish(
        self, solution: Solution | None, acquisition: AcquisitionModel, answers: int
    ) -> None:
        self.version += 1
        self.current = updates.published(
            *(solution, acquisition, self.audits[-1], self.current),
            *(self.n_objects, self.version, answers),
        )
