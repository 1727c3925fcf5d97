"""A Transformer layer, and conversions, in PyTorch: dither's modules beside bfloat16, torch.compile and torchao.

`benchmarks.torch` prints the tables. A layer is attention and a feed-forward part; times are of a forward and a
backward pass of a `Shape` in bfloat16, with the gradients of all parameters.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import timing


class Shape(NamedTuple):
    """Of a layer, and of what it is given."""

    batch: int = 4
    length: int = 256
    width: int = 512
    heads: int = 8


#: Rows and features of modules whose time on the host is measured.
HOST_SHAPE = (32, 64)
#: Of a tensor that is converted: rows and columns.
CONVERTED = (2048, 4096)


def plain_layer(shape: Shape) -> Any:
    """Of torch's modules."""
    import torch

    return _layer(
        shape,
        lambda: torch.nn.Sequential(torch.nn.LayerNorm(shape.width), torch.nn.Linear(shape.width, 3 * shape.width)),
        lambda: torch.nn.Linear(shape.width, shape.width),
        lambda: torch.nn.Sequential(
            torch.nn.LayerNorm(shape.width),
            torch.nn.Linear(shape.width, 4 * shape.width),
            torch.nn.GELU(approximate="tanh"),
            torch.nn.Linear(4 * shape.width, shape.width),
        ),
    )


def dither_layer(shape: Shape) -> Any:
    """Of dither's modules."""
    import dither.torch as dt

    width = shape.width
    return _layer(
        shape,
        lambda: dt.LayerNormLinear(width, 3 * width),
        lambda: dt.Linear(width, width),
        lambda: dt.LayerNormMLP(width, 4 * width),
    )


def _layer(shape: Shape, qkv: Callable[[], Any], projection: Callable[[], Any], mlp: Callable[[], Any]) -> Any:
    import torch

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.projection, self.mlp = qkv(), projection(), mlp()

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.qkv(x).reshape(batch, length, 3, shape.heads, width // shape.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(x)

    torch.manual_seed(0)
    return Layer().bfloat16()


def passes(layer: Any, shape: Shape, recipe: Any = None, compiles: bool = False) -> Callable[[], object]:
    """A forward and a backward pass."""
    import dither.torch as dt
    import torch

    x = torch.randn(shape.batch, shape.length, shape.width, dtype=torch.bfloat16).requires_grad_()
    dy = torch.randn_like(x)
    call = torch.compile(layer) if compiles else layer

    def both() -> None:
        with contextlib.nullcontext() if recipe is None else dt.autocast(recipe=recipe):
            y = call(x)
        y.backward(dy)
        x.grad = None
        layer.zero_grad()

    return both


def layers(shape: Shape, compiles: bool = True) -> dict[str, Callable[[], object]]:
    """Passes by what computes them."""
    from dither import recipe

    made: dict[str, Callable[[], object]] = {}
    for suffix in ("", ", torch.compile") if compiles else ("",):
        made["bf16" + suffix] = passes(plain_layer(shape), shape, compiles=bool(suffix))
        for name, each in (
            ("FP8, current scaling", recipe.Float8CurrentScaling()),
            ("MXFP8", recipe.MXFP8BlockScaling()),
            ("NVFP4", recipe.NVFP4BlockScaling()),
        ):
            made[f"dither {name}{suffix}"] = passes(dither_layer(shape), shape, each, bool(suffix))
        converted = torchao_layer(shape)
        if converted is not None:
            made["torchao FP8, current scaling" + suffix] = passes(converted, shape, compiles=bool(suffix))
    return made


def host_times(loops: int, rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of the processor for a forward and a backward pass of small modules (`HOST_SHAPE`, bfloat16) on one
    thread, by module and recipe: what Python and torch take, as products of this size take next to nothing.

    The least of rounds that take turns, after as many calls as make later ones alike.
    """
    import dither.torch as dt
    import torch
    from dither import recipe

    rows, width = HOST_SHAPE
    modules: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "Linear": (lambda: dt.Linear(width, width), ()),
        "LayerNormLinear": (lambda: dt.LayerNormLinear(width, width), ()),
        "LayerNormMLP": (lambda: dt.LayerNormMLP(width, 2 * width), ()),
        "GroupedLinear of 2": (lambda: dt.GroupedLinear(2, width, width), ([rows // 2] * 2,)),
    }
    recipes = {
        "bf16": None,
        "MXFP8": recipe.MXFP8BlockScaling(),
        "NVFP4": recipe.NVFP4BlockScaling(),
        "FP8, current scaling": recipe.Float8CurrentScaling(),
        "FP8, delayed scaling": recipe.DelayedScaling(),
        "FP8, blocks": recipe.Float8BlockScaling(),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found: dict[str, dict[str, float]] = {}
        for name, (make, rest) in modules.items():
            calls = {kind: _small(make(), rest, said) for kind, said in recipes.items()}
            for call in calls.values():
                for _ in range(4):
                    call()
            least = dict.fromkeys(calls, float("inf"))
            for _ in range(rounds):
                for kind, call in calls.items():
                    start = time.process_time()
                    for _ in range(loops):
                        call()
                    least[kind] = min(least[kind], (time.process_time() - start) / loops)
            found[name] = {kind: 1e6 * seconds for kind, seconds in least.items()}
        return found
    finally:
        torch.set_num_threads(threads)


def _small(module: Any, rest: tuple[Any, ...], recipe: Any) -> Callable[[], object]:
    import dither.torch as dt
    import torch

    module = module.bfloat16()
    x = torch.randn(*HOST_SHAPE, dtype=torch.bfloat16).requires_grad_()
    dy: Any = None

    def both() -> None:
        nonlocal dy
        with contextlib.nullcontext() if recipe is None else dt.autocast(recipe=recipe):
            y = module(x, *rest)
        dy = torch.randn_like(y) if dy is None else dy
        y.backward(dy)
        x.grad = None
        for parameter in module.parameters():
            parameter.grad = None

    return both


def torchao_layer(shape: Shape) -> Any:
    """torch's layer by torchao's FP8 training; None where torchao is not there."""
    try:
        from torchao.float8 import convert_to_float8_training
    except ImportError:
        return None
    return convert_to_float8_training(plain_layer(shape))


def conversions(shape: tuple[int, int], compiles: bool = True) -> dict[str, Callable[[], object]]:
    """Conversions of a bfloat16 tensor along rows, by what converts."""
    import dither
    import torch

    x = torch.randn(shape, dtype=torch.bfloat16)
    made: dict[str, Callable[[], object]] = {
        f"dither {fmt}": lambda fmt=fmt: dither.quantize(x, fmt)  # type: ignore[misc]
        for fmt in ("fp8_tensor_e4m3", "mxfp8_e4m3", "nvfp4")
    }
    try:
        from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
        from torchao.float8.float8_training_tensor import LinearMMConfig
        from torchao.prototype.mx_formats.mx_tensor import MXTensor
        from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    except ImportError:
        return made
    theirs: dict[str, Callable[[Any], object]] = {
        "torchao fp8_tensor_e4m3": lambda x: hp_tensor_to_float8_dynamic(x, torch.float8_e4m3fn, LinearMMConfig()),
        "torchao mxfp8_e4m3": lambda x: MXTensor.to_mx(x, torch.float8_e4m3fn),
        "torchao nvfp4": lambda x: NVFP4Tensor.to_nvfp4(x, per_tensor_scale=x.abs().amax().float() / 2688),
    }
    for suffix in ("", ", torch.compile") if compiles else ("",):
        for name, call in theirs.items():
            one = torch.compile(call) if suffix else call
            made[name + suffix] = lambda one=one: one(x)  # type: ignore[misc]
    return made


def milliseconds(calls: dict[str, Callable[[], object]], rounds: int) -> tuple[dict[str, float], dict[str, str]]:
    """The least time of each, in turns; and of those that do not run here, why."""
    refused: dict[str, str] = {}
    running = {}
    for name, call in calls.items():
        try:
            call()
        except Exception as error:  # what other libraries raise is theirs
            refused[name] = (
                f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else type(error).__name__
            )
        else:
            running[name] = call
    timed = timing.interleaved(running, rounds)
    return {name: 1e3 * min(seconds) for name, seconds in timed.items()}, refused


def table(head: tuple[str, str, str], times: dict[str, float], refused: dict[str, str], base: str) -> str:
    """Times as Markdown, with how often the first one they are."""
    lines = [f"| {head[0]} | {head[1]} | {head[2]} |", "|---|--:|--:|"]
    lines += [f"| {name} | {ms:.2f} | {ms / times[base]:.2f} |" for name, ms in times.items()]
    return "\n".join([*lines, *(f"| {name} | does not run: {why[:80]} | |" for name, why in refused.items())])
