"""Parts of tiles, and tiles side by side, in every place where a tile can be: NumPy says what they hold."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import CompileError, TensorType

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
ROWS, COLS = 16, 128


def floats(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def launch(kernel, y, *inputs, device, **constexprs):
    """Runs one program and returns `y`."""
    kernel[1](y, *inputs, device=device, **constexprs)
    return y


@dither.jit
def sliced(y, x, R: dl.constexpr, C: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (16, 128))[R[0] : R[1], C[0] : C[1]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ((None, None), (None, 64)),
        ((None, None), (64, None)),
        ((3, 7), (5, 90)),
        ((-4, None), (-64, -32)),
        ((0, 1), (0, 500)),
        ((8, 16), (None, None)),
    ],
)
def test_slices(rows, columns, device):
    x = floats((ROWS, COLS))
    want = x[slice(*rows), slice(*columns)]
    y = launch(sliced, np.zeros(want.shape, np.float32), x, R=rows, C=columns, device=device)
    assert (y == want).all()


@dither.jit
def stepped(y, x, R: dl.constexpr, C: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (16, 128))[R[0] : R[1] : R[2], C[0] : C[1] : C[2]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ((None, None, None), (None, None, 2)),
        ((None, None, None), (1, None, 2)),
        ((None, None, 2), (None, None, None)),
        ((3, 12, 4), (5, 29, 4)),
        ((1, None, 8), (77, None, 32)),
        ((15, None, 2), (127, None, 128)),  # one element, of steps that begin before it
        ((-16, None, 1), (-3, None, 2)),
    ],
)
def test_steps(rows, columns, dtype, device):
    """Every element is as it was: zeros keep their signs, infinities and the least numbers stay."""
    x = floats((ROWS, COLS)).astype(getattr(ml_dtypes, dtype, dtype))
    x[3, 5:9], x[5, ::3], x[7, 1::2] = np.inf, -0.0, np.finfo(np.float32).smallest_subnormal
    want = np.ascontiguousarray(x[slice(*rows), slice(*columns)])
    y = launch(stepped, np.ones(want.shape, x.dtype), x, R=rows, C=columns, device=device)
    assert y.tobytes() == want.tobytes()


@dither.jit
def interleaved(y, x, ROWS: dl.constexpr, COLS: dl.constexpr):
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = dl.load(x, (r, 2 * c), (ROWS, 2 * COLS)).to(dl.float32)
    dl.store(y, (r, c), t[:, ::2] * t[:, 1::2])


@pytest.mark.parametrize("device", ["sim:sm_90a", "sim:sm_100a"])
def test_steps_are_an_order_of_registers(device):
    """Lanes load both, and nothing changes lanes."""
    x = floats((64, 256))
    y = np.zeros((64, 128), np.float32)
    with dither.profile.record(device) as runs:
        interleaved[2, 2](y, x, ROWS=32, COLS=64)
    assert (y == x[:, ::2] * x[:, 1::2]).all()
    (one,) = dither.profile.summarize(runs)
    assert one.classes["warp"] == one.barriers == 0


@dither.jit
def indexed(y, x):
    t = dl.load(x, (0, 0), (16, 128))
    dl.store(y, (0, 0), t[3][None, :])
    dl.store(y, (1, 0), t[-1, None])
    dl.store(y, (2, 0), t[:, 7][None, :16])
    dl.store(y, (2, 16), t[2:4, 100][None, :])
    dl.store(y, (2, 18), dl.broadcast_to(t[0, 1], (1, 110)))


@pytest.mark.parametrize("device", DEVICES)
def test_indices_drop_dimensions(device):
    x = floats((ROWS, COLS))
    y = launch(indexed, np.zeros((3, COLS), np.float32), x, device=device)
    last = np.concatenate([x[:, 7], x[2:4, 100], np.full(110, x[0, 1])])
    assert (y == np.stack([x[3], x[-1], last])).all()


@dither.jit
def rotated(y, x, cos, sin):
    """RoPE of halves, in one expression of whole rows."""
    i = dl.program_id(0) * 8
    t = dl.load(x, (i, 0), (8, 128)).to(dl.float32)
    c, s = dl.load(cos, (i, 0), (8, 128)), dl.load(sin, (i, 0), (8, 128))
    half = dl.concat((-t[:, 64:], t[:, :64]), axis=1)
    dl.store(y, (i, 0), t * c + half * s)


@pytest.mark.parametrize("device", DEVICES)
def test_rope(device):
    x, c, s = (floats((19, 128), seed) for seed in range(3))
    y = np.zeros_like(x)
    rotated[3](y, x, c, s, device=device)
    assert (y == x * c + np.concatenate([-x[:, 64:], x[:, :64]], axis=1) * s).all()


@dither.jit
def joined(y, a, b, AXIS: dl.constexpr, P: dl.constexpr, Q: dl.constexpr, R: dl.constexpr):
    u, v = dl.load(a, (0, 0), P), dl.load(b, (0, 0), Q)
    t = dl.concat((u, v * 2.0, u), AXIS)
    dl.store(y, (0, 0), dl.maximum(t, dl.load(y, (0, 0), R)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("axis", "p", "q"), [(0, (4, 64), (8, 64)), (1, (8, 24), (8, 40)), (-1, (3, 16), (3, 1))])
def test_concatenations(axis, p, q, device):
    a, b = floats(p, 1), floats(q, 2)
    want = np.concatenate([a, b * 2, a], axis)
    y = floats(want.shape, 3)
    want = np.maximum(want, y)
    assert (launch(joined, y, a, b, AXIS=axis, P=p, Q=q, R=want.shape, device=device) == want).all()


@dither.jit
def reduced(y, top, x, z):
    t = dl.concat((dl.load(x, (0, 0), (8, 96)), dl.exp(dl.load(z, (0, 0), (8, 80)))), 1)
    dl.store(y, (0, 0), dl.sum(t, 1))
    dl.store(top, (0, 0), dl.amax(t[:, 50:130], 1))


@dither.jit
def summed(y, t):
    dl.store(y, (0, 0), dl.sum(dl.load(t, (0, 0), (8, 176)), 1))


@dither.jit
def exponential(y, x):
    dl.store(y, (0, 0), dl.exp(dl.load(x, (0, 0), (8, 80))))


@pytest.mark.parametrize("device", DEVICES)
def test_sums_see_the_elements_side_by_side(device):
    """In the order of as many elements, whoever made them."""
    x, z = floats((8, 96), 1), floats((8, 80), 2)
    top = np.zeros((8, 1), np.float32)
    y = launch(reduced, np.zeros((8, 1), np.float32), top, x, z, device=device)
    e = launch(exponential, np.zeros((8, 80), np.float32), z, device="cpu")
    t = np.concatenate([x, e], 1)
    assert (y == launch(summed, np.zeros((8, 1), np.float32), t, device="cpu")).all()
    assert (top[:, 0] == abs(t[:, 50:130]).max(1)).all()


@dither.jit
def carried(y, x, n):
    acc = dl.zeros((8, 64))
    for i in range(n):
        t = dl.load(x, (i * 8, 0), (8, 64))
        if i == 1:
            t = dl.concat((t[:, 32:], t[:, :32]), 1)
        acc = dl.concat((acc[:, 48:] + t[:, :16], acc[:, :48] - t[:, 16:]), 1)
    dl.store(y, (0, 0), acc)
    dl.store(y, (0, 64), acc[:, 8:20])


@pytest.mark.parametrize("device", DEVICES)
def test_loops_and_branches_hand_on_parts(device):
    x = floats((24, 64))
    y = launch(carried, np.zeros((8, 76), np.float32), x, 3, device=device)
    acc = np.zeros((8, 64), np.float32)
    for i in range(3):
        t = x[i * 8 : i * 8 + 8]
        if i == 1:
            t = np.concatenate([t[:, 32:], t[:, :32]], 1)
        acc = np.concatenate([acc[:, 48:] + t[:, :16], acc[:, :48] - t[:, 16:]], 1)
    assert (y == np.concatenate([acc, acc[:, 8:20]], 1)).all()


@dither.jit
def quantized(codes, scales, x, FORMAT: dl.constexpr, FROM: dl.constexpr):
    t = dl.load(x, (0, 0), (8, 128)).to(dl.float32)
    t = dl.concat((t[:, FROM:], t[:, :FROM]), 1)
    s = dl.block_scale(t, FORMAT)
    dl.store(codes, (0, 0), dl.cast(t, s, FORMAT))
    dl.store(scales, (0, 0), s)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("start", [64, 32, 24])
@pytest.mark.parametrize("fmt", [dither.MXFP8_E4M3, dither.MXFP4])
def test_blocks_across_a_seam(fmt, start, device):
    """24 is inside a block, whose scale has elements of both tiles."""
    x = floats((8, 128))
    turned = np.ascontiguousarray(np.roll(x, -start, axis=1))
    want = dither.quantize(turned, fmt)
    codes, scales = np.zeros_like(np.asarray(want.data)), np.zeros_like(np.asarray(want.scale_inv))
    packed = dither.view(codes, fmt.element) if codes.dtype == np.uint8 else codes
    quantized[1](packed, scales, x, FORMAT=fmt, FROM=start, device=device)
    assert (codes.view(np.uint8) == np.asarray(want.data).view(np.uint8)).all()
    assert (scales.view(np.uint8) == np.asarray(want.scale_inv).view(np.uint8)).all()


@dither.jit
def block_of_rows(codes, scales, x, g, FORMAT: dl.constexpr):
    """A block down the rows, whose last ones are made of a vector and of other rows."""
    t = dl.load(x, (0, 0), (6, 64))
    t = dl.concat((t, dl.load(g, 0, 64)[None, :], dl.max(t, axis=0)), 0)
    s = dl.block_scale(t, FORMAT, axis=0)
    dl.store(codes, (0, 0), dl.cast(t, s, FORMAT, axis=0))
    dl.store(scales, (0, 0), s)


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_of_rows_of_their_own(device):
    fmt = dither.Format(element=dl.float8_e4m3, scale=dl.e8m0, block=8)
    x, g = floats((6, 64)), floats(64, 1) * 100
    t = np.concatenate([x, g[None], x.max(0)[None]])
    want = dither.quantize(t, fmt, layout="colwise")
    codes, scales = np.zeros_like(np.asarray(want.data)), np.zeros_like(np.asarray(want.scale_inv))
    block_of_rows[1](codes, scales, x, g, FORMAT=fmt, device=device)
    assert (codes.view(np.uint8) == np.asarray(want.data).view(np.uint8)).all()
    assert (scales.view(np.uint8) == np.asarray(want.scale_inv).view(np.uint8)).all()


@dither.jit
def unpacked(y, codes, scales, FORMAT: dl.constexpr, FROM: dl.constexpr, TO: dl.constexpr):
    q, s = dl.load(codes, (0, 0), (8, 128)), dl.load(scales, (0, 0), (8, 4))
    dl.store(y, (0, 0), dl.dequantize(q, s, FORMAT)[:, FROM:TO])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("start", "end"), [(32, 96), (8, 72), (40, 44), (1, 128)])
def test_parts_of_blocks(start, end, device):
    q = dither.quantize(floats((8, 128)), dither.MXFP8_E4M3)
    want = np.asarray(dither.dequantize(q))[:, start:end]
    y = np.zeros(want.shape, np.float32)
    unpacked[1](y, q.data, q.scale_inv, FORMAT=dither.MXFP8_E4M3, FROM=start, TO=end, device=device)
    assert (y == want).all()


@dither.jit
def overwritten(y, x):
    """A part is of what the load found, wherever it is named."""
    t = dl.load(x, (0, 0), (8, 64))
    dl.store(x, (0, 0), t + 1.0)
    dl.store(y, (0, 0), t[:, 16:48])


@pytest.mark.parametrize("device", DEVICES)
def test_slices_are_of_what_was_loaded(device):
    x = floats((8, 64))
    want = x[:, 16:48].copy()
    assert (launch(overwritten, np.zeros((8, 32), np.float32), x, device=device) == want).all()


@dither.jit
def places(y):
    at = dl.arange(64)[None, :] + dl.arange(8)[:, None] * 100
    dl.store(y, (0, 0), dl.concat((at[:, 40:], at.T[:40].T), 1))


@pytest.mark.parametrize("device", DEVICES)
def test_counting(device):
    at = np.arange(64)[None, :] + np.arange(8)[:, None] * 100
    y = launch(places, np.zeros((8, 64), np.int32), device=device)
    assert (y == np.roll(at, -40, 1)).all()


def refused(function, x):
    with pytest.raises(CompileError) as error:
        dither.compiler.lower(function, {"x": x}, {}, "host")
    return str(error.value).splitlines()[0]


def test_refused():
    x = TensorType(dl.float32, (8, 64))

    def step(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[:, ::3])

    def backwards(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[::-1])

    def narrow(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 5))[:, ::2])

    def integers(x):
        dl.store(x, (0, 0), dl.bitcast(dl.load(x, (0, 0), (8, 64)), dl.int32)[:, ::2].to(dl.float32))

    def nothing(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[:, 64:])

    def far(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[8][None, :])

    def many(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[0, 1, 2])

    def of_run_time(x):
        dl.store(x, (0, 0), dl.load(x, (0, 0), (8, 64))[dl.program_id(0)][None, :])

    def unequal(x):
        t = dl.load(x, (0, 0), (8, 64))
        dl.store(x, (0, 0), dl.concat((t, t[:4]), 1))

    assert "the slice of dimension 1 has a step of 3, expected a power of two" in refused(step, x)
    assert "the slice of dimension 0 has a step of -1, expected a power of two" in refused(backwards, x)
    assert (
        "the slice of dimension 1 has 3 elements, 2 apart, in 5, expected an extent of 6: load a wider tile"
        in refused(narrow, x)
    )
    assert "a step of 2 in a slice of an int32 tile of shape (8, 64), expected a tile of floats" in refused(integers, x)
    assert "the slice of dimension 1 has no elements, expected at least one of 64" in refused(nothing, x)
    assert "the index of dimension 0 is 8, expected -8 to 7" in refused(far, x)
    assert "'[]' has 3 entries, but a float32 tile of shape (8, 64) has 2 dimensions" in refused(many, x)
    assert "expected a constexpr: load the part with dl.load" in refused(of_run_time, x)
    assert "entry 1 of tiles has shape (4, 64), expected that of the first, (8, 64), but for axis 1" in refused(
        unequal, x
    )


@dither.jit
def sum_of_carried(y, x, n):
    acc = dl.load(x, (0, 0), (8, 64))
    for _ in range(n):
        acc = acc + 1.0
    dl.store(y, (0, 0), dl.sum(dl.concat((acc, acc), 1), 1))


def test_sums_of_carried_tiles_are_refused_in_words():
    with pytest.raises(CompileError, match="needs the elements of concatenated tiles side by side"):
        sum_of_carried[1](np.zeros((8, 1), np.float32), floats((8, 64)), 2, device="cpu")


@dither.jit
def prefix_sum(y, x, N: dl.constexpr):
    t = dl.load(x, (0, 0), (4, N))
    for k in (1, 2, 4, 8, 16, 32):
        t = t + dl.concat((dl.zeros((4, k), dl.float32), t[:, : N - k]), 1)
    dl.store(y, (0, 0), t)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_prefix_sums(device):
    """Each step moves the tile by twice as many columns: what steps have in common is computed once, and not once for
    each of its parts, which took minutes to compile."""
    x = np.random.default_rng(0).integers(-9, 10, (4, 64)).astype(np.float32)
    np.testing.assert_array_equal(launch(prefix_sum, np.zeros_like(x), x, device=device, N=64), np.cumsum(x, axis=1))


@dither.jit
def exp_less_other_maxima(y, x, N: dl.constexpr):
    t = dl.load(x, (0, 0), (N, N))
    dl.store(y, (0, 0), dl.exp(t - dl.reshape(dl.max(t, 1), (1, N))))


@pytest.mark.parametrize("device", DEVICES)
def test_maxima_of_rows_as_those_of_columns(device):
    """They are no maxima of the columns that they are subtracted from: differences may be above zero, which `exp` knows
    of what is less its own maximum that they are not."""
    x = 50 * np.arange(16, dtype=np.float32).reshape(4, 4)
    y = launch(exp_less_other_maxima, np.zeros_like(x), x, device=device, N=4)
    above = x > x.max(axis=1)
    assert np.all((y > 1) == above)
    assert np.isinf(y[2, 0]) and np.isinf(y[3, 1])
