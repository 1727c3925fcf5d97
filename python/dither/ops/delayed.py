"""Delayed scaling of FP8 tensors: a step of the scale and of the history of largest magnitudes that it comes from."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any, NamedTuple

from .. import sharing, torch_tensors, types
from ..arrays import Array, describe_argument
from ..devices import Device, chosen_device
from ..errors import suggest
from ..formats import ELEMENTS, FORMATS, LARGEST, Format, restore_format
from ..frameworks import replayable
from ..types import DType, dtype_from_mlir, float32
from . import kernels
from .allocate import empty_like, filled
from .shards import Describing, describes

ALGORITHMS = ("max", "most_recent")
#: What an infinite quotient becomes.
INF_SCALES = {"largest": 3.4028234663852886e38, "inf": math.inf}
_BY_NAME: dict[str, Format | DType] = {**FORMATS, **{element.name: element for element in ELEMENTS}}
_WRITTEN = ("scale", "amax_history")
#: Elements of the history that a program takes at once.
_TILE = 1024


@replayable
def update_scale(
    scale: Any,
    amax_history: Any,
    amax: Any = None,
    *,
    format: Any,
    margin: int = 0,
    algorithm: str = "max",
    skip_zero: bool = False,
    inf_scale: str = "largest",
    device: str | Device | None = None,
    stream: int | None = None,
) -> None:
    """Ends a step of delayed scaling, in place and on the device: nothing is copied to the host.

    Of each tensor the history h has the largest magnitudes of L steps, h[0] that of this one:

        A = max(h[0], .., h[L - 1]), or h[0] with algorithm="most_recent"
        scale = largest * 2^-margin / A, one rounding to float32, if A is finite and above 0; else it stays
        h = (0, h[2], .., h[L - 1], h[0]), which is (0) for L = 1

    The maximum begins at 0 and a NaN counts for nothing in it, as in `dither.amax`; where h[0] itself is taken, a NaN
    is not finite, and the scale stays. These are the bits of Transformer Engine, but that a scale which is infinite
    before the step becomes the largest finite number there, and stays here.

    Args:
        scale: float32 of one element, or (T,) for T tensors: what values are multiplied by before they are cast.
        amax_history: float32, (L,) for one tensor or (L, T).
        amax: float32 of one element or (T,), the largest magnitudes of this step (`dither.amax`), which go to row 0 of
            the history; None where they are there.
        format: a format, an element type such as `dl.float8_e4m3`, or the name of either; `largest` is the largest
            finite value of its elements (448 of float8_e4m3, 57344 of float8_e5m2).
        margin: an integer; `largest * 2^-margin` must be a normal float32.
        algorithm: "max" or "most_recent".
        skip_zero: whether a tensor whose amax of this step is 0 keeps its history and its scale, as where Transformer
            Engine updates all tensors after an all-reduce.
        inf_scale: what a quotient too large for float32 becomes: "largest", the largest finite number, or "inf".
        device: where to run; by default where the arrays are.
        stream: the stream of a GPU to run on.
    """
    options = _options(format, margin, algorithm, skip_zero, inf_scale)
    _launch(_arrays(scale, amax_history, amax), {}, options, device, stream)


@replayable
def updated_scale(
    scale: Any,
    amax_history: Any,
    amax: Any,
    *,
    format: Any,
    margin: int = 0,
    algorithm: str = "max",
    skip_zero: bool = False,
    inf_scale: str = "largest",
    device: str | Device | None = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """`update_scale` as a function: the scale and the history after a step, beside what was before, which stays.

    Arguments are those of `update_scale`, with `amax` not None. Results have the shapes of `scale` and `amax_history`.
    """
    options = _options(format, margin, algorithm, skip_zero, inf_scale)
    if amax is None:
        raise TypeError("argument 'amax' is None, expected the largest magnitudes of the step")
    old = _arrays(scale, amax_history, amax, written=())
    history = _floats("amax_history", amax_history)
    shapes = (_floats("scale", scale).shape, history.shape)
    made = tuple(empty_like(amax_history, history, shape, float32) for shape in shapes)
    new = _arrays(made[0], made[1], amax)
    _launch(new, {"old_scale": old["scale"], "old_history": old["amax_history"]}, options, device, stream)
    where = chosen_device(device, history.device)
    if describes(where) and len(history.shape) == 2:
        split = Describing(history.shape[1:], ())
        (tensor,) = split.rows
        for one in (scale, amax, made[0]):
            split.numbers(one, history.shape[1], tensor)
        split.label(amax_history, (None, tensor))
        split.label(made[1], (None, tensor))
        split.say(where)
    return made[0], made[1]


class _Options(NamedTuple):
    """Those of a step: what the amax becomes, the bound of scales, and what the kernel is compiled for."""

    largest: float
    most: float
    algorithm: str
    skip_zero: bool


def _options(format: Any, margin: Any, algorithm: Any, skip_zero: Any, inf_scale: Any) -> _Options:
    scaled = _scaled_largest(_format(format), _integer("margin", margin))
    _choice("algorithm", algorithm, ALGORITHMS)
    _choice("inf_scale", inf_scale, tuple(INF_SCALES))
    if not isinstance(skip_zero, bool):
        raise TypeError(f"skip_zero is {skip_zero!r}, expected True or False")
    return _Options(scaled, INF_SCALES[inf_scale], algorithm, skip_zero)


def _launch(
    arrays: dict[str, Array],
    old: dict[str, Array],
    options: _Options,
    device: str | Device | None,
    stream: int | None,
) -> None:
    history = arrays["amax_history"]
    tensors = history.shape[1]
    if not tensors:
        return
    # Tiles are part of the code, so that few must serve all numbers of tensors.
    cols = 1 if tensors == 1 else 8 if tensors <= 8 else 32
    kernels.update_scale_kernel.launch(
        -(-tensors // cols),
        arrays["scale"],
        history,
        arrays.get("amax"),
        options.largest,
        options.most,
        old.get("old_scale"),
        old.get("old_history"),
        ALGORITHM=options.algorithm,
        SKIP_ZERO=options.skip_zero,
        ROWS=_TILE // cols,
        COLS=cols,
        device=chosen_device(device, history.device),
        stream=stream,
    )


class DelayedScaling:
    """The state of delayed scaling of one tensor, or of several: scales, and the history that they come from.

    States are pickled and copied like the arrays in them. `torch.load` with `weights_only=True` reads them after
    `torch.serialization.add_safe_globals([dither.ops.delayed.restore])`.

    Attributes:
        scale: float32, rank 0, or (T,) of several tensors; 1 at first.
        amax_history: float32, (L,) or (L, T); 0 at first.
        format: a format or an element type.
        margin, algorithm: as of `dither.update_scale`.
    """

    scale: Any
    amax_history: Any
    format: Format | DType
    margin: int
    algorithm: str

    def __init__(
        self,
        format: Any,
        history: int = 1024,
        margin: int = 0,
        algorithm: str = "max",
        like: Any = None,
        tensors: int | None = None,
    ) -> None:
        """Arguments are those of `dither.update_scale`, and:

        Args:
            history: how many steps it remembers, at least 1.
            like: an array of the library, and on the device, that those of the state shall be of; by default NumPy's.
            tensors: how many tensors there are; None for one, whose scale has rank 0.
        """
        self.format = _format(format)
        self.margin = _integer("margin", margin)
        _scaled_largest(self.format, self.margin)
        self.algorithm = _choice("algorithm", algorithm, ALGORITHMS)
        steps = _count("history", history, 1)
        shape = () if tensors is None else (_count("tensors", tensors, 0),)
        if like is None:
            import numpy

            like = numpy.empty(0, numpy.float32)
        array = describe_argument("like", like)
        if array is None:
            raise TypeError(f"argument 'like' is {type(like).__name__}, expected an array")
        self.scale = filled(like, array, shape, 1.0)
        self.amax_history = filled(like, array, (steps, *shape))

    def update(self, amax: Any = None, *, device: str | Device | None = None, stream: int | None = None) -> None:
        """Ends a step: `dither.update_scale` of this state."""
        update_scale(
            self.scale,
            self.amax_history,
            amax,
            format=self.format,
            margin=self.margin,
            algorithm=self.algorithm,
            device=device,
            stream=stream,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        kind = self.format
        named = (kind.mlir, None) if isinstance(kind, DType) else kind.__reduce__()[1]
        return restore, (self.scale, self.amax_history, named, self.margin, self.algorithm)

    def __repr__(self) -> str:
        shape = tuple(self.amax_history.shape)
        return f"DelayedScaling({self.format!r}, {shape=}, margin={self.margin}, algorithm={self.algorithm!r})"


def restore(
    scale: Any, amax_history: Any, format: tuple[str, dict[str, Any] | None], margin: int, algorithm: str
) -> DelayedScaling:
    """A DelayedScaling that was pickled or copied. Names stand for formats and types, so that who unpickles what he
    does not trust has this one function to allow."""
    state = DelayedScaling.__new__(DelayedScaling)
    name, fields = format
    state.scale, state.amax_history = scale, amax_history
    state.format = dtype_from_mlir(name) if fields is None else restore_format(name, fields)
    state.margin, state.algorithm = margin, algorithm
    return state


def _arrays(scale: Any, amax_history: Any, amax: Any, written: tuple[str, ...] = _WRITTEN) -> dict[str, Array]:
    """The arrays of a call, some of which are written, as kernels take them, checked."""
    history = _floats("amax_history", amax_history)
    if len(history.shape) not in (1, 2):
        raise ValueError(f"argument 'amax_history' has shape {history.shape}, expected (L,) or (L, T)")
    if not history.shape[0]:
        raise ValueError(f"argument 'amax_history' has shape {history.shape}, expected at least one row")
    tensors = 1 if len(history.shape) == 1 else history.shape[1]
    given = {"scale": _floats("scale", scale), "amax_history": history}
    if amax is not None:
        given["amax"] = _floats("amax", amax)
    for name, array in given.items():
        if array is not history and array.shape != (tensors,) and (tensors != 1 or array.shape):
            expected = "() or (1,)" if tensors == 1 else f"({tensors},)"
            beside = f"'amax_history' has shape {history.shape}"
            raise ValueError(f"argument '{name}' has shape {array.shape}, expected {expected}: {beside}")
        if tensors > 1 and array.strides[-1] != 1:
            stride = array.strides[-1]
            raise ValueError(f"argument '{name}' has stride {stride} along its last dimension, expected 1")
        # Launches would take an array of the host beside those of a GPU, and copy it each time.
        if array.device != history.device:
            places = f"on {array.device} and 'amax_history' on {history.device}"
            raise ValueError(f"argument '{name}' is {places}, expected one device")
    arrays = {
        "scale": _row(given["scale"], tensors),
        "amax_history": _rows(history, tensors),
        "amax": _row(given["amax"], tensors) if amax is not None else None,
    }
    found = {name: array for name, array in arrays.items() if array is not None}
    if written:
        _check_apart(found, written)
    return found


def _check_apart(arrays: dict[str, Array], written: tuple[str, ...]) -> None:
    """Raises ValueError where what is written cannot be or has a byte in common with another."""
    seen: list[tuple[str, Array]] = []
    for name, array in arrays.items():
        if name in written:
            if array.readonly:
                raise ValueError(f"argument '{name}' is read-only, expected memory that can be written")
            torch_tensors.check_writable(name, array.owner)
            if sharing.overlaps_itself(array):
                raise ValueError(
                    f"argument '{name}' has elements that share memory, strides {array.strides}, expected none"
                )
        for other, beside in seen:
            if sharing.overlap(array, beside):
                raise ValueError(f"argument '{name}' shares memory with '{other}', expected memory of its own")
        seen.append((name, array))


def _floats(name: str, x: Any) -> Array:
    """The description of an array of float32."""
    array = describe_argument(name, x)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected an array")
    if array.dtype is not float32:
        raise TypeError(f"argument '{name}' has data type {array.dtype or array.storage}, expected float32")
    return array


def _row(array: Array, tensors: int) -> Array:
    """(1, T), or rank 0 for one tensor. Code is specialized by the alignment of neither a row's stride, which is the
    same for all T, nor a single element, which may be any of an array."""
    if tensors == 1:
        return dataclasses.replace(array, shape=(), strides=())
    return dataclasses.replace(array, shape=(1, tensors), strides=(1, 1))


def _rows(history: Array, tensors: int) -> Array:
    """(L, T). A column, whose elements may have any distance, has rows of one."""
    return dataclasses.replace(history, shape=(history.shape[0], tensors), strides=(history.strides[0], 1))


def _format(value: Any) -> Format | DType:
    """What `format` means."""
    if isinstance(value, Format) or (isinstance(value, DType) and value in ELEMENTS):
        return value
    if not isinstance(value, str):
        error = ValueError if isinstance(value, DType) else TypeError
        elements = ", ".join(map(str, ELEMENTS))
        raise error(f"found {value!r} as a format, expected a dither format, its name, or {elements}")
    name = value.lower()
    if name not in _BY_NAME:
        raise ValueError(f"unknown format {value!r}, expected {', '.join(_BY_NAME)}{suggest(name, _BY_NAME)}")
    return _BY_NAME[name]


def _integer(what: str, value: Any) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}, expected an integer")
    return int(value)


def _scaled_largest(format: Format | DType, margin: int) -> float:
    """The largest finite value of an element, times 2^-margin."""
    element = format.element if isinstance(format, Format) else format
    largest = LARGEST[element]
    if isinstance(format, Format) and element is types.int8 and format.scale is types.e8m0:
        largest /= 64  # in units of 2^-6 there
    exponent = math.frexp(largest)[1] - 1
    if not exponent - 127 <= margin <= exponent + 126:
        raise ValueError(f"margin is {margin}, expected {exponent - 127} to {exponent + 126} for {format.name}")
    return math.ldexp(largest, -margin)


def _count(what: str, value: Any, least: int) -> int:
    count = _integer(what, value)
    if count < least:
        raise ValueError(f"{what} is {count}, expected at least {least}")
    return count


def _choice(what: str, value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{what} is {value!r}, expected {', '.join(choices)}{suggest(value, choices)}")
    return value
