"""A cache directory for each test, and kernels that run in processes of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from dither import _dither, cache

KERNELS = """
import dither, dither.language as dl
import numpy as np

SCALE = 3.0

@dither.jit
def scale(x, y, ROWS: dl.constexpr, FACTOR: dl.constexpr):
    r = dl.program_id(0) * ROWS
    dl.store(y, (r, 0), dl.load(x, (r, 0), (ROWS, x.shape[1])) * SCALE * FACTOR)

def aligned(columns):
    # NumPy's own alignment differs between processes, and is part of a GPU's key.
    memory = np.zeros(4 * columns + 64, np.float32)
    start = -memory.ctypes.data // 4 % 64
    return memory[start : start + 4 * columns].reshape(4, columns)

def run(factor=1.0, columns=16):
    x, y = aligned(columns), aligned(columns)
    x[:] = np.arange(4 * columns).reshape(4, columns)
    scale[2](x, y, ROWS=2, FACTOR=factor, device="cpu")
    assert (y == x * np.float32(3.0) * np.float32(factor)).all(), "a wrong kernel"
    return COUNTS

class Counts:
    # what `scale` has cost so far
    compiles = property(lambda self: scale.stats.compiles)
    disk_hits = property(lambda self: scale.stats.disk_hits)

COUNTS = Counts()
"""


@pytest.fixture(autouse=True)
def cache_dir(tmp_path, monkeypatch):
    place = tmp_path / "cache"
    monkeypatch.setenv("DITHER_CACHE_DIR", str(place))
    monkeypatch.setattr(cache, "_warned", set())
    cache._open_bundle.cache_clear()
    return place


@pytest.fixture
def kernels(tmp_path):
    """The file of a module with the kernel `scale` and the function `run`."""
    path = tmp_path / "kernels_on_disk.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture
def start(kernels):
    """start("code", VARIABLE=...) -> Popen of a process that imports the kernels first."""

    def begin(code, **variables):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(kernels.parent), os.environ.get("PYTHONPATH", "")])}
        script = "from kernels_on_disk import *\n" + textwrap.dedent(code)
        command = [sys.executable, "-c", script]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env={**env, **variables}, stdout=pipe, stderr=pipe, text=True)

    return begin


@pytest.fixture
def python(start):
    """As `start`, to its end: what it printed. An error on stderr fails the test."""

    def run(code, **variables):
        process = start(code, **variables)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert not err, err
        return out

    return run


@pytest.fixture
def shim(cache_dir):
    """Variables for a process whose file system misbehaves in the cache directory."""
    library = Path(_dither.__file__).parents[2] / "test" / "libfsshim.so"
    assert library.exists(), f"{library} was not built"
    return lambda **settings: {"LD_PRELOAD": str(library), "FSSHIM_DIRECTORY": str(cache_dir), **settings}
