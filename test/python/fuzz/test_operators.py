"""The fuzzer of operators: right calls are found right, and a wrong one is found."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
if str(FUZZ) not in sys.path:
    sys.path.append(str(FUZZ))

from operators.operators import Case, difference, draw, run  # noqa: E402

TARGETS = ("sm_80", "sm_90a", "sm_100a")


@pytest.mark.parametrize("seed", range(48))
def test_calls_are_right(seed, monkeypatch):
    monkeypatch.setenv("DITHER_SIM_CHECKS", "init,races")
    case = draw(seed)
    what, text = run(case, f"sim:{TARGETS[seed % len(TARGETS)]}")
    assert what in ("same", "both"), f"{case.text}: {text}"


def test_a_seed_is_a_call():
    assert draw(7).text == draw(7).text != draw(8).text


def test_what_is_left_out_is_found():
    """New memory has other bytes on each device."""
    import dither.ops.allocate as allocate

    case = Case("nothing", lambda device: allocate.aligned((2, 3), np.dtype(np.uint8)))
    assert run(case, "sim:sm_90a")[0] == "wrong"


def test_differences():
    x = np.array([1.0, np.nan], np.float32)
    assert difference([x, 3], [x.copy(), 3]) == ""
    other = x.view(np.uint32) + np.array([0, 1], np.uint32)
    assert difference(x, other.view(np.float32)) == ""  # another NaN
    assert "1 of 2 differ, first at (0,): found 3f800000, expected 40000000" in difference(x, x + x)
    assert "found float32[2], expected float32[1, 2]" in difference(x, x[None])


def test_refusals():
    def refuses(*those):
        def call(device):
            if device in those:
                raise ValueError("no")
            return 0

        return Case("refuses", call)

    assert run(refuses("sim:sm_90a"), "sim:sm_90a") == ("refused", "ValueError: no")
    assert run(refuses("cpu", "sim:sm_90a"), "sim:sm_90a") == ("both", "no")
    assert run(refuses("cpu"), "sim:sm_90a")[0] == "wrong"
