"""Values that a condition decides: `and`, `or`, conditional expressions, chains of comparisons.

Each operand is evaluated where Python would evaluate it: behind a condition that is known at run time only, in
a branch. Where neither side writes memory both are computed and one is chosen, which nobody can tell apart.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .. import types
from ..data_classes import dataclass
from ..types import DType
from .arithmetic import binary, broadcast_shape, common_dtype, fold, require_number, to_scalar, to_tile, unary
from .expressions import SYMBOLS, Expressions
from .identity import is_configuration
from .values import Problem, Scalar, TensorArg, Tile, describe, is_constexpr, is_number


@dataclass(frozen=True)
class Leaf:
    """What two values become that differ: a tile, or a scalar where `shape` is None."""

    dtype: DType
    shape: tuple[int, ...] | None


class Branches(Expressions):
    """Evaluates expressions with operands that may not be evaluated."""

    def test(self, node: ast.expr) -> bool | Scalar:
        """A condition: decided while compiling, or a bool at run time."""
        value = self.eval(node, "test")
        if isinstance(value, bool):
            return value
        return fold(bool, value) if is_constexpr(value) else self.condition(value, node, "condition")

    def condition(self, value: Any, node: ast.expr, what: str) -> Scalar:
        """A runtime value as a bool scalar."""
        if isinstance(value, Scalar):
            return self.e.convert(value, types.bool_)
        hint = ""
        if isinstance(value, Tile):
            hint = ": use '&', '|' and '~'" if "operand" in what else ": use dl.where to choose elements"
        raise Problem(f"{what} is {describe(value)}, expected a scalar or a constexpr{hint}", node=node)

    # ---- and, or

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._connect(node, node.values, "eval")

    def test_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._connect(node, node.values, "test")

    def discard_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._connect(node, node.values, "discard")

    def test_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            return self.eval_UnaryOp(node)
        return unary(self.e, "not", self.eval(node.operand, "test"))

    def _connect(self, node: ast.BoolOp, values: list[ast.expr], context: str) -> Any:
        """`a and b and ..`: the first operand that decides, else the last one."""
        first, *rest = values
        is_or = isinstance(node.op, ast.Or)
        what = f"operand of '{'or' if is_or else 'and'}'"
        value = self.eval(first, context if not rest else "eval" if context == "eval" else "test")
        if is_constexpr(value):
            if not rest or fold(bool, value) == is_or:
                return fold(bool, value) if context == "test" else value
            return self._connect(node, rest, context)
        flag = self.condition(value, first, what)
        if context != "eval":
            value = flag
        if not rest:
            return value

        def decided() -> Any:
            return value

        def others() -> Any:
            return self._connect(node, rest, context)

        return self.choose(flag, decided, others, context) if is_or else self.choose(flag, others, decided, context)

    # ---- a if c else b

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        return self._conditional(node, "eval")

    def test_IfExp(self, node: ast.IfExp) -> Any:
        return self._conditional(node, "test")

    def discard_IfExp(self, node: ast.IfExp) -> Any:
        return self._conditional(node, "discard")

    def _conditional(self, node: ast.IfExp, context: str) -> Any:
        flag = self.test(node.test)
        if isinstance(flag, bool):
            return self.eval(node.body if flag else node.orelse, context)

        def evaluate(side: ast.expr) -> Any:
            value = self.eval(side, context)
            if context == "test" and not is_constexpr(value):
                return self.condition(value, side, "condition")
            return fold(bool, value) if context == "test" else value

        return self.choose(flag, lambda: evaluate(node.body), lambda: evaluate(node.orelse), context)

    # ---- a < b < c

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.eval(node.left)
        if len(node.ops) == 1:
            return binary(self.e, SYMBOLS[type(node.ops[0])], left, self.eval(node.comparators[0]))
        return self._chain(left, node.ops, node.comparators)

    def _chain(self, left: Any, ops: list[ast.cmpop], comparators: list[ast.expr]) -> Any:
        right = self.eval(comparators[0])
        value = binary(self.e, SYMBOLS[type(ops[0])], left, right)
        if len(ops) == 1 or (is_constexpr(value) and not fold(bool, value)):
            return value

        def rest() -> Any:
            return self._chain(right, ops[1:], comparators[1:])

        if is_constexpr(value):
            return rest()
        if isinstance(value, Tile):  # element by element, there is no condition
            return binary(self.e, "&", value, rest())
        return self.choose(value, rest, lambda: False, "eval")

    # ---- a branch

    def choose(self, flag: Scalar, then: Callable[[], Any], orelse: Callable[[], Any], context: str) -> Any:
        """What `then` or `orelse` gives, each evaluated only where `flag` says so."""
        builder = self.e.builder
        builder.begin_if(flag.ir, self.e.loc)
        sides: list[Any] = []
        for branch, evaluate in enumerate((then, orelse)):
            builder.select_branch(branch)
            with self.e.block():
                sides.append(evaluate())
        if context == "discard":
            builder.end_if([], [])
            return None
        if context == "test":
            # Where both sides say the same, the branch is one that Python compiles nothing of (`flag and 0`), and
            # whose names it does not read.
            first, second = (side if side is not flag else branch == 0 for branch, side in enumerate(sides))
            if isinstance(first, bool) and first is second:
                builder.end_if([], [])
                return first
        template = self._common(*sides)
        pairs = [(leaf, a, b) for leaf, a, b in _leaves(template, *sides)]
        if builder.inline_if():
            chosen = [self._select(flag, self._become(a, leaf), self._become(b, leaf)).ir for leaf, a, b in pairs]
        else:
            yields: list[list[Any]] = []
            for branch in (0, 1):
                builder.select_branch(branch)
                with self.e.block():
                    yields.append([self._become(pair[1 + branch], pair[0]).ir for pair in pairs])
            chosen = builder.end_if(*yields)
        return _rebuild(template, iter(chosen))

    def _select(self, flag: Scalar, a: Any, b: Any) -> Any:
        if a is flag:
            return binary(self.e, "|", flag, b)
        if b is flag:
            return binary(self.e, "&", flag, a)
        return self.e.elementwise("arith.select", [flag, a, b])

    def _common(self, a: Any, b: Any) -> Any:
        """The common form of two values: a Leaf in place of what differs."""
        if a is b or same_constexpr(a, b):
            return a
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self._common(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, Tile) and isinstance(b, Tile) and (a.dtype, a.shape) == (b.dtype, b.shape):
            return Leaf(a.dtype, a.shape)
        for value in (a, b):
            if isinstance(value, TensorArg):
                require_number(value, "value behind a condition")
        if not is_number(a) or not is_number(b):
            raise Problem(f"found {describe(a)} or {describe(b)}, expected one type whatever the condition is")
        shapes = [value.shape for value in (a, b) if isinstance(value, Tile)]
        dtype = common_dtype(self.e, [a, b])
        return Leaf(dtype, broadcast_shape(shapes, "a condition") if shapes else None)

    def _become(self, value: Any, leaf: Leaf) -> Any:
        if leaf.shape is None:
            return to_scalar(self.e, value, leaf.dtype)
        return to_tile(self.e, value, leaf.shape, leaf.dtype)


def same_constexpr(a: Any, b: Any) -> bool:
    """Whether two values are equal constexprs of one type."""
    if is_configuration(a) or is_configuration(b):
        return a is b  # equal is what their authors call so
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_constexpr(x, y) for x, y in zip(a, b, strict=True))
    if not is_constexpr(a) or not is_constexpr(b) or type(a) is not type(b):
        return False
    return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)


def _leaves(template: Any, a: Any, b: Any) -> Iterator[tuple[Leaf, Any, Any]]:
    """The pairs of values that differ."""
    if isinstance(template, Leaf):
        yield template, a, b
    elif isinstance(template, tuple) and template is not a:
        for inner, x, y in zip(template, a, b, strict=True):
            yield from _leaves(inner, x, y)


def _rebuild(template: Any, values: Iterator[Any]) -> Any:
    """A template with IR values in place of its leaves."""
    if isinstance(template, tuple):
        return tuple(_rebuild(item, values) for item in template)
    if not isinstance(template, Leaf):
        return template
    if template.shape is None:
        return Scalar(next(values), template.dtype)
    return Tile(next(values), template.dtype, template.shape)
