"""Flax modules of the layers of `dither.jax`: linen's here, and those of nnx in `dither.jax.flax.nnx`.

Layers are quantized by the recipe of `dither.jax.autocast` in which they are called. The state of quantizers is in the
collection `fp8_metas`, and its "gradient" is the state of the next step:

    with dither.jax.autocast(enabled=True, recipe=recipe):
        variables = model.init(key, x)
        grads = jax.grad(loss)(variables, x)       # loss applies the model to all of the variables
    variables = {"params": updated(variables["params"], grads["params"]), "fp8_metas": grads["fp8_metas"]}

Recipes that round at random take a key: `model.apply(variables, x, rngs={"sr_rng": key})`.
"""

from .linen import Dense, DenseGeneral, LayerNorm, LayerNormDenseGeneral, LayerNormMLP
from .state import FP8_METAS, SR_RNG, quantizers_of, update_collections

__all__ = [
    "FP8_METAS",
    "SR_RNG",
    "Dense",
    "DenseGeneral",
    "LayerNorm",
    "LayerNormDenseGeneral",
    "LayerNormMLP",
    "quantizers_of",
    "update_collections",
]
