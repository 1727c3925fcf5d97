"""Expressions: names, attributes, operators, subscripts."""

from __future__ import annotations

import ast
import builtins
import operator
import types as python_types
from typing import Any

from .. import language, types
from ..errors import suggest
from .arithmetic import binary, fold, unary
from .captures import check_captured
from .frame import Walk, unsupported
from .hints import hint_of_attribute, hint_of_name
from .identity import ATOMS, MISSING, is_configuration, is_elementary, is_plain
from .parts import reject_in_parts
from .slices import subscript
from .values import (
    RUNTIME,
    Method,
    Problem,
    Scalar,
    Struct,
    TensorArg,
    Tile,
    Undefined,
    as_sequence,
    describe,
    is_constexpr,
)

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
TILE_ATTRIBUTES = ("shape", "dtype", "ndim", "T", "to")


class Expressions(Walk):
    """Evaluates expressions."""

    def eval(self, node: ast.expr, context: str = "eval") -> Any:
        """The value of an expression; errors point to the innermost expression at fault.

        In the context "test" only its truth matters, in "discard" nothing but what it does; in "assigned" it may be
        Undefined.
        """
        # Most expressions are names and constants, which make no operation: they need no place.
        if isinstance(node, ast.Name):
            value = self.frames[-1].names.get(node.id, MISSING)
            if value is not MISSING and not isinstance(value, Undefined):
                return value
        elif isinstance(node, ast.Constant) and type(node.value) in ATOMS:
            return node.value
        method = self.method(context, type(node))
        before = self.e.at
        self.e.at = self.frames[-1], node
        try:
            if method is None:
                raise unsupported(node)
            return method(self, node)
        except Problem as problem:
            raise self.error(problem.node or node, problem.message) from None
        except RecursionError:
            raise self.error(node, "expression or call is nested too deeply") from None
        finally:
            self.e.at = before

    def eval_Constant(self, node: ast.Constant) -> Any:  # `eval` has those that there are
        raise Problem(f"found {node.value!r}, expected a number, a string, None or a bool")

    def eval_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.eval(value)) for value in node.values)

    def eval_FormattedValue(self, node: ast.FormattedValue) -> str:
        value = self.eval(node.value)
        spec = self.eval(node.format_spec) if node.format_spec is not None else ""
        if not is_constexpr(value):
            raise Problem(f"found {describe(value)} in a string, expected a constexpr", node=node.value)
        text = repr(value) if node.conversion == ord("r") else value
        return fold(format, text, spec)

    # ---- names

    def eval_Name(self, node: ast.Name) -> Any:
        name, frame = node.id, self.frame
        undefined = frame.names.get(name)
        if isinstance(undefined, Undefined):
            raise Problem(f"'{name}' {undefined.why}")
        if name in frame.source.local_names:
            raise Problem(f"'{name}' is read before it is assigned")
        value = frame.callee.outside.get(name, MISSING)
        if value is MISSING:
            function = frame.source.function
            known = {*frame.names, *function.__globals__, *function.__code__.co_freevars, *dir(builtins)}
            raise Problem(f"'{name}' is not defined{suggest(name, known)}")
        return check_captured(name, value)

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        base, name = self.eval(node.value), node.attr
        if isinstance(base, RUNTIME):
            return self._attribute(base, name)
        outside = isinstance(base, (python_types.ModuleType, type)) or is_configuration(base)
        if not is_constexpr(base) or not (outside or is_plain(base)) or name.startswith("__"):
            raise Problem(f"{describe(base)} has no attribute '{name}'")
        value = self.captures.attribute(base, name) if outside else getattr(base, name, MISSING)
        if value is MISSING:
            what = f"module '{base.__name__}'" if isinstance(base, python_types.ModuleType) else describe(base)
            hint = hint_of_name(name) if base is language else ""
            public = [known for known in dir(base) if not known.startswith("_")]
            raise Problem(f"{what} has no attribute '{name}'{hint or suggest(name, public)}")
        return value if is_elementary(value) else check_captured(ast.unparse(node), value)

    def _attribute(self, base: Any, name: str) -> Any:
        """An attribute of what is known at run time."""
        match base:
            case Tile() if name == "T":
                reject_in_parts(self.e, ".T")
                if len(base.shape) != 2:
                    raise Problem(f".T of {describe(base)}, expected rank 2")
                return self.e.tile("quant.transpose", [base])
            case Tile() | Scalar() if name == "to":
                return Method(base, name)
            case Tile() | Scalar() if name == "dtype":
                return base.dtype
            case Tile() if name == "shape":
                reject_in_parts(self.e, "the shape of a tile (of rows, dl.row_length annotates a parameter)")
                return base.shape
            case Tile() if name == "ndim":
                return len(base.shape)
            case TensorArg() if name == "shape":
                return tuple(self.extent(base, d) for d in range(base.type.rank))
            case TensorArg() if name == "dtype":
                return base.type.dtype
            case TensorArg() if name == "ndim":
                return base.type.rank
            case Struct():
                if name not in base.fields:
                    hint = suggest(name, base.fields)
                    raise Problem(f"{describe(base)} has no field '{name}', expected {', '.join(base.fields)}{hint}")
                return base.fields[name]
            case Tile() | Scalar() | TensorArg():
                known = {"Tile": TILE_ATTRIBUTES, "Scalar": ("dtype", "to"), "TensorArg": ("shape", "dtype", "ndim")}
                names = known[type(base).__name__]
                hint = hint_of_attribute(name)
                if isinstance(base, TensorArg) and (hint or name in TILE_ATTRIBUTES):
                    hint = ": read it with dl.load"
                hint = hint or suggest(name, names)
                raise Problem(f"{describe(base)} has no attribute '{name}', expected {', '.join(names)}{hint}")
        raise Problem(f"{describe(base)} has no attribute '{name}'")

    def extent(self, tensor: TensorArg, d: int) -> Any:
        """An extent of an argument: a constexpr where static, else an index scalar."""
        extent = tensor.type.shape[d]
        if extent is not None:
            return extent
        dim = self.e.scalar(d, types.index)
        return Scalar(self.e.op("memref.dim", [tensor, dim], result=types.index.mlir), types.index)

    # ---- operators

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self.eval(node.left), self.eval(node.right)
        return binary(self.e, SYMBOLS[type(node.op)], a, b)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return unary(self.e, SYMBOLS[type(node.op)], self.eval(node.operand))

    # ---- tuples and subscripts

    def eval_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.expand(node.elts))

    def expand(self, nodes: list[ast.expr]) -> list[Any]:
        """Values of a list of expressions, `*tuple` among them."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items = as_sequence(self.eval(node.value))
                if not isinstance(items, tuple):
                    raise Problem(f"'*' of {describe(items)}, expected a tuple", node=node)
                values += items
            else:
                values.append(self.eval(node))
        return values

    def eval_Slice(self, node: ast.Slice) -> slice:
        parts = [None if part is None else self.eval(part) for part in (node.lower, node.upper, node.step)]
        for part in parts:
            if not is_constexpr(part):
                raise Problem(f"found {describe(part)} in a slice, expected constexprs")
        return slice(*parts)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        shape_of = self._shape_owner(node.value)
        base = shape_of if shape_of is not None else as_sequence(self.eval(node.value))
        key = self.eval(node.slice)
        if shape_of is not None:
            dims = range(shape_of.type.rank)
            self._require_constexpr(key, node)
            if isinstance(key, int) and key not in range(-len(dims), len(dims)):
                raise Problem(f"found dimension {key}, expected {describe(shape_of)} of rank {len(dims)} to have it")
            chosen = fold(operator.getitem, dims, key)
            return (
                self.extent(shape_of, chosen)
                if isinstance(chosen, int)
                else tuple(self.extent(shape_of, d) for d in chosen)
            )
        if isinstance(base, TensorArg):
            raise Problem(f"'[]' of {describe(base)}, expected dl.load(x, offset, shape)")
        if isinstance(base, Tile):
            return subscript(self.e, base, key)
        if isinstance(base, (tuple, str, range)):
            self._require_constexpr(key, node)
            return fold(operator.getitem, base, key)
        raise Problem(f"'[]' of {describe(base)}, expected a tuple or a shape")

    def _shape_owner(self, node: ast.expr) -> TensorArg | None:
        """The tensor of `x.shape`, whose entries are read one by one."""
        if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
            owner = self.frame.names.get(node.value.id)
            return owner if isinstance(owner, TensorArg) else None
        return None

    def _require_constexpr(self, key: Any, node: ast.Subscript) -> None:
        if not is_constexpr(key):
            raise Problem(f"index is {describe(key)}, expected a constexpr", node=node.slice)
