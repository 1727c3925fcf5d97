"""The fuzzer of calls: right sequences are found right, and a wrong launch is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
if str(FUZZ) not in sys.path:
    sys.path.append(str(FUZZ))

from calls import calls, kernels  # noqa: E402


@pytest.fixture(autouse=True)
def cache_as_it_was(monkeypatch):
    monkeypatch.setenv("DITHER_CACHE", "on")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sequence_is_right(seed):
    assert calls.run(calls.draw(seed)) == ""


def test_a_wrong_launch_is_found(monkeypatch):
    right = kernels.model

    def wrong(name, arrays, number, gain, config):
        right(name, arrays, number, 0 if gain is True else gain, config)

    monkeypatch.setattr(kernels, "model", wrong)
    found = [calls.run(calls.draw(seed)) for seed in range(4)]
    assert any("found" in text and "expected" in text for text in found)


def test_calls_can_be_left_out():
    assert calls.run(calls.draw(2)[::3]) == ""
