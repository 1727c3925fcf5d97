"""JAX's arrays and dither's buffers: what each calls the types of elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays import FOREIGN, Buffer
from ..recording import Recording


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
