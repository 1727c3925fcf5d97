"""What a function that `dither.fuse` was given gets and may return."""

from __future__ import annotations

import ast
from typing import Any

from .. import types
from ..errors import CompileError
from .builtins import handles
from .captures import function_of
from .emit import Emitter
from .parts import Part, inside, rows_inside
from .source import read_source
from .values import Problem, Scalar, Tile, describe


@handles("begin_producer")
def begin_producer(
    e: Emitter,
    whole_rows: bool,
    columns: Any,
    shape: tuple[int, int],
    at: tuple[Any, Any],
    rows_left: Any,
    cols_left: Any,
    roles: Any,
    values: Any,
) -> Part:
    if whole_rows and not isinstance(columns, int):
        raise Problem("the length of rows is known at run time, expected a tensor whose class of shapes is not dynamic")
    zeros: tuple[list[tuple[Any, int]], list[tuple[Any, int]]] = ([], [])
    for (role, _), value in zip(roles, values, strict=True):
        if value is None:
            continue
        if role == "periodic":
            zeros[0].append((value.ir, 0))
        for axis, alone in enumerate(("column", "row")):
            if role in ("tile", "even", "odd"):
                zeros[axis].append((value.ir, axis))
            elif role == alone:
                zeros[axis].append((value.ir, 0))
    e.part = Part(shape, at, columns, columns if whole_rows else None, (rows_left, cols_left), zeros)
    return e.part


@handles("fused_results")
def fused_results(
    e: Emitter, result: Any, producer: Any, kinds: Any, rows: int, cols: int, halves: bool
) -> tuple[Any, ...]:
    # What follows is the operator's own, and exact.
    e.part, e.fast = None, False
    found = result if kinds and isinstance(result, tuple) else (result,)
    if len(found) != 1 + len(kinds):
        raise _wrong(producer, describe(result), f"a tuple of {1 + len(kinds)}: the output, and what it saves")
    out, *saved = found
    if halves and not (isinstance(out, tuple) and len(out) == 2):
        raise _wrong(producer, describe(out), "a pair of tiles: the left and the right half of the output")
    tiles = tuple(_checked(e, tile, (rows, cols), producer) for tile in (out if halves else (out,)))
    shapes = [(rows, 1) if kind == "column" else (rows, cols) for kind in kinds]
    return tiles, *(_checked(e, tile, shape, producer) for tile, shape in zip(saved, shapes, strict=True))


handles("inside")(inside)
handles("rows_inside")(rows_inside)


@handles("tile_id")
def tile_id(e: Emitter, count: int) -> Scalar:
    return Scalar(e.op("quant.tile_id", [], {"count": f"{count} : i64"}, "index"), types.index)


@handles("first_part")
def first_part(e: Emitter, condition: Scalar) -> Scalar:
    return Scalar(e.op("quant.first_part", [condition], None, "i1"), condition.dtype)


def _checked(e: Emitter, value: Any, shape: tuple[int, int], producer: Any) -> Tile:
    """A tile of float32; functions may give 16-bit floats as well."""
    if not isinstance(value, Tile) or not value.dtype.is_float or value.shape != shape:
        hint = ""
        if isinstance(value, tuple):
            hint = ": what it returns besides its output is named in saves= of dither.fuse"
        raise _wrong(producer, describe(value), f"a tile of floats of shape {shape}{hint}")
    return e.widen(value)


def _wrong(producer: Any, found: str, expected: str) -> CompileError:
    function = function_of(producer)
    assert function is not None
    source = read_source(function)
    returns = [node for node in ast.walk(source.node) if isinstance(node, ast.Return)]
    span = source.span(returns[0]) if len(returns) == 1 else source.header()
    return CompileError(f"{function.__name__} gives {found}, expected {expected}", span)
