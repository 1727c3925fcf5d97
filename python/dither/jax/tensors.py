"""Quantized tensors and groups as pytrees of JAX.

Their arrays are leaves, and everything else is static. Unflattening takes any leaves (tracers, None, `in_axes`,
`ShapeDtypeStruct`s) and checks nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from ..ops import (
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    Groups,
    ScaledTensor1x,
    ScaledTensor2x,
)

#: Fields that are arrays, by class.
_ARRAYS: dict[type, tuple[str, ...]] = {
    ScaledTensor1x: ("data", "scale_inv", "amax", "tensor_scale"),
    ScaledTensor2x: ("rowwise", "colwise"),
    GroupedScaledTensor1x: ("data", "scale_inv", "amax", "tensor_scale", "table", "wrong"),
    GroupedScaledTensor2x: ("rowwise", "colwise"),
    Groups: ("sizes", "starts", "ends", "rows"),
}


def register() -> None:
    """Makes the classes pytrees, once."""
    for kind, arrays in _ARRAYS.items():
        fields = [field.name for field in dataclasses.fields(kind)]
        missing = set(arrays) - set(fields)
        assert not missing, (kind, missing)
        _register(kind, arrays, tuple(name for name in fields if name not in arrays))


def _register(kind: type, arrays: tuple[str, ...], static: tuple[str, ...]) -> None:
    def with_keys(x: Any) -> tuple[Any, Any]:
        children = [(jax.tree_util.GetAttrKey(name), getattr(x, name)) for name in arrays]
        return children, tuple(getattr(x, name) for name in static)

    def unflatten(values: Any, children: Any) -> Any:
        made: Any = object.__new__(kind)
        for name, value in zip((*static, *arrays), (*values, *children), strict=True):
            object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_with_keys(kind, with_keys, unflatten)
