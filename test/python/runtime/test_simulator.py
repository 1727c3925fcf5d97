"""The simulator on hand-written PTX and on dither's, with faults planted: conversions equal ml_dtypes', and each fault
is told with its line."""

from __future__ import annotations

import re

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from simulated import Out, run

# ---------------------------------------------------------------------------
# Conversions
# ---------------------------------------------------------------------------

PAIRS = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry convert(.param .u64 a, .param .u64 d)
{
  .reg .b8 c; .reg .b16 h; .reg .b32 t, b; .reg .b64 p, q, o; .reg .f32 x, y;
  ld.param.u64 p, [a];
  ld.param.u64 q, [d];
  mov.u32 t, %tid.x;
  mov.u32 b, %ctaid.x;
  mad.lo.u32 t, b, 32, t;
  mad.wide.u32 p, t, 8, p;
  mad.wide.u32 q, t, 2, q;
  ld.global.v2.f32 {x, y}, [p];
  CONVERT
  st.global.b16 [q], h;
  ret;
}
"""

FORMATS = {
    "e4m3x2": (ml_dtypes.float8_e4m3fn, 0x7F),
    "e5m2x2": (ml_dtypes.float8_e5m2, 0x7F),
    "e2m1x2": (ml_dtypes.float4_e2m1fn, 0x7),
}


def around(values: np.ndarray) -> np.ndarray:
    """The fp32 numbers within two ulps of positive ones, of both signs."""
    bits = values.astype(np.float32).view(np.uint32)
    near = (bits[:, None].astype(np.int64) + np.arange(-2, 3)).ravel()
    near = near[near >= 0].astype(np.uint32)
    return np.concatenate([near, near | 0x80000000])


def values_of(dtype: type) -> np.ndarray:
    """The finite values of a format from zero up, as fp64."""
    codes = 16 if dtype == ml_dtypes.float4_e2m1fn else 256
    values = np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float64)
    return np.unique(np.abs(values[np.isfinite(values)]))


def inputs(values: np.ndarray) -> np.ndarray:
    """Every bf16 and f16, and what lies around the values of a format and the middles between them, as fp32."""
    values = np.append(values, 2 * values[-1] - values[-2])
    decisions = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    every = np.arange(65536, dtype=np.uint16)
    halves = [every.view(np.float16).astype(np.float32), (every.astype(np.uint32) << 16).view(np.float32)]
    bits = np.concatenate([around(decisions), *(half.view(np.uint32) for half in halves)])
    return np.concatenate([bits, np.zeros(-len(bits) % 32, np.uint32)]).view(np.float32)


def convert(code: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """h of the PTX for each pair."""
    blocks = (len(x) // 32, 1, 1)
    (got,) = run(
        PAIRS.replace("CONVERT", code), "convert", [np.stack([x, y], 1), Out((len(x),), np.uint16)], blocks, 32
    )
    return got


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_narrow_conversions_are_those_of_ml_dtypes(name: str, relu: bool) -> None:
    dtype, nan = FORMATS[name]
    values = values_of(dtype)
    high = inputs(values)
    low = high[::-1]
    cvt = f"cvt.rn.satfinite{'.relu' * relu}.{name}.f32"
    bits = 4 if name == "e2m1x2" else 8
    got = convert(f"{cvt} c, x, y; mov.b16 h, {{c, c}};" if bits == 4 else f"{cvt} h, x, y;", high, low)

    def expected(x: np.ndarray) -> np.ndarray:
        clipped = np.clip(np.where(np.isnan(x), 0, x), -values[-1], values[-1]).astype(np.float32)
        clipped = np.where(relu & np.signbit(clipped), np.float32(0), clipped)
        return np.where(np.isnan(x), nan, clipped.astype(dtype).view(np.uint8)).astype(np.uint16)

    np.testing.assert_array_equal(got & (1 << 2 * bits) - 1, expected(high) << bits | expected(low))


@pytest.mark.parametrize("up", [False, True])
def test_powers_of_two_are_those_of_ml_dtypes(up: bool) -> None:
    """ml_dtypes has no directed rounding; its values say which neighbours there are."""
    values = values_of(ml_dtypes.float8_e8m0fnu)
    x = inputs(values)
    got = convert(f"cvt.{'rp' if up else 'rz'}.satfinite.ue8m0x2.f32 h, x, y;", x, x)
    magnitude = np.abs(np.where(np.isnan(x), 0, x).astype(np.float64))
    index = np.searchsorted(values, magnitude, "left") if up else np.searchsorted(values, magnitude, "right") - 1
    want = np.where(np.isnan(x), 255, np.clip(index, 0, 254)).astype(np.uint16)
    np.testing.assert_array_equal(got, want << 8 | want)


# ---------------------------------------------------------------------------
# Faults in what dither has compiled
# ---------------------------------------------------------------------------


@dither.jit
def transpose(x, y, N: dl.constexpr):
    i, j = dl.program_id(0) * N, dl.program_id(1) * N
    dl.store(y, (j, i), dl.load(x, (i, j), (N, N)).T)


ROWS, COLS = 64, 128


@pytest.fixture(scope="module")
def compiled():
    def matrix(columns):
        return dither.TensorType(dither.float32, (None, columns), (columns, 1), 16)

    return transpose.compile(matrix(COLS), matrix(ROWS), N=32, num_warps=4, target="sm_90a")


def launch(compiled, ptx: str | None = None, rows: int = ROWS, x: np.ndarray | Out | None = None) -> np.ndarray:
    """The transpose of 64 x 128 floats, by the kernel or changed PTX; `rows` is what the kernel is told there are."""
    given = np.arange(ROWS * COLS, dtype=np.float32) if x is None else x
    arguments = [given, np.int64(rows), Out((COLS, ROWS), np.float32), np.int64(COLS)]
    image = compiled.image
    grid = (rows // 32, COLS // 32, 1)
    (y,) = run(ptx or compiled.ptx, image.name, arguments, grid, image.num_threads, image.shared_bytes)
    return y


def line_of(ptx: str, error: pytest.ExceptionInfo) -> str:
    """The line of PTX that a fault names, which must be of the instruction that it names."""
    match = re.search(r"line (\d+) \(([\w.:]+)\)", str(error.value))
    assert match, error.value
    line = ptx.splitlines()[int(match.group(1)) - 1]
    assert match.group(2) in line
    return line


def test_no_fault(compiled) -> None:
    expected = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS).T
    np.testing.assert_array_equal(launch(compiled), expected)


def test_read_past_the_end(compiled) -> None:
    """The kernel is told of more rows than there are."""
    with pytest.raises(
        RuntimeError, match=r"reads \d+ bytes at .* past the end of an allocation of 32768 bytes"
    ) as error:
        launch(compiled, rows=ROWS + 32)
    assert "ld.global" in line_of(compiled.ptx, error)


def test_unwritten_tail(compiled) -> None:
    """The kernel is told of half of the rows: the second halves of the columns are missing."""
    with pytest.raises(RuntimeError, match=r"byte 128 of an output of 32768 bytes was not written"):
        launch(compiled, rows=ROWS // 2)


def test_read_of_what_nobody_wrote(compiled) -> None:
    with pytest.raises(RuntimeError, match=r"of an allocation of 32768 bytes, which was not written") as error:
        launch(compiled, x=Out((ROWS * COLS,), np.float32))
    assert "ld.global" in line_of(compiled.ptx, error)


def test_missing_barrier(compiled) -> None:
    """Without its first barrier the transpose through shared memory is a race."""
    ptx = compiled.ptx.replace("bar.sync", "// bar.sync", 1)
    assert ptx != compiled.ptx
    with pytest.raises(RuntimeError, match=r"with no barrier in between|which was not written") as error:
        launch(compiled, ptx)
    assert "ld.shared" in line_of(ptx, error)


def test_barrier_in_a_divergent_branch(compiled) -> None:
    """Only eight lanes of each warp come to the first barrier."""
    begin = compiled.ptx.index("bar.sync")
    end = compiled.ptx.index(";", begin) + 1
    branch = "{ .reg .pred %few; .reg .b32 %lane; mov.u32 %lane, %laneid; setp.lt.u32 %few, %lane, 8;\n"
    changed = f"{branch}@!%few bra $NOT_HERE;\n{compiled.ptx[begin:end]}\n$NOT_HERE: }}"
    ptx = compiled.ptx[:begin] + changed + compiled.ptx[end:]
    with pytest.raises(RuntimeError, match="not at the barrier that others of its warp are at") as error:
        launch(compiled, ptx)
    assert line_of(ptx, error) == compiled.ptx[begin:end]


def test_misaligned_vectors(compiled) -> None:
    """Vector loads of rows that begin at no multiple of a vector."""
    ptx = re.sub(r"(ld\.global[\w.]*v4[^\[]*\[%rd\d+)", r"\1+4", compiled.ptx, count=1)
    ptx = re.sub(r"(\[%rd\d+\+4)\+(\d+)\]", lambda m: f"{m[1][:-2]}+{int(m[2]) + 4}]", ptx)
    assert ptx != compiled.ptx
    with pytest.raises(RuntimeError, match=r"the address is not a multiple of 16") as error:
        launch(compiled, ptx)
    assert "ld.global" in line_of(ptx, error) and ".v4" in line_of(ptx, error)
