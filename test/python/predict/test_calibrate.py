"""Calibration: measurements that the model made itself give the figures that it made them with."""

import dataclasses
import json

import pytest
from dither.predict import GPUS, predict
from dither.predict.calibrate import FITTED, calibrate
from dither.predict.model import copy_work
from dither.predict.work import Work, to_json

TRUE = {"copy_share": 0.84, "latency": 850.0, "start": 320.0, "launch": 3100.0, "ipc": 0.43, "efficiency": 0.8}


def works():
    """Copies and kernels that each depend on one of the figures most."""
    for blocks in (10, 20_000):
        yield f"copy of {blocks}", copy_work(blocks)
    base = Work("k", "sass", 4000, 128, 64, 0, 8192, 4096, 12288, 400, {"alu": 200}, 0.1, 1, 1, 8192, 0)
    yield "instructions", dataclasses.replace(base, instructions=6000, registers=32)
    yield "pipe", dataclasses.replace(base, instructions=5000, pipes={"alu": 4500}, registers=32)
    alone = dataclasses.replace(base, shared=200 << 10)
    yield "latency", alone
    yield "waits", dataclasses.replace(alone, waits=6, memory_waits=6, blocks=2000)
    yield "one warp", dataclasses.replace(alone, threads=32, instructions=3000, blocks=2000)
    yield "small blocks", dataclasses.replace(alone, loaded=512, stored=512, minimum=1024, instructions=50, blocks=9000)


def report(**changes):
    """What tools/gpu_check would have written of a GPU with these figures."""
    gpu = dataclasses.replace(GPUS["H200"], **{**TRUE, **changes})
    rows = [
        {"name": name, "launches": [to_json(work)], "predicted": 0, "measured": predict(work, gpu).seconds}
        for name, work in works()
    ]
    return json.loads(json.dumps({"predict": {"gpu": "NVIDIA H200", "sms": 132, "rows": rows}}))


def test_figures_are_found():
    found = calibrate(report())
    assert found.before > 0.1
    assert found.error < 0.01
    assert found.residuals == pytest.approx(dict.fromkeys(found.residuals, 1), abs=0.03)
    for name, value in TRUE.items():
        assert getattr(found.gpu, name) == pytest.approx(value, rel=0.06), name


def test_what_was_assumed_stays():
    """Measurements of the table itself change nothing."""
    found = calibrate(report(**{name: getattr(GPUS["H200"], name) for name in FITTED}))
    assert found.before == pytest.approx(0, abs=1e-12)
    for name in FITTED:
        assert getattr(found.gpu, name) == pytest.approx(getattr(GPUS["H200"], name), rel=1e-6), name


def test_files_that_are_none():
    with pytest.raises(ValueError, match="found no 'predict' with"):
        calibrate({"benchmarks": {}})
    few = report()
    few["predict"]["rows"] = few["predict"]["rows"][:3]
    with pytest.raises(ValueError, match="found 3 measured rows, expected at least 6"):
        calibrate(few)
    with pytest.raises(ValueError, match="found GPU 'V100', expected one of"):
        calibrate({"predict": {**report()["predict"], "gpu": "V100"}})
