"""Examples in the docstrings of the public API are correct, and none is missing."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# The names that users import, by module.
PUBLIC = {
    "acquisition.selectors": ("FisherSelector", "RandomSelector", "UncertaintySelector"),
    "data.comparisons": ("as_triplets",),
    "data.triplets": ("Triplets",),
    "estimators.lore": ("LORE",),
    "estimators.lore_cv": ("LORECV",),
    "learner.learner": ("Learner",),
    "learner.model": ("Estimate",),
    "questions.kinds": ("Kind", "kind"),
    "questions.question": ("Answer", "Question"),
    "rank.further_dimension": ("further_dimension",),
    "registry": ("Registry",),
    "simulation.observers": ("ObserverNoise",),
    "simulation.planning": ("PlanConfig", "plan"),
    "simulation.run": ("simulate",),
}


MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted((ROOT / "lore_active").rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
}


def examples(name):
    module = import_module(name)
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_examples_run_and_are_true(name):
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in examples(name):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    documented = {test.name.rpartition(".")[2] for test in examples(f"lore_active.{name}")}
    assert documented >= set(PUBLIC[name])
