"""What `dither.fuse` asks of the language; no part of `dl`."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin


@Builtin
def begin_producer(whole_rows: bool, columns: Any) -> None:
    """What follows, up to `fused_results`, is a producer's, and sees parts of a tensor with so many columns."""


@Builtin
def fused_results(result: Any, producer: Any, kinds: Any, rows: int, cols: int) -> Any:
    """What a producer returns, as a tuple of the output and what it saves, checked: a (rows, cols) tile and, for each
    of `kinds`, a tile or a column."""


@Builtin
def vanishes(t: Any, axis: int, roles: Any, values: Any) -> Any:
    """Whether `t` is zero, or NaN, past the edge of a tensor along `axis` because of what it is made of: the arguments
    of a producer, which are zero there in these roles. False where that is not known."""
