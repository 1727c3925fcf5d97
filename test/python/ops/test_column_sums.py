"""Sums over all rows as something that a producer saves: gradients of biases beside quantized gradients."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from ops import check

F32 = np.float32
DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


@dither.fuse(saves={"bias": "column_sum"})
def gradient(x):
    return x, x


@dither.fuse(saves={"bias": "column_sum", "mask": "tile", "above": "column_sum"})
def relu_gradient(dy, x):
    mask = dl.where(x > 0.0, 1.0, 0.0)
    # Not zero where its operands are.
    return dy * mask, dy * mask, mask, 1.0 - mask


@dither.fuse(whole_rows=True, saves={"gamma": "column_sum"})
def normalized(x, n: dl.row_length):
    y = x * dl.rsqrt(dl.sum(x * x, axis=1) / n + 1e-5)
    return y, y


@dither.fuse(saves={"sum": "column_sum"})
def scaled(x, by: dl.row):
    return x, x * by


@dither.jit
def sum_kernel(x, y, q, s, ROWS: dl.constexpr, NEGATIVE: dl.constexpr, QUANTIZED: dl.constexpr):
    t = dl.load(x, (0, 0), (ROWS, 64))
    if NEGATIVE:
        t = -t
    dl.store(y, (0, 0), dl.sum(t, axis=0))
    if QUANTIZED:
        scale = dl.block_scale(t, dither.MXFP8_E4M3, axis=0)
        dl.store(q, (0, 0), dl.cast(t, scale, dither.MXFP8_E4M3, axis=0))
        dl.store(s, (0, 0), scale)


def tree(x):
    """Rows in pairs, and the sums of these, until one is left; a zero is +0."""
    while len(x) > 1:
        if len(x) % 2:
            x = np.concatenate([x, np.zeros_like(x[:1])])
        x = x[0::2] + x[1::2]
    return (x[0] if len(x) else np.zeros(x.shape[1], F32)) + F32(0)


def data(shape, dtype=F32):
    x = np.random.default_rng(shape).standard_normal(shape).astype(F32)
    return (x * np.exp2(np.random.default_rng(1).integers(-20, 20, shape)).astype(F32)).astype(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 48), (32, 128), (300, 200), (1000, 72)])
def test_plain_output(shape, device):
    for dtype in (F32, ml_dtypes.bfloat16):
        x = data(shape, dtype)
        y, bias = gradient(x, device=device)
        check.same_bits(y, x)
        check.same_bits(bias, tree(x.astype(F32)))


def test_more_rows_than_a_pass_takes():
    x = data((256 * 64 + 1, 32))
    check.same_bits(gradient(x).bias, tree(x))


FORMATS = [dither.NVFP4, dither.MXFP8_E4M3, dither.Format(element=dl.float8_e4m3, scale=dl.float32, block=(512, 32))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["rowwise", "colwise", "both"])
@pytest.mark.parametrize("format", FORMATS[:2], ids=lambda fmt: fmt.name)
def test_quantized_output(format, layout, device):
    """As without the sums, with their bits, whatever tiles a format and a device have."""
    x = data((160, 192), ml_dtypes.bfloat16)
    scale_layout = "linear" if layout == "both" else "128x4"
    q, bias = gradient(x, format=format, layout=layout, scale_layout=scale_layout, device=device)
    want = dither.quantize(x, format, layout, scale_layout)
    for got, expected in zip(*(([t.rowwise, t.colwise] if layout == "both" else [t]) for t in (q, want)), strict=True):
        check.same_bits(got.data, expected.data)
        check.same_bits(got.scale_inv, expected.scale_inv)
    check.same_bits(bias, tree(x.astype(F32)))


@pytest.mark.parametrize("format", ["nvfp4", "fp8_tensor_e4m3"])
@pytest.mark.parametrize("rows", [1, 16, 33, 64, 100, 130, 200])
def test_rows_that_fill_no_line(format, rows):
    """Codes are stored as columns of 64 or 128 rows on a CPU, and sums end with the last block of rows."""
    x = data((rows, 96), ml_dtypes.bfloat16)
    q, bias = gradient(x, format=format, layout="both")
    want = dither.quantize(x, format, "both")
    for got, expected in ((q.rowwise, want.rowwise), (q.colwise, want.colwise)):
        check.same_bits(got.data, expected.data)
        check.same_bits(got.scale_inv, expected.scale_inv)
    check.same_bits(bias, tree(x.astype(F32)))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_blocks_of_more_rows_than_a_tree_has(device):
    x = data((600, 64))
    q, bias = gradient(x, format=FORMATS[2], device=device)
    check.same_bits(q.data, dither.quantize(x, FORMATS[2]).data)
    check.same_bits(bias, tree(x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("format", [None, "mxfp8_e4m3"])
def test_several_and_other_outputs(format, device):
    dy, x = data((77, 96)), data((77, 96))[::-1].copy()
    found = relu_gradient(dy, x, format=format, device=device)
    assert found._fields == ("out", "bias", "mask", "above")
    mask = (x > 0).astype(F32)
    check.same_bits(found.bias, tree(dy * mask))
    check.same_bits(found.mask, mask)
    # Rows past the end of the tensor are no rows.
    check.same_bits(found.above, 77 - mask.sum(0))


@pytest.mark.parametrize("device", DEVICES)
def test_of_whole_rows(device):
    x = data((37, 320))
    y, gamma = normalized(x, device=device)
    check.same_bits(gamma, tree(y))


@pytest.mark.parametrize("device", DEVICES)
def test_rows_past_the_end_are_no_nan(device):
    """Zeros times infinity would be."""
    for m in (5, 128, 133):
        x, by = np.abs(data((m, 64))) + F32(1), data((1, 64))[0]
        by[[3, 40]] = np.inf, -np.inf
        check.same_bits(scaled(x, by, device=device).sum, tree(x * by))


@pytest.mark.parametrize("rows", [1, 4, 6, 64, 256])
def test_tiles_that_reach_past_a_tensor(rows):
    """A sum has +0 for each row that a tensor does not have, and the sign of a zero shows it."""
    for m in sorted({0, 1, rows // 2 + 1, rows - 1, rows, rows + 3}):
        for x in (data((m, 64)), np.full((m, 64), -0.0, F32)):
            for negative, quantized in ((False, False), (True, False), (False, rows % 32 == 0)):
                y = np.empty((1, 64), F32)
                q, s = np.empty((m, 64), ml_dtypes.float8_e4m3fn), np.empty((-(-m // 32), 64), ml_dtypes.float8_e8m0fnu)
                sum_kernel[1](x, y, q, s, ROWS=rows, NEGATIVE=negative, QUANTIZED=quantized)
                tile = np.zeros((rows, 64), F32)
                tile[:m] = x[:rows]
                check.same_bits(y[0], pairwise(-tile if negative else tile))


def pairwise(x):
    """As `tree`, with zeros of either sign."""
    while len(x) > 1:
        if len(x) % 2:
            x = np.concatenate([x, np.full_like(x[:1], -0.0)])
        x = x[0::2] + x[1::2]
    return x[0]


def test_zeros_and_nothing():
    x = np.full((32, 8), -0.0, F32)
    check.same_bits(gradient(x).bias, np.zeros(8, F32))
    check.same_bits(gradient(x[:0]).bias, np.zeros(8, F32))
    assert gradient(x[:, :0]).bias.shape == (0,)
    x = data((40, 16))
    x[3, 5], x[7, 6], x[30, 6] = np.nan, np.inf, -np.inf
    bias = gradient(x).bias
    assert np.isnan(bias[[5, 6]]).all() and np.isfinite(np.delete(bias, [5, 6])).all()


def test_torch():
    torch = pytest.importorskip("torch")
    x = data((100, 64))
    bias = gradient(torch.from_numpy(x), format="nvfp4").bias
    assert isinstance(bias, torch.Tensor) and bias.dtype is torch.float32
    check.same_bits(bias.numpy(), tree(x))


@dither.fuse(saves={"bias": "column_sum"})
def of_another_shape(x):
    return x, dl.zeros((4, 4), dl.float32)


@dither.fuse(saves={"bias": "column_sum"})
def sum_of_a_part(x):
    return x, dl.sum(x, axis=0)


def test_mistakes():
    x = data((8, 64))
    with pytest.raises(dither.CompileError, match="of_another_shape gives a float32 tile of shape"):
        of_another_shape(x)
    with pytest.raises(dither.CompileError, match="return the tile, and name it a 'column_sum' of saves"):
        sum_of_a_part(x)
    with pytest.raises(ValueError, match="expected column or tile or column_sum"):
        dither.fuse(lambda x: (x, x), saves={"bias": "sums"})


def test_totals_of_two_sums():
    """A GPU has one launch for the totals of both, a CPU one for each: it goes over the rows that are there, where a
    kernel of two tensors takes a whole tile of each."""
    of = dither.TensorType
    x, row, column = of(dither.bfloat16, (4, 64)), of(dither.float32, (64,)), of(dither.float32, (4,))
    for target, launches in (("host:avx2", 3), ("sm_90a", 2)):
        program = dither.record(dither.layer_norm_backward, x, x, column, column, row, target=target)
        assert program.launches == launches
