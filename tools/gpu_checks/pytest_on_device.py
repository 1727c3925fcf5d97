"""A pytest plugin that runs the tests of the operators on another device than the one their arrays are on.

What would run on the simulated GPU of the same kind runs on the device, too; tests of what the simulator counts are
skipped.

    PYTHONPATH=tools/gpu_checks pytest -p pytest_on_device --on-device cuda:0 test/python/ops

Arrays of the host are copied there and back by the launch path; expected values are still those of the reference.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-device", metavar="NAME", help="run operators here instead of on the CPU")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--on-device")
    if not name:
        return
    # The tests' own configuration clears DITHER_*; this has another name for that reason.
    if os.environ.get("GPU_CHECK_LIBCUDA"):
        os.environ["DITHER_LIBCUDA"] = os.environ["GPU_CHECK_LIBCUDA"]
    import dither.ops
    from dither.devices import Device, chosen_device, get_device, stand_ins
    from dither.ptxas import chip

    where = get_device(name)
    if not where.is_cpu:
        # With a new driver the target has more than the chip, which runs the code of both.
        for target in {where.target, chip(where.target)}:
            stand_ins[f"sim:{target}"] = where
        dither.profile.record = lambda *_: pytest.skip("a GPU counts nothing")

    def redirected(asked: str | Device | None, memory: str) -> Device:
        chosen = chosen_device(asked, memory)
        return where if chosen.is_cpu else chosen

    for module in ("quantize", "dequantize", "norms"):
        operators: Any = sys.modules[f"{dither.ops.__name__}.{module}"]
        operators.chosen_device = redirected


def pytest_report_header(config: pytest.Config) -> str:
    name = config.getoption("--on-device")
    if not name:
        return ""
    from dither.devices import get_device

    return f"operators run on {get_device(name)!r}"
