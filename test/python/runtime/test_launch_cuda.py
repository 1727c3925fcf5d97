"""Launches on CUDA, on the fake driver: the current stream, and nothing that a graph capture forbids."""

import json
import os
import subprocess
import sys
from pathlib import Path

import dither
import pytest

HERE = Path(__file__).resolve().parent
FAKE = Path(dither.__file__).parent.parents[1] / "fakecuda" / "libcuda.so.1"


@pytest.fixture(scope="module")
def found():
    if not FAKE.exists():
        pytest.skip(f"{FAKE} is not built")
    command = [sys.executable, str(HERE / "cuda_launches.py"), str(FAKE)]
    environment = {**os.environ, "DITHER_LIBCUDA": str(FAKE), "DITHER_CACHE": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_the_current_stream_is_found(found, framework):
    streams = [line.split("stream=")[1].split()[0] for line in found[framework]["launches"]]
    assert streams == ["0", "1", "1", "0", "1", "1"]


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_arguments(found, framework):
    for line in found[framework]["launches"]:
        assert line.startswith("copy grid=4x1x1 ")
        x, y = (found["y"], found["x"]) if line is found[framework]["launches"][-1] else (found["x"], found["y"])
        assert line.endswith(f"params={x},0x10,{y},0x10")


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_a_launch_neither_allocates_nor_waits(found, framework):
    *others, launches = found[framework]["other calls"]
    assert others == [0, 0, 0, 0]
    assert launches == 6
    assert found[framework]["hits"] == 4  # all but the first and the two prepared ones


def test_a_launch_that_fails(found):
    assert found["error"] == "grid of kernel 'copy' is 4x70000x1: a CUDA grid is at most 2147483647x65535x65535"


def test_an_amax_is_copied_by_the_launch_that_uses_it(found):
    before, launch = found["quantize"]["lines"]
    assert before.startswith("copy ")
    pointers = launch.split("params=")[1].split(",")
    assert launch.startswith("quantize_kernel ") and found["y"] in pointers and found["quantize"]["amax"] in pointers
