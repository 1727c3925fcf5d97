"""dither in JAX beside what XLA does itself: quantize, the cost of a custom call, and a step of training.

    python -m benchmarks.jax [--quick] [--json FILE]

quantize: a call of dither under jax.jit and outside, and the same as JAX has it written in jax.numpy, jitted and not.
call: what one custom call costs in a program of many, each of which waits for the one before: dither's, of a tensor of
    one block, and XLA's own of LAPACK, of one number; and a jitted program that adds one.
step: forward and backward of a norm and an MLP, quantized by each recipe, beside bf16.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.peers import Unavailable

#: Custom calls in one program.
CHAIN = 50

RECIPES = ("bf16", "delayed", "current", "mxfp8", "nvfp4")


def quantize(rows: int, cols: int, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds by format."""
    import dither
    import jax
    import jax.numpy as jnp

    from benchmarks.peers.jax_peer import _mxfp8, _nvfp4

    x = jnp.asarray(np.random.default_rng(0).standard_normal((rows, cols), np.float32), jnp.bfloat16)

    def nvfp4(x: Any) -> Any:
        return _nvfp4(x, jnp.max(jnp.abs(x)).astype(jnp.float32))

    table = {}
    for name, peer in (("mxfp8_e4m3", _mxfp8), ("nvfp4", nvfp4)):

        def ours(x: Any, name: str = name) -> Any:
            q = dither.quantize(x, name)
            return q.data, q.scale_inv

        calls = {"dither": jax.jit(ours), "dither_unjitted": ours, "jnp": jax.jit(peer), "jnp_unjitted": peer}
        table[name] = _milliseconds({key: _waiting(call, x) for key, call in calls.items()}, rounds)
    return table


def overhead(rounds: int) -> dict[str, float]:
    """Microseconds: of a custom call in a chain of many, and of a program that adds one, with its dispatch."""
    import dither
    import jax
    import jax.numpy as jnp

    def chain(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for _ in range(CHAIN):
                x = call(x)
            return x

        return jax.jit(run)

    def lapack(x: Any) -> Any:
        shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), jnp.int32))
        return jax.ffi.ffi_call("lapack_spotrf_ffi", shapes)(x, uplo=np.uint8(ord("L")))[0]

    one, block = jnp.ones((1, 1), jnp.float32), jnp.ones((1, 32), jnp.float32)
    jnp.linalg.cholesky(one)  # registers LAPACK
    calls = {
        "dither": _waiting(chain(dither.relu), block),
        "lapack": _waiting(chain(lapack), one),
        "add": _waiting(jax.jit(lambda x: x + 1), one),
    }
    found = _milliseconds(calls, rounds)
    each = {"dither": CHAIN, "lapack": CHAIN, "add": 1}
    return {name: 1e3 * ms / each[name] for name, ms in found.items()}


def step(tokens: int, width: int, rounds: int, names: Sequence[str]) -> dict[str, float]:
    """Milliseconds of forward and backward of a norm and an MLP of four times its width, by the names of recipes."""
    import dither.jax as dj
    import jax
    import jax.numpy as jnp
    from dither.recipe import DelayedScaling, Float8CurrentScaling, MXFP8BlockScaling, NVFP4BlockScaling

    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape, np.float32) / 8, jnp.bfloat16)

    x, gamma, beta = numbers(tokens, width), jnp.ones(width, jnp.bfloat16), jnp.zeros(width, jnp.bfloat16)
    kernels = numbers(width, 1, 4 * width), numbers(4 * width, width)
    words = dj.QuantizeMeta(stochastic_rounding_rng_state=jnp.arange(4, dtype=jnp.uint32))
    recipes: dict[str, Any] = {
        "bf16": None,
        "delayed": DelayedScaling(amax_history_len=16),
        "current": Float8CurrentScaling(),
        "mxfp8": MXFP8BlockScaling(),
        "nvfp4": NVFP4BlockScaling(),
    }

    def loss(args: Any, sets: Any) -> Any:
        x, gamma, beta, kernels = args
        return jnp.square(dj.layernorm_mlp(x, gamma, beta, kernels, quantizer_sets=sets).astype(jnp.float32)).mean()

    calls = {}
    for name in names:
        recipe = recipes[name]
        sets: Any = (dj.noop_quantizer_set, dj.noop_quantizer_set)
        if recipe is not None:
            metas = dj.QuantizeMetaSet(grad=words) if name == "nvfp4" else None
            sets = dj.QuantizerFactory.create_set(2, fp8_recipe=recipe, quantize_meta_set=metas)
        of = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), allow_int=True))
        calls[name] = _waiting(of, (x, gamma, beta, kernels), sets)
    return _milliseconds(calls, rounds)


def _waiting(call: Callable[..., Any], *args: Any) -> Callable[[], None]:
    """A call that ends when its results are there."""
    import jax

    def run() -> None:
        jax.block_until_ready([leaf for leaf in jax.tree.leaves(call(*args)) if isinstance(leaf, jax.Array)])

    return run


def _milliseconds(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    return {name: 1e3 * min(seconds) for name, seconds in timing.interleaved(calls, rounds).items()}


def show(found: dict[str, Any]) -> None:
    """The tables as text."""
    names = ("dither", "dither_unjitted", "jnp", "jnp_unjitted")
    print("ms a call    " + "  ".join(f"{name:>15}" for name in names))
    for fmt, row in found["quantize_ms"].items():
        print(f"{fmt:<12} " + "  ".join(f"{row[name]:15.3f}" for name in names))
    us = found["overhead_us"]
    print(f"\nus a call: dither {us['dither']:.2f}, LAPACK {us['lapack']:.2f}; a program that adds one {us['add']:.2f}")
    print("\nms a step (beside bf16)")
    for name, ms in found["step_ms"].items():
        print(f"{name:<12} {ms:10.2f}  {ms / found['step_ms']['bf16']:6.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, and writes JSON where asked."""
    parser = argparse.ArgumentParser(prog="benchmarks.jax", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tensors, few repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    try:
        import jax
    except ImportError:
        print(f"- jax: {Unavailable('JAX is not installed')}")
        return 0
    rows, rounds = (128, 3) if args.quick else (4096, 30)
    found: dict[str, Any] = {
        "quantize_ms": quantize(rows, 512 if args.quick else 4096, rounds),
        "overhead_us": overhead(3 if args.quick else 100),
        "step_ms": step(64, 64, rounds, ("bf16", "nvfp4")) if args.quick else step(2048, 512, rounds, RECIPES),
    }
    machine = timing.machine()
    print(f"JAX {jax.__version__}, {machine['cpu']}, {machine['cores']} cores, load {machine['load']}")
    show(found)
    if args.json:
        about = {**found, "jax": jax.__version__, "machine": machine, "seconds": round(time.monotonic() - start, 1)}
        args.json.write_text(json.dumps(about, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
