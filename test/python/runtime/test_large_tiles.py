"""Loops, branches, columns and transposes of tiles that no machine holds in registers: the code grows with the program
and not with the tile, and the result is that of NumPy."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

BF16, FP8, E8M0 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
F32, I32 = np.float32, np.int32


@dataclasses.dataclass(frozen=True)
class Program:
    """A kernel, the shapes and types of what it reads and writes, further arguments, and what it computes."""

    kernel: Any
    inputs: Sequence[tuple[tuple[int, ...], type]]
    outputs: Sequence[tuple[tuple[int, ...], type]]
    numpy: Callable[..., Any] | None = None
    scalars: Sequence[int] = ()
    #: Whether only a CPU takes tiles of this size.
    cpu_only: bool = False

    def read(self) -> list[np.ndarray]:
        """Integers from -8 to 8: their sums are exact in any order."""
        rng = np.random.default_rng(0)
        return [rng.integers(-8, 9, shape).astype(F32).astype(dtype) for shape, dtype in self.inputs]

    def written(self) -> list[np.ndarray]:
        return [np.full(shape, 7, np.uint8).astype(dtype) for shape, dtype in self.outputs]


PROGRAMS: dict[str, Program] = {}


def program(inputs, outputs, numpy=None, scalars=(), cpu_only=False):
    def add(fn):
        PROGRAMS[fn.__name__] = Program(dither.jit(fn), inputs, outputs, numpy, scalars, cpu_only)
        return fn

    return add


# -- columns that loops carry --------------------------------------------------------------------


@program([((96, 256), F32)], [((96, 256), BF16), ((96, 8), E8M0)])
def two_loops_share_a_column(x, o, s):
    m = dl.zeros((96, 1))
    for i in range(4):
        m = dl.maximum(m, dl.amax(dl.load(x, (0, i * 64), (96, 64)), axis=1))
    for i in range(4):
        u = dl.exp(dl.load(x, (0, i * 64), (96, 64)) - m)
        dl.store(o, (0, i * 64), u.to(dl.bfloat16))
        dl.store(s, (0, i * 2), dl.block_scale(u, "mxfp4"))


@program([((1100, 4), F32)], [((1100, 4), F32)], lambda x: x * np.abs(x).max(1, keepdims=True))
def tall_column(x, o):
    m = dl.zeros((1100, 1))
    for i in range(2):
        m = dl.maximum(m, dl.amax(dl.load(x, (0, i * 2), (1100, 2)), axis=1))
    for i in range(2):
        dl.store(o, (0, i * 2), dl.load(x, (0, i * 2), (1100, 2)) * m)


@program(
    [((64, 512), F32)],
    [((64, 512), F32), ((64, 1), F32)],
    lambda x: (x - x.max(1, keepdims=True) + x.sum(1, keepdims=True), x.sum(1, keepdims=True)),
)
def three_loops_and_two_columns(x, o, c):
    m, s = dl.full((64, 1), -100.0), dl.zeros((64, 1))
    for i in range(4):
        m = dl.maximum(m, dl.max(dl.load(x, (0, i * 128), (64, 128)), axis=1))
    for i in range(4):
        s = s + dl.sum(dl.load(x, (0, i * 128), (64, 128)), axis=1)
    for i in range(4):
        dl.store(o, (0, i * 128), dl.load(x, (0, i * 128), (64, 128)) - m + s)
    dl.store(c, (0, 0), s)


def _online(x):
    m, s, a = np.full((64, 1), -100, F32), np.zeros((64, 1), F32), np.zeros((64, 128), F32)
    for i in range(4):
        t = x[:, i * 128 : i * 128 + 128]
        new = np.maximum(m, t.max(1, keepdims=True))
        a = a * (new - m) + t
        s = s + (t - new).sum(1, keepdims=True)
        m = new
    return a - m, s


@program([((64, 512), F32)], [((64, 128), F32), ((64, 1), F32)], _online)
def columns_and_a_tile_of_each_other(x, o, c):
    m, s, a = dl.full((64, 1), -100.0), dl.zeros((64, 1)), dl.zeros((64, 128))
    for i in range(4):
        t = dl.load(x, (0, i * 128), (64, 128))
        new = dl.maximum(m, dl.max(t, axis=1))
        a = a * (new - m) + t
        s = s + dl.sum(t - new, axis=1)
        m = new
    dl.store(o, (0, 0), a - m)
    dl.store(c, (0, 0), s)


def _centred(x):
    c = x[:, :1]
    for _ in range(3):
        c = (c - c.max(0, keepdims=True)) * F32(2)
    return c


@program([((512, 4), F32)], [((512, 1), F32)], _centred)
def column_less_its_own_maximum(x, o):
    c = dl.load(x, (0, 0), (512, 1))
    for _ in range(3):
        c = (c - dl.max(c, axis=0)) * 2.0
    dl.store(o, (0, 0), c)


# -- rows and tiles that loops carry -------------------------------------------------------------


@program([((8, 4096), F32)], [((1, 4096), F32)], lambda x: x.max(0, keepdims=True))
def long_row(x, o):
    m = dl.full((1, 4096), -100.0)
    for i in range(8):
        m = dl.maximum(m, dl.load(x, (i, 0), (1, 4096)))
    dl.store(o, (0, 0), m)


@program([((8, 4000), F32)], [((4000,), F32)], lambda x: x.sum(0))
def long_vector(x, o):
    s = dl.zeros((4000,))
    for i in range(8):
        s = s + dl.reshape(dl.load(x, (i, 0), (1, 4000)), (4000,))
    dl.store(o, (0,), s)


@program([((128, 512), F32)], [((128, 128), F32)], lambda x: x.reshape(128, 4, 128).sum(1))
def square(x, o):
    s = dl.zeros((128, 128))
    for i in range(4):
        s = s + dl.load(x, (0, i * 128), (128, 128))
    dl.store(o, (0, 0), s)


@program([((64, 512), F32)], [((64, 512), F32)], lambda x, n: x * F32(2) ** n, scalars=[3], cpu_only=True)
def run_time_count(x, o, n):
    t = dl.load(x, (0, 0), (64, 512))
    for _ in range(n):
        t = t * 2.0
    dl.store(o, (0, 0), t)


def _fibonacci(x, y):
    for _ in range(5):
        x, y = y, x + y
    return x, y


@program([((64, 256), F32)] * 2, [((64, 256), F32)] * 2, _fibonacci)
def tiles_that_change_places(x, y, o, p):
    a, b = dl.load(x, (0, 0), (64, 256)), dl.load(y, (0, 0), (64, 256))
    for _ in range(5):
        a, b = b, a + b
    dl.store(o, (0, 0), a)
    dl.store(p, (0, 0), b)


def _turned(x):
    for i in range(3):
        x = x.T + F32(i)
    return x


@program([((64, 64), F32)], [((64, 64), F32)], _turned)
def tile_that_turns(x, o):
    t = dl.load(x, (0, 0), (64, 64))
    for i in range(3):
        t = t.T + dl.full((64, 64), 1.0) * i
    dl.store(o, (0, 0), t)


@program([((64, 256), F32)], [((64, 256), F32)], lambda x: x + F32(12))
def loops_in_a_loop(x, o):
    t = dl.load(x, (0, 0), (64, 256))
    for _ in range(3):
        u = t
        for _ in range(4):
            u = u + 1.0
        t = u
    dl.store(o, (0, 0), t)


@program([((256, 256), I32)], [((64, 256), I32)], lambda x: x.reshape(4, 64, 256).sum(0))
def integers(x, o):
    n = dl.load(x, (0, 0), (64, 256))
    for i in range(3):
        n = n + dl.load(x, (i * 64 + 64, 0), (64, 256))
    dl.store(o, (0, 0), n)


@program([((256, 256), F32)], [((64, 256), F32)], lambda x: (x.reshape(4, 64, 256) > 7).any(0).astype(F32))
def mask(x, o):
    found = dl.full((64, 256), 0.0) > 1.0
    for i in range(4):
        found = found | (dl.load(x, (i * 64, 0), (64, 256)) > 7.0)
    dl.store(o, (0, 0), dl.where(found, 1.0, 0.0))


@program([((256, 256), BF16)], [((64, 256), BF16)], lambda x: x.astype(F32).reshape(4, 64, 256).max(0).astype(BF16))
def narrow_tile(x, o):
    m = dl.load(x, (0, 0), (64, 256))
    for i in range(3):
        m = dl.maximum(m, dl.load(x, (i * 64 + 64, 0), (64, 256))).to(dl.bfloat16)
    dl.store(o, (0, 0), m)


@program([((256, 256), FP8)], [((64, 256), FP8)], lambda x: x[192:])
def codes(x, o):
    c = dl.load(x, (0, 0), (64, 256))
    for i in range(3):
        c = dl.load(x, (i * 64 + 64, 0), (64, 256))
    dl.store(o, (0, 0), c)


# -- branches ------------------------------------------------------------------------------------


@program([((4, 356), BF16)], [((4, 356), F32), ((356, 4), F32)])
def transpose_beside_a_branch(x, o, o2):
    t = dl.load(x, (dl.program_id(0) + 1, 0), (1, 1000)).to(dl.float32)
    dl.store(o2, (0, 0), dl.abs(t).T)
    if dl.program_id(0) == 0:
        t = t * 2.0
    dl.store(o, (0, 0), t)


@program([((128, 128), F32)], [((128, 128), F32)], lambda x, n: x + F32(1) if n > 2 else -x, scalars=[3])
def one_of_two_squares(x, o, n):
    t = dl.load(x, (0, 0), (128, 128))
    if n > 2:
        t = t + 1.0
    else:
        t = -t
    dl.store(o, (0, 0), t)


@program([((64, 512), F32)], [((64, 512), F32)], lambda x, n: x * F32(5), scalars=[2], cpu_only=True)
def branches_in_branches(x, o, n):
    t = dl.load(x, (0, 0), (64, 512))
    if n > 0:
        if n > 2:
            t = t * 3.0
        else:
            t = t * 5.0
    dl.store(o, (0, 0), t)


@program([((64, 512), F32)], [((64, 512), F32)], lambda x, n: x * F32(2) + F32(2), scalars=[2], cpu_only=True)
def branch_in_a_loop(x, o, n):
    t = dl.load(x, (0, 0), (64, 512))
    for i in range(3):
        if i < n:
            t = t + 1.0
        else:
            t = t * 2.0
    dl.store(o, (0, 0), t - 2.0)


@program([((128, 128), F32)], [((128, 128), FP8), ((128, 4), E8M0)], None, scalars=[1])
def scales_after_a_branch(x, o, s, n):
    t = dl.load(x, (0, 0), (128, 128))
    if n > 0:
        t = t * 3.0
    scale = dl.block_scale(t, "mxfp8_e4m3")
    dl.store(o, (0, 0), dl.cast(t, scale, "mxfp8_e4m3"))
    dl.store(s, (0, 0), scale)


def half(t, n):
    if n > 3:
        return t
    return t * 0.5


@program([((3, 4096), F32)], [((3, 4096), F32)], lambda x, n: x * F32(0.25), scalars=[1])
def function_that_returns_in_a_branch(x, o, n):
    dl.store(o, (0, 0), half(half(dl.load(x, (0, 0), (3, 4096)), n), n))


# -- reductions and transposes -------------------------------------------------------------------


@program([((1100, 8), F32)], [((1, 8), F32)], lambda x: x.sum(0, keepdims=True))
def sums_of_columns(x, o):
    dl.store(o, (0, 0), dl.sum(dl.load(x, (0, 0), (1100, 8)), axis=0))


@program([((512, 512), F32)], [((1, 512), F32)], lambda x: x.max(0, keepdims=True))
def maxima_of_columns_in_a_loop(x, o):
    m = dl.full((1, 512), -100.0)
    for i in range(8):
        m = dl.maximum(m, dl.max(dl.load(x, (i * 64, 0), (64, 512)), axis=0))
    dl.store(o, (0, 0), m)


@program([((1, 4096), F32)], [((1, 4096), F32)], lambda x: x / x.sum(1, keepdims=True))
def share_of_a_row(x, o):
    t = dl.load(x, (0, 0), (1, 4096))
    dl.store(o, (0, 0), t / dl.sum(t, axis=1))


@program([((3, 4096), F32)], [((3, 4096), F32)], lambda x: x - x.max(1, keepdims=True))
def rows_less_their_maxima(x, o):
    t = dl.load(x, (0, 0), (3, 4096))
    dl.store(o, (0, 0), t - dl.max(t, axis=1))


@program([((3, 4096), F32)], [((4096, 3), F32)], lambda x: x.T)
def transpose_of_long_rows(x, o):
    dl.store(o, (0, 0), dl.load(x, (0, 0), (3, 4096)).T)


@program([((1000, 3), F32)], [((3, 1000), F32)], lambda x: x.T)
def transpose_of_tall_columns(x, o):
    dl.store(o, (0, 0), dl.load(x, (0, 0), (1000, 3)).T)


@program([((128, 128), F32)], [((128, 128), F32)] * 2, lambda x: (x + F32(4), x.T + F32(4)), cpu_only=True)
def carried_and_transposed(x, o, p):
    t = dl.load(x, (0, 0), (128, 128))
    for _ in range(4):
        t = t + 1.0
    dl.store(o, (0, 0), t)
    dl.store(p, (0, 0), t.T)


@program([((128, 128), F32)], [((128, 128), F32)], lambda x: x + x.T)
def square_and_its_transpose(x, o):
    t = dl.load(x, (0, 0), (128, 128))
    dl.store(o, (0, 0), t + t.T)


def _steps(x):
    for _ in range(8):
        x = x - x.max(1, keepdims=True)
    return x


@program([((64, 512), F32)], [((64, 512), F32)], _steps)
def unrolled_maxima(x, o):
    t = dl.load(x, (0, 0), (64, 512))
    for _ in dl.static_range(8):
        t = t - dl.max(t, axis=1)
    dl.store(o, (0, 0), t)


@program([((64, 512), F32)], [((64, 512), F32)], lambda x: x + F32(16))
def unrolled_branches(x, o):
    t = dl.load(x, (0, 0), (64, 512))
    for i in dl.static_range(16):
        t = dl.where(t > -100.0 - i, t + 1.0, t)
    dl.store(o, (0, 0), t)


# -- the tests -----------------------------------------------------------------------------------

NAMES = list(PROGRAMS)


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_results(name: str) -> None:
    each = PROGRAMS[name]
    inputs, outputs = each.read(), each.written()
    each.kernel[(1,)](*inputs, *outputs, *each.scalars)
    if each.numpy:
        expected = each.numpy(*inputs, *each.scalars)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
    else:
        expected = each.written()
        each.kernel[(1,)](*inputs, *expected, *each.scalars, device="sim:sm_90a")
    for found, want in zip(outputs, expected, strict=True):
        assert np.array_equal(bits(found), bits(want.astype(found.dtype)))


#: Lines of the program of one lane: each is an operation on a register.
MOST_LINES = 6000


@pytest.mark.parametrize("target", ["host:base", "host:avx2", "host:avx512", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", NAMES)
def test_code_size(name: str, target: str) -> None:
    each = PROGRAMS[name]
    if each.cpu_only and target.startswith("sm_"):
        pytest.skip("a tile for a CPU")
    compiled = each.kernel.compile(*each.read(), *each.written(), *each.scalars, target=target)
    assert compiled.stages["distributed"].count("\n") <= MOST_LINES


# -- masks ---------------------------------------------------------------------------------------


@dither.jit
def scaled_columns(x, codes, halves):
    t = dl.load(x, (0, 0), (32, 64))
    scale = dl.block_scale(t, "mxfp8_e5m2", axis=0)
    dl.store(codes, (0, 0), dl.cast(t, scale, "mxfp8_e5m2", axis=0))
    dl.store(halves, (0, 0), t)


#: Blocks of an access by a mask that the CPU has no instruction for, and of the kernel around all of them.
MOST_BLOCKS, OTHER_BLOCKS = 6, 40


@pytest.mark.parametrize("target", ["host:avx2", "host:avx512"])
def test_masked_rows_are_few_blocks(target: str) -> None:
    """Their number, which the time to compile grows with, is not that of the elements."""
    types = [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16]
    views = [dither.view(np.zeros((32, 64), dtype), shapes="dynamic") for dtype in types]
    stages = scaled_columns.compile(*views, target=target).stages
    accesses = sum(stages["distributed"].count(f"llvm.intr.masked.{kind}") for kind in ("load", "store"))
    assert accesses >= 32
    lacking = accesses if target == "host:avx2" else 0
    assert stages["asm"].count("\n.LBB") <= lacking * MOST_BLOCKS + OTHER_BLOCKS


# -- long blocks ---------------------------------------------------------------------------------


@dither.jit
def steps(x, o, COUNT: dl.constexpr):
    t = dl.load(x, (0, 0), (4, 32))
    for i in dl.static_range(COUNT):
        t = dl.exp(t) - i
    dl.store(o, (0, 0), t)


@dither.jit
def one_step(x, o, i):
    dl.store(o, (0, 0), dl.exp(dl.load(x, (0, 0), (4, 32))) - i)


def blocks(llvmir: str) -> list[str]:
    return re.split(r"^\S.*:.*$", llvmir, flags=re.MULTILINE)


@pytest.mark.parametrize("target", ["host:avx2", "host:avx512"])
def test_no_block_is_longer_than_code_generation_is_quick_for(target: str) -> None:
    """Unrolled statements are cut where code generation would take the square of their number; short ones are not."""
    x = np.zeros((4, 32), F32)
    assert "callbr" not in steps.compile(x, x.copy(), 2, target=target).stages["llvmir"]
    llvmir = steps.compile(x, x.copy(), 100, target=target).stages["llvmir"]
    assert llvmir.count("callbr") > 2
    assert max(block.count("\n") for block in blocks(llvmir)) <= 1600


def test_cut_blocks_compute_the_same() -> None:
    """The parts of a long block hand on what they computed: the bits are those of short kernels, one after another."""
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(F32)
    once, all_at_once = x.copy(), x.copy()
    for i in range(100):
        after = np.empty_like(once)
        one_step[1,](once, after, float(i), device="cpu")
        once = after
    steps[1,](x, all_at_once, 100, device="cpu")
    assert np.array_equal(bits(once), bits(all_at_once))


#: Instructions of an exponential of 16 lanes for any x86, whose multiply-adds are calls of one function; and others.
LINES_OF_EXP, OTHER_LINES = 200, 2000


def test_software_multiply_adds_are_there_once() -> None:
    x = np.zeros((4, 32), F32)
    asm = steps.compile(x, x.copy(), 10, target="host:base").stages["asm"]
    assert asm.count("call") > 100
    assert asm.count("\n") <= 10 * (x.size // 16) * LINES_OF_EXP + OTHER_LINES
