"""A small GPT on characters, of layers of dither.jax."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import dither.jax as dj
import jax
import jax.numpy as jnp
import numpy as np
from char_data import VOCABULARY
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


class Shape(NamedTuple):
    """Of a model: 1.8 million parameters by default."""

    layers: int = 4
    width: int = 192
    heads: int = 6
    length: int = 128


#: The linear layers of a block that are quantized, in the order of their states.
LAYERS = ("qkv", "projection", "mlp_1", "mlp_2")


def specs(shape: Shape) -> dict[str, Any]:
    """How parameters are split: the columns of the first matrix of each pair, and the rows of the second."""
    norm = {"gamma": P(), "beta": P()}
    block = {
        "qkv": {**norm, "kernel": P(None, "model"), "bias": P("model")},
        "projection": {"kernel": P("model", None), "bias": P()},
        "mlp": {
            **norm,
            "kernels": (P(None, None, "model"), P("model", None)),
            "biases": (P(None, "model"), P()),
        },
    }
    return {"characters": P(), "places": P(), "blocks": [block] * shape.layers, "last": norm}


def initial_parameters(shape: Shape, seed: int, mesh: Any) -> Any:
    """Normal numbers of GPT-2's scale, float32, split over the mesh."""
    rng = np.random.default_rng(seed)
    width = shape.width

    def normal(*extents: int, scale: float = 0.02) -> np.ndarray:
        return (scale * rng.standard_normal(extents)).astype(np.float32)

    def norm() -> dict[str, np.ndarray]:
        return {"gamma": np.ones(width, np.float32), "beta": np.zeros(width, np.float32)}

    def block() -> dict[str, Any]:
        last = 0.02 / np.sqrt(2 * shape.layers)
        zeros = functools.partial(np.zeros, dtype=np.float32)
        return {
            "qkv": {**norm(), "kernel": normal(width, 3 * width), "bias": zeros(3 * width)},
            "projection": {"kernel": normal(width, width, scale=last), "bias": zeros(width)},
            "mlp": {
                **norm(),
                "kernels": (normal(width, 1, 4 * width), normal(4 * width, width, scale=last)),
                "biases": (zeros((1, 4 * width)), zeros(width)),
            },
        }

    parameters = {
        "characters": normal(VOCABULARY, width),
        "places": normal(shape.length, width),
        "blocks": [block() for _ in range(shape.layers)],
        "last": norm(),
    }
    return jax.tree.map(
        lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec)),
        parameters,
        specs(shape),
        is_leaf=lambda x: isinstance(x, np.ndarray),
    )


def initial_quantizers(shape: Shape, recipe: Any) -> list[dict[str, Any]]:
    """Quantizers of each layer by a recipe, with their states; of none without one."""
    if recipe is None:
        return [dict.fromkeys(LAYERS, dj.noop_quantizer_set) for _ in range(shape.layers)]
    config = dj.get_quantize_config(recipe)
    words = jnp.zeros(4, jnp.uint32)
    metas = {
        slot: dj.QuantizeMeta(**({"stochastic_rounding_rng_state": words} if config.is_stochastic(source) else {}))
        for slot, source in zip(("x", "kernel", "grad"), dj.TensorSource, strict=True)
    }
    made = dj.QuantizerFactory.create_set(
        n_quantizer_sets=shape.layers * len(LAYERS), fp8_recipe=recipe, quantize_meta_set=dj.QuantizeMetaSet(**metas)
    )
    return [dict(zip(LAYERS, made[i :: shape.layers], strict=True)) for i in range(shape.layers)]


def with_random_words(quantizers: Any, key: Any) -> Any:
    """Quantizers that round at random, with other random words for each: the leaves that are no floating point."""
    leaves, tree = jax.tree.flatten(quantizers)
    keys = jax.random.split(key, max(len(leaves), 1))
    return jax.tree.unflatten(
        tree,
        [
            jax.random.bits(own, x.shape, jnp.uint32) if x.dtype == jnp.uint32 else x
            for own, x in zip(keys, leaves, strict=False)
        ],
    )


def attention(qkv: Any, heads: int) -> Any:
    """Causal attention of (B, S, 3 width), whose columns go by heads, so that devices have whole ones."""
    batch, length, columns = qkv.shape
    size = columns // 3 // heads
    q, k, v = jnp.moveaxis(qkv.reshape(batch, length, heads, 3, size), 3, 0)
    scores = jnp.einsum("bihd,bjhd->bhij", q, k, preferred_element_type=jnp.float32) * size**-0.5
    mask = jnp.tril(jnp.ones((length, length), bool))
    chances = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)).astype(qkv.dtype)
    return jnp.einsum("bhij,bjhd->bihd", chances, v).reshape(batch, length, columns // 3)


def block(parameters: Any, quantizers: Any, x: Any, heads: int) -> Any:
    """A block of a transformer; its four products are quantized, and so are those of their gradients."""
    low = functools.partial(jax.tree.map, lambda p: p.astype(x.dtype))
    p = low(parameters["qkv"])
    qkv = dj.layernorm_dense(
        x, p["kernel"], p["gamma"], p["beta"], p["bias"], epsilon=1e-5, quantizer_set=quantizers["qkv"]
    )
    p = low(parameters["projection"])
    x = x + dj.dense(attention(qkv, heads), p["kernel"], p["bias"], quantizer_set=quantizers["projection"])
    p = low(parameters["mlp"])
    of = (quantizers["mlp_1"], quantizers["mlp_2"])
    return x + dj.layernorm_mlp(x, p["gamma"], p["beta"], p["kernels"], p["biases"], epsilon=1e-5, quantizer_sets=of)


def loss(parameters: Any, quantizers: Any, text: Any, heads: int) -> Any:
    """The mean loss, in nats for each character, of pieces of text (B, S + 1)."""
    inputs, targets = text[:, :-1], text[:, 1:]
    table = parameters["characters"].astype(jnp.bfloat16)
    x = table[inputs] + parameters["places"].astype(jnp.bfloat16)
    for of, own in zip(parameters["blocks"], quantizers, strict=True):
        x = block(of, own, x, heads)
    last = parameters["last"]
    x = dj.layernorm(x, last["gamma"], last["beta"], "layernorm", epsilon=1e-5)
    logits = jnp.einsum("bsd,vd->bsv", x, table, preferred_element_type=jnp.float32)
    chances = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(chances, targets[..., None], axis=-1).mean()
