"""Tensors whose columns are two halves, as gated activations take them, and their gradients are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, describe_argument
from ..data_classes import dataclass
from .outputs import Plan
from .producer import Producer
from .tiles import GPU_TRANSPOSED, Tile, narrowed

#: What each half is a multiple of where one kernel quantizes both: blocks, and four scales of a row, end with it.
COLUMNS = 128
#: Columns that halves may take turns by.
SIZES = (1, 16, 32, 64)
#: Columns of a GPU's tile of turns, at most: few of them, and tall.
_TURNS = 128


def with_halves(operands: Mapping[str, Any], first: str, second: str, tile: str) -> dict[str, Any]:
    """Operands of a gated activation: where `second` was not given, `first` has both, as halves of its last dimension.
    `tile` is the operand that others have the shape of.

    Raises TypeError or ValueError for what has no halves.
    """
    found = dict(operands)
    if found[second] is not None:
        return found
    x = found[first]
    array = describe_argument(first, x)
    if array is None:
        raise TypeError(f"argument '{first}' is {type(x).__name__}, expected an array")
    like = describe_argument(tile, found[tile]) if tile != first else None
    if like is not None and like.shape:
        expected = (*like.shape[:-1], 2 * like.shape[-1])
        if array.shape != expected:
            raise ValueError(f"argument '{first}' has shape {array.shape}, expected {expected} without '{second}'")
    if not array.shape or array.shape[-1] % 2:
        raise ValueError(f"argument '{first}' has shape {array.shape}, expected an even number of columns: two halves")
    if not hasattr(x, "__getitem__"):
        raise TypeError(f"argument '{first}' is {type(x).__name__}, expected '{second}' with it: it cannot be sliced")
    half = array.shape[-1] // 2
    found[first], found[second] = x[..., :half], x[..., half:]
    return found


@dataclass(frozen=True)
class Interleaved:
    """Halves that take turns: `size` columns of the first, then `size` of the second, and so on.

    Attributes:
        size: a power of two.
        first, second: the operands that are halves of one tensor; the output of two halves lies likewise.
    """

    size: int
    first: str
    second: str

    def operands(self, values: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Values for kernels: of the halves, (M, N / size, size), or for turns of one column the tensor that they are
        of, twice. Raises ValueError where these do not divide rows."""
        one, other = arrays[self.first], arrays[self.second]
        self._check(self.first, one.shape[1])
        assert one.dtype is not None
        if other.pointer - one.pointer != one.shape[1] * one.dtype.bits // 8 or one.strides != other.strides:
            raise ValueError(f"argument '{self.first}' is not a matrix with dense rows, expected one with interleave")
        if self.size == 1:
            whole = dataclasses.replace(one, shape=(one.shape[0], 2 * one.shape[1]))
            return {**values, self.first: whole, self.second: whole}
        return {**values, self.first: self._turns(one, 0), self.second: self._turns(one, 1)}

    @property
    def roles(self) -> dict[str, str]:
        """The roles of operands that kernels know as others than tiles, by name."""
        return {self.first: "even", self.second: "odd"} if self.size == 1 else {}

    def outputs(self, out: Any) -> dict[str, Any]:
        """The halves of plain output, as kernel arguments."""
        array = describe_argument("out", out)
        assert array is not None
        left = dataclasses.replace(array, shape=(array.shape[0], array.shape[1] // 2))
        self._check("out", left.shape[1])
        if self.size == 1:
            return {"out": out}
        return {"out": self._turns(left, 0), "right": self._turns(left, 1)}

    def tile(self, tile: Tile) -> Tile:
        """A tile of a GPU with as many elements, of few turns: its lanes have some of each of them."""
        return tile if self.size == 1 else narrowed(tile, min(tile.cols, _TURNS))

    def _check(self, name: str, n: int) -> None:
        if n % self.size:
            raise ValueError(
                f"argument '{name}' has {2 * n} columns, expected a multiple of {2 * self.size}: interleave"
            )

    def _turns(self, half: Array, place: int) -> Array:
        """The left half of rows as the columns of one of both."""
        assert half.dtype is not None
        return dataclasses.replace(
            half,
            pointer=half.pointer + place * self.size * half.dtype.bits // 8,
            shape=(half.shape[0], half.shape[1] // self.size, self.size),
            strides=(half.strides[0], 2 * self.size, 1),
        )


def interleaved(size: Any, gated: tuple[str, str] | None, name: str, given: Any) -> Interleaved | None:
    """What `interleave=size` of a call of operator `name` means; None for 0. `given` is the second of the tensors.

    Raises TypeError or ValueError.
    """
    if type(size) is not int:
        raise TypeError(f"interleave is {size!r}, expected an integer")
    if size == 0:
        return None
    if gated is None:
        raise ValueError(f"argument 'interleave' was given, expected none: {name} has no gate")
    if size not in SIZES:
        raise ValueError(f"interleave is {size}, expected 0 or {', '.join(map(str, SIZES))}")
    if given is not None:
        raise ValueError(f"argument '{gated[1]}' was given with interleave, expected one tensor of both")
    return Interleaved(size, *gated)


def fit(p: Plan, shape: tuple[int, int], producer: Producer, cpu: bool) -> bool:
    """Whether one kernel quantizes both halves of an output: no block has elements of both, no scales have padding
    beside them, and no tile ends past its half."""
    if shape[1] % (2 * COLUMNS) or p.extent(shape)[1] != shape[1] or p.row_blocks:
        return False
    n = shape[1] // 2
    tiles = [part.tile(n, producer, cpu) for part in p.parts(producer, cpu)]
    if producer.whole_rows:
        return all(one.cols == n for one in tiles)
    # A GPU takes wide squares in parts, and has no room for narrower ones.
    return cpu or all(n % one.cols == 0 or one.rows * one.cols <= 2 * GPU_TRANSPOSED for one in tiles)


def tile(of_half: Tile, n: int) -> Tile:
    """A tile that ends where a half of `n` columns does."""
    cols = of_half.cols
    while n % cols:
        cols //= 2
    return Tile(of_half.rows, cols)


def outputs(out: Any, interleave: Interleaved | None) -> dict[str, Any]:
    """The halves of plain output, as kernel arguments."""
    if interleave is not None:
        return interleave.outputs(out)
    array = describe_argument("out", out)
    assert array is not None and array.dtype is not None
    half = array.shape[1] // 2
    left = dataclasses.replace(array, shape=(array.shape[0], half))
    return {"out": left, "right": dataclasses.replace(left, pointer=array.pointer + half * array.dtype.bits // 8)}
