"""A little of everything that computes, as one digest, for processes on other processors."""

from __future__ import annotations

import hashlib

from lore_active import LORE, Learner  # before NumPy, as the commands do
from lore_active.reproducibility import fingerprint
from lore_active.simulation.observers import gaussian_space, simulated_answers


def digest() -> str:
    answers = simulated_answers(gaussian_space(12, 2, 1), 400, 2)
    found = hashlib.sha256(LORE(lam=0.01).fit(answers).embedding_.tobytes())
    learner = Learner(12, seed=3)
    learner.add(answers[:200])
    learner.audit()
    for question in learner.ask(10):
        learner.tell(question.id, "left", participant="P1")
    learner.refit()
    assert learner.model is not None
    found.update(learner.model.embedding.tobytes())
    found.update(learner.model.aligned.tobytes())
    found.update(
        repr([(one.anchor, one.left, one.right, one.score) for one in learner.questions]).encode()
    )
    found.update(
        repr(
            [(criterion.name, criterion.value) for criterion in learner.decision.criteria]
        ).encode()
    )
    return found.hexdigest()


if __name__ == "__main__":
    print(digest())
    print(fingerprint())
