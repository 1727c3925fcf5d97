"""Storages: what they have, save, restore and make of the other direction."""

import math

import dither
import dither.torch as dt
import pytest
import torch
from dither.torch.storage import (
    QuantizedStorage,
    prepare_for_saving,
    restore_from_func_ctx,
    restore_from_saved,
    save_for_func_ctx,
)

SQUARE = [
    (dither.FP8_TENSOR_E4M3, "linear", False),
    (dither.INT8_TENSOR, "linear", False),
    (dither.FP8_128X128_E5M2, "linear", False),
    (dither.FP8_128X128_E4M3, "column_major", True),
    (dither.NVFP4.with_(block=(16, 16)), "128x4", True),
    (dither.NVFP4.with_(block=(16, 16)), "linear", False),
    (dither.MXFP8_E4M3.with_(block=(32, 32)), "linear", False),
    (dither.MXFP8_E4M3.with_(block=(32, 32)), "linear", True),
    (dither.MXFP8_E5M2.with_(block=(32, 32)), "128x4", False),
]


def bits(x):
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def same(a, b):
    return a.dtype is b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def tensor(m=96, n=160, dtype=torch.bfloat16, seed=0):
    return torch.randn(m, n, generator=torch.Generator().manual_seed(seed)).to(dtype)


def storage(fmt="mxfp8_e4m3", layout="both", **options):
    return QuantizedStorage.of(dither.quantize(tensor(), fmt, layout=layout, **options))


def test_names_and_shapes():
    q = dither.quantize(tensor(), dither.NVFP4, layout="both")
    s = QuantizedStorage.of(q)
    assert s.data is q.rowwise.data and s.data_t is q.colwise.data and s._data is s.data and s._data_t is s.data_t
    assert s.scale is q.rowwise.scale_inv is s._scale_inv and s.scale_t is q.colwise.scale_inv
    assert s.global_amax_row is q.rowwise.amax and s.global_amax_col is q.colwise.amax
    assert s.size() == s.shape == torch.Size((96, 160)) and s.size(0) == 96 and s.dim() == 2 and s.numel() == 96 * 160
    assert s.dtype is torch.bfloat16 and s.device.type == "cpu" and s.custom and s.format is dither.NVFP4
    assert s.get_usages() == {"rowwise": True, "columnwise": True}
    assert same(s.dequantize(), q.rowwise.dequantize())
    assert same(s.dequantize(torch.float32), q.rowwise.dequantize(dither.float32))
    assert s.nbytes == sum(x.nbytes for half in (q.rowwise, q.colwise) for x in (half.data, half.scale_inv, half.amax))


def test_columns_alone():
    s = storage(dither.NVFP4, "colwise", transform=dither.RandomHadamard())
    assert s.shape == (96, 160) and s.data is None and s.get_usages() == {"rowwise": False, "columnwise": True}
    assert same(s.dequantize(), dither.dequantize(s.colwise, undo_transform=True))
    with pytest.raises(RuntimeError, match="those along columns alone"):
        s.update_usage(rowwise_usage=True)


@pytest.mark.parametrize(("fmt", "order", "repeat"), SQUARE, ids=str)
def test_columns_of_rows(fmt, order, repeat):
    """The bits of what is quantized in both directions."""
    both = storage(fmt, scale_layout=order, repeat_scales=repeat)
    rows = QuantizedStorage(both.rowwise, None)
    rows.update_usage(rowwise_usage=False, columnwise_usage=True)
    assert rows.rowwise is None
    assert same(rows.data_t, both.data_t) and same(rows.scale_t, both.scale_t)
    assert (rows.colwise.amax is None) == (both.colwise.amax is None)
    assert same(rows.dequantize(), dither.dequantize(both.colwise))


@pytest.mark.parametrize("shape", [(4, 16, 48), (3, 5, 48), (16, 1, 48), (0, 32), (2, 0, 32)], ids=str)
@pytest.mark.parametrize(("fmt", "order", "repeat"), SQUARE, ids=str)
def test_columns_of_rows_of_other_shapes(fmt, order, repeat, shape):
    x = tensor(math.prod(shape[:-1]), shape[-1]).reshape(shape)
    options = {"layout": "both", "scale_layout": order, "repeat_scales": repeat}
    both = QuantizedStorage.of(dither.quantize(x, fmt, **options))
    rows = QuantizedStorage(both.rowwise, None)
    rows.update_usage(columnwise_usage=True)
    assert same(rows.data_t, both.data_t) and same(rows.scale_t, both.scale_t)
    assert same(dither.dequantize(rows.colwise), dither.dequantize(both.colwise))


def test_directions_that_cannot_be_made():
    for fmt, options in (("mxfp8_e4m3", {}), (dither.NVFP4, {})):
        s = storage(fmt, "rowwise", **options)
        with pytest.raises(RuntimeError, match="expected them to be quantized with the tensor"):
            s.update_usage(columnwise_usage=True)
        expected = dither.requantize(s.rowwise).colwise
        s.update_usage(columnwise_usage=True, requantize=True)
        assert same(s.data_t, expected.data) and same(s.scale_t, expected.scale_inv)
    s = storage(dither.FP8_ROW_E4M3, "rowwise")
    with pytest.raises(RuntimeError, match="expected a format with blocks"):
        s.update_usage(columnwise_usage=True, requantize=True)
    with pytest.raises(RuntimeError, match="both directions are to be dropped"):
        s.update_usage(rowwise_usage=False)
    s = storage()
    s.update_usage(columnwise_usage=False)
    assert s.get_usages() == {"rowwise": True, "columnwise": False}


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", dither.NVFP4, dither.NVFP4.with_(tensor_scale_as="decode")], ids=str)
@pytest.mark.parametrize("layout", ["rowwise", "colwise", "both"])
def test_saving_and_restoring(fmt, layout):
    options = {"decode_scale": 0.01} if getattr(fmt, "tensor_scale_as", "") == "decode" else {}
    s, plain = storage(fmt, layout, **options), torch.ones(3)
    expected, data = s.dequantize(), s.data
    tensors, kept = prepare_for_saving(plain, s, None)
    assert len(tensors) == 2 + (4 if fmt == "mxfp8_e4m3" else 6)
    assert tensors[1] is data and s.data is None and s.data_t is None
    got = restore_from_saved(kept, tensors)
    assert got[0] is plain and got[1] is s and got[2] is None
    assert s.data is data and same(s.dequantize(), expected)


def test_high_precision_directions():
    x = tensor()
    s = QuantizedStorage(x, dither.quantize(x, "mxfp8_e4m3", layout="colwise"))
    assert s.data is x and s.scale is None and same(s.dequantize(torch.float32), x.float()) and s.format is None
    tensors, kept = prepare_for_saving(s)
    assert restore_from_saved(kept, tensors)[0].data is x


class Saves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        save_for_func_ctx(ctx, QuantizedStorage.of(dither.quantize(x.detach(), "mxfp8_e4m3")), x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        s, _ = restore_from_func_ctx(ctx)
        return grad * s.dequantize()


def test_in_autograd_functions():
    x = tensor(dtype=torch.float32).requires_grad_()
    y = Saves.apply(x)
    y.sum().backward()
    assert same(x.grad, dither.quantize(x.detach(), "mxfp8_e4m3").dequantize())
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_copies():
    a, b = storage(), QuantizedStorage.of(dither.quantize(tensor(seed=1), "mxfp8_e4m3", layout="both"))
    again = a.detach()
    again.update_usage(columnwise_usage=False)
    assert a.colwise is not None and again.data is a.data
    a.copy_from_storage(b)
    assert same(a.data, b.data) and same(a.scale_t, b.scale_t) and a.data is not b.data
    with pytest.raises(ValueError, match="argument 'src' has rowwise"):
        a.copy_from_storage(storage("mxfp8_e5m2"))
    c = QuantizedStorage.of(dither.quantize(tensor(seed=2, dtype=torch.float32), "mxfp8_e4m3", layout="both"))
    a.copy_from_storage(c)
    assert same(a.data, c.data) and a.dtype is torch.bfloat16
    assert same(QuantizedStorage(**a.get_metadata()).dequantize(), a.dequantize())


def test_what_is_refused():
    q = dither.quantize(tensor(), "mxfp8_e4m3", layout="both")
    with pytest.raises(ValueError, match="expected one of them"):
        QuantizedStorage(None, None)
    with pytest.raises(ValueError, match="along the other direction"):
        QuantizedStorage(q.colwise, None)
    with pytest.raises(TypeError, match="argument 'colwise' is int"):
        QuantizedStorage(q.rowwise, 3)
    with pytest.raises(ValueError, match=r"argument 'colwise' has shape \(4, 4\)"):
        QuantizedStorage(q.rowwise, torch.ones(4, 4))
    with pytest.raises(TypeError, match="found int to be saved"):
        prepare_for_saving(3)
    with pytest.raises(ValueError, match="2 tensors more than were saved"):
        restore_from_saved([None], [None, None, None])
    with pytest.raises(RuntimeError, match="no quantizer"):
        QuantizedStorage.of(q).quantize_(tensor())


def test_rows_that_make_no_run_of_a_transform():
    """Along columns rows of zeros follow: the gradient of a weight is that of the input and gradient with these."""
    layer = dt.Linear(64, 32, bias=False, params_dtype=torch.float32)
    x, dy = (torch.randn(40, n, generator=torch.Generator().manual_seed(n)) for n in (64, 32))
    recipe = dither.recipe.NVFP4BlockScaling(disable_stochastic_rounding=True)

    def gradient(x, dy):
        layer.weight.grad = None
        with dt.autocast(recipe=recipe):
            y = layer(x)
        y.backward(dy)
        return y.detach(), layer.weight.grad

    zeros = torch.nn.functional.pad
    (y, dw), (y_of_all, dw_of_all) = gradient(x, dy), gradient(zeros(x, (0, 0, 0, 8)), zeros(dy, (0, 0, 0, 8)))
    assert torch.equal(dw, dw_of_all) and torch.equal(y, y_of_all[:40])
    assert layer(x.reshape(4, 10, 64)).shape == (4, 10, 32)
