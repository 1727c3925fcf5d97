"""What the functions of the language are outside a kernel: signatures, documentation and an error."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class Builtin:
    """A function of the tile language; the compiler knows what it means by its `name`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self.signature = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"dl.{self.name} was called outside a kernel, expected a call in a function with @dither.jit, "
            "which a launch compiles"
        )

    def __repr__(self) -> str:
        return f"dl.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class HostBuiltin(Builtin):
    """A builtin that computes with Python numbers outside a kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


if TYPE_CHECKING:
    constexpr = Any
    row = Any
    column = Any
    scalar = Any
    integer = Any
    periodic = Any
    period = Any
    row_length = Any
    tile_dtype = Any
else:

    class constexpr:
        """Annotation of a parameter whose value is known while compiling: `ROWS: dl.constexpr`."""

        def __init__(self, *args: Any) -> None:
            raise TypeError("dl.constexpr annotates parameters, expected 'NAME: dl.constexpr', found a call")

    class row:
        """Annotation of a parameter of a fused function (`dither.fuse`): one number for each column, (N,)."""

    class column:
        """Annotation of a parameter of a fused function (`dither.fuse`): one number for each row, (M,)."""

    class scalar:
        """Annotation of a parameter of a fused function (`dither.fuse`): a number, or a tensor of rank 0."""

    class integer:
        """Annotation of a parameter of a fused function (`dither.fuse`): an integer of 64 bits, or an int64 tensor of
        one element."""

    class periodic:
        """Annotation of a parameter of a fused function (`dither.fuse`): numbers for the first columns of each row,
        (M, K), and, with `dl.cycle`, for the next K, and so on."""

    class period:
        """Annotation of a parameter of a fused function (`dither.fuse`): K, the columns of those annotated
        `dl.periodic`."""

    class row_length:
        """Annotation of a parameter of a fused function (`dither.fuse`): the number of columns, N."""

    class tile_dtype:
        """Annotation of a parameter of a fused function (`dither.fuse`): the data type of the first tile in memory."""


class ScaleLayout(enum.Enum):
    """Order of scales in memory."""

    linear = "linear"
    swizzle_128x4 = "swizzle_128x4"
    swizzle_8x4 = "swizzle_8x4"
    column_major = "column_major"
    packed_column_major = "packed_column_major"

    def __repr__(self) -> str:
        return f"dl.{self.value}"


linear = ScaleLayout.linear
swizzle_128x4 = ScaleLayout.swizzle_128x4
swizzle_8x4 = ScaleLayout.swizzle_8x4
column_major = ScaleLayout.column_major
packed_column_major = ScaleLayout.packed_column_major


@Builtin
def static_range(start: int, stop: int | None = None, step: int = 1) -> Any:
    """`range` over constexprs in a `for`: the loop is unrolled and its variable is a constexpr."""
