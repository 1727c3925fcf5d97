"""dither.quantize_many and dither.split_quantize: many tensors in few launches."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ..devices import Device, chosen_device
from ..errors import renaming, saying
from ..frameworks import replayable
from .allocate import fill, floats
from .grouped import grouped_quantize
from .grouping import split_known
from .many_kernels import MOST_ARGUMENTS, MOST_TENSORS, Choices, many_kernel, zero_kernel
from .operator import Results, Step, Steps, Zero, finish, steps_of
from .quantize import QUANTIZE, quantize, wanted_to_quantize
from .request import Wanted

#: Options of `quantize` that all tensors share.
_SHARED = ("device", "stream")
_SIGNATURE = inspect.signature(quantize)
#: Arguments of a tensor's own launch that it has among others, if they are there.
_ARGUMENTS = (
    *("out_amax", "out_row_amax", "out_col_amax", "amax", "col_amax"),
    *("row_data", "row_scale", "col_data", "col_scale"),
    *("encode_scale", "seed", "offset", "skip"),
)


@replayable
def quantize_many(tensors: Sequence[Any], format: Any, *args: Any, **options: Any) -> list[Any]:
    """Many separate tensors, such as the weights of an optimizer's step, each quantized as `dither.quantize` would
    quantize it alone.

    On a GPU a launch has many of them, of any shapes: 15 where codes run one way, 10 both ways, 8 where scales depend
    on the amax of the tensor, too. Those take a launch for all amaxes before, and one that makes them zero. Tensors of
    one data type, number of columns and format go together, so that models of many layers have few kernels to compile.
    On a CPU, where a launch is a call, each tensor has its own.

    Args:
        tensors: a list or tuple of what `dither.quantize` takes, on one device.
        format: a format or its name.
        args, options: those of `dither.quantize`. A list or tuple in the place of `format` or any of these has a value
            for each tensor, but `device` and `stream` are shared.

    Returns a list of what `dither.quantize` gives. Raises TypeError or ValueError, which name the tensor.
    """
    own, shared = calls_of(tensors, format, *args, **options)
    calls: list[tuple[Any, Wanted]] = []
    devices: list[Device] = []
    for k, (x, named) in enumerate(zip(tensors, own, strict=True)):
        with _naming(k):
            device = shared["device"]
            devices.append(chosen_device(device, floats(x, "x").device))
            calls.append((x, wanted_to_quantize(**named, **shared)))
            if devices[k] is not devices[0]:
                raise ValueError(f"argument 'x' is on {devices[k].name}, expected {devices[0].name}, as the first one")
    steps = [steps_of(QUANTIZE, {"x": x}, {}, wanted) for x, wanted in calls]
    if devices and devices[0].is_cpu:
        found = []
        for k, one in enumerate(steps):
            with _naming(k):
                found.append(finish(one))
    else:
        found = _together(steps, shared)
    return [results.out for results in found]


def calls_of(
    tensors: Sequence[Any], format: Any, *args: Any, **options: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The arguments of `quantize_many` as those of `dither.quantize` for each tensor, and those that all share. Raises
    TypeError or ValueError."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"argument 'tensors' is {type(tensors).__name__}, expected a list or tuple of arrays")
    call = _SIGNATURE.bind(None, format, *args, **options)
    call.apply_defaults()
    named = {name: value for name, value in call.arguments.items() if name != "x"}
    for name, value in named.items():
        if isinstance(value, (list, tuple)) and len(value) != len(tensors):
            raise ValueError(f"argument '{name}' has {len(value)} values, expected {len(tensors)}: one for each tensor")
    shared = {name: named.pop(name) for name in _SHARED}
    several = [{n: v[k] if isinstance(v, (list, tuple)) else v for n, v in named.items()} for k in range(len(tensors))]
    return several, shared


@replayable
def multi_tensor_quantize(tensors: Sequence[Any], format: Any, *args: Any, **options: Any) -> list[Any]:
    """`dither.quantize_many`, by the name that Transformer Engine has for it."""
    return quantize_many(tensors, format, *args, **options)


def split_quantize(
    x: Any, sections: Sequence[int], format: Any, layout: str = "rowwise", scale_layout: str = "linear", **options: Any
) -> list[Any]:
    """Sections of the rows of `x`, each quantized as `dither.quantize` would quantize it alone, in one launch.

    They are groups whose sizes the host knows (`dither.grouped_quantize`): codes of all sections lie in one array, and
    so do scales, of which each result has a part. Nothing waits for the device.

    Args:
        x: (M, N) float32, bfloat16 or float16.
        sections: rows of each section, integers of the host, which make up all rows; zero included.
        format: a format or its name; or a list of one for each section, which are then tensors of their own
            (`dither.quantize_many`).
        layout, scale_layout, options: those of `dither.grouped_quantize`, but of groups; of `dither.quantize_many` with
            several formats, or with `out`, a list of earlier results.

    Returns a list of what `dither.quantize` gives. Raises TypeError or ValueError, which name the argument.
    """
    unused = next((name for name in options if name.startswith("group_") or name in ("rows", "pad", "joined")), None)
    if unused is not None:
        raise TypeError(f"argument '{unused}' was given, expected none: sections are rows, one after the other")
    if isinstance(format, (list, tuple)) or options.get("out") is not None:
        bounds = itertools.pairwise(itertools.accumulate(sections, initial=0))
        return quantize_many([x[a:b] for a, b in bounds], format, layout, scale_layout, **options)
    sizes = list(sections)
    # Of groups, sections are the sizes.
    with renaming({"group_sizes": "sections"}):
        groups = grouped_quantize(x, format, layout, scale_layout, group_sizes=sizes, **options)
    return split_known(groups, sizes)


def _naming(k: int) -> contextlib.AbstractContextManager[None]:
    """Says of which tensor an error is."""
    return saying(lambda error: f"tensor {k}: {error}")


def _together(calls: Sequence[Steps], shared: Mapping[str, Any]) -> list[Results]:
    """Runs calls of `quantize` in lockstep: what they do at one time is done in few launches."""
    results: dict[int, Results] = {}
    while len(results) < len(calls):
        zeros: list[Any] = []
        launches: list[Step] = []
        for k, call in enumerate(calls):
            if k in results:
                continue
            try:
                with _naming(k):
                    some = next(call)
            except StopIteration as end:
                results[k] = end.value
                continue
            for step in some:
                if isinstance(step, Zero):
                    zeros.append(step.array)
                else:
                    launches.append(step)
        _zero(zeros, shared)
        _launch(launches, shared)
    return [results[k] for k in range(len(calls))]


def _zero(arrays: Sequence[Any], shared: Mapping[str, Any]) -> None:
    numbers = [array for array in arrays if not len(array.shape)]
    for array in arrays:
        if len(array.shape):
            fill(array)
    for at in range(0, len(numbers), MOST_ARGUMENTS):
        zero_kernel.launch(1, tuple(numbers[at : at + MOST_ARGUMENTS]), **shared)


def _launch(steps: Sequence[Step], shared: Mapping[str, Any]) -> None:
    """Launches the kernels of several calls, as few as there may be; those on parts of tensors by themselves."""
    alike: dict[Any, list[tuple[Step, Choices]]] = {}
    for step in steps:
        given = step.arguments
        if given["shard"] is not None:
            step.run()
            continue
        chosen = Choices(
            **{name: given[name] for name in ("FMT", "LAYOUT", "REPEAT", "ROUND", "RANDOM", "ROWS", "COLS")},
            ACROSS=step.grid[0 if given["ACROSS"] else 1],
            TRANSFORMS=(given["ROW_TRANSFORM"], given["COL_TRANSFORM"]),
            THERE=tuple(name for name in _ARGUMENTS if given[name] is not None),
        )
        x = floats(given["x"], "x")
        alike.setdefault((x.dtype, x.shape[1], chosen), []).append((step, chosen))
    items: list[tuple[Any, ...]] = []
    choices: list[Choices] = []
    count = 0

    def launch() -> None:
        nonlocal count
        many_kernel.launch(count, tuple(items), count, CHOICES=tuple(choices), **shared)
        items.clear()
        choices.clear()
        count = 0

    for step, chosen in itertools.chain.from_iterable(alike.values()):
        arguments = [step.arguments[name] for name in chosen.THERE]
        full = len(items) == MOST_TENSORS or sum(map(len, items)) + 2 + len(arguments) > MOST_ARGUMENTS
        if full:
            launch()
        items.append((step.arguments["x"], count, *arguments))
        choices.append(chosen)
        count += step.grid[0] * step.grid[1]
    if items:
        launch()
