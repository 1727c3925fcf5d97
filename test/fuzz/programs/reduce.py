"""Shrinks a program that fails: fewer statements, simpler expressions, smaller shapes, plainer arguments.

A change is kept where the program still fails in the same way, and still does not depend on the order in which programs
of the grid run (or it would be a race, whose outcome means nothing).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
import re
import time
from collections.abc import Callable, Iterator

from .driver import Worker
from .execute import Outcome
from .program import HEADER, Argument, Program

#: changes(program, start): (place, changed program) from a place on.
Changes = Callable[[Program, int], Iterator[tuple[int, Program]]]


def signature(outcome: Outcome) -> tuple[str, str]:
    """What must stay the same: the kind, and of messages the words without names and numbers."""
    if outcome.kind in ("mismatch", "hang", "slow"):
        return outcome.kind, ""
    first = outcome.detail.splitlines()[0] if outcome.detail else ""
    return outcome.kind, re.sub(r"'[^']*'|0x[0-9a-f]+|\(.*?\)|<.*?>|[\d:.]+", "", first)[:80]


def reduce(program: Program, target: str, outcome: Outcome, limit: float, budget: float = 300) -> tuple[Program, str]:
    """The smallest program found in so many seconds that fails like this one on a target, and what it does."""
    wanted = signature(outcome)
    worker = Worker(limit)
    end = time.monotonic() + budget
    detail = outcome.detail

    def fails(candidate: Program) -> bool:
        nonlocal detail
        job = {"source": candidate.source, "spec": candidate.spec(), "targets": [target], "ordered": True}
        found = worker.run(job).get(target)
        if found is None or signature(found) != wanted:
            return False
        detail = found.detail
        return True

    try:
        again = True
        while again and time.monotonic() < end:
            again = False
            for changes in (_each(_plainer), _fewer_statements, _simpler_expressions, _each(_smaller)):
                program, changed = _exhaust(program, changes, fails, end)
                again |= changed
        return program, detail
    finally:
        worker.stop()


def _exhaust(program: Program, changes: Changes, fails: Callable[[Program], bool], end: float) -> tuple[Program, bool]:
    """Takes changes for as long as one is kept; after each goes on from its place."""
    changed, place = False, 0
    while True:
        for at, candidate in changes(program, place):
            if time.monotonic() > end:
                return program, changed
            if fails(candidate):
                program, place, changed = candidate, at, True
                break
        else:
            return program, changed


def _prune(program: Program) -> Program:
    """Without arguments, numbers, constexprs and helpers that nothing names."""
    tree = ast.parse(program.source)
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    kernel = functions[program.kernel]

    def names(function: ast.FunctionDef) -> set[str]:
        return {n.id for statement in function.body for n in ast.walk(statement) if isinstance(n, ast.Name)}

    used, pending = names(kernel), [kernel]
    for function in pending:
        pending += [functions[n] for n in names(function) if n in functions and functions[n] not in pending]
    tree.body = [s for s in tree.body if not isinstance(s, ast.FunctionDef) or s in pending]
    kernel.args.args = [a for a in kernel.args.args if a.arg in used]
    kept = {a.arg for a in kernel.args.args}
    return dataclasses.replace(
        program,
        source=_text(tree),
        arguments=[a for a in program.arguments if a.name in kept],
        numbers={n: v for n, v in program.numbers.items() if n in kept},
        constants={n: v for n, v in program.constants.items() if n in kept},
    )


def _text(tree: ast.Module) -> str:
    body = [s for s in tree.body if not isinstance(s, ast.Import)]
    return HEADER + "\n" + "\n\n\n".join(ast.unparse(s) for s in body) + "\n"


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module):
            continue
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and statements:
                yield statements


def _each(changes: Callable[[Program], Iterator[Program]]) -> Changes:
    def numbered(program: Program, start: int) -> Iterator[tuple[int, Program]]:
        yield from itertools.islice(enumerate(changes(program)), start, None)

    return numbered


def _changed(
    program: Program, edit: Callable[[ast.Module, int], bool | None], start: int
) -> Iterator[tuple[int, Program]]:
    """`edit(tree, i)` for i from a place on until it says None; what has no effect is left out."""
    for i in itertools.count(start):
        tree = ast.parse(program.source)
        took = edit(tree, i)
        if took is None:
            return
        if took:
            try:
                candidate = _prune(dataclasses.replace(program, source=ast.unparse(ast.fix_missing_locations(tree))))
            except (SyntaxError, ValueError):
                candidate = program
            if candidate.source != program.source:
                yield i, candidate


def _fewer_statements(program: Program, start: int) -> Iterator[tuple[int, Program]]:
    def edit(tree: ast.Module, i: int) -> bool | None:
        places = [(block, k) for block in _blocks(tree) for k in range(len(block))]
        if i >= 3 * len(places):
            return None
        block, k = places[-1 - i // 3]
        statement = block[k]
        if i % 3 == 0:
            block[k : k + 1] = [] if len(block) > 1 else [ast.Pass()]
        elif i % 3 == 1 and isinstance(statement, ast.If):
            block[k : k + 1] = statement.body
        elif i % 3 == 2 and isinstance(statement, ast.If) and statement.orelse:
            block[k : k + 1] = statement.orelse
        elif i % 3 == 1 and isinstance(statement, ast.For):
            block[k : k + 1] = [ast.Assign([statement.target], ast.Constant(0), lineno=0), *statement.body]
        else:
            return False
        return True

    yield from _changed(program, edit, start)


def _expressions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None]]:
    """Places of expressions: (node, field, place in a list), those near the root first."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.arguments, ast.Module)):
            continue
        for field, value in ast.iter_fields(node):
            if field in ("decorator_list", "targets", "target", "func", "ctx", "annotation"):
                continue
            if isinstance(value, ast.expr):
                found.append((node, field, None))
            elif isinstance(value, list):
                found += [(node, field, k) for k, item in enumerate(value) if isinstance(item, ast.expr)]
    return found


def _simpler(node: ast.expr) -> list[ast.expr]:
    """What an expression could be instead: its parts, or a number."""
    parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    if isinstance(node, ast.Call):
        parts = list(node.args)
        if isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and node.func.value.id == "dl"
        ):
            parts.insert(0, node.func.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("dl", "dither"):
        return []
    numbers: list[ast.expr] = []
    if not isinstance(node, (ast.Constant, ast.Tuple)):
        numbers = [ast.Constant(0), ast.Constant(1), ast.Constant(1.0)]
    return [*parts, *numbers]


def _simpler_expressions(program: Program, start: int) -> Iterator[tuple[int, Program]]:
    count = max(len(_simpler(_at(place))) for place in _expressions(ast.parse(program.source)))

    def edit(tree: ast.Module, i: int) -> bool | None:
        places = _expressions(tree)
        if i >= count * len(places):
            return None
        node, field, k = places[i // count]
        choices = _simpler(_at((node, field, k)))
        if i % count >= len(choices):
            return False
        if k is None:
            setattr(node, field, choices[i % count])
        else:
            getattr(node, field)[k] = choices[i % count]
        return True

    yield from _changed(program, edit, start)


def _at(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    node, field, k = place
    value = getattr(node, field)
    return value if k is None else value[k]


def _plainer(program: Program) -> Iterator[Program]:
    """Fewer programs, plain memory, plain numbers."""
    for axis in range(3):
        if program.grid[axis] > 1:
            grid = list(program.grid)
            grid[axis] = 1
            yield dataclasses.replace(program, grid=(grid[0], grid[1], grid[2]))
    if program.num_warps is not None:
        yield dataclasses.replace(program, num_warps=None)
    if program.shapes is not None:
        source = re.sub(r"@dither\.jit\(shapes=.*?\)", "@dither.jit", program.source)
        yield dataclasses.replace(program, source=source, shapes=None)
    for i, a in enumerate(program.arguments):
        changes: list[Argument] = []
        if a.shift:
            changes.append(dataclasses.replace(a, shift=0))
        if a.gap:
            changes.append(dataclasses.replace(a, gap=0))
        if a.shapes:
            changes.append(dataclasses.replace(a, shapes=None))
        if a.fill != "normal":
            changes.append(dataclasses.replace(a, fill="normal"))
        for b in changes:
            yield dataclasses.replace(program, arguments=[*program.arguments[:i], b, *program.arguments[i + 1 :]])
    for name, value in program.numbers.items():
        for other in (0, 1, 2) if isinstance(value, int) else (0.0, 1.0):
            if repr(other) != repr(value) and (not isinstance(value, int) or abs(other) < abs(value)):
                yield dataclasses.replace(program, numbers={**program.numbers, name: other})
    for name, value in program.constants.items():
        text = value if isinstance(value, str) and value.startswith("dither.") else repr(value)
        yield _prune(dataclasses.replace(program, source=_replace_name(program.source, name, text)))
        if "with_" in text:
            yield dataclasses.replace(program, constants={**program.constants, name: text.split(".with_")[0]})


def _replace_name(source: str, name: str, text: str) -> str:
    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(text, mode="eval").body if node.id == name else node

    return ast.unparse(Names().visit(ast.parse(source)))


def _smaller(program: Program) -> Iterator[Program]:
    """An extent everywhere at once, then extents of arguments."""
    tree = ast.parse(program.source)
    numbers = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1}
    for old in sorted(numbers, reverse=True):
        for new in (n for n in dict.fromkeys((1, 2, 4, 16, 32, old // 2, old - 1)) if n < old):
            changed = copy.deepcopy(tree)
            for node in ast.walk(changed):
                if isinstance(node, ast.Constant) and type(node.value) is int and node.value == old:
                    node.value = new
            arguments = [
                dataclasses.replace(a, shape=tuple(n // old * new if n % old == 0 else n for n in a.shape))
                for a in program.arguments
            ]
            yield dataclasses.replace(program, source=_text(changed), arguments=arguments)
    for i, a in enumerate(program.arguments):
        for d, n in enumerate(a.shape):
            for extent in (e for e in dict.fromkeys((1, 2, n // 2, n - 1)) if 0 < e < n):
                b = dataclasses.replace(a, shape=(*a.shape[:d], extent, *a.shape[d + 1 :]))
                yield dataclasses.replace(program, arguments=[*program.arguments[:i], b, *program.arguments[i + 1 :]])
