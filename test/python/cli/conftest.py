"""The command line, run in this process and, for what depends on a process of its own, in another."""

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

KERNEL = """
import dither, dither.language as dl

ROWS = 8

@dither.jit
def double(x, y, ROWS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, x.shape[1])).to(dl.float32)
    dl.store(y, (r, 0), (t + t).to(dl.bfloat16))

@dither.jit
def scale(x, y, factor, FMT: dl.constexpr = None):
    t = dl.load(x, (0, 0), (4, 64)).to(dl.float32) * factor
    dl.store(y, (0, 0), dl.block_scale(t, FMT))
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def cache_dir(tmp_path, monkeypatch):
    """A cache of the test's own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("DITHER_CACHE_DIR", str(place))
    return place


@pytest.fixture
def dither(capsys):
    """dither("compile", ...) -> Result; never a traceback."""
    from dither.cli import main

    def run(*arguments):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as end:  # argparse
            code = end.code
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)

    return run


@pytest.fixture
def process():
    """As `dither`, in a process of its own, with variables changed."""

    def run(*arguments, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_") or k == "DITHER_CACHE_DIR"}
        command = [sys.executable, "-m", "dither", *map(str, arguments)]
        made = subprocess.run(command, env={**env, **variables}, capture_output=True, text=True)
        assert "Traceback" not in made.stdout + made.stderr
        return Result(made.returncode, made.stdout, made.stderr)

    return run


@pytest.fixture
def kernel_file(tmp_path):
    """A file with the kernels `double` and `scale`."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    return path
