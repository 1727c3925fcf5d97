"""Tensors of rank 3 and 4: tiles of any of their dimensions, and edges along all."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
B, S, H, D = 2, 21, 3, 72


def data(shape=(B, S, H, D)):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@dither.jit
def heads(y, x, ROWS: dl.constexpr):
    """Of each head of each batch a (position, element) matrix, doubled, with the positions of the heads apart."""
    b, h, i = dl.program_id(0), dl.program_id(1), dl.program_id(2) * ROWS
    t = dl.load(x, (b, i, h, 0), (ROWS, 72), dims=(1, 3))
    dl.store(y, (b, h, i, 0), t + t)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [1, 8, 64])
def test_heads(rows, device):
    x = data()
    y = np.zeros((B, H, S, D), np.float32)
    heads[B, H, -(-S // rows)](y, x, ROWS=rows, device=device)
    assert (y == 2 * x.transpose(0, 2, 1, 3)).all()


@dither.jit
def outside(y, x):
    """Reads and writes what is in no batch: zeros, and nothing."""
    b, i = dl.program_id(0) - 1, dl.program_id(1) * 8
    t = dl.load(x, (b, i, 16), (8, 32))
    dl.store(y, (b + 1, i, 0), t + 1.0)
    dl.store(y, (b * 100 + 7, i, 0), t)


@pytest.mark.parametrize("device", DEVICES)
def test_indices_outside(device):
    x = data((2, 20, 40))
    y = np.zeros((4, 20, 32), np.float32)
    outside[4, 3](y, x, device=device)
    want = np.ones((4, 20, 32), np.float32)
    want[1:3, :, :24] += x[:, :, 16:]
    assert (y == want).all()


@dither.jit
def rows(y, x):
    b, i = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (b, i, 0), 40)
    dl.store(y, (b, i, 0), dl.exp(t))
    dl.store(y, (b, i, 0), t, dims=2)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_of_rank_1(device):
    x = data((2, 5, 40))
    y = np.zeros_like(x)
    rows[2, 5](y, x, device=device)
    assert (y == x).all()


@dither.jit
def in_place(x, FORMAT: dl.constexpr):
    b, i = dl.program_id(0), dl.program_id(1) * 16
    t = dl.load(x, (b, i, 0), (16, 64))
    s = dl.block_scale(t, FORMAT)
    dl.store(x, (b, i, 0), dl.dequantize(dl.cast(t, s, FORMAT), s, FORMAT))


@pytest.mark.parametrize("device", DEVICES)
def test_in_place(device):
    x = data((3, 16, 64))
    want = [np.asarray(dither.quantize(m, dither.MXFP8_E4M3).dequantize()) for m in x]
    in_place[3, 1](x, FORMAT=dither.MXFP8_E4M3, device=device)
    assert (x == np.stack(want)).all()


@dither.jit
def running(y, x, n):
    """A view of each iteration: what one stores the next one reads."""
    t = dl.zeros((4, 32))
    for b in range(n):
        t = t + dl.load(x, (b, 0, 0), (4, 32))
        dl.store(y, (b, 0, 0), t)
        t = t + dl.load(y, (b - 1, 0, 0), (4, 32))


@pytest.mark.parametrize("device", DEVICES)
def test_views_of_iterations(device):
    x = np.round(data((5, 4, 32)) * 8)
    y, t = np.zeros_like(x), np.zeros((4, 32), np.float32)
    running[1](y, x, 5, device=device)
    want = np.zeros_like(x)
    for b in range(5):
        t = t + x[b]
        want[b] = t
        t = t + (want[b - 1] if b else 0)
    assert (y == want).all()


@dither.jit
def codes(y, x):
    b, i = dl.program_id(0), dl.program_id(1) * 4
    dl.store(y, (b, i, 0), dl.load(x, (b, i, 2), (4, 14)))


@pytest.mark.parametrize("device", DEVICES)
def test_four_bits(device):
    x = np.random.default_rng(0).integers(0, 256, (3, 8, 8), np.uint8)
    y = np.zeros((3, 8, 7), np.uint8)
    codes[3, 2](dither.view(y, dl.float4_e2m1), dither.view(x, dl.float4_e2m1), device=device)
    assert (y == x[:, :, 1:]).all()


@dither.jit
def wrong(x, SHAPE: dl.constexpr, DIMS: dl.constexpr):
    dl.store(x, (0, 0, 0), dl.load(x, (0, 0, 0), SHAPE, dims=DIMS), dims=DIMS)


@pytest.mark.parametrize(
    ("shape", "dims", "message"),
    [
        ((4, 4), (0, 1), "dims is .0, 1., expected 2 dimensions of 'x' in their order, the last one of them 2"),
        ((4, 4), (2, 0), "in their order"),
        ((4,), (0, 2), "expected 1 dimensions of 'x'"),
        ((4, 4), (0, 3), "expected dimensions of 'x', which has rank 3"),
        ((4, 4, 4), None, "shape has 3 entries, expected at most 2"),
    ],
)
def test_refused(shape, dims, message):
    with pytest.raises(CompileError, match=message):
        wrong[1](data((4, 4, 4)), SHAPE=shape, DIMS=dims, device="cpu")


@dither.jit
def summed(x, y, ROWS: dl.constexpr):
    """The sum of all matrices; each program writes it to a batch of its own."""
    b, i = dl.program_id(0), dl.program_id(1) * ROWS
    total = dl.zeros((ROWS, 64), dl.float32)
    for k in range(x.shape[0]):
        total += dl.load(x, (k, i, 0), (ROWS, 64))
    dl.store(y, (b, i, 0), total)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", ["trailing", "static", "dynamic"])
@pytest.mark.parametrize("rows", [32, 40, 3])
def test_sums_of_matrices(rows, shapes, device):
    """Of whole tiles, and of tiles past the last row and programs past the last batch, one launch after the other."""
    x = data((5, rows, 64))
    want = np.zeros((rows, 64), np.float32)
    for matrix in x:
        want += matrix
    for batches in (3, 2):
        y = np.zeros((3, rows, 64), np.float32)
        launch = summed[batches + (batches == 3), -(-rows // 8)]
        launch(x, y, ROWS=8, device=device, shapes=shapes)
        assert (y[:batches] == want).all() and not y[batches:].any()
