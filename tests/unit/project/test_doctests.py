"""Examples in the docstrings of the public API are correct, and none is missing."""

import doctest
from importlib import import_module

import pytest

# The names that users import, by module.
PUBLIC = {
    "acquisition.selectors": ("FisherSelector", "RandomSelector", "UncertaintySelector"),
    "data.comparisons": ("as_triplets",),
    "data.triplets": ("Triplets",),
    "estimators.lore": ("LORE",),
    "estimators.lore_cv": ("LORECV",),
    "learner.learner": ("Learner",),
    "learner.model": ("Estimate",),
    "questions.question": ("Answer", "Question"),
    "registry": ("Registry",),
    "simulation.observers": ("ObserverNoise",),
    "simulation.planning": ("PlanConfig", "plan"),
    "simulation.run": ("simulate",),
}


def examples(name):
    module = import_module(f"lore_active.{name}")
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run_and_are_true(name):
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in examples(name):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    documented = {test.name.rpartition(".")[2] for test in examples(name)}
    assert documented >= set(PUBLIC[name])
