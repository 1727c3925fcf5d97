"""Tensor scales as they come: an amax, an encode scale, a decode scale, on the host or where the tensor is."""

import copy
import ctypes
import pickle

import dither
import numpy as np
import pytest
from dither import profile
from dither.devices import get_device
from dither.ops.library import library
from ops import check, data
from ops.reference import check_part

F32 = np.float32
NVFP4 = dither.NVFP4


@pytest.mark.parametrize("device", ["cpu", "sim:sm_100a"])
@pytest.mark.parametrize("kind", ["encode", "decode"])
@pytest.mark.parametrize("order", ["te", "div6_mul", "div6_div", "mul_inv6"])
def test_given(order, kind, device):
    x = data.normal(40, 100, "bfloat16")
    fmt = NVFP4.with_(order=order)
    for scale in (F32(0.37), F32(1024), F32(1e-3)):
        for given in (float(scale), scale, np.array([scale])):
            q = dither.quantize(x, fmt, "both", device=device, **{f"{kind}_scale": given})
            for part in check.parts(q):
                assert part.format == fmt.with_(tensor_scale_as=kind)
                assert part.amax is None
                check.same_bits(np.asarray(part.tensor_scale), scale)
                check_part(part, x.astype(F32), part.format, "linear", scale, device)


def test_the_result_has_a_scale_of_its_own():
    scale = np.full(1, 0.5, F32)
    q = dither.quantize(data.normal(4, 32), "nvfp4", decode_scale=scale)
    before = q.dequantize()
    scale[0] = 2
    check.same_bits(q.dequantize(), before)
    for other in (pickle.loads(pickle.dumps(q)), copy.deepcopy(q)):
        check.same_bits(np.asarray(other.tensor_scale), F32(0.5))
        check.same_bits(other.dequantize(), before)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("name", ["quantize-nvfp4-both-128x4-bfloat16", "rms_norm-nvfp4-rowwise-128x4-bfloat16"])
def test_the_first_program_copies_the_amax(name, device):
    """Where it lies on a GPU: a launch for it alone would take as long as a tenth of a large tensor's."""
    where = get_device(device)
    (entry,) = (e for e in library(where.target, (256, 1024)) if e.name == name)
    results = []
    for own in (False, True):
        arrays = {key: profile.random_array(*tensor) for key, tensor in entry.tensors.items() if tensor is not None}
        arrays["amax"], copied = np.asarray(3.5, F32), np.zeros((), F32)
        named = {**dict.fromkeys(entry.tensors), **arrays, "own_amax": copied if own else None}
        entry.kernel.launch(entry.grid, **named, **entry.constexprs, device=where)
        assert copied == (3.5 if own else 0)
        results.append([ctypes.string_at(a.pointer, a.nbytes) for key, a in arrays.items() if key not in entry.reads])
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", ["encode", "decode"])
def test_computed_where_none_is_given(kind):
    """From the amax, computed or given; the result has both."""
    x = data.normal(40, 100)
    fmt = NVFP4.with_(tensor_scale_as=kind)
    q = dither.quantize(x, fmt)
    g = F32(np.abs(x).max())
    check.same_bits(np.asarray(q.amax), g)
    check.same_bits(np.asarray(q.tensor_scale), F32(2688) / g if kind == "encode" else g / F32(2688))
    again = dither.quantize(x, fmt, amax=g)
    check.same_bits(again.tensor_scale, q.tensor_scale)
    check.same_bits(again.data, q.data)
    check.same_bits(dither.quantize(np.zeros_like(x), fmt).tensor_scale, np.ones((), F32))


def test_into_an_earlier_result():
    x = data.normal(40, 100)
    out = dither.quantize(x, "nvfp4", decode_scale=0.5)
    q = dither.quantize(x * 2, "nvfp4", decode_scale=1.0, out=out)
    assert q.data is out.data
    assert np.asarray(q.tensor_scale) == 1
    with pytest.raises(ValueError, match="argument 'out' is a ScaledTensor1x"):
        dither.quantize(x, "nvfp4", out=out)


def test_with_a_transform():
    """The given scale is that of the rows, which are not transformed; that of the columns is computed."""
    x = data.normal(64, 64, "bfloat16")
    transform = dither.RandomHadamard(16)
    q = dither.quantize(x, "nvfp4", "both", encode_scale=64.0, transform=transform)
    assert np.asarray(q.rowwise.tensor_scale) == 64
    assert q.colwise.amax is not None
    check.same_bits(np.asarray(q.colwise.tensor_scale), F32(2688) / np.asarray(q.colwise.amax))
    plain = dither.quantize(x, "nvfp4", "colwise", transform=transform)
    check.same_bits(q.colwise.amax, plain.amax)


def test_fused():
    x, gamma = data.normal(40, 128, "bfloat16"), np.ones(128, F32)
    q = dither.rms_norm(x, gamma, format="nvfp4", decode_scale=0.01).out
    y = dither.rms_norm(x, gamma, round_intermediate=False).out
    check.same_bits(q.data, dither.quantize(y, "nvfp4", decode_scale=0.01).data)
    check.same_bits(np.asarray(q.tensor_scale), F32(0.01))


@pytest.mark.parametrize(
    ("fmt", "given", "message"),
    [
        ("nvfp4", {"encode_scale": 0.0}, "argument 'encode_scale' is 0.0, expected a finite number above zero"),
        ("nvfp4", {"decode_scale": -1.0}, "argument 'decode_scale' is -1.0, expected a finite number above zero"),
        ("nvfp4", {"decode_scale": np.float32(np.nan)}, "argument 'decode_scale' is nan, expected a finite number"),
        ("nvfp4", {"encode_scale": np.array([np.inf], F32)}, "argument 'encode_scale' is inf, expected a finite"),
        ("nvfp4", {"encode_scale": 1.0, "decode_scale": 1.0}, "'encode_scale' was given beside 'decode_scale'"),
        ("nvfp4", {"encode_scale": 1.0, "amax": 1.0}, "argument 'amax' was given beside 'encode_scale'"),
        (
            "mxfp8_e4m3",
            {"decode_scale": 1.0},
            "'decode_scale' was given for mxfp8_e4m3, expected a format with a tensor",
        ),
        ("fp8_tensor_e4m3", {"decode_scale": 1.0}, "'decode_scale' was given for fp8_tensor_e4m3, expected a format"),
        (
            "mxfp8_e4m3",
            {"encode_scale": 1.0},
            "'encode_scale' was given for mxfp8_e4m3, expected a format with a tensor",
        ),
        (NVFP4.with_(row_amax=True), {"encode_scale": 1.0}, "with row_amax, expected none"),
        (
            NVFP4.with_(tensor_scale_as="decode"),
            {"encode_scale": 1.0},
            "tensor_scale_as='decode', expected decode_scale",
        ),
    ],
)
def test_wrong(fmt, given, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        dither.quantize(data.normal(4, 32), fmt, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decode_scale": "1"}, "argument 'decode_scale' is a str, expected a number or a float32 array"),
        ({"decode_scale": np.ones(1)}, "argument 'decode_scale' has data type float64, expected float32"),
        ({"encode_scale": True}, "argument 'encode_scale' is a bool, expected a number or a float32 array"),
    ],
)
def test_wrong_types(given, message):
    with pytest.raises(TypeError, match=message):
        dither.quantize(data.normal(4, 32), "nvfp4", **given)


def test_without_a_format():
    with pytest.raises(ValueError, match="argument 'decode_scale' was given without a format"):
        dither.rms_norm(data.normal(4, 32), np.ones(32, F32), decode_scale=1.0)


def test_a_result_without_its_scale():
    q = dither.quantize(data.normal(4, 32), "nvfp4", decode_scale=0.5)
    object.__setattr__(q, "tensor_scale", None)
    with pytest.raises(ValueError, match="argument 'x' has no tensor_scale, expected a float32 array"):
        q.dequantize()
