"""Shared set-up: kernels compiled once, long files first, hypothesis without deadlines."""

from __future__ import annotations

import os

# Before NumPy is loaded: matrices here are small, and threads that wait for each other on a busy
# machine cost more than they bring. The worker runs with one thread, too.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import shutil  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

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

# Shared machines stall: an example's time says nothing about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


# A file goes to one of the processes that test as a whole, in this order, and then all others:
# a long file that begins last is waited for by everybody. Only roughly by seconds.
LONGEST_FIRST = (
    "test_serve.py",
    "test_http.py",
    "test_learner.py",
    "test_sweeps.py",
    "browser/test_monitor_figures.py",
    "test_worker.py",
    "test_tutorial.py",
    "test_replay.py",
    "browser/test_monitor_controls.py",
    "browser/test_whole_flow.py",
    "test_trouble.py",
    "test_clock.py",
    "test_log.py",
    "test_recovering.py",
    "test_read_only.py",
    "test_backups.py",
    "test_ending.py",
    "test_cli.py",
    "browser/test_report.py",
    "browser/test_coming_back.py",
    "browser/test_media.py",
    "test_whatif.py",
    "browser/test_ways.py",
    "browser/test_timings.py",
    "test_fuzz.py",
    "test_security.py",
    "test_readme.py",
    "test_hostile.py",
    "test_state_machine.py",
    "test_comparing.py",
    "test_forgetting.py",
    "browser/test_once.py",
    "browser/test_monitor_doors.py",
    "test_monitoring.py",
    "test_report.py",
    "test_importing.py",
    "test_wheel.py",
)


def pytest_configure(config: pytest.Config) -> None:
    # In the process that hands out tests, before there are others: not each of them for itself.
    if not hasattr(config, "workerinput"):
        warm()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    assert all((here / name).exists() for name in LONGEST_FIRST)
    places = {here / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    warm()
