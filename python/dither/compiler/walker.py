"""Statements."""

from __future__ import annotations

import ast
from typing import Any

from .arithmetic import binary
from .control import Control
from .expressions import SYMBOLS
from .frame import Exit, unsupported
from .values import Problem, Scalar, Tile, as_sequence, describe


class Walker(Control):
    """Lowers the body of a kernel and of what it calls."""

    def run(self, statements: list[ast.stmt]) -> Exit:
        for statement in statements:
            way = self.statement(statement)
            if way is not Exit.NEXT:
                return way
        return Exit.NEXT

    def statement(self, node: ast.stmt) -> Exit:
        method = self.method("run", type(node))
        before = self.e.at
        self.e.at = self.frames[-1], node
        try:
            if method is None:
                raise unsupported(node)
            return method(self, node) or Exit.NEXT
        except Problem as problem:
            raise self.error(problem.node or node, problem.message) from None
        finally:
            self.e.at = before

    def run_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def run_Break(self, node: ast.Break) -> Exit:
        return Exit.BREAK

    def run_Continue(self, node: ast.Continue) -> Exit:
        return Exit.CONTINUE

    def run_Return(self, node: ast.Return) -> Exit:
        self.frame.result = None if node.value is None else self.eval(node.value)
        if len(self.frames) == 1 and self.frame.result is not None:
            raise Problem("a kernel returns nothing, expected results to be written with dl.store", node=node.value)
        return Exit.RETURN

    def run_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        self.eval(node.value, "discard")

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value, "assigned")
        for target in node.targets:
            self.assign(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value, "assigned"))

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.assign(node.target, None)  # raises: only names are assigned
            return
        value = binary(self.e, SYMBOLS[type(node.op)], self.eval(node.target), self.eval(node.value))
        self.assign(node.target, value)

    def assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name():
                self.frame.names[target.id] = value
                if isinstance(value, (Tile, Scalar)):
                    value.ir.set_name(target.id)
            case ast.Tuple() | ast.List():
                value = as_sequence(value)
                if not isinstance(value, (tuple, str, range)):
                    raise Problem(f"found {describe(value)}, expected a tuple of {len(target.elts)}", node=target)
                starred = next((inner for inner in target.elts if isinstance(inner, ast.Starred)), None)
                if starred is not None:
                    self.assign(starred, None)  # which is an error, whatever the number of values
                if len(value) != len(target.elts):
                    raise Problem(f"found {len(value)} values, expected {len(target.elts)}", node=target)
                for inner, item in zip(target.elts, value, strict=True):
                    self.assign(inner, item)
            case ast.Subscript():
                raise Problem(
                    "assignment to elements is not supported in a kernel: "
                    "tiles are values, choose elements with dl.where and write memory with dl.store",
                    node=target,
                )
            case ast.Attribute():
                raise Problem(
                    "assignment to an attribute is not supported in a kernel: assign to a variable", node=target
                )
            case _:
                raise Problem("'*' in an assignment is not supported in a kernel: name the elements", node=target)
