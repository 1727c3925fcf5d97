"""Quantized tensors of codes and scales that are there, checked."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..formats import Format
from ..language import ScaleLayout
from ..ops import GroupedScaledTensor1x, GroupedScaledTensor2x, ScaledTensor1x, ScaledTensor2x
from ..ops.flatten import Flattened
from ..ops.hadamard import SIGN_MASK, Transform
from ..ops.scaled_tensor import scale_storage
from ..types import float4_e2m1
from .arrays import dtype_of_kind, kind_of_dtype, packed
from .grouped_factory import grouped_1x
from .modes import QuantizeLayout, ScalingMode, checked_axis
from .tensors import DequantizedBy, NoScaleTensor


class ScaledTensorFactory:
    """Makes quantized tensors of arrays."""

    @staticmethod
    def create_1x(
        data: Any,
        scale_inv: Any,
        amax: Any = None,
        scaling_mode: ScalingMode = ScalingMode.NO_SCALING,
        dq_dtype: Any = jnp.bfloat16,
        is_colwise: bool = False,
        data_layout: str = "N",
        flatten_axis: int = -1,
        first_dims: Any = None,
        last_dims: Any = None,
        original_shape: tuple[int, ...] | None = None,
        has_rht_applied: bool = False,
        pre_swizzled: bool = False,
        dequantizer: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A tensor quantized along one direction.

        Args:
            data: codes as they are stored: with `data_layout="T"` the dimensions along columns come first. FP4 as
                float4_e2m1fn, or two to a byte in uint8, the even one in the low half.
            scale_inv: scales of the mode's data type, not padded, as `ScalingMode.get_scale_shape` says, or the matrix
                that they are; with `pre_swizzled` in the order 128x4.
            amax: of the tensor, float32 of one element; NVFP4 needs it.
            scaling_mode: NO_SCALING gives a NoScaleTensor.
            dq_dtype: what `dequantize` gives.
            is_colwise: whether blocks run along columns; the mode says which `data_layout` goes with it.
            flatten_axis: dimensions from this one on are columns, in the order of the tensor, also with "T".
            first_dims, original_shape: of groups of rows: rows of each, (G,) int32, and the shape of the tensor. Then
                `data` and `scale_inv` have one dimension, as `GroupedScaledTensor1x` has them, and `amax` is (G,).
            last_dims: groups of columns, which dither has not.
            has_rht_applied: whether what was quantized was transformed by `dither.RandomHadamard(16)`.
            dequantizer: what `dequantize` of the tensor calls with it, in the place of dither's. Not for groups.

        Raises TypeError or ValueError, which name the argument, for what does not fit.
        """
        _array("data", data)
        if scaling_mode is ScalingMode.NO_SCALING:
            return NoScaleTensor(data, amax)
        if not isinstance(scaling_mode, ScalingMode):
            raise TypeError(f"scaling_mode is {scaling_mode!r}, expected a ScalingMode")
        expected = scaling_mode.get_data_layout()[int(is_colwise)]
        if data_layout != expected:
            way = "colwise" if is_colwise else "rowwise"
            raise ValueError(f"data_layout is {data_layout!r}, expected {expected!r} for {way} {scaling_mode.name}")
        if has_rht_applied and scaling_mode is not ScalingMode.NVFP4_1D_SCALING:
            raise ValueError(f"has_rht_applied is True for {scaling_mode.name}, expected NVFP4_1D_SCALING")
        _array("scale_inv", scale_inv)
        codes, fmt = _codes(data, scaling_mode)
        if scale_inv.dtype != dtype_of_kind(fmt.scale):
            found = f"argument 'scale_inv' has data type {scale_inv.dtype}"
            raise TypeError(f"{found}, expected {dtype_of_kind(fmt.scale)} for {scaling_mode.name}")
        kind = kind_of_dtype(dq_dtype)
        layout = ScaleLayout.swizzle_128x4 if pre_swizzled else ScaleLayout.linear
        if last_dims is not None:
            raise ValueError("argument 'last_dims' was given, expected None: groups are of rows")
        if first_dims is not None or original_shape is not None:
            if original_shape is None:
                raise ValueError("argument 'first_dims' was given without 'original_shape', expected both")
            if has_rht_applied:
                raise ValueError("has_rht_applied is True, expected False for groups")
            if dequantizer is not None:
                raise ValueError("argument 'dequantizer' was given, expected none for groups")
            rest = (fmt, kind, is_colwise, layout, scaling_mode, flatten_axis)
            return grouped_1x(codes, scale_inv, amax, first_dims, tuple(original_shape), *rest)
        flat, codes = _flattened(codes, data, data_layout, flatten_axis)
        scales, repeated = _scales(scale_inv, scaling_mode, fmt, flat, is_colwise, layout)
        tensor = ScaledTensor1x(
            codes,
            scales,
            _amax(amax, fmt),
            fmt,
            flat.shape,
            kind,
            is_colwise,
            layout,
            repeated,
            Transform(16, SIGN_MASK) if has_rht_applied else None,
            flat.axis - len(flat.shape) if len(flat.shape) == 2 else flat.axis,
            scale_given=scaling_mode is ScalingMode.DELAYED_TENSOR_SCALING,
        )
        return _with_values_by(dequantizer, tensor)

    @staticmethod
    def create_2x(
        data: Any,
        scale_inv: Any,
        colwise_data: Any,
        colwise_scale_inv: Any,
        amax: Any = None,
        colwise_amax: Any = None,
        scaling_mode: ScalingMode = ScalingMode.NO_SCALING,
        dq_dtype: Any = jnp.bfloat16,
        data_layout: str = "NN",
        flatten_axis: int = -1,
        first_dims: Any = None,
        last_dims: Any = None,
        original_shape: tuple[int, ...] | None = None,
        rowwise_has_rht_applied: bool = False,
        colwise_has_rht_applied: bool = False,
        pre_swizzled: bool = False,
        dequantizer: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A tensor quantized along both directions: the arguments of `create_1x` for each. `data_layout` has two
        letters, that of rows first; `colwise_amax` is `amax` where it is left out."""
        if len(data_layout) != 2:
            raise ValueError(f"data_layout is {data_layout!r}, expected two letters")
        common = {
            "scaling_mode": scaling_mode,
            "dq_dtype": dq_dtype,
            "flatten_axis": flatten_axis,
            "first_dims": first_dims,
            "last_dims": last_dims,
            "original_shape": original_shape,
            "pre_swizzled": pre_swizzled,
            "dequantizer": dequantizer,
        }
        row = ScaledTensorFactory.create_1x(
            data, scale_inv, amax, data_layout=data_layout[0], has_rht_applied=rowwise_has_rht_applied, **common
        )
        col = ScaledTensorFactory.create_1x(
            colwise_data,
            colwise_scale_inv,
            amax if colwise_amax is None else colwise_amax,
            is_colwise=True,
            data_layout=data_layout[1],
            has_rht_applied=colwise_has_rht_applied,
            **common,
        )
        if not hasattr(row, "format"):
            raise ValueError("scaling_mode is NO_SCALING, expected create_1x: such a tensor has no directions")
        if isinstance(row, GroupedScaledTensor1x):
            return GroupedScaledTensor2x(row, col)
        if row.shape != col.shape:
            raise ValueError(
                f"argument 'colwise_data' is of a tensor of {col.shape}, expected {row.shape} as 'data' is"
            )
        return ScaledTensor2x(row, col)

    @staticmethod
    def create(
        data: Any,
        scale_inv: Any,
        colwise_data: Any = None,
        colwise_scale_inv: Any = None,
        amax: Any = None,
        colwise_amax: Any = None,
        scaling_mode: ScalingMode = ScalingMode.NO_SCALING,
        dq_dtype: Any = jnp.bfloat16,
        data_layout: str | None = None,
        q_layout: QuantizeLayout = QuantizeLayout.ROWWISE,
        flatten_axis: int = -1,
        first_dims: Any = None,
        last_dims: Any = None,
        original_shape: tuple[int, ...] | None = None,
        rowwise_has_rht_applied: bool = False,
        colwise_has_rht_applied: bool = False,
        pre_swizzled: bool = False,
        dequantizer: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A tensor with the directions of `q_layout`: `create_2x` of both, `create_1x` of one, whose codes and scales
        are `data` and `scale_inv`, or `colwise_data` and `colwise_scale_inv`. `data_layout` has a letter for each; by
        default what the mode has."""
        if rowwise_has_rht_applied:
            raise ValueError("rowwise_has_rht_applied is True, expected False: columns alone are transformed")
        common = {
            "scaling_mode": scaling_mode,
            "dq_dtype": dq_dtype,
            "flatten_axis": flatten_axis,
            "first_dims": first_dims,
            "last_dims": last_dims,
            "original_shape": original_shape,
            "pre_swizzled": pre_swizzled,
            "dequantizer": dequantizer,
        }
        known = scaling_mode.get_data_layout()
        if q_layout.is_rowwise_colwise:
            return ScaledTensorFactory.create_2x(
                data,
                scale_inv,
                colwise_data,
                colwise_scale_inv,
                amax,
                colwise_amax,
                data_layout=data_layout or known,
                colwise_has_rht_applied=colwise_has_rht_applied,
                **common,
            )
        colwise = q_layout.is_colwise_only
        if colwise and colwise_data is not None:
            data, scale_inv = colwise_data, colwise_scale_inv
        if colwise and colwise_amax is not None:
            amax = colwise_amax
        return ScaledTensorFactory.create_1x(
            data,
            scale_inv,
            amax,
            is_colwise=colwise,
            data_layout=data_layout or known[int(colwise)],
            has_rht_applied=colwise and colwise_has_rht_applied,
            **common,
        )


def _with_values_by(dequantizer: Any, tensor: ScaledTensor1x) -> ScaledTensor1x:
    if dequantizer is None:
        return tensor
    if not callable(dequantizer):
        raise TypeError(f"argument 'dequantizer' is {type(dequantizer).__name__}, expected a function of the tensor")
    values = {field.name: getattr(tensor, field.name) for field in dataclasses.fields(tensor)}
    return DequantizedBy(**values, dequantizer=dequantizer)


def _array(name: str, x: Any) -> None:
    if not isinstance(x, jax.Array):
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected an array of JAX")


def _codes(data: Any, mode: ScalingMode) -> tuple[Any, Format]:
    """Codes as dither stores them but for their shape, and their format; FP4 not packed yet is float4_e2m1fn still."""
    kind = float4_e2m1 if data.dtype == jnp.uint8 else None
    fmt = mode.format()
    assert fmt is not None
    if kind is not None and fmt.element is kind:
        return data, fmt
    names = " or ".join(sorted(jnp.dtype(one).name for one in mode.get_compatible_q_dtypes()))
    if data.dtype not in [jnp.dtype(one) for one in mode.get_compatible_q_dtypes()]:
        raise TypeError(f"argument 'data' has data type {data.dtype}, expected {names} for {mode.name}")
    found = mode.format(data.dtype)
    assert found is not None
    return data, found


def _flattened(codes: Any, data: Any, data_layout: str, flatten_axis: int) -> tuple[Flattened, Any]:
    """How the tensor of these codes is a matrix, and the codes as dither stores them."""
    stored = tuple(data.shape)
    if data.dtype == jnp.uint8:
        stored = (*stored[:-1], 2 * stored[-1])
    axis = checked_axis(stored, flatten_axis)
    shape = stored
    if data_layout == "T":
        first = len(stored) - axis
        shape = stored[first:] + stored[:first]
    flat = Flattened(shape, axis)
    if data.dtype == jnp.dtype(jnp.float4_e2m1fn):
        bytes_ = flat.stored(data_layout == "T", 4)
        if len(bytes_) != len(stored):  # rows that share no byte
            rows, cols = flat.matrix[::-1] if data_layout == "T" else flat.matrix
            codes = codes.reshape(rows, cols)
        codes = packed(codes)
    return flat, codes


def _scales(
    scale_inv: Any, mode: ScalingMode, fmt: Format, flat: Flattened, is_colwise: bool, layout: ScaleLayout
) -> tuple[Any, bool]:
    """Scales as the matrix that they are, and whether those of square blocks are repeated."""
    found = tuple(scale_inv.shape)
    if fmt.block == "tensor":
        if scale_inv.size != 1:
            raise ValueError(f"argument 'scale_inv' has shape {found}, expected (1,) for {mode.name}")
        return scale_inv.reshape(1, 1), False
    known: list[Any] = []
    for repeated in (False, True) if fmt.block_rows != 1 else (False,):
        shape, _ = scale_storage(flat.matrix, fmt, is_colwise, layout, repeated)
        known.append(shape)
        if layout is ScaleLayout.linear and len(flat.shape) > 2:
            # Blocks that straddle dimensions have the matrix alone.
            with contextlib.suppress(ValueError):
                known.append(mode.get_scale_shape(flat.shape, "N", is_colwise, False, flat.axis, repeated))
        if found in known:
            return scale_inv.reshape(shape), repeated
    expected = " or ".join(map(str, dict.fromkeys(known)))
    raise ValueError(f"argument 'scale_inv' has shape {found}, expected {expected} of codes of {flat.shape}")


def _amax(amax: Any, fmt: Format) -> Any:
    if amax is None:
        if fmt.tensor_scale:
            raise ValueError("argument 'amax' was not given, expected that of the tensor for NVFP4")
        return None
    if amax.dtype != jnp.float32 or amax.size != 1:
        found = f"{amax.dtype} of shape {tuple(amax.shape)}"
        raise ValueError(f"argument 'amax' is {found}, expected float32 of one element")
    return amax.reshape(())
