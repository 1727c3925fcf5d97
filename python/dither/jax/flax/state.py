"""The state of quantizers as variables of a linen module."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from ..modes import TensorSource
from ..quantizer_sets import QuantizeMeta, QuantizeMetaSet, QuantizerFactory, QuantizerSet, noop_quantizer_set
from ..recipes import QuantizeConfig, get_quantize_config

#: The collection of scales and histories.
FP8_METAS = "fp8_metas"
#: The stream of keys of stochastic rounding.
SR_RNG = "sr_rng"


def quantizers_of(module: nn.Module, postfix: str = "", checkpoint_name: str | None = None) -> QuantizerSet:
    """The quantizers of a product of a module, called within it, by the recipe in which it is called.

    Their state are variables `x{postfix}_scale`, `kernel{postfix}_amax_history`, `grad{postfix}_..` of the collection
    `fp8_metas`. Random words come from the stream `sr_rng`, with the name of the quantizer folded in. Raises ValueError
    where a recipe rounds at random and there is no such stream.
    """
    config = get_quantize_config()
    if config.recipe is None:
        return noop_quantizer_set
    if config.factory is not None:
        made: QuantizerSet = QuantizerFactory.create_set(checkpoint_name=checkpoint_name)
        return made
    metas = {
        slot: meta_of(config, module, FP8_METAS, postfix, source, slot)
        for slot, source in zip(("x", "kernel", "grad"), TensorSource, strict=True)
    }
    made = QuantizerFactory.create_set(checkpoint_name=checkpoint_name, quantize_meta_set=QuantizeMetaSet(**metas))
    return made


def meta_of(
    config: QuantizeConfig, module: nn.Module, collection: str, postfix: str, source: TensorSource, name: str
) -> QuantizeMeta:
    """The state of a quantizer of a tensor: see `QuantizeConfig.get_quantize_flax_meta`."""
    fields = {
        of: module.variable(collection, f"{name}{postfix}_{of}", jnp.asarray, initial).value
        for of, initial in config.initial_state(source).items()
    }
    if config.is_stochastic(source):
        fields["stochastic_rounding_rng_state"] = _words(module, f"{name}{postfix}")
    return QuantizeMeta(**fields)


def _words(module: nn.Module, name: str) -> Any:
    """Four words of random bits."""
    if not module.has_rng(SR_RNG) and not module.is_initializing():
        raise ValueError(
            f"found no stream of keys {SR_RNG!r}, expected rngs={{{SR_RNG!r}: key}}: the recipe rounds at random"
        )
    number = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big") % (2**31 - 1)
    key = jax.random.fold_in(module.make_rng(SR_RNG), number)
    return jax.random.bits(key, (4,), jnp.uint32)


def update_collections(new: Mapping[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
    """`original`, nested dictionaries, with what `new` has in the place of what it had; what only one has stays."""
    found = dict(original)
    for name, value in new.items():
        old = found.get(name)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        found[name] = update_collections(value, old) if both else value  # type: ignore[arg-type]
    return found
