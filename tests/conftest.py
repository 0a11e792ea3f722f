"""Shared set-up: kernels compiled once, hypothesis without wall-clock deadlines."""

from __future__ import annotations

import pytest
from hypothesis import settings

from lore_active import kernels

# Shared machines stall: an example's time says nothing about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _warm_kernels() -> None:
    kernels.warm()
