"""Which variables a loop or a branch must hand on: those that are read later.

A variable that is only a name for an intermediate result may have another shape in each branch or
iteration; it must not become a carried value.
"""

from __future__ import annotations

import ast
import functools

from ..data_classes import dataclass


@dataclass(frozen=True)
class Flow:
    """For an `if` or a `for`: variables read after it, and those read by a later iteration."""

    live_after: frozenset[str]
    live_around: frozenset[str]


Flows = dict[ast.stmt, Flow]


@functools.cache
def analyze(function: ast.FunctionDef) -> Flows:
    """The flow at every `if` and `for` of a function."""
    flows: Flows = {}
    _block(function.body, frozenset(), frozenset(), frozenset(), flows)
    return flows


def assigned(statements: list[ast.stmt]) -> frozenset[str]:
    """Names that statements assign, at any depth."""
    return frozenset().union(*(_names(statement)[1] for statement in statements))


def _reads(node: ast.AST | None) -> frozenset[str]:
    return frozenset() if node is None else _names(node)[0]


def _writes(node: ast.AST) -> frozenset[str]:
    return _names(node)[1]


@functools.lru_cache(maxsize=1024)  # the body of a loop is looked at several times
def _names(node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Names that a node reads, and those that it assigns, at any depth."""
    reads: set[str] = set()
    writes: set[str] = set()
    pending = [node]
    while pending:
        inner = pending.pop()
        if isinstance(inner, ast.Name):
            if isinstance(inner.ctx, ast.Load):
                reads.add(inner.id)
            elif isinstance(inner.ctx, ast.Store):
                writes.add(inner.id)
            continue
        for value in vars(inner).values():
            pending += [item for item in (value if type(value) is list else (value,)) if isinstance(item, ast.AST)]
    return frozenset(reads), frozenset(writes)


def _block(
    statements: list[ast.stmt],
    live: frozenset[str],
    on_break: frozenset[str],
    on_continue: frozenset[str],
    flows: Flows,
) -> frozenset[str]:
    """Variables live before the statements, given those live after them and at the ends of the loop around."""
    for statement in reversed(statements):
        match statement:
            case ast.Break():
                live = on_break
            case ast.Continue():
                live = on_continue
            case ast.Return():
                live = _reads(statement.value)
            case ast.If():
                flows[statement] = Flow(live, frozenset())
                then = _block(statement.body, live, on_break, on_continue, flows)
                orelse = _block(statement.orelse, live, on_break, on_continue, flows)
                live = _reads(statement.test) | then | orelse
            case ast.For():
                after = _block(statement.orelse, live, on_break, on_continue, flows) | live
                target = _writes(statement.target)
                around = after
                while True:
                    header = around | (_block(statement.body, around, after, around, flows) - target)
                    if header == around:
                        break
                    around = header
                flows[statement] = Flow(live, around)
                live = _reads(statement.iter) | around
            case ast.AugAssign():
                live = live | _reads(statement.value) | _writes(statement.target)
            case _:
                live = (live - _writes(statement)) | _reads(statement)
    return live
