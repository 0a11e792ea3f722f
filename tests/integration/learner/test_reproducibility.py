"""The same bits whatever the processor; where that cannot be, a tolerance and a warning."""

from __future__ import annotations

import json

import pytest

from lore_active import reproducibility
from lore_active.reproducibility import NUMBA_FEATURES, PORTABLE
from tests.processors.running import run

# As if the libraries, left to themselves, had found a processor from before AVX.
OLD = {"OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
NATIVE = {"LORE_ACTIVE_INSTRUCTION_SET": "native"}
# The same for linear algebra alone: kernels need not be compiled once more.
OLD_BLAS = {**OLD, "NUMBA_CPU_NAME": PORTABLE, "NUMBA_CPU_FEATURES": NUMBA_FEATURES}
STUDY = """
import lore_active
import sys
from pathlib import Path
from tests.support.open_study import Desk, Respondent
settings = ("[session]", "trials = 40", "practice = 0", "break_every = 0", "feedback = false")
desk = Desk(Path(sys.argv[1]), "\\n".join(settings), 9)
worker, respondent = desk.worker(), Respondent(9, 2)
for number in range(3):
    stage = desk.new_participant()
    while stage.kind == "trial":
        stage = desk.answer(stage, respondent.side(stage))
        if stage.done % 8 == 0:
            worker.turn()
desk.close()
"""

pytestmark = pytest.mark.skipif(
    not reproducibility._has_avx2(), reason="this processor has no AVX2: its bits are its own"
)


def verified(folder, **chosen):
    # Without `--verify`: whether a difference is within the tolerance depends on last bits.
    return json.loads(run("-m", "server.cli.main", "replay", folder, "--json", **chosen))


def test_results_are_the_same_bits_whatever_the_libraries_would_have_chosen():
    plain, other = run("-m", "tests.processors.probe"), run("-m", "tests.processors.probe", **OLD)
    assert plain == other
    assert plain.strip().endswith(f"; {PORTABLE}")


def test_a_study_is_verified_bit_for_bit_where_another_instruction_set_would_have_been_chosen(
    tmp_path,
):
    run("-c", STUDY, tmp_path / "words", **OLD)
    found = verified(tmp_path / "words")
    assert found["models_checked"] > 3 and found["questions_checked"] > 50
    assert found["fingerprint_match"] is True
    assert found["mismatches"] == []


def test_a_study_of_another_instruction_set_is_verified_within_a_tolerance(tmp_path):
    """The control: where nothing fixes the instructions, the libraries really take others."""
    run("-c", STUDY, tmp_path / "words", **NATIVE, **OLD_BLAS)
    found = verified(tmp_path / "words")
    assert found["models_checked"] > 3 and found["questions_checked"] == 0
    assert found["fingerprint_match"] is False
    again = verified(tmp_path / "words", **NATIVE, **OLD_BLAS)
    assert again["fingerprint_match"] is True
    assert again["mismatches"] == []


def test_loading_numpy_first_is_reported():
    code = """
import warnings
import numpy
from lore_active import LORE, Learner
from lore_active.reproducibility import instruction_set
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("default")
    LORE()
    for _ in range(2):
        Learner(9)
print(len(warned), warned[0].category.__name__, instruction_set())
print(warned[0].message)
"""
    first, message = run("-c", code, OPENBLAS_CORETYPE="Nehalem").splitlines()
    assert first.startswith("1 ReproducibilityWarning native: numba ")
    assert "Import lore_active before NumPy" in message
    assert "LORE_ACTIVE_INSTRUCTION_SET=native" in message
    assert (
        run("-W", "error", "-c", "import numpy, lore_active; lore_active.Learner(9)", **NATIVE)
        == ""
    )


def test_numpy_settings_use_the_names_its_version_knows():
    """A name that it does not know is a warning, and both kinds of instructions an error."""
    code = "import lore_active, numpy; print(lore_active.Learner(9).n_objects)"
    output = run("-W", "error", "-c", code, NPY_DISABLE_CPU_FEATURES="X86_V4")
    assert output == "9\n"


THREADS = """
import lore_active, hashlib
from lore_active.learner.learner import Learner
from lore_active.simulation.observers import gaussian_space, simulated_answers
learner = Learner(12, seed=1)
learner.add(simulated_answers(gaussian_space(12, 3, 1), 360, 2))
learner.audit()
text = repr(learner.ask(30)).encode() + learner.uncertainty().tobytes()
print(hashlib.sha256(text).hexdigest())
"""


def test_the_number_of_threads_changes_no_bit():
    """A program that uses `Learner` alone has one for each of the machine's cores."""
    found = {
        run("-c", THREADS, OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads)
        for threads in ("1", "2")
    }
    assert len(found) == 1
