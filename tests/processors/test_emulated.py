"""The same bits on emulated processors: older ones of either make (`make test-cpus`)."""

from __future__ import annotations

import shutil

import pytest

from tests.processors.running import run


@pytest.mark.parametrize("processor", ["Haswell", "Broadwell", "EPYC-Rome"])
def test_an_emulated_processor_gives_the_same_bits(processor):
    emulator = shutil.which("qemu-x86_64")
    assert emulator is not None
    output = run("-m", "tests.processors.probe", emulator=(emulator, "-cpu", processor))
    assert output == run("-m", "tests.processors.probe")
