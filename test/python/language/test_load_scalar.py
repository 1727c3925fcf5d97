"""Numbers in tensors as numbers: offsets, ranges and conditions that are known at run time alone."""

import dither
import dither.language as dl
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]


@dither.jit
def rows_up_to(x, count, y, R: dl.constexpr):
    """Twice the sum of the first rows, in steps of R, where they are more than ten, to a row of y."""
    n = dl.load_scalar(count)
    s = dl.zeros((R, 32))
    for r in range(0, n.to(dl.int64), R):
        s = s + dl.load(x, (r, 0), (R, 32))
    if n > 10:
        s = s * 2.0
    dl.store(y, (n.to(dl.int64) % 3, 0), s)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", [0, 3, 8, 16, 64])
def test_ranges_conditions_and_offsets(n, kind, device):
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    y = np.zeros((8, 32), np.float32)
    rows_up_to[1](x, np.array(n, kind), y, R=4, device=device)
    want = np.zeros((8, 32), np.float32)
    whole = -(-n // 4) * 4
    want[n % 3 : n % 3 + 4] = x[:whole].reshape(-1, 4, 32).sum(axis=0) * (2 if n > 10 else 1)
    assert (y == want).all()


@dither.jit
def scaled(x, factor, y):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (4, 32)) * dl.load_scalar(factor))


@pytest.mark.parametrize("device", DEVICES)
def test_a_float(device):
    x, y = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    scaled[1](x, np.array(0.75, np.float32), y, device=device)
    assert (y == 0.75).all()


@dither.jit
def written(count, y):
    n = dl.load_scalar(count)
    dl.store(count, (), n + 1)


def test_what_the_kernel_writes():
    with pytest.raises(dither.CompileError, match=r"tensor is written by dl.store(.|\n)*n = dl.load_scalar\(count\)"):
        written[1](np.zeros((), np.int32), np.zeros((), np.int32))


@dither.jit
def of_a_vector(x, y):
    dl.store(y, (), dl.load_scalar(x))


def test_what_is_no_number():
    with pytest.raises(dither.CompileError, match="offset has 0 entries, expected 1: one for each dimension"):
        of_a_vector[1](np.zeros(4, np.int32), np.zeros((), np.int32))
    with pytest.raises(dither.CompileError, match="'x' is float16, expected float32, int32 or int64"):
        of_a_vector[1](np.zeros((), np.float16), np.zeros((), np.int32))


@dither.jit
def quantized(x, factor, q, s):
    r = dl.program_id(0) * 8
    t = dl.load(x, (r, 0), (8, 256)) * dl.load_scalar(factor)
    scales = dl.block_scale(t, dither.MXFP8_E4M3, axis=1)
    dl.store(q, (r, 0), dl.cast(t, scales, dither.MXFP8_E4M3, axis=1))
    dl.store(s, (r, 0), scales)


@pytest.mark.parametrize("factor", [1.0, -2.0, 0.0, -0.0, np.nan, np.inf, 1e38, 3e-45])
def test_blocks_of_products_with_any_number(factor):
    """On CPUs in phases, where blocks with special values are computed twice."""
    x = np.random.default_rng(0).standard_normal((20, 256)).astype(np.float32)
    x[3, 7], x[5, 60], x[6], x[7, 100:140] = np.nan, np.inf, 0, 1e-40
    with np.errstate(all="ignore"):
        product = x * np.float32(factor)
    wanted = dither.quantize(product, "mxfp8_e4m3")
    q, s = np.empty((20, 256), np.uint8), np.empty((20, 8), np.uint8)
    views = dither.view(q, dl.float8_e4m3), dither.view(s, dl.e8m0)
    quantized[3](x, np.array(factor, np.float32), *views)
    assert (s == wanted.scale_inv.view(np.uint8)).all()
    assert (q == wanted.data.view(np.uint8)).all()
