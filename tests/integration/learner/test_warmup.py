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
import numpy as np
from lore_active import Learner

warm()
before = compiled()
rng = np.random.default_rng(1)
space = rng.normal(size=(12, 2))
learner = Learner(n_objects=12, seed=1)
while len(learner.audits) < 4:
    for question in learner.ask(10):
        near, far = (
            np.linalg.norm(space[question.anchor] - space[option])
            for option in (question.left, question.right)
        )
        learner.tell(question.id, "left" if near < far else "right")
    due = learner.due(False)
    if due is not None:
        (learner.audit if due == "audit" else learner.refit)()
after = compiled()
assert len(after) > 30
print(sorted(name for name in after if after[name] != before.get(name)))
"""


def test_a_learner_needs_no_kernel_that_was_not_compiled_in_advance():
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "[]", "these were compiled later, or for other types"
