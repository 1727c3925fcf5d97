"""The modules of `dither.jax.flax` for nnx: made of linen's by flax.nnx.bridge.

    layer = dither.jax.flax.nnx.DenseGeneral(64, rngs=flax.nnx.Rngs(0, sr_rng=1))
    layer.lazy_init(x)                       # under the recipe of `dither.jax.autocast`
    y = layer(x)

Parameters are `nnx.Param`; the state of quantizers are variables of the type `FP8Meta`, whose "gradient" is the state
of the next step: `nnx.grad(loss, argnums=nnx.DiffState(0, nnx.Any(nnx.Param, FP8Meta)))`.
"""

from __future__ import annotations

from typing import Any

from flax import linen as nn
from flax import nnx

from . import linen
from .state import FP8_METAS

#: The type of variables of the collection `fp8_metas`.
FP8Meta = nnx.variable_type_from_name(FP8_METAS, allow_register=True)


class _Bridged(nnx.bridge.ToNNX):
    """A module of linen, with its fields as arguments."""

    kind: type[nn.Module]

    def __init__(self, *args: Any, rngs: nnx.Rngs, **fields: Any) -> None:
        super().__init__(self.kind(*args, **fields), rngs=rngs)


class LayerNorm(_Bridged):
    """See `dither.jax.flax.LayerNorm`."""

    kind = linen.LayerNorm


class DenseGeneral(_Bridged):
    """See `dither.jax.flax.DenseGeneral`."""

    kind = linen.DenseGeneral


class Dense(_Bridged):
    """See `dither.jax.flax.Dense`."""

    kind = linen.Dense


class LayerNormDenseGeneral(_Bridged):
    """See `dither.jax.flax.LayerNormDenseGeneral`."""

    kind = linen.LayerNormDenseGeneral


class LayerNormMLP(_Bridged):
    """See `dither.jax.flax.LayerNormMLP`."""

    kind = linen.LayerNormMLP
