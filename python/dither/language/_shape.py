"""Tiles made of numbers, and other shapes of tiles."""

from __future__ import annotations

from typing import Any

from ..types import DType, float32
from ._builtin import Builtin


@Builtin
def arange(n: int) -> Any:
    """0, 1, .. n - 1 as an int32 tile of shape (n,)."""


@Builtin
def full(shape: Any, value: Any, dtype: DType = float32) -> Any:
    """A tile of this shape filled with a number, which becomes `dtype` as by `.to`."""


@Builtin
def zeros(shape: Any, dtype: DType = float32) -> Any:
    """A tile of zeros."""


@Builtin
def reshape(t: Any, shape: Any) -> Any:
    """The same elements with dimensions of extent 1 inserted or dropped."""


@Builtin
def broadcast_to(t: Any, shape: Any) -> Any:
    """Dimensions of extent 1 (or a scalar) repeated to this shape."""


@Builtin
def repeat(t: Any, count: int, axis: int) -> Any:
    """Every element `count` times, one after the other along an axis; as `numpy.repeat`:

        s = dl.repeat(s, 16, axis=0)  # a scale for each of the 16 rows of a block

    `count` is a power of two.
    """


@Builtin
def concat(tiles: Any, axis: int) -> Any:
    """Tiles side by side along an axis.

    Their other extents are equal; of several data types it takes the one that operators take. Rows whose halves are
    exchanged:

        half = dl.concat((t[:, 64:], t[:, :64]), axis=1)
    """


@Builtin
def cycle(t: Any, columns: int | None = None) -> Any:
    """The columns of `t` again and again, up to `columns`, a multiple of its own; as `numpy.tile`:

        c = dl.cycle(c, 128)  # the same for each head

    In a function of `dither.fuse` `columns` is left out: they are as many as the tile has that it sees.
    """


@Builtin
def rotate_half(t: Any, size: int) -> Any:
    """The halves of each `size` columns exchanged, the one that comes first then negated: (a, b) becomes (-b, a).

    It is the part of a rotation by an angle that the sine goes with; `size` is even. Of neighbours, and of heads of
    64 columns:

        pairs = t * c + dl.rotate_half(t, 2) * s
        heads = t * c + dl.rotate_half(t, 64) * s
    """
