"""Quantizers: the bits of `dither.quantize` on NumPy, and the contract of the names that they have."""

import copy
import pickle

import dither
import ml_dtypes
import numpy as np
import pytest
import torch
from dither.recipe import NVFP4BlockScaling
from dither.torch.quantizer import Quantizer
from dither.torch.quantizers import (
    Float8BlockQuantizer,
    Float8CurrentScalingQuantizer,
    Float8Quantizer,
    HybridQuantizer,
    IdentityQuantizer,
    MXFP8Quantizer,
    NVFP4Quantizer,
    quantizer_of,
)
from dither.torch.storage import QuantizedStorage
from dither.torch.tensor import QuantizedTensor

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
SHAPE = (64, 96)


def array(seed=0):
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(ml_dtypes.bfloat16)


def as_torch(x):
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)


def delayed(scale=8.0, amax=0.0, dtype=E4M3):
    return Float8Quantizer(torch.tensor([scale]), torch.tensor([amax]), dtype)


def bits(x):
    return x.reshape(-1).view(torch.uint8)


def same(ours, theirs):
    """The bytes of a tensor of torch and of an array of NumPy, or neither there."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    bits = ours.contiguous().reshape(-1).view(torch.uint8).numpy()
    return tuple(ours.shape) == theirs.shape and bits.tobytes() == np.ascontiguousarray(theirs).tobytes()


def is_equal(s, q):
    return (
        same(s.data, q.rowwise.data)
        and same(s.data_t, q.colwise.data)
        and same(s.scale, q.rowwise.scale_inv)
        and same(s.scale_t, q.colwise.scale_inv)
        and same(s.global_amax_row, q.rowwise.amax)
        and same(s.global_amax_col, q.colwise.amax)
    )


def same_storages(a, b):
    pairs = zip(a._tensors(), b._tensors(), strict=True)
    return all(x is y or (x.shape == y.shape and torch.equal(bits(x), bits(y))) for x, y in pairs)


NAMED = [
    (lambda: delayed(), "fp8_tensor_e4m3", {"encode_scale": 8.0}),
    (
        lambda: Float8CurrentScalingQuantizer("e5m2", force_pow_2_scales=True, amax_epsilon=0.5),
        dither.FP8_TENSOR_E5M2.with_(pow2_scales=True, epsilon=0.5),
        {},
    ),
    (lambda: Float8BlockQuantizer(E4M3), "fp8_128x128_e4m3", {}),
    (
        lambda: Float8BlockQuantizer(E4M3, block_scaling_dim=1, force_pow_2_scales=False),
        dither.FP8_1X128_E4M3.with_(pow2_scales=False),
        {},
    ),
    (lambda: MXFP8Quantizer(E5M2), "mxfp8_e5m2", {}),
    (lambda: MXFP8Quantizer(E4M3, with_2d_quantization=True), dither.MXFP8_E4M3.with_(block=(32, 32)), {}),
    (lambda: NVFP4Quantizer(with_rht=True), "nvfp4", {"transform": dither.RandomHadamard()}),
    (
        lambda: NVFP4Quantizer(with_rht=True, with_random_sign_mask=False),
        "nvfp4",
        {"transform": dither.RandomHadamard(sign_mask=0)},
    ),
    (
        lambda: NVFP4Quantizer(nvfp4_use_4over6=True, nvfp4_e4m3_max=256, nvfp4_4over6_err_mode="MSE"),
        dither.NVFP4.with_(four_over_six="mse", largest_scale=256),
        {},
    ),
    (lambda: NVFP4Quantizer(row_scaled_nvfp4=True), dither.NVFP4.with_(row_amax=True), {}),
    (lambda: Quantizer("mxfp4"), "mxfp4", {}),
]


@pytest.mark.parametrize(("make", "fmt", "options"), NAMED, ids=lambda x: getattr(x, "name", ""))
def test_bits(make, fmt, options):
    """Of a new tensor, of one that is overwritten, and of one that is left as it is by a flag."""
    x, y = array(), array(1) * ml_dtypes.bfloat16(3)
    expected = dither.quantize(x, fmt, layout="both", **options)
    q = make()
    s = q.quantize(as_torch(x))
    assert isinstance(s, QuantizedStorage) and s.quantizer is q and s.dtype is torch.bfloat16
    assert is_equal(s, expected)
    tensors = [t for t in s._tensors() if t is not None]
    assert q.update_quantized(as_torch(y), s, noop_flag=torch.ones(1)) is s
    assert is_equal(s, expected)
    s.quantize_(as_torch(y), noop_flag=torch.zeros(1))
    assert is_equal(s, dither.quantize(y, fmt, layout="both", **options))
    assert [t.data_ptr() for t in tensors] == [t.data_ptr() for t in s._tensors() if t is not None]
    empty = q.make_empty(SHAPE, dtype=torch.bfloat16, device="meta")
    assert [t and (t.shape, t.dtype) for t in map(shape_of, empty._tensors())] == [
        t and (t.shape, t.dtype) for t in map(shape_of, s._tensors())
    ]
    assert empty.format == s.format and empty.shape == s.shape and empty.device.type == "meta"


@pytest.mark.parametrize("shape", [(33, 70), (3, 5, 48), (2, 16, 64), (2, 3, 4, 32), (0, 32)], ids=str)
@pytest.mark.parametrize("make", [make for make, *_ in NAMED])
def test_empty_storages(make, shape):
    """Of any shape they are what the quantizer makes, takes and copies."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    q = make()
    want = q.quantize(x)
    for dtype in (torch.float32, torch.bfloat16):
        empty = q.make_empty(shape, dtype=dtype)
        empty.copy_from_storage(want)
        again = q.update_quantized(x, q.make_empty(shape, dtype=dtype))
        for made in (empty, again):
            assert made.shape == want.shape and made.dtype is dtype and same_storages(made, want)
            assert torch.equal(made.dequantize(torch.float32), want.dequantize(torch.float32))


@pytest.mark.parametrize("make", [make for make, *_ in NAMED] + [lambda: Halving()])
def test_tensors_that_torch_takes(make):
    """With `internal` False: what a quantizer makes, it overwrites, with the bits of its storages."""
    x, y = as_torch(array()), as_torch(array(1)) * 3
    q, inside = make(), make()
    q.internal = False
    made, empty = q.quantize(x, dtype=torch.float32), q.make_empty(SHAPE, dtype=torch.float16)
    assert isinstance(made, QuantizedTensor) and made.dtype is torch.float32
    assert isinstance(empty, QuantizedTensor) and empty.dtype is torch.float16 and empty.shape == SHAPE
    before, version = QuantizedStorage.of(made.clone().quantized), made._version
    assert q.update_quantized(y, made, noop_flag=torch.ones(1)) is made
    assert same_storages(QuantizedStorage.of(made.quantized), before)
    want = inside.quantize(y)
    for found in (made, empty):
        assert q.quantize(y, out=found) is found and same_storages(QuantizedStorage.of(found.quantized), want)
    assert made._version > version
    leaf = q.make_empty(SHAPE, requires_grad=True)
    with pytest.raises(RuntimeError, match="update_quantized writes a tensor that requires a gradient"):
        q.update_quantized(y, leaf)
    with torch.no_grad():
        assert q.update_quantized(y, leaf).requires_grad
    with pytest.raises(ValueError, match="requires_grad is True, expected False"):
        inside.make_empty(SHAPE, requires_grad=True)


def test_rows_that_processes_share_are_written_in_all_of_them():
    q = NVFP4Quantizer()
    q.internal = False
    shard = q.make_empty(SHAPE)
    shard.amax_group = object()
    with pytest.raises(RuntimeError, match="other processes have parts of"):
        q.update_quantized(as_torch(array()), shard)


def test_tensors_of_hybrid_quantizers():
    """Of quantizers of either kind, where both have one format."""
    halves = MXFP8Quantizer(E4M3), MXFP8Quantizer(E4M3)
    halves[0].internal = False
    q, x = HybridQuantizer(*halves), as_torch(array())
    assert is_equal(q.quantize(x), dither.quantize(array(), "mxfp8_e4m3", layout="both"))
    q.internal = False
    made = q.make_empty(SHAPE, dtype=torch.bfloat16)
    assert isinstance(made, QuantizedTensor) and q.update_quantized(x, made) is made
    assert is_equal(QuantizedStorage.of(made.quantized), dither.quantize(array(), "mxfp8_e4m3", layout="both"))


class Shape:
    def __init__(self, tensor):
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def shape_of(tensor):
    return None if tensor is None else Shape(tensor)


def test_directions():
    q = MXFP8Quantizer(E4M3)
    assert q.get_usages() == {"rowwise": True, "columnwise": True}
    q.set_usage(columnwise=False)
    s = q(as_torch(array()))
    assert s.colwise is None and same(s.data, dither.quantize(array(), "mxfp8_e4m3").data)
    q.set_usage(rowwise=False, columnwise=True)
    assert q.quantize(as_torch(array())).rowwise is None
    # What is overwritten keeps its directions.
    q.update_quantized(as_torch(array(1)), s)
    assert s.colwise is None and same(s.data, dither.quantize(array(1), "mxfp8_e4m3").data)
    rows = NVFP4Quantizer(with_rht=True, columnwise=False)
    assert same(rows.quantize(as_torch(array())).data, dither.quantize(array(), "nvfp4").data)


def test_delayed_scaling_records_and_calibrates():
    q, x = delayed(amax=0.25), as_torch(array())
    q.quantize(x)
    assert q.amax.item() == x.abs().max().item()
    q.calibrate(x * 4)
    assert q.amax.item() == (x * 4).abs().max().item()
    q.calibrate(x)
    assert q.amax.item() == (x * 4).abs().max().item()
    MXFP8Quantizer(E4M3).calibrate(x)


def test_gradients_of_biases():
    x = array()
    for q in (MXFP8Quantizer(E5M2), Float8BlockQuantizer(E5M2, block_scaling_dim=1)):
        expected = dither.quantize_dbias(x, format=q.format, layout="both")
        quantized, dbias = q.quantize_dbias(as_torch(x))
        assert is_equal(quantized, expected.out) and same(dbias, expected.dbias)
        assert torch.equal(q.bgrad_quantize(as_torch(x))[0], dbias)
    total = torch.from_numpy(x.astype(np.float32)).sum(0).bfloat16()
    assert torch.equal(IdentityQuantizer().quantize_dbias(as_torch(x))[1], total)


def test_fused_operators():
    """Norms and activations, by quantizers of one format, and by those that have a way of their own."""
    x, gamma = array(), np.ones(96, ml_dtypes.bfloat16)
    q = MXFP8Quantizer(E4M3)
    result = q.apply(dither.rms_norm, as_torch(x), as_torch(gamma))
    expected = dither.rms_norm(x, gamma, format=q.format, layout="both")
    assert is_equal(result.out, expected.out) and same(result.rsigma, expected.rsigma)
    assert is_equal(q.apply(dither.silu, as_torch(x)), dither.silu(x, format=q.format, layout="both"))
    plain = HybridQuantizer(q, MXFP8Quantizer(E4M3)).apply(dither.rms_norm, as_torch(x), as_torch(gamma))
    both = dither.quantize(dither.rms_norm(x, gamma).out, "mxfp8_e4m3", layout="both")
    assert is_equal(plain.out, both)


def test_several_tensors():
    """Each with the bits that it has by itself."""
    xs = [as_torch(array(i)) * 2**i for i in range(3)]
    for q in (MXFP8Quantizer(E4M3), NVFP4Quantizer(), HybridQuantizer(MXFP8Quantizer(E4M3), NVFP4Quantizer())):
        for made, x in zip(q.multi_quantize(xs), xs, strict=True):
            assert made.quantizer is q
            pairs = zip(made._tensors(), q.quantize(x)._tensors(), strict=True)
            assert all(a is b or torch.equal(bits(a), bits(b)) for a, b in pairs)
    assert MXFP8Quantizer(E4M3).multi_quantize([]) == []


def test_stochastic_rounding_draws_from_torch():
    x = as_torch(array())
    q = NVFP4Quantizer(stochastic_rounding=True, columnwise=False)
    torch.manual_seed(3)
    first, second = q(x), q(x)
    torch.manual_seed(3)
    seed = torch.randint(2**62, (1,), dtype=torch.int64).item()
    expected = dither.quantize(array(), "nvfp4", rounding="stochastic", seed=seed)
    assert same(first.data, expected.data) and not torch.equal(first.data, second.data)


def test_hybrid():
    x = array()
    q = HybridQuantizer(MXFP8Quantizer(E4M3), NVFP4Quantizer())
    s = q.quantize(as_torch(x))
    assert same(s.data, dither.quantize(x, "mxfp8_e4m3").data)
    assert same(s.data_t, dither.quantize(x, "nvfp4", layout="colwise").data)
    again = HybridQuantizer(MXFP8Quantizer(E4M3), NVFP4Quantizer(), "rowwise_dequantized").quantize(as_torch(x))
    values = dither.quantize(x, "mxfp8_e4m3").dequantize()
    assert same(again.data_t, dither.quantize(values, "nvfp4", layout="colwise").data)
    half = HybridQuantizer(IdentityQuantizer(), MXFP8Quantizer(E4M3)).quantize(as_torch(x))
    assert same(half.data.view(torch.int16), x.view(np.int16)) and half.scale is None
    assert half.colwise.format is dither.MXFP8_E4M3
    y = as_torch(array(1))
    half.quantize_(y, noop_flag=torch.ones(1))
    assert same(half.data.view(torch.int16), x.view(np.int16))
    half.quantize_(y)
    assert torch.equal(half.data, y) and same(
        half.data_t, dither.quantize(array(1), "mxfp8_e4m3", layout="colwise").data
    )
    both = HybridQuantizer(MXFP8Quantizer(E4M3), NVFP4Quantizer())
    y = torch.randn(2, 16, 64)
    assert same_storages(both.update_quantized(y, both.make_empty(y.shape)), both.quantize(y))
    with pytest.raises(ValueError, match="one object, expected two"):
        one = MXFP8Quantizer(E4M3)
        HybridQuantizer(one, one)


class Halving(Quantizer):
    """A quantizer of one's own."""

    def __init__(self):
        super().__init__("mxfp8_e4m3")

    def quantize_impl(self, tensor):
        return QuantizedStorage.of(dither.quantize(tensor / 2, self.format, layout="both"), self)


def test_classes_of_ones_own():
    q, x = Halving(), as_torch(array())
    half = (array().astype(np.float32) / 2).astype(ml_dtypes.bfloat16)
    assert is_equal(q(x), dither.quantize(half, "mxfp8_e4m3", layout="both"))
    s = q(x)
    q.update_quantized(x * 2, s)
    assert is_equal(s, dither.quantize(array(), "mxfp8_e4m3", layout="both"))
    quantized, dbias = q.quantize_dbias(x)
    assert is_equal(quantized, dither.quantize(half, "mxfp8_e4m3", layout="both")) and dbias.shape == (96,)


def test_values():
    a, b = NVFP4Quantizer(with_rht=True), NVFP4Quantizer(with_rht=True)
    assert a == b and hash(a) == hash(b) and a != NVFP4Quantizer() and a != MXFP8Quantizer(E4M3)
    assert pickle.loads(pickle.dumps(a)) == a == copy.deepcopy(a) == a.copy()
    c = a.copy()
    c.set_usage(columnwise=False)
    assert c != a and a.columnwise_usage
    one, other = delayed(), delayed()
    assert one == one and one != other and one.copy().scale is one.scale
    grouped = Float8CurrentScalingQuantizer(E4M3, with_amax_reduction=True, amax_reduction_group="group")
    assert pickle.loads(pickle.dumps(grouped)).amax_reduction_group is None
    said = NVFP4BlockScaling().quantization("grad_output")
    assert quantizer_of(said) == NVFP4Quantizer(with_rht=True, stochastic_rounding=True)


def test_what_can_be_quantized():
    assert Float8CurrentScalingQuantizer(E4M3).supports_only_rowwise_all_gather()
    assert not MXFP8Quantizer(E4M3).supports_only_rowwise_all_gather()
    assert MXFP8Quantizer(E4M3, with_2d_quantization=True).is_requantization_safe()
    assert NVFP4Quantizer().is_data_t_transposed_in_memory
    assert not NVFP4Quantizer(with_rht=True).is_quantizable(torch.ones(24, 32))
    assert NVFP4Quantizer().is_quantizable(torch.ones(23, 33))
    assert not NVFP4Quantizer().is_quantizable(torch.ones(16, 16, dtype=torch.int32))


def test_gemm_order():
    q = MXFP8Quantizer(E4M3)
    q.optimize_for_gemm = True
    expected = dither.quantize(array(), "mxfp8_e4m3", layout="both", scale_layout="128x4")
    assert is_equal(q(as_torch(array())), expected)
    assert q.make_empty(SHAPE).scale_t.shape == expected.colwise.scale_inv.shape


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MXFP8Quantizer("e3m4"), "fp8_dtype is 'e3m4', expected float8_e4m3fn or float8_e5m2"),
        (lambda: NVFP4Quantizer(E4M3), "fp4_dtype is torch.float8_e4m3fn, expected float4_e2m1"),
        (lambda: NVFP4Quantizer(with_rht=True, with_post_rht_amax=False), "with_post_rht_amax is False, expected True"),
        (lambda: Float8BlockQuantizer(E4M3, block_scaling_dim=3), "block_scaling_dim is 3, expected 1 or 2"),
        (lambda: Float8Quantizer(torch.ones(2), torch.ones(1), E4M3), "expected a float32 tensor of one element"),
        (lambda: MXFP8Quantizer(E4M3).quantize(torch.ones(4)), "argument 'tensor' has shape (4,), expected rank 2"),
        (lambda: MXFP8Quantizer(E4M3).quantize([1.0]), "argument 'tensor' is list, expected a tensor"),
        (
            lambda: MXFP8Quantizer(E4M3, rowwise=False, columnwise=False).quantize(torch.ones(4, 4)),
            "neither rowwise nor columnwise is asked for",
        ),
        (
            lambda: MXFP8Quantizer(E4M3).update_quantized(torch.ones(32, 32), MXFP8Quantizer(E5M2)(torch.ones(32, 32))),
            "argument 'dst' is mxfp8_e5m2, expected mxfp8_e4m3",
        ),
        (lambda: MXFP8Quantizer(E4M3).make_empty((4,)), "found shape (4,), expected rank 2 or more"),
        (lambda: IdentityQuantizer().make_empty((4, 4)), "IdentityQuantizer has no storage of its own"),
        (lambda: Quantizer("mxfp9"), "unknown format 'mxfp9'"),
        (lambda: HybridQuantizer(MXFP8Quantizer(E4M3), 3), "columnwise_quantizer is 3, expected a Quantizer"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert message in str(error.value)
