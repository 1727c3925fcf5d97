"""shapes=: which extents are part of the key, by kernel, by launch, by argument."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.arrays import describe


def copy(x, y, ROWS: dl.constexpr = 8, COLS: dl.constexpr = 32):
    r = dl.program_id(0) * ROWS
    c = dl.program_id(1) * COLS
    dl.store(y, (r, c), dl.load(x, (r, c), (ROWS, COLS)))


SHAPES = [(8, 32), (16, 32), (8, 64), (16, 64), (24, 96)]
MEMORY = np.zeros(1 << 16, np.uint8)


def run(kernel, wrap=lambda a: a, **options):
    """Launches for each of SHAPES, twice; how often it compiled."""
    start = -MEMORY.ctypes.data % 64
    for m, n in SHAPES:
        size = 4 * m * n
        x = MEMORY[start:][:size].view(np.float32).reshape(m, n)
        y = MEMORY[start + 16384 :][:size].view(np.float32).reshape(m, n)
        x[:] = np.random.default_rng(m * n).standard_normal((m, n))
        for _ in range(2):
            y[:] = 0
            kernel.launch((-(-m // 8), -(-n // 32)), wrap(x), wrap(y), **options)
            np.testing.assert_array_equal(x, y)
    assert kernel._launcher.hits >= len(SHAPES)
    return len(kernel.stats.builds)


WAYS = {
    "kernel": lambda shapes: run(dither.jit(copy, shapes=shapes)),
    "parameters": lambda shapes: run(dither.jit(copy, shapes={"x": shapes, "y": shapes})),
    "launch": lambda shapes: run(dither.jit(copy), shapes=shapes),
    "argument": lambda shapes: run(dither.jit(copy, shapes="static"), lambda a: dither.view(a, shapes=shapes)),
    "over": lambda shapes: run(dither.jit(copy, shapes="static"), shapes=shapes),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("shapes", "builds"), [("trailing", 3), ("static", 5), ("dynamic", 1)])
def test_classes(way, shapes, builds):
    assert WAYS[way](shapes) == builds


def test_types():
    x = describe(np.zeros((8, 32), np.float32))
    assert x.type(shapes="trailing").shape == (None, 32)
    assert x.type(shapes="static").shape == (8, 32)
    assert x.type(shapes="dynamic").shape == (None, None)
    assert x.type(shapes="static").strides == (32, 1)
    assert x.type(shapes="dynamic").strides == (None, 1)
    wide = describe(np.zeros((8, 64), np.float32)[:, :32])
    assert wide.type(shapes="static").strides == (64, 1)
    assert wide.type(shapes="trailing").strides == (None, 1)


def test_what_a_static_kernel_knows():
    @dither.jit(shapes="static")
    def kernel(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (x.shape[0], x.shape[1])))

    x = np.ones((8, 32), np.float32)
    y = np.zeros_like(x)
    kernel[1](x, y)
    np.testing.assert_array_equal(x, y)


def test_mistakes():
    with pytest.raises(ValueError, match="shapes is 'all', expected trailing, static, dynamic"):
        dither.jit(copy, shapes="all")
    with pytest.raises(ValueError, match="shapes has 'z', expected parameters of 'copy'"):
        dither.jit(copy, shapes={"z": "static"})
    with pytest.raises(ValueError, match="shapes is 'none'"):
        dither.view(np.zeros(3), shapes="none")
    with pytest.raises(ValueError, match=r"shapes is \{'x': 'static'\}, .*; those of parameters are for dither.jit"):
        dither.view(np.zeros(3), shapes={"x": "static"})


def test_the_log_names_what_differs(capfd):
    dither.knobs.set("log", "recompiles")
    try:
        run(dither.jit(copy))
    finally:
        dither.knobs.set("log", None)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("dither: ")]
    assert len(lines) == 3
    assert lines[0].endswith(": the first launch")
    assert "shape of 'x' is (any, 64), was (any, 32)" in lines[1]
    assert " copy for host" in lines[2]
