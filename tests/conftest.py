"""Shared set-up: kernels compiled once, files in memory, long files first, no deadlines."""

from __future__ import annotations

import os

# Before NumPy is loaded: matrices here are small, and threads that wait for each other on a busy
# machine cost more than they bring. The worker runs with one thread, too.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import shutil  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from flask import Flask  # noqa: E402
from hypothesis import settings  # noqa: E402
from jinja2.bccache import Bucket, BytecodeCache  # noqa: E402

from lore_active.warmup import warm  # noqa: E402

# They have environments of their own (`make test-compare`, `make test-salmon`): cblearn wants an
# older NumPy, and Salmon brings PyTorch.
collect_ignore = [
    folder
    for folder, package in (("compare", "cblearn"), ("salmon", "salmon"))
    if not find_spec(package)
]
# `make test-cpus` installs the emulator.
if shutil.which("qemu-x86_64") is None:
    collect_ignore.append("processors/test_emulated.py")

# With every commit SQLite waits for the disk, for milliseconds, thousands of times in these tests.
# Files in memory, where there is room for them, behave alike in all else; what needs the disk
# itself takes `disk_path`.
MEMORY, ENOUGH = Path("/dev/shm"), 2e9
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Shared machines stall: an example's time says nothing about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


# A file goes to one of the processes that test as a whole, in this order, and then all others:
# a long file that begins last is waited for by everybody. Only roughly by seconds.
LONGEST_FIRST = (
    "browser/participant/test_grids.py",
    "browser/participant/test_stimulus_background.py",
    "integration/processes/test_serve.py",
    "browser/participant/test_resuming.py",
    "integration/processes/test_lost_files.py",
    "browser/monitor/test_map.py",
    "browser/participant/test_whole_flow.py",
    "browser/participant/test_practice.py",
    "browser/participant/test_entries_and_exits.py",
    "integration/learner/test_learner.py",
    "integration/learning/test_kinds.py",
    "browser/monitor/test_stages.py",
    "browser/monitor/test_figures.py",
    "integration/learning/test_worker_errors.py",
    "golden/test_golden.py",
    "integration/simulation/test_sweeps.py",
    "integration/learning/test_replay.py",
    "integration/simulation/test_planning.py",
    "browser/participant/test_closing.py",
    "browser/test_pages.py",
    "browser/participant/test_single_submission.py",
    "integration/docs/test_readme.py",
    "integration/docs/test_tutorial.py",
    "integration/cli/test_cli.py",
    "browser/monitor/test_controls.py",
    "browser/monitor/test_participant_table.py",
    "integration/store/test_read_only.py",
    "integration/learning/test_what_if.py",
    "integration/store/test_recovery.py",
    "integration/processes/test_http.py",
    "integration/collection/test_state_machine.py",
    "integration/monitor/test_verdict.py",
    "integration/store/test_hash_chain.py",
    "integration/collection/test_counting.py",
    "integration/security/test_hostile_requests.py",
    "browser/participant/test_timings.py",
    "integration/study/test_template.py",
    "integration/packaging/test_wheel.py",
    "integration/cli/test_comparison.py",
    "integration/security/test_fuzzing.py",
    "integration/processes/test_shutdown.py",
    "integration/learner/test_reproducibility.py",
    "integration/learning/test_worker.py",
    "integration/learner/test_warmup.py",
    "browser/participant/test_media.py",
    "browser/report/test_print.py",
    "integration/monitor/test_forecast.py",
    "integration/learner/test_learner_kinds.py",
    "integration/study/test_plugins.py",
    "integration/collection/test_simulated_participants.py",
    "integration/packaging/test_kernel_cache.py",
    "browser/monitor/test_storage.py",
    "browser/report/test_report.py",
    "unit/project/test_language.py",
    "browser/monitor/test_forecast.py",
    "integration/collection/test_imports.py",
    "browser/monitor/test_access.py",
    "integration/exports/test_log.py",
    "integration/cli/test_doctor.py",
    "integration/security/test_access.py",
    "browser/monitor/test_simulated_participants.py",
    "integration/monitor/test_figures.py",
    "browser/participant/test_without_scripts.py",
    "browser/test_keyboard.py",
    "browser/participant/test_lost_connection.py",
    "integration/store/test_erasure.py",
    "unit/project/test_architecture.py",
    "integration/simulation/test_kinds.py",
    "integration/study/test_limits.py",
    "unit/data/test_tables.py",
    "integration/monitor/test_html.py",
    "unit/estimators/test_lore.py",
)


class Templates(BytecodeCache):
    """Pages' templates, compiled once for all applications that tests make."""

    def __init__(self) -> None:
        self._compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if compiled := self._compiled.get(bucket.key + bucket.checksum):
            bucket.bytecode_from_string(compiled)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._compiled[bucket.key + bucket.checksum] = bucket.bytecode_to_string()


Flask.jinja_options = {"bytecode_cache": Templates()}


def pytest_configure(config: pytest.Config) -> None:
    # In the process that hands out tests, before there are others: not each of them for itself.
    if not hasattr(config, "workerinput"):
        warm()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    assert all((here / name).exists() for name in LONGEST_FIRST)
    places = {here / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on the disk, where a kill can come while a commit waits for it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    warm()
