"""dither.fuse: a function on tiles as an operator, with its output in any format and layout."""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..devices import Device
from ..formats import Format
from ..frameworks import name_in_graphs, replayable
from ..jit import LAUNCH_OPTIONS
from ..once import one_for_each
from ..options import UNSAID, CodeOptions
from ..scalars import run_time_number
from ..types import DType
from .allocate import float_type
from .fused_kernel import fused_kernel
from .grouping import Groups
from .hadamard import RandomHadamard
from .halves import interleaved, with_halves
from .operator import Operator, run
from .producer import Producer, producer_of
from .request import wanted_of
from .row_passes import Second, row_passes
from .written import into, take_out

#: Names that parameters of functions may not have: those of the kernel, and of launches.
_TAKEN = (*inspect.signature(fused_kernel).parameters, *LAUNCH_OPTIONS)


class Fused:
    """A function on tiles as an operator on tensors; what `dither.fuse` makes."""

    __name__: str

    def __init__(
        self,
        fn: Callable[..., Any],
        options: CodeOptions = UNSAID,
        *,
        whole_rows: bool = False,
        saves: Mapping[str, str] | None = None,
        halves: bool = False,
        output: str = "out",
        like: Mapping[str, str] | None = None,
        gated: tuple[str, str] | None = None,
        needed: tuple[str, ...] = (),
        choices: Mapping[str, tuple[Any, ...]] | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        periods: int = 1,
        second: Second | None = None,
    ) -> None:
        """Attributes as in `Producer`.

        Args:
            gated: two tiles that may be given as one tensor, the halves of its columns.
            needed: parameters that have a default in `fn`, since others before them do, and yet must be given.
            choices: what a constexpr may be, by name.
            ranges: the least and the largest value of a number, by name; of one on a device nothing is known.
            second: the second of two passes over rows.
        """
        # Kernels and other functions that call it inline the function.
        self.fn = fn
        self.replays: Any = None
        producer = producer_of(fn, (*_TAKEN, *_options()), whole_rows, saves, halves, output, like, periods)
        self.operator = Operator(producer, options, None if second is None else row_passes(producer, second))
        self._gated, self._needed = gated, needed
        self._choices, self._ranges = dict(choices or {}), dict(ranges or {})
        functools.update_wrapper(self, fn)
        given = self.operator.producer.given()
        parameters = inspect.signature(fn).parameters.values()
        # Calls leave out what follows from other parameters.
        self.__signature__ = inspect.Signature([p for p in parameters if p.name in given])
        own = fn.__module__.startswith(f"{__package__}.")
        self.graph_name = name_in_graphs(self, fn.__name__ if own else f"{fn.__module__}:{fn.__qualname__}")

    def __repr__(self) -> str:
        return f"<dither operator {self.operator.producer.name}>"

    def __reduce__(self) -> str:
        return self.operator.producer.function.__qualname__

    @replayable
    def __call__(
        self,
        *args: Any,
        format: Format | str | None = None,
        layout: str = "rowwise",
        scale_layout: str = "linear",
        dtype: Any = None,
        amax: Any = None,
        return_amax: bool = False,
        round_intermediate: bool | None = None,
        device: str | Device | None = None,
        stream: int | None = None,
        out: Any = None,
        rounding: str = "nearest",
        seed: Any = None,
        offset: Any = 0,
        encode_scale: Any = None,
        decode_scale: Any = None,
        record_amax: Any = None,
        repeat_scales: bool = False,
        transform: RandomHadamard | None = None,
        flatten_axis: int = -1,
        numerics: str | None = None,
        grad_dtype: Any = None,
        groups: Groups | None = None,
        interleave: int = 0,
        sm_margin: int = 0,
        **kwargs: Any,
    ) -> Any:
        """The function on every tile of the tensors, and what it gives in a format, in one kernel: see `fuse`."""
        producer = self.operator.producer
        try:
            call = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{producer.name}: {error}, expected {self.__signature__}") from None
        call.apply_defaults()
        self._check(call.arguments)
        check_sm_margin(sm_margin, producer)
        wanted = wanted_of(
            format,
            layout=layout,
            scale_layout=scale_layout,
            dtype=dtype,
            amax=amax,
            return_amax=return_amax,
            round_intermediate=round_intermediate,
            device=device,
            stream=stream,
            out=out,
            rounding=rounding,
            seed=seed,
            offset=offset,
            encode_scale=encode_scale,
            decode_scale=decode_scale,
            record_amax=record_amax,
            repeat_scales=repeat_scales,
            transform=transform,
            flatten_axis=flatten_axis,
            numerics=numerics,
            groups=groups,
        )
        wanted.grad_dtype = checked_grad_dtype(grad_dtype, producer)
        peak = take_out(wanted, (producer.output, *producer.saves, *(("amax",) if return_amax else ())))
        operands = {name: value for name, value in call.arguments.items() if producer.roles[name] != "constexpr"}
        constants = {name: value for name, value in call.arguments.items() if producer.roles[name] == "constexpr"}
        second = None if self._gated is None else operands[self._gated[1]]
        wanted.interleave = interleaved(interleave, self._gated, producer.name, second)
        if self._gated is not None:
            operands = with_halves(operands, *self._gated, producer.tile)
        results = run(self.operator, operands, constants, wanted)
        besides = {**results.saved, **({"amax": into(peak, results.amax, wanted)} if return_amax else {})}
        if not besides:
            return results.out
        return _results(producer.name, (producer.output, *besides))(results.out, *besides.values())

    def _check(self, arguments: Mapping[str, Any]) -> None:
        """Raises TypeError for what is needed and was not given, ValueError for what is no choice or out of range."""
        for name in self._needed:
            if arguments[name] is None:
                raise TypeError(f"{self.__name__}: argument '{name}' was not given, expected it")
        for name, choices in self._choices.items():
            if arguments[name] not in choices:
                expected = " or ".join(map(repr, choices))
                raise ValueError(f"argument '{name}' is {arguments[name]!r}, expected {expected}")
        for name, (least, most) in self._ranges.items():
            number = run_time_number(arguments[name])
            if isinstance(number, (int, float)) and not least <= number <= most:
                raise ValueError(f"argument '{name}' is {number!r}, expected a number from {least} to {most}")


@functools.cache
def _options() -> tuple[str, ...]:
    """The options of calls, which no parameter may be named like."""
    parameters = inspect.signature(Fused.__call__).parameters.items()
    return tuple(name for name, p in parameters if p.kind is p.KEYWORD_ONLY)


def check_sm_margin(margin: Any, producer: Producer) -> None:
    """Raises TypeError or ValueError for what is no number of multiprocessors that an operator may leave to others."""
    if type(margin) is not int:
        raise TypeError(f"sm_margin is {margin!r}, expected an integer")
    if margin < 0:
        raise ValueError(f"sm_margin is {margin}, expected 0 or more")
    if margin and not producer.whole_rows:
        raise ValueError(f"argument 'sm_margin' was given, expected none: {producer.name} has no whole rows")


def checked_grad_dtype(dtype: Any, producer: Producer) -> DType | None:
    """The data type that a call wants sums of columns in. Raises TypeError or ValueError."""
    if dtype is not None and not producer.sums:
        raise ValueError(f"argument 'grad_dtype' was given, expected none: {producer.name} sums no columns")
    return None if dtype is None else float_type(dtype, "grad_dtype")


@one_for_each
def _results(name: str, fields: tuple[str, ...]) -> Any:
    """The class of results of an operator that gives more than its output."""
    return collections.namedtuple(name, fields)


def fuse(
    fn: Callable[..., Any] | None = None,
    *,
    whole_rows: bool = False,
    saves: Mapping[str, str] | None = None,
    halves: bool = False,
    periods: int = 1,
    math: str | None = None,
) -> Any:
    """Makes an operator of a function on tiles: fused with quantization in any format and layout, on any device.

        @dither.fuse
        def swiglu(gate, up):
            return gate * dl.sigmoid(gate) * up

        y = swiglu(g, u)                                          # (M, N), in the data type of g
        q = swiglu(g, u, format=dither.NVFP4, layout="both")      # ScaledTensor2x, from one read of g and u

    A parameter without an annotation is a tile of an (M, N) tensor. `dl.row` is a tensor of shape (N,), which the
    function sees as (columns,); `dl.column` one of shape (M,), seen as (rows, 1); `dl.scalar` a number or a tensor of
    rank 0; `dl.integer` an integer of 64 bits or an int64 tensor of one element, as seeds of `dl.uniform` are;
    `dl.constexpr` a value that code is compiled for. Floats are float32 in the function, whatever they are in
    memory. What it returns is the output, (rows, columns). A parameter whose default is None may be left out: the
    function gets None. One annotated `dl.tile_dtype` is the data type that the first tile has in memory; calls leave it
    out.

    `dl.periodic` is a tensor of shape (M, K), K a divisor of N, seen as (rows, K), which `dl.cycle` makes as wide as
    the tile: its numbers are for each K columns of a row. All that a function has are of one K, which a parameter
    annotated `dl.period` is; calls leave that out. Of a tensor of more dimensions it has those of the rows, or the last
    of them: tables that batches share. Rotary embeddings of heads of K columns are

        @dither.fuse
        def rotated(x, angle: dl.periodic, k: dl.period):
            return x * dl.cycle(dl.cos(angle)) + dl.rotate_half(x, k) * dl.cycle(dl.sin(angle))

    Args:
        whole_rows: tiles are rows from end to end, for functions that reduce them: what a tile has past the end of a
            row counts for nothing. A parameter annotated `dl.row_length` is N, for means; calls leave it out.
        saves: what the function returns besides, after the output, by name: "column" for (rows, 1) tiles, which make a
            tensor of shape (M,) (with whole_rows), "tile" for those of shape (M, N), or "column_sum" for tiles whose
            columns are summed over all M rows, to shape (N,), as the gradient of a bias is; float32. Sums have the
            same bits on every device: pairs of rows are added, then pairs of these sums, and so on.
        halves: the function returns a pair of tiles in the place of the output: the left and the right half of its
            columns, (M, 2N) of tiles of (M, N) tensors, as the gradient of a gated activation has.
        periods: tiles, and rows of the tensor, have a multiple of so many periods of what is `dl.periodic`: 2 where
            its numbers are for half a head that `dl.rotate_half` turns, or where `dl.repeat(t, 2, axis=1)` gives each
            of them to two columns. K times `periods` is at most 1024, and at least N / 64 with whole_rows.
        math: "fast" lets GPUs approximate and contract what the function computes, as in `dither.jit`.

    Calls take the function's arguments, and `format`, `layout`, `scale_layout`, `amax`, `device`, `stream`, `out`,
    `rounding`, `seed`, `offset`, `encode_scale`, `decode_scale`, `record_amax`, `repeat_scales`, `transform`,
    `flatten_axis` and `numerics` as `dither.quantize` has them; tensors of other ranks than 2 are matrices likewise.
    Besides:
        format: None gives plain output, in `dtype`, by default that of the first tensor. Data types are those of
            dither, NumPy, torch or JAX.
        return_amax: whether the largest magnitude of the output is returned (float32, rank 0).
        round_intermediate: whether the output is rounded to `dtype` before it is quantized and its amax taken, as if
            the function were a kernel of its own; by default so, but not under a given `encode_scale`, as delayed
            scaling of FP8 has it.
        out: an array for plain output, of its shape and data type, or an earlier result for quantized output; or an
            earlier result of all that a call gives: what is saved is written, too.
        grad_dtype: data type of what is saved as "column_sum", rounded once from float32; by default float32.
        groups: `dither.Groups` of the rows, each of which is a tensor of its own, as in `dither.grouped_quantize`: what
            is summed over rows has a row for each group, the amax is that of each, (G,).
        interleave: of gated activations of one tensor of gate and up, a matrix: 1, 16, 32 or 64 where these take turns,
            so many columns of one and then of the other, and so do the columns of their gradients; 0 for halves.
        sm_margin: of norms and others that see whole rows: multiprocessors of a GPU that are left to other kernels, as
            callers of Transformer Engine's persistent norms say. Here it changes nothing: no kernel stays on a
            multiprocessor. A program takes a few rows and ends, and the device gives its place to whoever waits.

    A call returns the output, or a NamedTuple of it (`out`), what is saved, and `amax`. Formats whose scales depend on
    the amax of the whole tensor take two passes where `amax` is not given. Results have no gradient: a call on tensors
    of torch that require one raises TypeError (`dither.torch.operator` gives a function its own).
    """
    if fn is None:
        return functools.partial(fuse, whole_rows=whole_rows, saves=saves, halves=halves, periods=periods, math=math)
    return Fused(fn, CodeOptions(math=math), whole_rows=whole_rows, saves=saves, halves=halves, periods=periods)
