"""Trains a small GPT on the CPU in bf16 and with each recipe of quantization, on a mesh of four devices.

    python examples/train_jax.py [--steps 300] [--seeds 1] [--recipes bf16,nvfp4] [--output FOLDER]

The model (1.8 million parameters) learns characters of the Python standard library's sources. The batch is split over
two devices and every matrix over two; activations, weights and gradients are quantized before each product. At the end
stand the losses on text that was not learned, beside the loss of bigrams, and one plot has all curves. The exit status
is 1 where bf16 is not below bigrams, or a recipe is further above bf16 than ALLOWED says.

Runs that are finished are kept in FOLDER/losses.json, and not repeated: --seeds 3 may be done in parts.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import sys
import time
from typing import Any

# JAX has as many devices from when it is first used.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4 " + os.environ.get("XLA_FLAGS", "")

import gpt
import jax
import jax.numpy as jnp
import loss_report
import numpy as np
from char_data import batches, bigram_loss, read_text
from dither.recipe import DelayedScaling, Float8CurrentScaling, MXFP8BlockScaling, NVFP4BlockScaling
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from tqdm import tqdm

RECIPES: dict[str, Any] = {
    "bf16": None,
    "delayed": DelayedScaling(amax_history_len=16),
    "current": Float8CurrentScaling(),
    "mxfp8": MXFP8BlockScaling(),
    # Weights in blocks of 16 x 16, a transform before gradients of weights, and gradients rounded at random.
    "nvfp4": NVFP4BlockScaling(),
    "nvfp4_plain": NVFP4BlockScaling(disable_rht=True, disable_stochastic_rounding=True),
}
#: How far above that of bf16 the final loss of a recipe may be, in nats, mean over seeds. Written before any full run.
ALLOWED = {"delayed": 0.03, "current": 0.03, "mxfp8": 0.03, "nvfp4": 0.10}
#: Steps between two points of a curve.
EVERY = 10


def learning_rate(step: Any, steps: int) -> Any:
    """A rise over the first twentieth, and a cosine down to a tenth."""
    peak, rise = 2e-3, max(steps // 20, 1)
    way = jnp.clip((step - rise) / max(steps - rise, 1), 0, 1)
    return peak * jnp.minimum((step + 1) / rise, 0.1 + 0.45 * (1 + jnp.cos(jnp.pi * way)))


def adam(parameters: Any, gradients: Any, moments: Any, step: Any, rate: Any) -> tuple[Any, Any]:
    """AdamW (Loshchilov and Hutter, arXiv:1711.05101), of gradients that are at most 1 long together."""
    length = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: g / jnp.maximum(length, 1), gradients)
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, second, gradients)

    def moved(p: Any, m: Any, v: Any) -> Any:
        direction = (m / (1 - 0.9 ** (step + 1))) / (jnp.sqrt(v / (1 - 0.95 ** (step + 1))) + 1e-8)
        decay = 0.1 * p if p.ndim > 1 else 0.0
        return p - rate * (direction + decay)

    return jax.tree.map(moved, parameters, first, second), (first, second)


@functools.partial(jax.jit, static_argnames=("heads", "steps"), donate_argnums=0)
def train_step(state: Any, text: Any, key: Any, heads: int, steps: int) -> tuple[Any, Any]:
    """A step: the next state and the loss before it. The gradient of quantizers is what they are after the step."""
    parameters, quantizers, moments, step = state
    given = gpt.with_random_words(quantizers, jax.random.fold_in(key, step))
    of = jax.value_and_grad(gpt.loss, argnums=(0, 1), allow_int=True)
    loss, (gradients, after) = of(parameters, given, text, heads)
    parameters, moments = adam(parameters, gradients, moments, step, learning_rate(step, steps))
    taken = jax.tree.map(lambda old, new: old if new.dtype == jax.dtypes.float0 else new, given, after)
    return (parameters, taken, moments, step + 1), loss


@functools.partial(jax.jit, static_argnames="heads")
def test_loss(state: Any, text: Any, heads: int) -> Any:
    """The loss on text, by the quantizers as they are."""
    return gpt.loss(state[0], state[1], text, heads)


def run(recipe: Any, seed: int, texts: Any, shape: gpt.Shape, args: argparse.Namespace, bar: Any) -> dict[str, Any]:
    """Trains a model; the losses on text that was learned and on text that was not, and how long a step took."""
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    parameters = gpt.initial_parameters(shape, seed, mesh)
    quantizers = jax.device_put(gpt.initial_quantizers(shape, recipe), whole)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    moments = zeros, jax.tree.map(jnp.zeros_like, parameters)
    count = sum(x.size for x in jax.tree.leaves(parameters))
    state: Any = parameters, quantizers, moments, jax.device_put(jnp.int32(0), whole)
    key = jax.random.key(seed)
    learn, test = texts
    source = batches(learn, args.batch, shape.length, seed)
    pieces = list(next(batches(test, args.test_pieces, shape.length, 0)).reshape(-1, args.batch, shape.length + 1))
    curve: list[tuple[int, float]] = []
    losses: list[float] = []
    durations = []
    with jax.set_mesh(mesh):
        for step in range(args.steps):
            began = time.perf_counter()
            state, loss = train_step(state, jax.device_put(next(source), rows), key, shape.heads, args.steps)
            losses.append(float(loss))
            durations.append(time.perf_counter() - began)
            if (step + 1) % EVERY == 0 or step + 1 == args.steps:
                curve.append((step + 1, float(np.mean(losses[-EVERY:]))))
                bar.set_postfix(loss=f"{curve[-1][1]:.3f}")
            bar.update()
        final = np.mean([float(test_loss(state, jax.device_put(piece, rows), shape.heads)) for piece in pieces])
    return {
        "parameters": count,
        "curve": curve,
        "test": float(final),
        "seconds_per_step": float(np.median(durations)),
    }


def table(results: loss_report.Results, bigram: float) -> tuple[str, list[str]]:
    """The losses as a table, and what is not as it should be."""
    columns = {"ms a step": lambda runs: f"{1e3 * loss_report.seconds_per_step(runs):.0f}"}
    return loss_report.table(results, bigram, ALLOWED, columns)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="steps of training (default: 300)")
    parser.add_argument("--seeds", type=int, default=1, help="how often each recipe is trained (default: 1)")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="some of %(default)s")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("build/train_jax"), help="for plot and data"
    )
    parser.add_argument("--batch", type=int, default=16, help="pieces of text a step, even (default: 16)")
    parser.add_argument("--test-pieces", type=int, default=256, help="pieces to test with, so many batches")
    parser.add_argument("--characters", type=int, default=4_000_000, help="of text at most")
    for name, default in gpt.Shape()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{name} of the model (default: {default})")
    args = parser.parse_args(arguments)
    args.recipes = args.recipes.split(",")
    unknown = [name for name in args.recipes if name not in RECIPES]
    if unknown:
        parser.error(f"found recipe {unknown[0]!r}, expected some of {', '.join(RECIPES)}")
    return args


def main() -> int:
    """Trains, prints and plots."""
    args = parsed()
    shape = gpt.Shape(args.layers, args.width, args.heads, args.length)
    texts = read_text(args.characters)
    bigram = bigram_loss(*texts)
    recipes = {name: RECIPES[name] for name in args.recipes}
    runs = loss_report.kept_runs(args, bigram)
    missing = runs.missing(recipes, args.seeds)
    with tqdm(total=len(missing) * args.steps, unit="step") as bar:
        for name, seed in missing:
            bar.set_description(f"{name}, seed {seed}")
            runs.add(name, recipes[name], seed, run(recipes[name], seed, texts, shape, args, bar))
    results = runs.results(recipes, args.seeds)
    count = sum(
        x.size for x in jax.tree.leaves(gpt.initial_parameters(shape, 0, jax.make_mesh((1, 1), ("data", "model"))))
    )
    lines, wrong = table(results, bigram)
    print(
        f"{count} parameters, {args.steps} steps of {args.batch} x {shape.length} characters; bigrams: {bigram:.3f}\n"
    )
    print(lines)
    loss_report.plot(results, bigram, args.output / "losses.svg")
    print(f"\n{args.output / 'losses.svg'}, {runs.file}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
