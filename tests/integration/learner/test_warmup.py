"""Kernels are compiled in advance: a worker that has started compiles nothing more."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from numba.core.registry import CPUDispatcher

def compiled():
    return {
        f"{name}.{key}": len(value.signatures)
        for name, module in list(sys.modules.items())
        if name.startswith("lore_active.")
        for key, value in vars(module).items()
        if isinstance(value, CPUDispatcher)
    }

from lore_active.warmup import warm
import lore_active.learner.learner
from lore_active import Learner
from lore_active.simulation.observers import Observer, gaussian_space
from lore_active.simulation.run import SimulatedParticipants, simulate

warm()
before = compiled()
space = gaussian_space(14, 1, seed=1)
for kind in sys.argv[1:]:
    participants = SimulatedParticipants([Observer(space, seed=number) for number in range(9)])
    learner = Learner(n_objects=14, seed=1, kind=kind)
    for record in simulate(learner, participants, 600, None, lambda: 0.0, stop=False):
        if any(audit.further for audit in learner.audits):
            break
    assert any(audit.further for audit in learner.audits), "no audit came to the test"
    after = compiled()
    assert len(after) > 30
    print(kind, sorted(name for name in after if after[name] != before.get(name)))
"""


def test_a_learner_needs_no_kernel_that_was_not_compiled_in_advance():
    kinds = ["triplet", "choose-2-of-4", "rank-2-of-4", "odd-one-out"]
    found = subprocess.run([sys.executable, "-c", CODE, *kinds], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    # Others were compiled later, or for other types.
    assert found.stdout.splitlines() == [f"{kind} []" for kind in kinds]
