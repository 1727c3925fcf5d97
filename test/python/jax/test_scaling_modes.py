"""Scaling modes of JAX: the shapes they say are those that arrays have."""

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import ScalingMode, TensorUsage  # noqa: E402
from jax_checks import numbers  # noqa: E402

SCALED = [mode for mode in ScalingMode if mode is not ScalingMode.NO_SCALING]


def test_values_and_data_types():
    values = [mode.value for mode in ScalingMode]
    assert values == list(range(10))
    assert ScalingMode(5) is ScalingMode.NVFP4_2D_SCALING
    assert ScalingMode.MXFP8_1D_SCALING.get_compatible_q_dtypes() == {jnp.float8_e4m3fn, jnp.float8_e5m2}
    assert ScalingMode.NVFP4_1D_SCALING.get_compatible_q_dtypes() == {jnp.float4_e2m1fn}
    assert ScalingMode.NO_SCALING.get_compatible_q_dtypes() == {jnp.float16, jnp.bfloat16, jnp.float32}
    scales = {ScalingMode.MXFP8_1D_SCALING: jnp.float8_e8m0fnu, ScalingMode.NVFP4_2D_SCALING: jnp.float8_e4m3fn}
    for mode, dtype in {**scales, ScalingMode.CURRENT_TENSOR_SCALING: jnp.float32}.items():
        assert mode.get_scale_dtype() == dtype
    layouts = {"NN": (0, 2, 8, 9), "NT": (1, 3, 4, 5, 6, 7)}
    for layout, modes in layouts.items():
        assert all(ScalingMode(value).get_data_layout() == layout for value in modes)


@pytest.mark.parametrize("mode", SCALED, ids=lambda mode: mode.name)
@pytest.mark.parametrize(("shape", "axis"), [((256, 256), -1), ((2, 128, 256), -1), ((128, 4, 128), 1)])
def test_shapes_are_those_of_scales(mode, shape, axis):
    quantizer = dj.QuantizerFactory.create(scaling_mode=mode)
    q = quantizer.quantize(jnp.asarray(numbers(*shape)), flatten_axis=axis)
    repeated = mode.repeats_scales
    for found, part in zip(mode.get_scale_shape_2x(shape, False, axis, repeated), (q.rowwise, q.colwise), strict=True):
        assert np.prod(found) == part.scale_inv.size
        if len(shape) == 2 and not mode.is_tensor_scaling():
            assert found == part.scale_inv.shape
        assert part.scale_inv.dtype == mode.get_scale_dtype()
        assert part.scaling_mode in (mode, ScalingMode.CURRENT_TENSOR_SCALING if mode.is_tensor_scaling() else mode)
    assert q.data_layout == mode.get_data_layout()


def test_padded_shapes_are_those_of_swizzled_scales():
    for mode in (ScalingMode.MXFP8_1D_SCALING, ScalingMode.NVFP4_1D_SCALING):
        q = dither.quantize(numbers(160, 96), mode.format(), layout="both", scale_layout="128x4")
        row, col = mode.get_scale_shape_2x((160, 96))
        assert row == q.rowwise.scale_inv.shape
        # In the order 128x4, scales along columns lie transposed.
        assert (col if mode.is_colwise_transposed else col[::-1]) == q.colwise.scale_inv.shape
    assert ScalingMode.MXFP8_1D_SCALING.get_scale_shape((4, 64, 256), is_padded=True) == (4, 64, 8)
    assert ScalingMode.NVFP4_1D_SCALING.get_scale_shape((256, 96), "T", True) == (256, 8)
    assert ScalingMode.NVFP4_1D_SCALING.get_scale_shape((96, 256), "N", True) == (256, 8)
    assert ScalingMode.NVFP4_2D_SCALING.get_scale_shape((256, 256), is_padded=False) == (16, 16)
    assert ScalingMode.CURRENT_TENSOR_SCALING.get_scale_shape((0, 5)) == (0,)
    assert ScalingMode.NO_SCALING.get_scale_shape((4, 5)) == (0,)


@pytest.mark.parametrize("mode", SCALED, ids=lambda mode: mode.name)
def test_grouped_shapes_are_those_of_scales(mode):
    q = dj.QuantizerFactory.create(scaling_mode=mode, n_groups=3)
    sizes = jnp.array([100, 0, 92], jnp.int32)
    both = q.quantize(jnp.asarray(numbers(192, 256)), group_sizes=sizes)
    for found, part in zip(
        mode.get_grouped_scale_shape_2x((192, 256), 3, is_padded=False), (both.rowwise, both.colwise), strict=True
    ):
        assert found == (part.scale_inv.size,)


def test_padded_grouped_shapes():
    mode, sizes = ScalingMode.MXFP8_1D_SCALING, np.array([100, 0, 92], np.int32)
    q = dither.grouped_quantize(numbers(192, 96), mode.format(), "both", "128x4", group_sizes=sizes)
    assert mode.get_grouped_scale_shape_2x((192, 96), 3) == ((q.rowwise.scale_inv.size,), (q.colwise.scale_inv.size,))


def test_mistakes():
    mode = ScalingMode.MXFP8_1D_SCALING
    with pytest.raises(ValueError, match=r"expected a dimension of 48 to be a multiple of 32"):
        mode.get_scale_shape((4, 48, 48), flatten_axis=1, is_padded=False)
    with pytest.raises(ValueError, match=r"flatten_axis is 2 for shape \(4, 4\), expected 1 to 1, or below 0"):
        mode.get_scale_shape((4, 4), flatten_axis=2)
    with pytest.raises(ValueError, match="data_layout is 'X', expected 'N' or 'T'"):
        mode.get_scale_shape((4, 4), "X")
    with pytest.raises(ValueError, match="q_dtype is float4_e2m1 for MXFP8_1D_SCALING, expected float8_e4m3 or float8"):
        mode.format(jnp.float4_e2m1fn)
    with pytest.raises(ValueError, match=r"128 padded scales in 3 parts, expected a multiple: flatten data first"):
        mode.get_scale_shape((2, 3, 64))


def test_which_direction_a_product_takes():
    for mode in SCALED:
        ways = [mode.get_quantize_layout(usage).has_rowwise for usage in TensorUsage]
        assert ways == [True, False, False, True]  # on a CPU
    assert all(ScalingMode.NO_SCALING.get_quantize_layout(usage).is_rowwise_only for usage in TensorUsage)


def test_modes_are_pytrees_without_leaves():
    mode = ScalingMode.MXFP8_1D_SCALING
    assert jax.tree.leaves(mode) == []
    assert jax.jit(lambda mode, x: x if mode.is_mxfp8_scaling else -x)(mode, jnp.ones(())) == 1


def test_modes_of_formats():
    assert dj.mode_of(dither.NVFP4.with_(four_over_six="mae")) is ScalingMode.NVFP4_1D_SCALING
    assert dj.mode_of(dither.FP8_TENSOR_E5M2) is ScalingMode.CURRENT_TENSOR_SCALING
    assert dj.mode_of(dither.FP8_ROW_E4M3) is None
