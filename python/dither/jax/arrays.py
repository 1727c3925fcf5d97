"""JAX's arrays and dither's buffers: what each calls the types of elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays import FOREIGN, STORAGE, Buffer
from ..recording import Recording
from ..types import DType


def is_array(value: Any) -> bool:
    """Whether an argument is an array: JAX's, traced or not, or one of NumPy, which becomes JAX's."""
    return isinstance(value, (jax.Array, numpy.ndarray))


def buffer_of(recording: Recording, shape: tuple[int, ...], dtype: str) -> Buffer:
    """The buffer that an array of this shape and data type is while a call is recorded."""
    known = FOREIGN.get(dtype)
    if known is not None and known.bits == 4:
        known = None
    return recording.empty(known, shape, dtype)


def dtype_of(name: str) -> Any:
    """JAX's data type of an array that a call returns. What JAX has no type for lies in uint8."""
    return jnp.dtype("uint8" if name.startswith("float6") else getattr(jnp, name))


def dtype_of_kind(kind: DType) -> Any:
    """JAX's data type of one of dither."""
    name = STORAGE.get(kind, kind.name).removesuffix("_x2")
    return jnp.dtype(getattr(jnp, name))


def kind_of_dtype(dtype: Any) -> DType:
    """dither's data type of one of JAX, of NumPy, of dither, or of its name. Raises TypeError for what has none."""
    if isinstance(dtype, DType):
        return dtype
    name = jnp.dtype(dtype).name
    kind = FOREIGN.get("float4_e2m1fn_x2" if name == "float4_e2m1fn" else name)
    if kind is None:
        raise TypeError(f"found data type {name}, expected one that dither has")
    return kind


def packed(codes: Any) -> Any:
    """float4_e2m1fn codes, two to a byte in uint8, the even one in the low half; a row of an odd number ends with a
    zero."""
    if codes.shape[-1] % 2:
        codes = jnp.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, 1)])
    return jax.lax.bitcast_convert_type(codes.reshape(*codes.shape[:-1], -1, 2), jnp.uint8)
