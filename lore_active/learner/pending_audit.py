"""An audit that runs beside the learner: what it computes from, and what it found.

An audit takes long. It is computed from the answers that there were when it was started, so that
questions can be asked and answers taken in meanwhile, and it is taken in when it is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.model import AcquisitionModel
from lore_active.data.triplets import Triplets
from lore_active.errors import LoreError
from lore_active.learner import updates
from lore_active.learner.model import Model
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.rank.audit import Audit
from lore_active.rank.bayes_factor import Decisive, FurtherDimension
from lore_active.rank.comparison import WarmStarts
from lore_active.rank.significance import wilson
from lore_active.stopping.rules import Progress, StoppingRule
from lore_active.stopping.smallest_dimension import FurtherDimensionRule
from lore_active.types import Mapper


class AuditCancelled(LoreError):
    """The audit was cancelled before it was finished."""


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found: the audit, its acquisition model, and starts for the next one."""

    audit: Audit
    acquisition: AcquisitionModel
    warm: WarmStarts


class PendingAudit:
    """An audit of the answers that there were when it was started.

    `run` may be called in another thread: it uses nothing that the learner changes later.
    """

    def __init__(
        self,
        triplets: Triplets,
        model_independent: NDArray[np.bool_],
        seed: int,
        audits: Sequence[Audit],
        model: Model | None,
        warm: WarmStarts,
        lam: float | None,
        mapper: Mapper,
        stopping: StoppingRule,
        kind: Kind = TRIPLET,
    ) -> None:
        self.triplets = triplets
        self._model_independent = model_independent.copy()
        self._seed = seed
        self._audits = tuple(audits)
        self._model = model
        self._warm = warm
        self._lam = lam
        self._mapper = mapper
        self._stopping = stopping
        self._kind = kind
        self._cancelled = threading.Event()
        self._result: AuditResult | None = None

    def cancel(self) -> None:
        """Make `run`, in another thread, end early with `AuditCancelled`."""
        self._cancelled.set()

    def run(self) -> AuditResult:
        """Compute the result, unless it is known already.

        Raises
        ------
        AuditCancelled
            If the audit was cancelled.
        """
        if self._result is None:
            self._result = self._computed()
        return self._result

    def _computed(self) -> AuditResult:
        rule, triplets = self._stopping, self.triplets
        decisive = None
        if isinstance(rule, FurtherDimensionRule):
            decisive = Decisive(rule.share, rule.evidence)
        audit, acquisition, warm = updates.audited(
            triplets,
            self._model_independent,
            self._seed,
            self._audits,
            self._model,
            self._warm,
            self._lam,
            self._watched(self._mapper),
            marginal_likelihood=getattr(rule, "marginal_likelihood", True),
            kind=self._kind,
            decisive=decisive,
            progress=lambda done, of: self._check(),
        )
        if isinstance(rule, FurtherDimensionRule) and decisive is not None:
            if rule.needs_fewer(self._progress(audit, acquisition)):
                audit = replace(audit, fewer=self._tests(audit.rank - 1, acquisition, decisive))
            if not audit.further and rule.can_change(self._progress(audit, acquisition)):
                audit = replace(audit, further=self._tests(audit.rank, acquisition, decisive))
            if rule.needs_fewer(self._progress(audit, acquisition)):
                audit = replace(audit, fewer=self._tests(audit.rank - 1, acquisition, decisive))
        return AuditResult(audit, acquisition, warm)

    def _progress(self, audit: Audit, acquisition: AcquisitionModel) -> Progress:
        triplets = self.triplets
        return Progress(
            triplets.n_objects,
            triplets.n_trials,
            len(np.unique([triplets.anchor, triplets.nearer, triplets.farther])),
            [*self._audits, audit],
            wilson(acquisition.accuracy * acquisition.judged, acquisition.judged),
            bits=self._kind.bits,
        )

    def _tests(
        self, rank: int, acquisition: AcquisitionModel, decisive: Decisive
    ) -> tuple[FurtherDimension, ...]:
        return updates.tested(
            *(self.triplets, rank, acquisition, decisive, self._seed),
            progress=lambda done, of: self._check(),
        )

    def _watched(self, mapper: Mapper) -> Mapper:
        def mapped(function: Callable[[int], object], parts: Sequence[int]) -> Sequence[object]:
            self._check()
            return list(mapper(function, parts))

        return mapped  # type: ignore[return-value]

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise AuditCancelled("The audit was cancelled.")
