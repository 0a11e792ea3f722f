"""Shared set-up: kernels compiled once, hypothesis without wall-clock deadlines."""

from __future__ import annotations

import os

# Before NumPy is loaded: matrices here are small, and threads that wait for each other on a busy
# machine cost more than they bring. The worker runs with one thread, too.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from importlib.util import find_spec  # noqa: E402

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from lore_active.warming import warm  # noqa: E402

# They have an environment of their own (`make test-compare`): cblearn wants an older NumPy.
collect_ignore = [] if find_spec("cblearn") else ["compare"]

# Shared machines stall: an example's time says nothing about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    warm()
