"""Roles, factories, and the names of custom-recipe modules."""

import dither
import pytest
import torch
from dither.recipe import CustomRecipe, DelayedScaling, MXFP8BlockScaling, NVFP4BlockScaling
from dither.torch.factories import FACTORIES
from dither.torch.quantizers import (
    Float8BlockQuantizer,
    Float8CurrentScalingQuantizer,
    HybridQuantizer,
    IdentityQuantizer,
    MXFP8Quantizer,
    NVFP4Quantizer,
)
from dither.torch.reference import (
    CurrentScalingQuantizerRef,
    CurrentScalingTensorRef,
    NVFP4QuantizerRef,
    current_scaling_ref_factory,
    current_scaling_ref_quantizer_factory,
    nvfp4_ref_rht_2d_factory,
)
from dither.torch.roles import DelayedScalingRequest, QuantizerRole, factory_of, made, tensor_of

TENSORS = ("input", "weight", "grad_output")
E4M3 = MXFP8Quantizer("e4m3")
PLAIN = IdentityQuantizer()
RHT = NVFP4Quantizer(with_rht=True)
WEIGHT = NVFP4Quantizer(with_2d_quantization=True)
GRAD = NVFP4Quantizer(with_rht=True, stochastic_rounding=True)
ROWS = NVFP4Quantizer(row_scaled_nvfp4=True)


def hybrid(row, col):
    return HybridQuantizer(row.copy(), col.copy())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("high_precision", [PLAIN] * 3),
        ("delayed_scaling", [DelayedScalingRequest()] * 3),
        ("current_scaling", [Float8CurrentScalingQuantizer(kind) for kind in ("e4m3", "e4m3", "e5m2")]),
        ("float8_block_scaling", [Float8BlockQuantizer("e4m3", block_scaling_dim=dim) for dim in (1, 2, 1)]),
        ("mxfp8", [E4M3] * 3),
        ("nvfp4", [RHT, WEIGHT, GRAD]),
        ("nvfp4_1d_weight", [RHT, NVFP4Quantizer(), GRAD]),
        ("high_precision_fwd_mxfp8_bwd", [hybrid(PLAIN, E4M3), hybrid(PLAIN, E4M3), E4M3]),
        ("mxfp8_fwd_high_precision_bwd", [hybrid(E4M3, PLAIN), hybrid(E4M3, PLAIN), PLAIN]),
        ("mxfp8_fwd_nvfp4_bwd", [hybrid(E4M3, RHT), hybrid(E4M3, WEIGHT), GRAD]),
        ("nvfp4_row_scaled_fwd_mxfp8_bwd", [hybrid(ROWS, E4M3), hybrid(NVFP4Quantizer(), E4M3), E4M3]),
        ("nvfp4_row_scaled_fwd_high_precision_bwd", [hybrid(ROWS, PLAIN), hybrid(NVFP4Quantizer(), PLAIN), PLAIN]),
        ("nvfp4_linear_fp8_dpa", [RHT, WEIGHT, GRAD]),
    ],
)
def test_ready_factories(name, expected):
    """By strings and by objects."""
    factory = FACTORIES[name]
    assert [factory(tensor) for tensor in TENSORS] == expected
    assert [factory(QuantizerRole("linear", tensor, "fc1")) for tensor in TENSORS] == expected
    made(factory, None)
    with pytest.raises(ValueError, match="did you mean 'input'"):
        factory("inputs")


def test_all_are_tested():
    assert len(FACTORIES) == 13


def test_attention():
    role = QuantizerRole("dpa", "do")
    assert FACTORIES["nvfp4_linear_fp8_dpa"](role) == Float8CurrentScalingQuantizer("e5m2")
    assert FACTORIES["nvfp4"](role) == GRAD and tensor_of(QuantizerRole("dpa", "qkv")) == "input"


def test_factories_of_recipes():
    assert factory_of(MXFP8BlockScaling())("weight") == E4M3
    r = DelayedScaling(margin=2, amax_history_len=4)
    request = factory_of(r)("input")
    assert request == DelayedScalingRequest(margin=2, amax_history_len=4) and request.recipe == r
    custom = CustomRecipe(lambda role: PLAIN)
    assert factory_of(custom)("weight") is PLAIN
    r = NVFP4BlockScaling()
    r.set_quantizer_factory(current_scaling_ref_quantizer_factory)
    assert factory_of(r)("grad_output") == CurrentScalingQuantizerRef("e5m2")


def test_reference_names():
    x = torch.randn(32, 64).bfloat16()
    assert current_scaling_ref_factory is current_scaling_ref_quantizer_factory
    kinds = [current_scaling_ref_factory(t).format.name for t in ("input", "weight", "output", "grad_output")]
    assert kinds == ["fp8_tensor_e4m3"] * 3 + ["fp8_tensor_e5m2"]
    q = current_scaling_ref_quantizer_factory("input")
    t = q.quantize(x)
    expected = dither.quantize(x, "fp8_tensor_e4m3", layout="both")
    assert torch.equal(t.data.view(torch.uint8), expected.rowwise.data.view(torch.uint8))
    assert torch.equal(q.dequantize(t.data, t.scale), t.dequantize(torch.float32))
    assert torch.equal(q.dequantize(t), t.dequantize())
    rows = CurrentScalingQuantizerRef("e4m3", columnwise=False).quantize(x)
    assert torch.equal(q.transpose_qresult(rows).data_t.view(torch.uint8), t.data_t.view(torch.uint8))
    nvfp4 = [nvfp4_ref_rht_2d_factory(t) for t in ("weight", "input", "grad_output")]
    assert [q.format.block for q in nvfp4] == [(16, 16), 16, 16] and [bool(q.transform) for q in nvfp4] == [0, 1, 1]
    assert torch.equal(NVFP4QuantizerRef(with_rht=True)(x).data_t, RHT(x).data_t)


@pytest.mark.parametrize("largest", [3.0, 0.0, 1e-39, float("inf")])
@pytest.mark.parametrize("options", [{}, {"pow_2_scales": True}, {"eps": 0.5}], ids=str)
def test_compute_scale(largest, options):
    x = torch.full((2, 32), largest)
    scale, scale_inv, amax = CurrentScalingQuantizerRef.compute_scale(x, torch.float8_e4m3fn, **options)
    t = CurrentScalingQuantizerRef(torch.float8_e4m3fn, **options)(x)
    assert torch.equal(scale_inv, t.scale.reshape(1)) and torch.equal(torch.ones(1) / scale, scale_inv)
    assert amax.item() == x.abs().max().item()


def test_tensors_of_references():
    x = torch.randn(32, 64).bfloat16()
    t = CurrentScalingQuantizerRef("e4m3").quantize(x)
    same = CurrentScalingTensorRef(t.data, t.scale, t.data_t, t.scale_t, torch.bfloat16)
    assert torch.equal(same.dequantize(), t.dequantize()) and same.dtype is torch.bfloat16
    columns = CurrentScalingTensorRef(data_t=t.data_t, scale_t=t.scale_t, dtype=torch.bfloat16)
    assert columns.size() == (32, 64) and torch.equal(columns.dequantize(), t.dequantize())
    deep = CurrentScalingTensorRef(t.data, t.scale, original_shape=(4, 8, 64))
    assert torch.equal(deep.dequantize(), t.dequantize(torch.float32).reshape(4, 8, 64))
    with pytest.raises(ValueError, match="data and data_t are None"):
        CurrentScalingTensorRef()
    with pytest.raises(ValueError, match="scale is None, expected a float32 tensor"):
        CurrentScalingTensorRef(t.data)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuantizerRole(3), "module_type is 3, expected a string"),
        (lambda: tensor_of(3), "role is 3, expected a QuantizerRole, a string or None"),
        (lambda: made(lambda role: None, "input"), "gives None for 'input', expected a quantizer"),
        (lambda: made(lambda role: 3, None), "gives a int for None, expected a Quantizer"),
        (lambda: factory_of("mxfp8"), "recipe is 'mxfp8', expected a recipe"),
        (lambda: DelayedScalingRequest(amax_history_len=0), "amax_history_len is 0"),
        (lambda: NVFP4QuantizerRef(quant_tile_shape=(1, 32)), "quant_tile_shape is (1, 32)"),
        (lambda: NVFP4QuantizerRef(pow_2_scales=True), "pow_2_scales is True, expected it to be left out"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert message in str(error.value)
