"""What `dl.print` means: rows of a log that the launch adds to the kernel's arguments (printing.py reads them).

A record begins with a row of its site and the program's indices; the elements follow as rows of 32-bit words, then, for
integers of 64 bits, their upper halves, then the condition.
"""

from __future__ import annotations

from typing import Any

from .. import types
from ..printing import HEADER, TYPES, Site
from .arithmetic import broadcast_shape, to_tile
from .builtins import handles, program_index
from .emit import Emitter
from .memory_ops import store_tile
from .values import Problem, Scalar, Tile, describe, is_number

_WORD = types.int32


@handles("print")
def print_(e: Emitter, label: Any, value: Any, where: Any) -> None:
    if not isinstance(label, str):
        raise Problem(f"label is {describe(label)}, expected text", "label")
    if not is_number(value):
        raise Problem(f"value is {describe(value)}, expected a tile or a number", "value")
    if where is not None and (not isinstance(where, Tile) or where.dtype is not types.bool_):
        raise Problem(f"where is {describe(where)}, expected a bool tile", "where")
    shape = value.shape if isinstance(value, Tile) else ()
    if where is not None and broadcast_shape([shape, where.shape], "dl.print") != shape:
        raise Problem(f"where has shape {where.shape}, expected one that broadcasts to {shape}", "where")
    value, what = _number(e, value)
    parts = _words(e, value, shape)
    if where is not None:
        parts.append(e.convert(e.broadcast(where, shape), _WORD))
    rows, columns = (1, 1, *shape)[-2:]
    site = Site(label, shape, what, where is not None)
    number = len(e.sites)
    e.sites.append(site)
    counter, log = (e.added_argument(name, kind) for name, kind in TYPES.items())
    first = Scalar(e.op("quant.fetch_add", [e.index(site.rows), counter], None, "index"), types.index)
    for column, word in enumerate([number, *(program_index(e, "quant.program_id", axis) for axis in range(3))]):
        store_tile(e, to_tile(e, word, (1, 1), _WORD), log, [first, e.index(column)])
    for i, part in enumerate(parts):
        row = e.elementwise("arith.addi", [first, e.scalar(HEADER + i * rows, types.index)])
        store_tile(e, e.reshape(part, (rows, columns)), log, [row, e.index(0)])


def _number(e: Emitter, value: Any) -> tuple[Any, str]:
    """The value as float32, int32, int64 or a truth value in an int32, and what to write it as."""
    if isinstance(value, bool):
        value = e.scalar(value, types.bool_)
    elif isinstance(value, (int, float)):
        value = e.scalar(value, types.float32 if isinstance(value, float) else types.int64)
    if value.dtype is types.bool_:
        return e.convert(value, _WORD), "bool"
    if value.dtype is types.index or value.dtype is types.int64:
        return e.convert(value, types.int64), "int64"
    if value.dtype.is_int:
        return e.convert(value, _WORD), "int32"
    return e.convert(value, types.float32), "int8" if value.dtype is types.int8 else "float32"


def _words(e: Emitter, value: Any, shape: tuple[int, ...]) -> list[Tile]:
    """Its elements as tiles of 32-bit words, the lower ones first."""
    value = to_tile(e, value, shape, value.dtype)
    if value.dtype is types.float32:
        return [e.like("arith.bitcast", value, _WORD)]
    if value.dtype is _WORD:
        return [value]
    upper = e.elementwise("arith.shrsi", [value, e.constant_like(value, 32)])
    return [e.convert(value, _WORD), e.convert(upper, _WORD)]
