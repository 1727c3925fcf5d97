"""Branches and loops: decided while compiling where they can be, else scf.if and scf.for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from .. import types
from ..language import Builtin, static_range
from .arithmetic import binary, to_scalar
from .branches import same_constexpr
from .calls import Calls
from .frame import Exit
from .liveness import assigned
from .parameters import parameters_of
from .values import Problem, Scalar, Tile, Undefined, as_sequence, constant_dtype, describe, is_constexpr

MAX_UNROLL = 4096


class Control(Calls):
    """Lowers `if` and `for`."""

    # ---- branches

    def run_If(self, node: ast.If) -> Exit:
        flag = self.test(node.test)
        if isinstance(flag, bool):
            return self.run(node.body if flag else node.orelse)
        self.e.builder.begin_if(flag.ir, self.location(node.test))
        before = dict(self.frame.names)
        then = self._branch(node.body)
        self.frame.names = dict(before)
        self.e.builder.select_branch(1)
        orelse = self._branch(node.orelse)
        self.frame.names = before
        self._merge(node, before, then, orelse)
        return Exit.NEXT

    def run_body(self, statements: list[ast.stmt]) -> Exit:
        """The body of a function, or what is left of it: here a branch at run time may return."""
        returning = self.frame.source.text.returning
        for i, node in enumerate(statements):
            if isinstance(node, ast.If) and node in returning:
                rest = statements[i + 1 :]
                try:
                    flag = self.test(node.test)
                    if not isinstance(flag, bool):
                        self._run_returning(node, flag, rest)
                        return Exit.RETURN
                except Problem as problem:
                    raise self.error(problem.node or node, problem.message) from None
                return self.run_body((node.body if flag else node.orelse) + rest)
            way = self.statement(node)
            if way is not Exit.NEXT:
                return way
        return Exit.NEXT

    def _run_returning(self, node: ast.If, flag: Scalar, rest: list[ast.stmt]) -> None:
        """Both branches go on to the end of the function; what they return is merged."""
        frame = self.frame
        self.e.at = self.frames[-1], node
        self.e.builder.begin_if(flag.ir, self.e.loc)
        before, results = frame.names, []
        for branch, statements in enumerate((node.body, node.orelse)):
            self.e.builder.select_branch(branch)
            frame.names, frame.result = dict(before), None
            with self.e.block():
                self.run_body(statements + rest)
            results.append(frame.result)
        yields: tuple[list[Any], list[Any]] = ([], [])
        self.e.at = self.frames[-1], node
        template = self._join("return value", results[0], results[1], node, yields)
        frame.names = before
        frame.result = rebuild(template, iter(self.e.builder.end_if(*yields)))

    def _branch(self, statements: list[ast.stmt]) -> dict[str, Any]:
        with self.e.block():
            for statement in statements:
                way = self.statement(statement)
                if way is not Exit.NEXT:
                    instead = "put the rest of the loop under the opposite condition"
                    if way is Exit.RETURN:
                        instead = "assign a variable and return it after the loop"
                    word = f"'{way.name.lower()}' in a branch"
                    raise Problem(f"{word} that is decided at run time: {instead}", node=statement)
        return self.frame.names

    def _merge(self, node: ast.If, before: dict[str, Any], then: dict[str, Any], orelse: dict[str, Any]) -> None:
        """Variables after the branch: values that differ become results of the scf.if."""
        live = self.frame.flows[node].live_after
        builder = self.e.builder
        merged: dict[str, Any] = {}
        yields: tuple[list[Any], list[Any]] = ([], [])
        for name in sorted({*then, *orelse}):
            a, b = then.get(name), orelse.get(name)
            if name in then and name in orelse and _same(a, b):
                before[name] = a
            elif name not in live:
                before[name] = Undefined(f"has no value after the 'if' at line {node.lineno}")
            elif name not in then or name not in orelse or isinstance(a, Undefined) or isinstance(b, Undefined):
                before[name] = Undefined(
                    f"is assigned in only one branch of the 'if' at line {node.lineno}: assign it before"
                )
            else:
                merged[name] = self._join(name, a, b, node, yields)
        results = iter(builder.end_if(*yields))
        for name, template in merged.items():
            before[name] = self._name(name, rebuild(template, results))

    def _join(self, name: str, a: Any, b: Any, node: ast.If, yields: tuple[list[Any], list[Any]]) -> Any:
        """A template of the merged value; what each branch yields for it is appended to `yields`."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self._join(name, x, y, node, yields) for x, y in zip(a, b, strict=True))
        if _same(a, b) and not isinstance(a, (Tile, Scalar)):  # a constexpr, or a tensor
            return a
        if _is_scalar(a) and _is_scalar(b):
            dtype = _join_dtype(a, b)
            if dtype is not None:
                for branch, value in enumerate((a, b)):
                    self.e.builder.select_branch(branch)
                    with self.e.block():
                        yields[branch].append(to_scalar(self.e, value, dtype).ir)
                return Scalar(None, dtype)
        elif isinstance(a, Tile) and isinstance(b, Tile) and a.dtype is b.dtype and a.shape == b.shape:
            yields[0].append(a.ir)
            yields[1].append(b.ir)
            return a
        where = last_store(node.orelse, name) or last_store(node.body, name) or node
        raise Problem(
            f"'{name}' is {describe(a)} in one branch and {describe(b)} in the other, expected one type", node=where
        )

    # ---- loops

    def run_For(self, node: ast.For) -> Exit:
        if node.orelse:
            raise Problem("'else' of a loop is not supported in a kernel", node=node.orelse[0])
        if isinstance(node.iter, ast.Call):
            function = self.eval(node.iter.func)
            if function is builtins.range:
                return self._loop(node, self._range_arguments(node.iter, "range"))
            if isinstance(function, Builtin) and function.name == static_range.name:
                bounds = self._range_arguments(node.iter, "dl.static_range")
                for bound in bounds:
                    if isinstance(bound, bool) or not isinstance(bound, int):
                        raise Problem(
                            f"dl.static_range of {describe(bound)}, expected constexpr integers: "
                            "use range for a loop at run time",
                            node=node.iter,
                        )
                if bounds[2] == 0:
                    raise Problem("step is 0, expected another number", node=node.iter)
                return self._unroll(node, range(*bounds))
        items = as_sequence(self.eval(node.iter))
        if not isinstance(items, (tuple, range, str)):
            raise Problem(f"'for' over {describe(items)}, expected range, dl.static_range or a tuple", node=node.iter)
        return self._unroll(node, items)

    def _range_arguments(self, call: ast.Call, name: str) -> list[Any]:
        """(start, stop, step) of a range."""
        args = self.expand(call.args)
        kwargs = {str(keyword.arg): self.eval(keyword.value) for keyword in call.keywords}
        if name == "range" or not kwargs:
            if kwargs or not 1 <= len(args) <= 3:
                raise Problem(f"{name} has {len(args) + len(kwargs)} arguments, expected 1 to 3", node=call)
            start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        else:
            start, stop, step = parameters_of(static_range).bind(name, args, kwargs).values()
            if stop is None:
                start, stop = 0, start
        return [start, stop, step]

    def _unroll(self, node: ast.For, items: Any) -> Exit:
        # The length of a range may be more than len() gives.
        count = -((items.start - items.stop) // items.step) if isinstance(items, range) else len(items)
        if count > MAX_UNROLL:
            raise Problem(
                f"loop has {count} iterations to unroll, expected at most {MAX_UNROLL}: use range", node=node.iter
            )
        for item in items:
            self.assign(node.target, item)
            way = self.run(node.body)
            if way is Exit.BREAK:
                break
            if way is Exit.RETURN:
                return way
        return Exit.NEXT

    def _loop(self, node: ast.For, bounds: list[Any]) -> Exit:
        """A loop at run time. Variables that an iteration hands to the next, or to what follows, are carried."""
        start, _, step = bounds
        if is_constexpr(step) and (not isinstance(step, int) or step == 0):
            raise Problem(f"step is {describe(step)}, expected an integer other than 0", node=node.iter)
        if not isinstance(node.target, ast.Name):
            raise Problem("the variable of a range is an integer, expected one name", node=node.target)
        names = self.frame.names
        stores = assigned(node.body) | {node.target.id}
        carried = [
            name
            for name in sorted(stores & self.frame.flows[node].live_around)
            if name in names and not isinstance(names[name], Undefined) and name != node.target.id
        ]
        self.e.at = self.frames[-1], node.iter
        templates: dict[str, Any] = {}
        inits: list[Any] = []
        for name in carried:
            templates[name] = self._enter(names[name], inits)
        try:
            limits, counts = self._limits(*bounds)
        except Problem as problem:
            raise Problem(problem.message, node=node.iter) from None
        variable, *arguments = self.e.builder.begin_for(*limits, inits, self.location(node))
        before = dict(names)
        values = iter(arguments)
        for name in stores - set(carried):
            if name in names:
                why = f"has no value at the start of an iteration of the loop at line {node.lineno}"
                names[name] = Undefined(why)
        for name, template in templates.items():
            names[name] = self._name(name, rebuild(template, values))
        position = Scalar(variable, types.index)
        if counts:
            with self.e.block():
                position = binary(self.e, "+", start, binary(self.e, "*", position, step))
        names[node.target.id] = self._name(node.target.id, self.e.convert(position, types.index))
        yields: list[Any] = []
        with self.e.block():
            way = self.run(node.body)
            if way in (Exit.BREAK, Exit.RETURN):
                word = f"'{way.name.lower()}' in a loop at run time"
                raise Problem(f"{word}: use dl.static_range for a loop that is unrolled", node=node)
            self.e.at = self.frames[-1], node
            for name in carried:
                where = last_store(node.body, name) or node
                self._leave(name, templates[name], self.frame.names[name], yields, where)
        results = iter(self.e.builder.end_for(yields))
        # Branches inside put other dictionaries in place.
        self.frame.names = names = before
        for name in stores:
            names[name] = Undefined(
                f"is assigned in the loop at line {node.lineno}, which may run no iteration: assign it before"
            )
        for name, template in templates.items():
            names[name] = self._name(name, rebuild(template, results))
        return Exit.NEXT

    def _limits(self, start: Any, stop: Any, step: Any) -> tuple[list[Any], bool]:
        """Bounds of a loop over the numbers of a range, or over the numbers of its iterations; whether of these."""
        e = self.e
        first, last = e.index(start), e.index(stop)
        if not is_constexpr(step):
            step = Scalar(e.index(step), types.index)
        fits = _fits(stop, step)
        if fits or (not is_constexpr(stop) and (not is_constexpr(step) or 0 < step < 2**62)):
            limits = [first, last, e.index(step)]
            if fits or e.builder.counts_up(*limits):
                return limits, False
        return self._count(Scalar(first, types.index), Scalar(last, types.index), step), True

    def _count(self, start: Scalar, stop: Scalar, step: Any) -> list[Any]:
        """Bounds of a loop over the numbers of iterations of a range: none where the step is 0."""
        e = self.e
        zero, one = e.scalar(0, types.index), e.scalar(1, types.index)
        first, last, stride, moves = start, stop, e.scalar(1, types.index), None
        if is_constexpr(step):
            stride = e.scalar(abs(step) if abs(step) < 2**63 else -(2**63), types.index)
            if step < 0:
                first, last = stop, start
        else:
            up, moves = e.compare(">", step, zero), e.compare("!=", step, zero)
            first = e.elementwise("arith.select", [up, start, stop])
            last = e.elementwise("arith.select", [up, stop, start])
            stride = e.elementwise("arith.select", [up, step, e.elementwise("arith.subi", [zero, step])])
            stride = e.elementwise("arith.select", [moves, stride, one])
        # As a number without a sign the distance always fits. No loop ends that runs more often than `most`.
        distance = e.elementwise("arith.subi", [last, first])
        steps = e.elementwise("arith.divui", [e.elementwise("arith.subi", [distance, one]), stride])
        most = e.scalar(2**63 - 2, types.index)
        count = e.elementwise("arith.addi", [e.elementwise("arith.minui", [steps, most]), one])
        runs = e.compare("<", first, last)
        if moves is not None:
            runs = e.elementwise("arith.andi", [runs, moves])
        return [zero.ir, e.elementwise("arith.select", [runs, count, zero]).ir, one.ir]

    def _enter(self, value: Any, inits: list[Any]) -> Any:
        """A template of a carried value; its initial IR values are appended to `inits`."""
        if isinstance(value, tuple):
            return tuple(self._enter(item, inits) for item in value)
        if isinstance(value, (int, float)):
            value = self.e.scalar(value, constant_dtype(value))
        if isinstance(value, (Scalar, Tile)):
            inits.append(value.ir)
        return value

    def _leave(self, name: str, template: Any, value: Any, yields: list[Any], where: ast.AST) -> None:
        """Appends what the end of an iteration hands on in place of `template`."""
        if isinstance(template, tuple) and isinstance(value, tuple) and len(template) == len(value):
            for inner, item in zip(template, value, strict=True):
                self._leave(name, inner, item, yields, where)
            return
        if isinstance(template, Tile) and isinstance(value, Tile):
            if template.dtype is value.dtype and template.shape == value.shape:
                yields.append(value.ir)
                return
        elif isinstance(template, Scalar) and _is_scalar(value):
            if _join_dtype(template, value) is template.dtype or (template.dtype.bits == 64 and _is_int(value)):
                yields.append(to_scalar(self.e, value, template.dtype).ir)
                return
        elif not isinstance(template, (Tile, Scalar, tuple)) and _same(template, value):
            return
        hint = ""
        if isinstance(template, Scalar) and isinstance(value, Tile):
            hint = f": start with dl.zeros({value.shape})"
        elif isinstance(template, Scalar) and template.dtype.is_int and _is_scalar(value):
            hint = ": start with .to(dl.int64)" if _is_int(value) else ": start with a float"
        elif isinstance(template, Tile) and isinstance(value, Tile) and template.shape == value.shape:
            hint = f": convert with .to(dl.{template.dtype})"
        change = f"{describe(template)} before the loop and {describe(value)} after an iteration"
        raise Problem(f"'{name}' is {change}, expected one type{hint}", node=where)

    def _name(self, name: str, value: Any) -> Any:
        """Gives the variable's name to its value in the IR."""
        if isinstance(value, (Tile, Scalar)):
            value.ir.set_name(name)
        return value


def rebuild(template: Any, values: Iterator[Any]) -> Any:
    """A template with new IR values in place of its own."""
    match template:
        case tuple():
            return tuple(rebuild(item, values) for item in template)
        case Tile():
            return Tile(next(values), template.dtype, template.shape)
        case Scalar():
            return Scalar(next(values), template.dtype)
        case _:
            return template


def _fits(stop: Any, step: Any) -> bool:
    """Whether a loop that counts up by adding the step cannot pass the largest number."""
    if not is_constexpr(step) or step < 0:
        return False
    most = 2**63 - 1
    if is_constexpr(stop):
        return isinstance(stop, int) and stop <= most - step + 1
    return step == 1 or (stop.dtype is types.int32 and step <= most - 2**31)


def last_store(statements: list[ast.stmt], name: str) -> ast.AST | None:
    """The last place in the statements that assigns a name."""
    found: ast.AST | None = None
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
                found = node
    return found


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one: the same object, or equal constexprs of one type."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a is b or same_constexpr(a, b)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (Scalar, int, float))


def _is_int(value: Any) -> bool:
    if isinstance(value, Scalar):
        return value.dtype.is_int
    return isinstance(value, int) and not isinstance(value, bool)


def _join_dtype(a: Any, b: Any) -> types.DType | None:
    """One type for two scalars: theirs, or that of the one that has a type; None if there is none."""
    runtime = [value.dtype for value in (a, b) if isinstance(value, Scalar)]
    dtypes = runtime or [constant_dtype(a), constant_dtype(b)]
    if any(dtype.is_float for dtype in dtypes) or any(isinstance(value, float) for value in (a, b)):
        bools = any(isinstance(v, bool) or (isinstance(v, Scalar) and v.dtype is types.bool_) for v in (a, b))
        return None if bools else types.float32
    if types.bool_ in dtypes:
        both = all(isinstance(v, bool) or (isinstance(v, Scalar) and v.dtype is types.bool_) for v in (a, b))
        return types.bool_ if both else None
    if any(isinstance(value, bool) for value in (a, b)):
        return None
    for dtype in (types.int64, types.index, types.int32):
        if dtype in dtypes:
            return dtype
    return None
