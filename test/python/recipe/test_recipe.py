"""Recipes: defaults, what follows from them, and what they refuse."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import dither
import pytest
from dither import recipe
from dither.recipe import (
    CustomRecipe,
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    Format,
    MMParams,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
    QParams,
)

KINDS = (DelayedScaling, Float8CurrentScaling, MXFP8BlockScaling, Float8BlockScaling, NVFP4BlockScaling)
TENSORS = ("input", "weight", "output", "grad_output", "grad_input")


def factory(role):
    return role


def test_formats():
    assert [(f.name, f.max_fwd, f.max_bwd) for f in Format] == [
        ("E2M1", 6, 6),
        ("E4M3", 448, 448),
        ("E5M2", 57344, 57344),
        ("HYBRID", 448, 57344),
    ]
    assert Format.HYBRID.value == (448, 57344)
    assert (Format.HYBRID.fwd, Format.HYBRID.bwd) == (dither.float8_e4m3, dither.float8_e5m2)
    assert Format.E2M1.bwd is dither.float4_e2m1


def fields(value):
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def test_defaults():
    common = {"fp8_dpa": False, "fp8_mha": False, "backward_override": None, "qfactory": None}
    fast, split, plain, pow2 = MMParams(use_split_accumulator=False), MMParams(), QParams(), QParams(power_2_scale=True)
    assert fields(DelayedScaling()) == {
        **common,
        "margin": 0,
        "fp8_format": Format.HYBRID,
        "amax_history_len": 1024,
        "amax_compute_algo": "max",
        "scaling_factor_compute_algo": None,
        "reduce_amax": True,
    }
    tensors = ("fp8_quant_fwd_inp", "fp8_quant_fwd_weight", "fp8_quant_bwd_grad")
    assert fields(Float8CurrentScaling()) == {
        **common,
        "use_power_2_scales": False,
        "fp8_format": Format.HYBRID,
        **dict.fromkeys(tensors, plain),
        "fp8_gemm_fprop": fast,
        "fp8_gemm_dgrad": split,
        "fp8_gemm_wgrad": split,
    }
    assert fields(MXFP8BlockScaling()) == {
        **common,
        "margin": 0,
        "fp8_format": Format.E4M3,
        "enable_2d_quantization": False,
    }
    assert fields(Float8BlockScaling()) == {
        **common,
        "use_f32_scales": False,
        "fp8_format": Format.E4M3,
        **dict.fromkeys(tensors, pow2),
        "x_block_scaling_dim": 1,
        "w_block_scaling_dim": 2,
        "grad_block_scaling_dim": 1,
        **dict.fromkeys(("fp8_gemm_fprop", "fp8_gemm_dgrad", "fp8_gemm_wgrad"), split),
    }
    assert fields(NVFP4BlockScaling()) == {
        **common,
        "disable_rht": False,
        "disable_stochastic_rounding": False,
        "disable_2d_quantization": False,
        "row_scaled_activation": False,
        "nvfp4_4over6": "none",
        "nvfp4_4over6_e4m3_use_256": "all",
        "nvfp4_4over6_err_mode": "MAE",
        "fp4_format": Format.E2M1,
        "fp8_format": Format.E4M3,
    }
    assert fields(CustomRecipe(factory)) == {
        **common,
        "qfactory": factory,
        "fp8_format": Format.HYBRID,
        "quantization_alignment": 128,
    }
    assert fields(QParams()) == {
        "power_2_scale": False,
        "amax_epsilon": 0.0,
        "random_hadamard_transform": False,
        "stochastic_rounding": False,
        "fp4_2d_quantization": False,
    }


def test_parameters_that_follow():
    pow2 = QParams(power_2_scale=True)
    assert Float8CurrentScaling(use_power_2_scales=True).fp8_quant_bwd_grad == pow2
    assert Float8BlockScaling(use_f32_scales=True).fp8_quant_fwd_weight == QParams()
    assert Float8BlockScaling(fp8_quant_fwd_inp=QParams(amax_epsilon=1.0)).fp8_quant_fwd_inp == QParams(
        amax_epsilon=1.0
    )
    r = NVFP4BlockScaling()
    assert r.fp4_quant_fwd_inp == QParams(random_hadamard_transform=True)
    assert r.fp4_quant_fwd_weight == QParams(fp4_2d_quantization=True)
    assert r.fp4_quant_bwd_grad == QParams(random_hadamard_transform=True, stochastic_rounding=True)
    r = NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True, disable_2d_quantization=True)
    assert r.fp4_quant_fwd_inp == r.fp4_quant_fwd_weight == r.fp4_quant_bwd_grad == QParams()


def test_predicates():
    asked = ("delayed", "float8_current_scaling", "mxfp8", "float8_block_scaling", "nvfp4", "custom")
    for i, kind in enumerate((*KINDS, CustomRecipe)):
        made = kind(factory) if kind is CustomRecipe else kind()
        for one in (kind, made):
            assert [getattr(one, what)() for what in asked] == [i == j for j in range(6)]
            assert one.float8_per_tensor_scaling() == (i < 2)


def test_formats_of_tensors():
    def names(r):
        return [r.quantization(tensor).format.name for tensor in TENSORS]

    e4m3, e5m2 = "fp8_tensor_e4m3", "fp8_tensor_e5m2"
    for kind in (DelayedScaling, Float8CurrentScaling):
        assert names(kind()) == [e4m3, e4m3, e4m3, e5m2, e5m2]
        assert names(kind(fp8_format=Format.E4M3)) == [e4m3] * 5
        assert all(kind().quantization(tensor).delayed == (kind is DelayedScaling) for tensor in TENSORS)
    assert names(MXFP8BlockScaling()) == ["mxfp8_e4m3"] * 5
    assert names(MXFP8BlockScaling(fp8_format=Format.HYBRID))[3:] == ["mxfp8_e5m2"] * 2
    square = MXFP8BlockScaling(enable_2d_quantization=True)
    assert square.quantization("weight").format == dither.MXFP8_E4M3.with_(block=(32, 32))
    assert square.quantization("input").format == dither.MXFP8_E4M3
    assert names(Float8BlockScaling()) == [f"fp8_{word}_e4m3" for word in ("1x128", "128x128", *["1x128"] * 3)]
    other = Float8BlockScaling(x_block_scaling_dim=2, w_block_scaling_dim=1, fp8_format=Format.HYBRID)
    words = ("128x128_e4m3", "1x128_e4m3", "128x128_e4m3", "1x128_e5m2", "1x128_e5m2")
    assert names(other) == [f"fp8_{word}" for word in words]


def test_options_of_tensors():
    r = Float8CurrentScaling(
        use_power_2_scales=True, fp8_quant_fwd_weight=QParams(power_2_scale=False, amax_epsilon=0.5)
    )
    assert r.quantization("input").format == dither.FP8_TENSOR_E4M3.with_(pow2_scales=True)
    assert r.quantization("weight").format == dither.FP8_TENSOR_E4M3.with_(epsilon=0.5)
    assert not Float8BlockScaling(use_f32_scales=True).quantization("input").format.pow2_scales
    r = NVFP4BlockScaling()
    said = [(q.format, q.hadamard, q.stochastic) for q in map(r.quantization, ("input", "weight", "grad_output"))]
    assert said == [
        (dither.NVFP4, True, False),
        (dither.NVFP4.with_(block=(16, 16)), False, False),
        (dither.NVFP4, True, True),
    ]
    r = NVFP4BlockScaling(row_scaled_activation=True, nvfp4_4over6="all", nvfp4_4over6_e4m3_use_256="weights")
    said = [r.quantization(tensor).format for tensor in ("input", "weight", "grad_output")]
    assert said == [
        dither.NVFP4.with_(row_amax=True, four_over_six="mae"),
        dither.NVFP4.with_(block=(16, 16), four_over_six="mae", largest_scale=256),
        dither.NVFP4,
    ]


def test_recipes_are_values(monkeypatch):
    for kind in KINDS:
        assert kind() == kind() and hash(kind()) == hash(kind())
        for copied in (pickle.loads(pickle.dumps(kind())), copy.deepcopy(kind())):
            assert copied == kind()
        with pytest.raises(dataclasses.FrozenInstanceError):
            kind().fp8_dpa = True
    assert MXFP8BlockScaling() != MXFP8BlockScaling(backward_override="dequantized")
    r = MXFP8BlockScaling()
    r.set_quantizer_factory(factory)
    assert r.qfactory is factory and r != MXFP8BlockScaling() and r.mxfp8() and not r.custom()
    r.set_quantizer_factory(None)
    assert r == MXFP8BlockScaling()
    custom = CustomRecipe(factory)
    custom.set_quantizer_factory(len)
    assert custom == CustomRecipe(qfactory=len)
    assert dataclasses.replace(NVFP4BlockScaling(), disable_rht=True) == NVFP4BlockScaling(disable_rht=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DelayedScaling(fp8_format=Format.E5M2), "fp8_format is Format.E5M2, expected Format.E4M3 or"),
        (lambda: MXFP8BlockScaling(fp8_format=Format.E2M1), "fp8_format is Format.E2M1"),
        (lambda: Float8CurrentScaling(fp8_format="hybrid"), "fp8_format is 'hybrid', expected Format.E4M3"),
        (lambda: DelayedScaling(margin=0.5), "margin is 0.5, expected an integer"),
        (lambda: DelayedScaling(amax_history_len=0), "amax_history_len is 0, expected at least 1"),
        (lambda: DelayedScaling(amax_compute_algo="most"), "expected max, most_recent or a function; did you mean"),
        (
            lambda: DelayedScaling(scaling_factor_compute_algo=1),
            "scaling_factor_compute_algo is 1, expected a function",
        ),
        (lambda: DelayedScaling(backward_override="dequantized"), "expected None for DelayedScaling"),
        (lambda: MXFP8BlockScaling(backward_override="dequantised"), "did you mean 'dequantized'"),
        (lambda: MXFP8BlockScaling(margin=1), "margin is 1, expected 0"),
        (lambda: MXFP8BlockScaling(enable_2d_quantization=1), "enable_2d_quantization is 1, expected True or False"),
        (lambda: Float8BlockScaling(x_block_scaling_dim=2), "x_block_scaling_dim and w_block_scaling_dim are 2"),
        (lambda: Float8BlockScaling(grad_block_scaling_dim=3), "grad_block_scaling_dim is 3, expected 1 or 2"),
        (lambda: Float8BlockScaling(fp8_gemm_dgrad=MMParams(False)), "fp8_gemm_dgrad has use_split_accumulator=False"),
        (lambda: Float8BlockScaling(fp8_dpa=True), "Float8BlockScaling is not for attention"),
        (
            lambda: Float8CurrentScaling(fp8_quant_bwd_grad=QParams(stochastic_rounding=True)),
            "fp8_quant_bwd_grad has stochastic_rounding=True",
        ),
        (lambda: Float8CurrentScaling(fp8_quant_fwd_inp=448), "fp8_quant_fwd_inp is 448, expected a QParams"),
        (lambda: Float8CurrentScaling(fp8_gemm_fprop=True), "fp8_gemm_fprop is True, expected an MMParams"),
        (lambda: QParams(amax_epsilon=-1.0), "amax_epsilon is -1.0, expected a finite number"),
        (lambda: NVFP4BlockScaling(nvfp4_4over6="weight"), "did you mean 'weights'"),
        (lambda: NVFP4BlockScaling(nvfp4_4over6_err_mode="mae"), "nvfp4_4over6_err_mode is 'mae', expected MAE, MSE"),
        (lambda: NVFP4BlockScaling(fp4_format=Format.E4M3), "fp4_format is Format.E4M3, expected Format.E2M1"),
        (lambda: CustomRecipe(None), "qfactory is None, expected a function of a role"),
        (lambda: CustomRecipe(factory, quantization_alignment=0), "quantization_alignment is 0, expected at least 1"),
        (lambda: CustomRecipe(factory).set_quantizer_factory(None), "qfactory is None"),
        (lambda: CustomRecipe(factory).quantization("input"), "CustomRecipe says nothing of formats"),
        (lambda: MXFP8BlockScaling().quantization("inputs"), "did you mean 'input'"),
        (lambda: MXFP8BlockScaling().set_quantizer_factory(3), "qfactory is 3"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert message in str(error.value)


def test_no_environment_and_no_framework():
    """The same with any of the variables that Transformer Engine reads, and without a framework."""
    code = (
        "import os, sys\n"
        "os.environ.update(NVTE_BACKWARD_OVERRIDE='dequantized', NVTE_NVFP4_DISABLE_RHT='1',"
        " NVTE_FP8_BLOCK_SCALING_FP32_SCALES='1')\n"
        "from dither.recipe import NVFP4BlockScaling, Float8BlockScaling\n"
        "assert not NVFP4BlockScaling().disable_rht and NVFP4BlockScaling().backward_override is None\n"
        "assert Float8BlockScaling().fp8_quant_fwd_inp.power_2_scale\n"
        "assert not {'torch', 'jax'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names():
    assert sorted(recipe.__all__) == sorted(set(recipe.__all__))
    assert all(hasattr(recipe, name) for name in recipe.__all__)
    assert recipe.DelayedScaling is not dither.DelayedScaling
