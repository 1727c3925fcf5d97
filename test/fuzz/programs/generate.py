"""Makes a program from a seed: typed, right by construction, over the whole language.

`EXPRESSIONS` and `STATEMENTS` are the grammar: a row is a weight and a method of `Generator`. A method that cannot
make what was asked for raises `No`, and another one is drawn. A new feature of the language is a new row.

Right by construction: a program writes to its own part of an output (its cell) alone, and reads none but its own;
what Semantics.md leaves undefined has no row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .program import HEADER, Argument, Program

Shape = tuple[int, ...]
NARROW = ("float8_e4m3", "float8_e5m2", "float4_e2m1", "e8m0")
HALF = ("bfloat16", "float16")
FORMATS = {
    "nvfp4": ("float4_e2m1", "float8_e4m3", 16),
    "mxfp4": ("float4_e2m1", "e8m0", 32),
    "mxfp8_e4m3": ("float8_e4m3", "e8m0", 32),
    "mxfp8_e5m2": ("float8_e5m2", "e8m0", 32),
}
#: Features that generated programs avoid while a defect is open, and what is wrong; `--with` and `--all` let them in.
KNOWN: dict[str, str] = {
    "fp4_odd": "FP4 tiles at odd columns, of odd extents, of rank 1 or transposed: wrong neighbours, or refused",
}


class No(Exception):
    """This row cannot make what was asked for."""


@dataclasses.dataclass
class Var:
    """A variable of the kernel: a tile."""

    name: str
    dtype: str
    shape: Shape
    used: bool = False


@dataclasses.dataclass
class Int:
    """A run-time integer and its bounds."""

    text: str
    low: int
    high: int


@dataclasses.dataclass
class Output:
    """A tensor that programs write: `origin` of this program's cell, and the cell's extents."""

    argument: Argument
    origin: tuple[str, ...]
    cell: Shape
    #: In an order that has no strides.
    dense: bool = False


class Generator:
    """The state of one program."""

    def __init__(self, seed: int, allowed: frozenset[str]) -> None:
        self.random = random.Random(seed)
        self.allowed = allowed
        self.lines: list[str] = []
        self.indent = 1
        self.names = 0
        self.vars: list[Var] = []
        self.ints: list[Int] = []
        self.floats: list[str] = []
        self.inputs: list[Argument] = []
        self.outputs: list[Output] = []
        self.atomics: list[Argument] = []
        self.aliases: list[Argument] = []
        self.numbers: dict[str, int | float] = {}
        self.constants: dict[str, Any] = {}
        self.helpers: list[str] = []
        self.cost = 0
        self.loops: list[Int] = []
        self.in_helper = False
        self.in_branch = 0
        #: For each loop around: the most iterations that it makes.
        self.trips: list[int] = []
        #: Rows of the grammar that made something.
        self.drawn: set[str] = set()

    # ---- draws

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.random.random() < p

    def pick(self, items: Any) -> Any:
        """One of a sequence."""
        return items[self.random.randrange(len(items))]

    def weighted(self, table: Mapping[Any, float]) -> Any:
        """A key, as often as its weight says."""
        return self.random.choices(list(table), list(table.values()))[0]

    def name(self, prefix: str) -> str:
        """A new name."""
        self.names += 1
        return f"{prefix}{self.names}"

    def emit(self, line: str) -> None:
        """A line at the current indentation."""
        self.lines.append("    " * self.indent + line)

    # ---- shapes

    def start(self) -> None:
        """What all of the program shares: shapes, grid, run-time numbers."""
        self.cap = self.weighted({96: 4, 256: 5, 640: 3, 2048: 1.2, 8192: 0.25})
        rows = {1: 3, 2: 3, 3: 2, 4: 3, 5: 2, 7: 1, 8: 3, 13: 0.5, 16: 2, 17: 0.7, 32: 2, 33: 0.5, 64: 0.7, 96: 0.3}
        columns = {
            1: 0.7,
            2: 1,
            3: 1,
            4: 1.5,
            5: 1,
            7: 0.7,
            8: 1.5,
            15: 0.7,
            16: 3,
            20: 0.7,
            31: 0.7,
            32: 6,
            33: 0.7,
            48: 1,
            64: 4,
            65: 0.5,
            96: 1,
            100: 0.5,
            128: 2,
            160: 0.7,
            192: 0.5,
            256: 0.7,
            300: 0.3,
            512: 0.3,
            1000: 0.15,
            1024: 0.15,
            2100: 0.1,
            4096: 0.05,
        }
        while True:
            self.rows, self.columns = self.weighted(rows), self.weighted(columns)
            if self.rows * self.columns <= self.cap:
                break
        if self.chance(0.15) and self.columns < 128:
            self.rows, self.columns = self.columns, self.rows
        grid = self.weighted({(1, 1, 1): 5, (2, 1, 1): 3, (3, 1, 1): 1, (1, 2, 1): 1, (2, 2, 1): 3, (2, 1, 2): 0.7})
        self.grid: tuple[int, int, int] = grid
        for axis, extent in enumerate(grid):
            if extent > 1 or self.chance(0.3):
                self.emit(f"p{axis} = dl.program_id({axis})")
                self.ints.append(Int(f"p{axis}", 0, extent - 1))
        for _ in range(self.weighted({0: 2, 1: 3, 2: 1})):
            name = self.name("n")
            self.numbers[name] = self.weighted({0: 1, 1: 2, 2: 2, 3: 2, 5: 0.5, -1: 0.5, 7: 0.3})
            self.ints.append(Int(name, int(self.numbers[name]), int(self.numbers[name])))
        if self.chance(0.35):
            name = self.name("f")
            self.numbers[name] = self.pick(
                [0.0, -0.0, 1.0, 0.1, -3.7, 1e-42, 3e38, 2.5, float("inf"), float("nan"), 6.0, 448.0]
            )
            self.floats.append(name)

    def shape(self) -> Shape:
        """A shape of the palette."""
        r, c = self.rows, self.columns
        table = {(r, c): 10, (r, 1): 1.5, (1, c): 1.5, (c,): 1, (c, r): 1, (): 0.5, (r,): 0.4, (1, 1): 0.3}
        if self.chance(0.15):
            other = (self.pick([1, 2, 3, 4, 6, 8, 32]), self.pick([1, 2, 4, 9, 16, 32, 64]))
            if other[0] * other[1] <= self.cap:
                return other
        return self.weighted(table)

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one."""
        if not shape:
            return ()
        if len(shape) == 1:
            return self.weighted({shape: 5, (1,): 1, (): 1})
        r, c = shape
        return self.weighted({(r, c): 6, (r, 1): 1.5, (1, c): 1.5, (c,): 1, (1, 1): 0.3, (): 0.5})

    # ---- integers and floats at run time

    def integer(self, depth: int = 1) -> Int:
        """A small integer."""
        if depth == 0 or not self.ints or self.chance(0.5):
            if self.ints and self.chance(0.8):
                return self.pick(self.ints)
            value = self.pick([0, 1, 2, 3, 4])
            return Int(str(value), value, value)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        form = self.pick(["+", "-", "*", "//", "%", "cdiv", "max", "min", "choice"])
        if form == "choice":
            text = self.pick([f"({a.text} or {b.text})", f"({a.text} and {b.text})"])
            if self.chance(0.5):
                text = f"({a.text} if {self.condition(0)} else {b.text})"
            return Int(text, min(a.low, b.low), max(a.high, b.high))
        if form == "+":
            return Int(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high)
        if form == "-":
            return Int(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low)
        if form == "*":
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Int(f"({a.text} * {b.text})", min(ends), max(ends))
        if form in ("max", "min"):
            fold = max if form == "max" else min
            text = self.pick([f"dl.{form}imum({a.text}, {b.text})", f"{form}({a.text}, {b.text})"])
            return Int(text, fold(a.low, b.low), fold(a.high, b.high))
        by = self.pick([1, 2, 3, 5])
        if form == "%":
            return Int(f"({a.text} % {by})", 0, by - 1)
        if form == "//":
            return Int(f"({a.text} // {by})", a.low // by, a.high // by)
        return Int(f"dl.cdiv({a.text}, {by})", -(-a.low // by), -(-a.high // by))

    def condition(self, depth: int = 1) -> str:
        """A truth known at run time (or while compiling)."""
        if depth and self.chance(0.3):
            one, two = self.condition(depth - 1), self.condition(depth - 1)
            chain = f"({self.integer(0).text} {self.comparison()} {self.integer(0).text} {self.comparison()} 3)"
            return self.pick([f"({one} and {two})", f"({one} or {two})", f"(not {one})", chain])
        if self.floats and self.chance(0.25):
            return f"({self.number(1)} {self.comparison()} {self.literal()})"
        a = self.integer()
        if self.chance(0.1):
            return f"({a.text})"
        return f"({a.text} {self.comparison()} {self.pick([0, 1, 2, 3])})"

    def number(self, depth: int = 1) -> str:
        """A float32 at run time."""
        if depth == 0 or self.chance(0.5):
            if self.floats:
                return self.pick(self.floats)
            if not self.ints:
                return f"dl.exp({self.pick(['0.5', '-2.0', '1'])})"
            return f"({self.pick(self.ints).text} {self.pick(['*', '+', '-', '/'])} {self.pick(['0.5', '3.0', '0.1'])})"
        a, b = self.number(depth - 1), self.pick([self.number(depth - 1), self.literal()])
        if self.ints and self.chance(0.2):
            n = self.pick(self.ints).text
            return self.pick([f"float({n})", f"{n}.to(dl.float32)" if n[0] in "pn" else f"float({n})", f"({n} / 3)"])
        return self.pick(
            [
                *(f"({a} {self.pick(['+', '-', '*', '/'])} {b})", f"dl.fma({a}, {b}, {a})", f"(-{a})", f"dl.abs({a})"),
                *(f"dl.{self.pick(['exp', 'tanh', 'sigmoid', 'sqrt', 'rsqrt'])}({a})", f"dl.maximum({a}, {b})"),
                *(f"dl.minimum({b}, {a})", f"dl.where({a} > {b}, {a}, {b})", f"({a} if {self.condition(0)} else {a})"),
            ]
        )

    def comparison(self) -> str:
        """A symbol."""
        return self.pick(["<", "<=", ">", ">=", "==", "!="])

    def literal(self) -> str:
        """A float that is a constexpr."""
        return self.pick(
            [
                *("0.0", "-0.0", "1.0", "0.5", "-1.5", "2.0", "3.0", "0.1", "-0.3", "1e-3", "448.0", "65504.0", "1e30"),
                *("1e-40", "-1e38", "0.3333333333", "6.0", "1e-20"),
            ]
        )

    # ---- expressions

    def tile(self, dtype: str, shape: Shape, depth: int) -> str:
        """An expression of this type and shape."""
        rows = EXPRESSIONS["half" if dtype in HALF else "narrow" if dtype in NARROW else dtype]
        if self.cost > 60:
            depth = 0
        table = {row: weight for row, weight in rows.items() if depth > 0 or row in LEAVES}
        while table:
            row = self.weighted(table)
            state = self.save()
            try:
                self.cost += 1
                text = row(self, dtype, shape, depth)
                self.drawn.add(row.__name__)
                return text
            except No:
                self.restore(state)
                del table[row]
        raise No

    def kept(self) -> list[list[Any]]:
        """The lists that rows append to."""
        made: list[list[Any]] = [self.lines, self.vars, self.ints, self.inputs, self.outputs, self.helpers]
        return [*made, self.floats, self.atomics, self.aliases]

    def save(self) -> Any:
        """What a row that fails must not leave behind."""
        return [len(x) for x in self.kept()], dict(self.numbers), dict(self.constants), self.indent

    def restore(self, state: Any) -> None:
        """Back to `save`."""
        lengths, self.numbers, self.constants, self.indent = state
        for x, length in zip(self.kept(), lengths, strict=True):
            del x[length:]

    def var(self, dtype: str, shape: Shape, depth: int) -> str:
        """A variable."""
        found = [v for v in self.vars if v.dtype == dtype and v.shape == shape]
        if not found:
            raise No
        chosen = self.pick(found[-4:])
        chosen.used = True
        return chosen.name

    def load(self, dtype: str, shape: Shape, depth: int) -> str:
        """A tile of an input."""
        if dtype == "bool" or self.in_helper:
            raise No
        odd = "fp4_odd" in self.allowed
        if dtype == "float4_e2m1" and not odd and (not shape or shape[-1] % 2):
            raise No
        if dtype == "float4_e2m1" and (not shape or (not odd and len(shape) == 1)):
            raise No
        found = [a for a in self.inputs if a.dtype == dtype and len(a.shape) == len(shape)]
        if found and self.chance(0.6):
            x = self.pick(found)
        elif found and len(shape) == 2 and dtype != "float4_e2m1" and self.chance(0.2):
            x = self.view_of(self.pick(found))
        else:
            x = self.input(dtype, shape)
        if not shape:
            return f"dl.load({x.name})"
        even = dtype == "float4_e2m1" and not odd
        offsets = [self.offset(d, extent, even and d == len(shape) - 1) for d, extent in enumerate(shape)]
        return f"dl.load({x.name}, ({', '.join(offsets)},), {shape})"

    def offset(self, d: int, extent: int, even: bool) -> str:
        """Where a loaded tile begins along a dimension."""
        step = 2 if even else 1
        kind = self.weighted({"id": 6, "zero": 3, "constant": 1, "integer": 0.7, "loop": 6 if self.loops else 0})
        ids = [i.text for i in self.ints if i.text.startswith("p")]
        if kind == "id" and ids:
            text = f"{self.pick(ids)} * {extent}"
            return text + (f" + {self.pick([1, 2, 3]) * step}" if self.chance(0.1) else "")
        if kind == "loop" and self.loops:
            return f"{self.loops[-1].text} * {extent}"
        if kind == "constant":
            return str(self.pick([1, 2, 3, extent, -1, -2, extent + 1]) * step)
        if kind == "integer":
            return f"{self.integer().text} * {step}"
        return "0"

    def input(self, dtype: str, shape: Shape) -> Argument:
        """A new tensor to read, about as large as the grid's tiles are together."""
        extents = []
        for d, extent in enumerate(shape):
            times = self.pick([1, 1, 2, self.grid[0], self.grid[1]])
            n = extent * times + self.weighted({0: 6, -1: 1, 1: 1, 2: 0.5, 7: 0.5, -(extent // 2): 1})
            if dtype == "float4_e2m1" and d == len(shape) - 1 and "fp4_odd" not in self.allowed:
                n += n % 2
            extents.append(max(n, 1))
        fill = self.weighted({"normal": 5, "special": 3, "ties": 1.5, "wide": 1.5, "sparse": 0.7, "zeros": 0.3})
        argument = self.argument("x", dtype, tuple(extents), fill)
        self.inputs.append(argument)
        return argument

    def view_of(self, x: Argument) -> Argument:
        """Another argument that reads the memory of an input: the same tensor, or a part of it."""
        made = dataclasses.replace(x, name=self.name("x"), of=x.of or x.name, shift=x.shift if x.of else 0, seed=0)
        if self.chance(0.6):
            rows, columns = self.random.randrange(x.shape[0]), self.random.randrange(x.shape[1])
            made.shape = (x.shape[0] - rows, x.shape[1] - columns)
            made.shift += rows * (x.shape[1] + x.gap) + columns
            made.gap = x.gap + columns
        self.inputs.append(made)
        return made

    def interleave(self) -> None:
        """Puts the rows of one output into the gaps of another."""
        found: dict[tuple[str, int], list[Argument]] = {}
        named_twice = {a.of for a in self.aliases}
        for o in self.outputs:
            if o.argument.name in named_twice:
                continue
            if len(o.argument.shape) == 2 and o.argument.dtype != "float4_e2m1" and not o.dense:
                found.setdefault((o.argument.dtype, o.argument.shape[0]), []).append(o.argument)
        pairs = [group for group in found.values() if len(group) > 1]
        if not pairs or self.chance(0.6):
            return
        one, two = self.pick(pairs)[:2]
        spare = self.pick([0, 0, 1, 3])
        one.gap, two.gap = two.shape[1] + spare, one.shape[1] + spare
        two.of, two.shift = one.name, one.shape[1] + self.random.randint(0, spare)

    def argument(self, prefix: str, dtype: str, shape: Shape, fill: str) -> Argument:
        """A tensor somewhere in memory."""
        argument = Argument(self.name(prefix), dtype, shape, fill, self.random.randrange(1 << 30))
        if self.chance(0.25):
            argument.shift = self.pick([1, 2, 3, 4, 5, 8, 16])
        if len(shape) == 2 and self.chance(0.25):
            argument.gap = self.pick([1, 2, 3, 4, 8, 16, 31])
        if self.chance(0.06):
            argument.shapes = self.pick(["static", "dynamic", "trailing"])
        return argument

    def full(self, dtype: str, shape: Shape, depth: int) -> str:
        """A tile of one number."""
        if dtype == "bool":
            return f"dl.full({shape}, {self.pick(['True', 'False'])}, dl.bool)"
        if dtype in ("int32", "int64"):
            if self.ints and self.chance(0.4):
                return f"dl.full({shape}, {self.integer().text}, dl.{dtype})"
            return f"dl.full({shape}, {self.pick([0, 1, -1, 7, 1000, 2147483647, -65536])}, dl.{dtype})"
        if dtype in NARROW:
            raise No
        value = self.number() if self.chance(0.25) else self.literal()
        if dtype == "float16" and value in ("1e30", "-1e38", "1e-40", "1e-20", "65504.0"):
            value = "2.5"
        if self.chance(0.2):
            return f"dl.zeros({shape}, dl.{dtype})"
        return f"dl.full({shape}, {value}, dl.{dtype})" if dtype != "float32" else f"dl.full({shape}, {value})"

    def operand(self, shape: Shape, depth: int) -> str:
        """What meets a float32 tile of this shape: anything that broadcasts to it."""
        kind = self.weighted(
            {"same": 5, "broadcast": 3, "literal": 2, "int": 0.5, "scalar": 1, "half": 1, "itile": 0.5}
        )
        if kind == "literal":
            return self.literal()
        if kind == "int":
            return str(self.pick([0, 1, 2, -3, 16]))
        if kind == "scalar":
            return self.number() if self.chance(0.6) else self.integer().text
        if kind == "same":
            return self.tile("float32", shape, depth)
        other = self.broadcastable(shape)
        if kind == "half":
            return self.tile(self.pick(HALF), other, depth)
        if kind == "itile":
            return self.tile(self.pick(["int32", "bool", "int64"]), other, depth)
        return self.tile("float32", other, depth)

    def arithmetic(self, dtype: str, shape: Shape, depth: int) -> str:
        """`a + b` of floats."""
        a, b = self.tile(dtype, shape, depth - 1), self.operand(shape, depth - 1)
        if self.chance(0.3):
            a, b = b, a
        return f"({a} {self.weighted({'+': 3, '-': 2, '*': 3, '/': 1})} {b})"

    def unary(self, dtype: str, shape: Shape, depth: int) -> str:
        """`-a`, `|a|`."""
        a = self.tile(dtype, shape, depth - 1)
        return self.pick([f"(-{a})", f"dl.abs({a})", f"abs({a})", f"(+{a})"])

    def function(self, dtype: str, shape: Shape, depth: int) -> str:
        """A function with fixed bits."""
        name = self.pick(["exp", "tanh", "sigmoid", "sqrt", "rsqrt"])
        inner = self.weighted({"float32": 5, "bfloat16": 1, "float16": 1, "int32": 0.5})
        return f"dl.{name}({self.tile(inner, shape, depth - 1)})"

    def fma(self, dtype: str, shape: Shape, depth: int) -> str:
        """One rounding."""
        first = self.tile(dtype, shape, depth - 1)
        rest = [self.operand(shape, depth - 1), self.operand(shape, 0)]
        operands = [first, *rest]
        self.random.shuffle(operands)
        return f"dl.fma({', '.join(operands)})"

    def extremum(self, dtype: str, shape: Shape, depth: int) -> str:
        """The larger or smaller."""
        a = self.tile(dtype, shape, depth - 1)
        b = self.operand(shape, depth - 1) if dtype == "float32" else self.int_operand(dtype, shape, depth - 1)
        if self.chance(0.3):
            a, b = b, a
        return f"{self.pick(['dl.maximum', 'dl.minimum', 'max', 'min'])}({a}, {b})"

    def where(self, dtype: str, shape: Shape, depth: int) -> str:
        """A choice by element."""
        condition = self.tile("bool", self.broadcastable(shape), depth - 1)
        a, b = self.tile(dtype, shape, depth - 1), self.tile(dtype, self.broadcastable(shape), depth - 1)
        if dtype == "float32" and self.chance(0.3):
            b = self.literal()
        if self.chance(0.3):
            a, b = b, a
        if self.chance(0.1) and self.ints:
            condition = f"({self.integer().text} {self.comparison()} 1)"
        return f"dl.where({condition}, {a}, {b})"

    def widen(self, dtype: str, shape: Shape, depth: int) -> str:
        """float32 of another type."""
        source = self.weighted(
            {
                "bfloat16": 3,
                "float16": 3,
                "int32": 1,
                "int64": 0.5,
                "bool": 1,
                "float8_e4m3": 1,
                "float8_e5m2": 1,
                "e8m0": 0.6,
            }
            | {"float4_e2m1": 1}
        )
        return f"{self.tile(source, shape, depth - 1)}.to(dl.float32)"

    def transposable(self, dtype: str) -> bool:
        """Whether `.T` of such a tile is right on all targets."""
        return dtype != "float4_e2m1" or "fp4_odd" in self.allowed

    def transpose(self, dtype: str, shape: Shape, depth: int) -> str:
        """`t.T`."""
        if len(shape) != 2 or not self.transposable(dtype):
            raise No
        return f"{self.tile(dtype, shape[::-1], depth - 1)}.T"

    def reshape(self, dtype: str, shape: Shape, depth: int) -> str:
        """Dimensions of extent 1 inserted or dropped."""
        rest = tuple(n for n in shape if n != 1)
        others = [s for s in (rest, (1, *rest), (*rest, 1)) if len(s) <= 2 and s != shape]
        if len(rest) == 0:
            others = [s for s in ((), (1,), (1, 1)) if s != shape]
        other = self.pick(others) if others else None
        if other is None:
            raise No
        inner = self.tile(dtype, other, depth - 1)
        if len(other) == 1 and len(shape) == 2 and self.chance(0.5):
            return f"{inner}[{'None, :' if shape[0] == 1 else ':, None'}]"
        return f"dl.reshape({inner}, {shape})"

    def broadcast(self, dtype: str, shape: Shape, depth: int) -> str:
        """`dl.broadcast_to`."""
        if dtype in NARROW:
            raise No
        if dtype == "float32" and self.floats and self.chance(0.2):
            return f"dl.broadcast_to({self.pick(self.floats)}, {shape})"
        return f"dl.broadcast_to({self.tile(dtype, self.broadcastable(shape), depth - 1)}, {shape})"

    def reduce(self, dtype: str, shape: Shape, depth: int) -> str:
        """A reduction along a dimension, which stays with extent 1."""
        axes = [d for d, n in enumerate(shape) if n == 1]
        if not axes:
            raise No
        axis = self.pick(axes)
        extent = self.pick([self.rows, self.columns, self.columns, 3, 32])
        source = (*shape[:axis], extent, *shape[axis + 1 :])
        size = 1
        for n in source:
            size *= n
        if size > self.cap:
            raise No
        inner = self.weighted({"float32": 5, "bfloat16": 0.7, "float16": 0.7})
        kind = self.weighted({"sum": 3, "max": 2, "min": 2, "amax": 2})
        count = f", count={self.random.randint(1, extent)}" if self.chance(0.1) else ""
        shown = axis - len(shape) if self.chance(0.2) else axis
        word = f"axis={shown}" if self.chance(0.5) else str(shown)
        return f"dl.{kind}({self.tile(inner, source, depth - 1)}, {word}{count})"

    def choice(self, dtype: str, shape: Shape, depth: int) -> str:
        """A conditional expression."""
        a, b = self.tile(dtype, shape, depth - 1), self.tile(dtype, shape, depth - 1)
        return f"({a} if {self.condition(0)} else {b})"

    def call(self, dtype: str, shape: Shape, depth: int) -> str:
        """A call of a helper, which is made for it."""
        if self.in_helper:
            raise No
        a, b = self.tile(dtype, shape, depth - 1), self.operand(shape, 0)
        number = self.integer()
        name = self.name("h")
        lines = [f"def {name}(a, b, m, scale: dl.constexpr = {self.pick(['2.0', '1', '0.5'])}):"]
        if self.chance(0.3):
            lines.insert(0, "@dither.jit")
        outer = (self.lines, self.vars, self.ints, self.floats, self.loops, self.indent)
        self.lines, self.indent, self.in_helper = [], 1, True
        self.vars, self.ints = [Var("a", dtype, shape)], [Int("m", number.low, number.high)]
        self.floats, self.loops = [], []
        try:
            if self.chance(0.5):
                self.emit(f"a = {self.tile(dtype, shape, 2)}")
            if self.chance(0.4):
                self.emit(f"if {self.condition(0)}:")
                self.emit(f"    return {self.tile(dtype, shape, 1)}")
            self.emit(f"return {self.pick(['a + b', 'a * b - scale', 'dl.maximum(a, b)', 'a * scale', 'b - a'])}")
            lines += self.lines
        finally:
            self.lines, self.vars, self.ints, self.floats, self.loops, self.indent = outer
            self.in_helper = False
        self.helpers.append("\n".join(lines) + "\n")
        return f"{name}({a}, {b}, {number.text}{self.pick(['', '', ', scale=3'])})"

    # integers and booleans

    def arange(self, dtype: str, shape: Shape, depth: int) -> str:
        """0, 1, .."""
        if len(shape) == 1:
            return f"dl.arange({shape[0]})"
        if len(shape) == 2 and shape[0] == 1:
            return f"dl.arange({shape[1]})[None, :]"
        if len(shape) == 2 and shape[1] == 1:
            return f"dl.arange({shape[0]})[:, None]"
        raise No

    def int_operand(self, dtype: str, shape: Shape, depth: int) -> str:
        """What meets an integer tile and leaves its type as it is."""
        kind = self.weighted(
            {"same": 4, "broadcast": 2, "literal": 2, "wide": 2 if dtype == "int64" else 0, "bool": 0.5}
        )
        if kind == "literal":
            return str(self.pick([0, 1, 2, -3, 16, 255, 65537]))
        if kind == "wide" and self.chance(0.5) and self.ints:
            return self.pick(self.ints).text
        if kind == "wide":
            return self.tile("int32", self.broadcastable(shape), depth)
        if kind == "bool":
            return self.tile("bool", self.broadcastable(shape), depth)
        return self.tile(dtype, shape if kind == "same" else self.broadcastable(shape), depth)

    def int_arithmetic(self, dtype: str, shape: Shape, depth: int) -> str:
        """Wrapping sums and products; beside a number of run time in 64 bits."""
        a, b = self.tile(dtype, shape, depth - 1), self.int_operand(dtype, shape, depth - 1)
        if dtype == "int32" and self.ints and self.chance(0.2):
            return f"({a} {self.pick(['+', '-', '*'])} {self.pick(self.ints).text}).to(dl.int32)"
        if self.chance(0.3):
            a, b = b, a
        return f"({a} {self.pick(['+', '-', '*'])} {b})"

    def int_division(self, dtype: str, shape: Shape, depth: int) -> str:
        """`//` and `%`, which round down; by 0 they give 0."""
        a = self.tile(dtype, shape, depth - 1)
        b = str(self.pick([1, 2, 3, -2, 7, 16, 1000, -1]))
        if self.chance(0.5):
            b = self.tile(dtype, self.broadcastable(shape), depth - 1)
        return f"({a} {self.pick(['//', '%'])} {b})"

    def ratio(self, dtype: str, shape: Shape, depth: int) -> str:
        """`/` of integers: float32."""
        kind = self.pick(["int32", "int64"])
        return f"({self.tile(kind, shape, depth - 1)} / {self.int_operand(kind, shape, depth - 1)})"

    def logic(self, dtype: str, shape: Shape, depth: int) -> str:
        """Bits or truths."""
        a = self.tile(dtype, shape, depth - 1)
        if self.chance(0.2):
            return f"(~{a})"
        b = self.tile(dtype, self.broadcastable(shape), depth - 1)
        return f"({a} {self.pick(['&', '|', '^'])} {b})"

    def to_int(self, dtype: str, shape: Shape, depth: int) -> str:
        """An integer or a truth as another type: 0 or 1, the low bits, the same value."""
        source = self.pick(["bool", "int64" if dtype == "int32" else "int32"])
        return f"{self.tile(source, shape, depth - 1)}.to(dl.{dtype})"

    def compare(self, dtype: str, shape: Shape, depth: int) -> str:
        """A comparison by element."""
        if self.chance(0.65):
            a, b = self.tile("float32", shape, depth - 1), self.operand(shape, depth - 1)
            c = self.literal()
        else:
            kind = self.pick(["int32", "int64"])
            a, b = self.tile(kind, shape, depth - 1), self.int_operand(kind, shape, depth - 1)
            c = "3"
        if self.chance(0.1):
            return f"({b} {self.comparison()} {a} {self.comparison()} {c})"
        return f"({a} {self.comparison()} {b})"

    def truth(self, dtype: str, shape: Shape, depth: int) -> str:
        """Whether elements are not zero."""
        source = self.pick(["int32", "int64", "float32", "bfloat16", "float16"])
        return f"{self.tile(source, shape, depth - 1)}.to(dl.bool)"

    def mask(self, dtype: str, shape: Shape, depth: int) -> str:
        """A comparison of indices, as masks are made."""
        if not shape:
            raise No
        d = self.random.randrange(len(shape))
        index = f"dl.arange({shape[d]})"
        if len(shape) == 2:
            index += "[:, None]" if d == 0 else "[None, :]"
        limit = self.integer().text if self.ints and self.chance(0.5) else str(self.random.randint(0, shape[d]))
        text = f"({index} {self.comparison()} {limit})"
        if len(shape) == 2 and shape[1 - d] != 1:
            text = f"dl.broadcast_to({text}, {shape})"
        return text

    # 16 bits and codes

    def round(self, dtype: str, shape: Shape, depth: int) -> str:
        """float32 rounded to 16 bits."""
        source = self.weighted({"float32": 5, "half": 1, "int32": 0.5, "int64": 0.3, "bool": 0.3})
        if source == "half":
            source = "bfloat16" if dtype == "float16" else "float16"
        return f"{self.tile(source, shape, depth - 1)}.to(dl.{dtype})"

    def encode(self, dtype: str, shape: Shape, depth: int) -> str:
        """Codes of floats."""
        self.code_shape(dtype, shape)
        source = self.weighted({"float32": 5, "bfloat16": 1, "float16": 1})
        rounding = f", rounding={self.pick(['rceil', 'floor'])!r}" if dtype == "e8m0" else ""
        return f"{self.tile(source, shape, depth - 1)}.to(dl.{dtype}{rounding})"

    def code_shape(self, dtype: str, shape: Shape) -> None:
        """Refuses shapes of FP4 that are not supported yet."""
        if (
            dtype == "float4_e2m1"
            and "fp4_odd" not in self.allowed
            and (not shape or len(shape) == 1 or any(n % 2 for n in shape))
        ):
            raise No

    def format(self, element: str | None = None, scale: str | None = None) -> tuple[str, str]:
        """A format's name, and text that stands for it."""
        found = [n for n, f in FORMATS.items() if element in (None, f[0]) and scale in (None, f[1])]
        if not found:
            raise No
        name = self.pick(found)
        options = ""
        if self.chance(0.35):
            if name == "nvfp4":
                options = f".with_(order={self.pick(['te', 'div6_mul', 'div6_div'])!r})"
            else:
                options = f".with_(scale_rounding={self.pick(['rceil', 'floor', 'ceil', 'even'])!r})"
        text = f"dither.{name.upper()}{options}"
        if self.chance(0.4) and not self.in_helper:
            constant = self.name("FMT")
            self.constants[constant] = text
            return name, constant
        return name, text if options or self.chance(0.5) else repr(name)

    def tensor_amax(self, name: str) -> str:
        """The argument `amax=` of a format with a tensor scale."""
        if name != "nvfp4":
            return ""
        kind = self.weighted({"literal": 2, "load": 2, "float": 1, "reduce": 1})
        if kind == "float" and self.floats:
            return f", amax={self.pick(self.floats)}"
        if kind == "load" and not self.in_helper:
            x = self.argument("x", "float32", (), self.pick(["positive", "positive", "special"]))
            x.shapes = None
            self.inputs.append(x)
            return f", amax=dl.load({x.name})"
        if kind == "reduce":
            shape = (self.rows, self.columns)
            inner = self.tile("float32", shape, 0)
            return f", amax=dl.amax(dl.amax({inner}, 1), 0)"
        return f", amax={self.pick(['1.0', '6.0', '448.0', '0.0', '1e-30', '3e38', '2688.0', '0.37'])}"

    def axis_for(self, shape: Shape, block: int) -> int:
        """An axis that blocks divide."""
        axes = [d for d, n in enumerate(shape) if n % block == 0]
        if not axes:
            raise No
        return self.pick(axes)

    def cast(self, dtype: str, shape: Shape, depth: int) -> str:
        """Codes under scales that come from anywhere."""
        self.code_shape(dtype, shape)
        name, text = self.format(element=dtype)
        axis = self.axis_for(shape, FORMATS[name][2])
        scales = self.scaled(shape, axis, FORMATS[name][2])
        x = self.tile(self.weighted({"float32": 4, "bfloat16": 1, "float16": 1}), shape, depth - 1)
        s = self.tile(FORMATS[name][1], scales, depth - 1)
        return f"dl.cast({x}, {s}, {text}, axis={axis}{self.tensor_amax(name)})"

    def block_scale(self, dtype: str, shape: Shape, depth: int) -> str:
        """Scales of blocks."""
        name, text = self.format(scale=dtype)
        axes = [d for d in range(len(shape)) if shape[d] * FORMATS[name][2] <= 512]
        if not axes:
            raise No
        axis = self.pick(axes)
        source = (*shape[:axis], shape[axis] * FORMATS[name][2], *shape[axis + 1 :])
        size = 1
        for n in source:
            size *= n
        if size > max(self.cap, 256):
            raise No
        x = self.tile(self.weighted({"float32": 4, "bfloat16": 1, "float16": 1}), source, depth - 1)
        return f"dl.block_scale({x}, {text}, axis={axis}{self.tensor_amax(name)})"

    @staticmethod
    def scaled(shape: Shape, axis: int, block: int) -> Shape:
        """The shape of scales."""
        return (*shape[:axis], shape[axis] // block, *shape[axis + 1 :])

    def dequantize(self, dtype: str, shape: Shape, depth: int) -> str:
        """Values of codes under their scales."""
        name, text = self.format()
        element, scale, block = FORMATS[name]
        self.code_shape(element, shape)
        axis = self.axis_for(shape, block)
        q = self.tile(element, shape, depth - 1)
        s = self.tile(scale, self.scaled(shape, axis, block), depth - 1)
        return f"dl.dequantize({q}, {s}, {text}, axis={axis}{self.tensor_amax(name)})"

    # ---- statements

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """An indented block: its variables are not known after it."""
        variables, integers, floats = len(self.vars), len(self.ints), len(self.floats)
        names = [v.name for v in self.vars]
        self.indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1
        del self.vars[variables:], self.ints[integers:], self.floats[floats:]
        assert [v.name for v in self.vars] == names

    def assign(self) -> None:
        """`v = ..`, new or again."""
        dtype = self.weighted({"float32": 8, "int32": 1, "int64": 0.5, "bool": 0.7, "bfloat16": 1, "float16": 1})
        if self.chance(0.12):
            dtype = self.pick(NARROW)
        shape = self.shape()
        text = self.tile(dtype, shape, self.weighted({1: 3, 2: 4, 3: 1}))
        self.define(text, dtype, shape)

    def define(self, text: str, dtype: str, shape: Shape, prefix: str = "v") -> Var:
        """Emits a new variable."""
        var = Var(self.name(prefix), dtype, shape)
        self.emit(f"{var.name} = {text}")
        self.vars.append(var)
        return var

    def pair(self) -> None:
        """Two variables at once."""
        shapes = [self.shape(), self.shape()]
        texts = [self.tile("float32", shape, 1) for shape in shapes]
        made = [Var(self.name("v"), "float32", shape) for shape in shapes]
        self.emit(f"{made[0].name}, {made[1].name} = {texts[0]}, {texts[1]}")
        self.vars += made

    def quantize(self) -> None:
        """Scales, codes under them, and perhaps values again."""
        name, text = self.format()
        element, scale, block = FORMATS[name]
        shape: Shape = (self.rows, self.columns)
        if all(n % block for n in shape):
            rows, columns = self.pick([(self.pick([1, 2, 3, 4, 5, 8]), block), (block, self.pick([1, 2, 4, 8, 32]))])
            shape = (rows, self.pick([1, 2]) * columns)
        if self.chance(0.1):
            shape = (self.pick([block, 2 * block, 4 * block]),)
        self.code_shape(element, shape)
        axis = self.axis_for(shape, block)
        amax = self.tensor_amax(name)
        source = self.weighted({"float32": 5, "bfloat16": 1.5, "float16": 1.5})
        t = self.define(self.tile(source, shape, 2), source, shape)
        s = self.define(
            f"dl.block_scale({t.name}, {text}, axis={axis}{amax})", scale, self.scaled(shape, axis, block), "s"
        )
        if self.chance(0.9):
            q = self.define(f"dl.cast({t.name}, {s.name}, {text}, axis={axis}{amax})", element, shape, "q")
            s.used = t.used = True
            if self.chance(0.3):
                self.define(f"dl.dequantize({q.name}, {s.name}, {text}, axis={axis}{amax})", "float32", shape)
            if self.chance(0.6):
                self.store_var(q)
        if self.chance(0.6):
            self.store_scales(s)

    def store_scales(self, s: Var) -> None:
        """Scales in either order."""
        if len(s.shape) != 2 or self.chance(0.6) or self.loops or self.in_branch:
            self.store_var(s)
            return
        text, shape = s.name, s.shape
        if self.chance(0.3) and self.transposable(s.dtype):
            text, shape = f"{text}.T", shape[::-1]
        rows = -(-self.grid[0] * self.grid[2] * shape[0] // 128) * 128
        columns = -(-self.grid[1] * shape[1] // 4) * 4
        output = self.output(s.dtype, shape, (rows, columns))
        valid = ""
        if self.chance(0.4):
            valid = f", valid=({self.random.randint(0, rows)}, {self.random.randint(0, columns)})"
        s.used = True
        self.emit(f"dl.store({output.argument.name}, {self.at(output)}, {text}, layout=dl.swizzle_128x4{valid})")

    def norm(self) -> None:
        """`dl.rms_norm`."""
        shape = (self.rows, self.columns)
        t = self.tile(self.weighted({"float32": 4, "bfloat16": 1, "float16": 1}), shape, 1)
        gamma = self.tile(self.weighted({"float32": 3, "bfloat16": 1, "float16": 1}), (self.columns,), 0)
        options = f", {self.pick(['1e-5', '0.0', '1e-6', '1', '0.125'])}"
        if self.chance(0.3):
            options += f", zero_centered_gamma={self.pick(['True', 'False'])}"
        if self.chance(0.2):
            options += f", count={self.random.randint(1, self.columns)}"
        y, rsigma = Var(self.name("v"), "float32", shape), Var(self.name("v"), "float32", (self.rows, 1))
        self.emit(f"{y.name}, {rsigma.name} = dl.rms_norm({t}, {gamma}{options})")
        self.vars += [y, rsigma]

    def reassignable(self) -> list[Var]:
        """Variables that a branch or a loop may change."""
        return self.vars

    def branch(self) -> None:
        """`if` at run time, or of a constexpr."""
        if self.indent > 2:
            raise No
        test = self.condition()
        if self.chance(0.15):
            constant = self.name("MODE")
            self.constants[constant] = self.pick([True, False, 0, 3])
            test = constant
        targets = self.reassignable()
        if not targets:
            raise No
        chosen = [self.pick(targets[-5:]) for _ in range(self.weighted({1: 3, 2: 1}))]
        self.in_branch += 1
        self.emit(f"if {test}:")
        self.branch_body(chosen)
        if self.chance(0.5):
            if self.chance(0.2):
                self.emit(f"elif {self.condition(0)}:")
                self.branch_body(chosen)
            self.emit("else:")
            self.branch_body(chosen)
        self.in_branch -= 1

    def branch_body(self, chosen: list[Var]) -> None:
        """Some assignments, perhaps other statements."""
        with self.block():
            if self.chance(0.3):
                self.statement(BODY)
            for v in chosen:
                if self.chance(0.85):
                    self.emit(f"{v.name} = {self.tile(v.dtype, v.shape, self.pick([1, 2]))}")

    def loop(self) -> None:
        """A loop, at run time or unrolled, that carries tiles."""
        if self.indent > 2:
            raise No
        header, first, step, trips = self.iterations()
        i = self.name("i")
        carried = []
        found = self.vars
        if found and self.chance(0.7):
            carried.append(self.pick(found[-4:]))
        if not carried or self.chance(0.4):
            shape = self.shape()
            carried.append(
                self.define(self.pick([f"dl.zeros({shape})", self.tile("float32", shape, 1)]), "float32", shape)
            )
        pair = None
        if self.chance(0.12):
            shape = self.shape()
            pair = self.name("t"), shape
            self.emit(f"{pair[0]} = ({self.tile('float32', shape, 0)}, {self.tile('float32', shape, 0)})")
        count = total = None
        if self.chance(0.2):
            count = Int(self.name("c"), *dataclasses.astuple(self.integer(0))[1:])
            count.low = count.high = self.pick([0, 1, 2])
            self.emit(f"{count.text} = {count.low}")
        if self.chance(0.2):
            total = self.name("g")
            self.emit(f"{total} = {self.number()}")
        self.emit(f"for {i} in {header}:")
        last = int(first) + (max(trips, 1) - 1) * int(step)
        number = i if (first, step) == ("0", "1") else f"(({i} - {first}) // {step})"
        with self.block():
            self.ints.append(Int(i, min(int(first), last), max(int(first), last)))
            self.loops.append(Int(number, 0, max(trips, 1) - 1))
            self.trips.append(max(trips, 1))
            if count is not None:
                self.emit(f"{count.text} = {count.text} + {self.pick([i, '1', '2', i])}")
                count.low, count.high = count.low - 4 * (abs(int(first)) + 8), count.high + 4 * (abs(int(first)) + 8)
            if total is not None:
                self.emit(
                    f"{total} = {total} {self.pick(['+', '*', '-'])} {self.pick(['0.5', '1.25', f'({i} * 0.1)'])}"
                )
            for _ in range(self.weighted({0: 3, 1: 3, 2: 1})):
                self.statement(BODY)
            if pair is not None:
                a, b = f"{pair[0]}[0]", f"{pair[0]}[1]"
                self.emit(f"{pair[0]} = ({self.pick([f'{a} + {b}', b, f'{a} * 0.5'])}, {self.pick([a, f'{b} + 1.0'])})")
            for v in dict.fromkeys(v.name for v in carried):
                var = next(x for x in self.vars if x.name == v)
                text = self.tile(var.dtype, var.shape, self.pick([1, 2]))
                if var.dtype == "float32" and self.chance(0.5):
                    text = f"{var.name} {self.pick(['+', '*', '-'])} {text}"
                self.emit(f"{var.name} = {text}")
            self.loops.pop()
            self.trips.pop()
        if count is not None:
            self.ints.append(count)
        if total is not None:
            self.floats.append(total)
        if pair is not None:
            self.define(f"{pair[0]}[0] - {pair[0]}[1]", "float32", pair[1])

    def iterations(self) -> tuple[str, str, str, int]:
        """What a loop runs over: (text, first, step, number of iterations)."""
        trips = self.weighted({1: 1, 2: 3, 3: 2, 4: 0.5, 0: 0.2})
        bounded = [n for n in self.numbers if isinstance(self.numbers[n], int) and 0 <= self.numbers[n] <= 4]
        form = self.weighted({"unrolled": 2, "plain": 4, "number": 4, "down": 1, "step": 1, "far": 0.3})
        if form == "number" and bounded:
            n = self.pick(bounded)
            return self.pick([f"range({n})", f"range(0, {n})"]), "0", "1", int(self.numbers[n])
        if form == "step" and bounded:
            n = self.pick(bounded)
            step = int(self.numbers[n])
            return f"range(0, 4, {n})", "0", str(max(step, 1)), len(range(0, 4, step)) if step else 0
        function = "dl.static_range" if form == "unrolled" else "range"
        if form == "down" or (form == "unrolled" and self.chance(0.2)):
            step = self.pick([-1, -2, -3])
            return f"{function}({trips - 1}, -1, {step})", str(trips - 1), str(step), len(range(trips - 1, -1, step))
        if form == "far":
            return f"{function}(5, {5 + 2 * trips}, 2)", "5", "2", trips
        return f"{function}({trips})", "0", "1", trips

    def output(self, dtype: str, shape: Shape, extents: Shape | None = None) -> Output:
        """A new tensor to write, with a cell for each program; in loops a part of the cell for each iteration."""
        fp4 = dtype == "float4_e2m1"
        if fp4 and (not shape or (shape[-1] % 2 and "fp4_odd" not in self.allowed)):
            raise No
        g0, g1, g2 = self.grid
        ids = [f"p{axis}" if any(i.text == f"p{axis}" for i in self.ints) else "0" for axis in range(3)]
        times = 1
        for t in self.trips:
            times *= t
        cell = list(shape)
        if not cell:
            if g0 * g1 * g2 > 1:
                raise No
            argument = self.argument("o", dtype, (), "normal")
            argument.shapes = None
            made = Output(argument, (), ())
            self.outputs.append(made)
            return made
        cell[0] *= times
        if self.chance(0.1) and extents is None:
            cell = [n + self.pick([0, 0, 1, 2]) for n in cell]
        if fp4:
            cell[-1] += cell[-1] % 2
        if len(shape) == 1:
            counts, origins = [g0 * g1 * g2], [f"({ids[0]} + {g0} * ({ids[1]} + {g1} * {ids[2]}))"]
            if g1 * g2 == 1:
                origins = [ids[0]]
        elif self.chance(0.85) or extents is not None:
            counts, origins = [g0 * g2, g1], [f"({ids[0]} + {g0} * {ids[2]})" if g2 > 1 else ids[0], ids[1]]
        else:
            counts, origins = [g1 * g2, g0], [f"({ids[1]} + {g1} * {ids[2]})" if g2 > 1 else ids[1], ids[0]]
        origin = tuple("0" if o == "0" else f"{o} * {n}" for o, n in zip(origins, cell, strict=True))
        size = []
        for n, count in zip(cell, counts, strict=True):
            size.append(max(1, n * count + self.weighted({0: 6, -1: 1, 1: 0.7, 3: 0.5, -(n // 2): 1})))
        if fp4 and "fp4_odd" not in self.allowed:
            size[-1] += size[-1] % 2
        argument = self.argument("o", dtype, extents or tuple(size), "normal")
        if extents is not None:
            argument.gap = 0
        made = Output(argument, origin, tuple(cell), extents is not None)
        self.outputs.append(made)
        return made

    def at(self, output: Output) -> str:
        """Where this program writes, in this iteration."""
        if not output.origin:
            return "()"
        parts = list(output.origin)
        height, iteration = output.cell[0], ""
        for loop, count in zip(self.loops, self.trips, strict=True):
            height //= count
            iteration = f"{loop.text} * {height}" + (f" + {iteration}" if iteration else "")
        if iteration:
            parts[0] = iteration if parts[0] == "0" else f"{parts[0]} + {iteration}"
        return f"({', '.join(parts)},)"

    def store_var(self, v: Var) -> None:
        """Writes a variable, perhaps transposed."""
        text, shape = v.name, v.shape
        if v.dtype == "bool":
            text, dtype = f"{text}.to(dl.int32)", "int32"
        else:
            dtype = v.dtype
        if len(shape) == 2 and self.chance(0.12) and self.transposable(dtype):
            text, shape = f"{text}.T", shape[::-1]
        if dtype == "float32" and self.chance(0.25):
            dtype = self.pick([*HALF, "float8_e4m3", "float8_e5m2"])
            text = f"{text}.to(dl.{dtype})"
        output = self.output(dtype, shape)
        valid = ""
        if shape and self.chance(0.06):
            limits = [str(self.random.randint(0, n + 1)) for n in output.argument.shape]
            valid = f", valid=({', '.join(limits)},)"
        v.used = True
        self.emit(f"dl.store({output.argument.name}, {self.at(output)}, {text}{valid})")

    def store(self) -> None:
        """Writes something."""
        if not self.vars:
            raise No
        unused = [v for v in self.vars if not v.used]
        self.store_var(self.pick(unused or self.vars))

    def guarded(self) -> None:
        """A store behind a condition that is an expression."""
        if not self.vars or self.in_branch:
            raise No
        v = self.pick(self.vars)
        self.store_var(v)
        stored = self.lines.pop().strip()
        condition = self.condition()
        self.emit(
            self.pick([f"{condition} and {stored}", f"{condition} or {stored}", f"{stored} if {condition} else None"])
        )

    def atomic(self) -> None:
        """`dl.atomic_max` of magnitudes, from all programs."""
        shape = self.pick([(), (), (self.rows, 1), (1, self.columns)])
        inner = self.tile("float32", (self.rows, self.columns), 1)
        text = {
            (): f"dl.reshape(dl.amax(dl.amax({inner}, 1), 0), ())",
            (self.rows, 1): f"dl.amax({inner}, axis=1)",
            (1, self.columns): f"dl.amax({inner}, axis=0)",
        }[shape]
        argument = self.argument("a", "float32", shape, self.pick(["zeros", "positive"]))
        argument.shapes = None
        self.atomics.append(argument)
        offset = "()" if not shape else "(0, 0)"
        self.emit(f"dl.atomic_max({argument.name}, {offset}, {text})")

    def update(self) -> None:
        """Reads this program's own part of a tensor, and writes it."""
        if self.loops or self.in_branch:
            raise No
        dtype = self.weighted({"float32": 4, "bfloat16": 1, "float16": 1, "int32": 1})
        shape = self.pick([(self.rows, self.columns), (self.rows, self.rows)])
        if shape[0] * shape[1] > self.cap:
            raise No
        output = self.output(dtype, shape)
        where = self.at(output)
        source = output.argument.name
        if self.chance(0.3):  # the same tensor by another name
            again = dataclasses.replace(output.argument, name=self.name("x"), of=source, shift=0, seed=0)
            self.aliases.append(again)
            source = again.name
        v = self.define(f"dl.load({source}, {where}, {shape})", dtype, shape)
        text = self.tile(dtype, shape, 2) if self.chance(0.7) else v.name
        if shape[0] == shape[1] and self.chance(0.5):
            text = f"{text}.T"
        self.emit(f"dl.store({output.argument.name}, {where}, {text})")
        if self.chance(0.5):
            self.define(f"dl.load({self.pick([source, output.argument.name])}, {where}, {shape})", dtype, shape)

    def check(self) -> None:
        """`dl.static_assert`."""
        if not self.inputs:
            raise No
        x = self.pick(self.inputs)
        self.emit(f"dl.static_assert({x.name}.ndim == {len(x.shape)}, 'rank')")

    def extent(self) -> None:
        """An extent as a number."""
        found = [x for x in self.inputs if x.shape]
        if not found or self.in_helper:
            raise No
        x = self.pick(found)
        d = self.random.randrange(len(x.shape))
        name = self.name("e")
        self.emit(f"{name} = {x.name}.shape[{d}]")
        self.ints.append(Int(name, x.shape[d], x.shape[d]))

    def statement(self, table: dict[Callable[..., None], float]) -> None:
        """One of a table."""
        table = dict(table)
        while table:
            row = self.weighted(table)
            state = self.save()
            depth = len(self.loops), len(self.trips), self.in_branch, self.in_helper
            try:
                row(self)
                self.drawn.add(row.__name__)
                return
            except No:
                self.restore(state)
                del self.loops[depth[0] :], self.trips[depth[1] :]
                self.in_branch, self.in_helper = depth[2], depth[3]
                del table[row]

    def program(self) -> Program:
        """All of it."""
        self.start()
        for _ in range(self.weighted({1: 2, 2: 3, 3: 2})):
            dtype = self.weighted(
                {"float32": 5, "bfloat16": 2, "float16": 2, "int32": 1, "int64": 0.5, "float8_e4m3": 0.3}
            )
            shape = self.pick([(self.rows, self.columns), self.shape()])
            with contextlib.suppress(No):
                self.define(self.load(dtype, shape, 0), dtype, shape)
        for _ in range(self.weighted({1: 1, 2: 2, 3: 3, 4: 3, 5: 2, 7: 1})):
            self.statement(STATEMENTS)
        for _ in range(self.weighted({1: 3, 2: 2, 3: 1})):
            self.statement({Generator.store: 1})
        if not self.outputs and not self.atomics:
            self.define(self.tile("float32", (self.rows, self.columns), 0), "float32", (self.rows, self.columns))
            self.statement({Generator.store: 1})
        return self.finish()

    def finish(self) -> Program:
        """Text and arguments; those that the text does not name are left out."""
        self.interleave()
        body = "\n".join(self.lines) + "\n"
        everything = [*self.inputs, *(o.argument for o in self.outputs), *self.atomics, *self.aliases]
        words = set("".join(c if c.isalnum() or c == "_" else " " for c in body).split())
        owners = {a.of for a in everything if a.name in words}
        arguments = [a for a in everything if a.name in words or a.name in owners]
        numbers = {n: v for n, v in self.numbers.items() if n in words}
        constants = {n: v for n, v in self.constants.items() if n in words}
        helpers = [h for h in self.helpers if h.split("def ", 1)[1].split("(", 1)[0] in words]
        for h in helpers:
            inner = set("".join(c if c.isalnum() or c == "_" else " " for c in h).split())
            assert not inner & set(self.constants), h
        parameters = [a.name for a in arguments] + list(numbers) + [f"{n}: dl.constexpr" for n in constants]
        shapes = self.weighted({None: 8, "static": 1, "dynamic": 1})
        decorator = "@dither.jit" + (f"(shapes={shapes!r})" if shapes else "")
        source = f"{HEADER}\n{''.join(h + chr(10) + chr(10) for h in helpers)}{decorator}\n"
        source += f"def k({', '.join(parameters)}):\n{body}"
        warps = self.weighted({None: 6, 1: 1, 2: 1, 4: 1, 8: 1})
        return Program(source, arguments, numbers, constants, self.grid, warps, shapes)


G = Generator
EXPRESSIONS: dict[str, dict[Callable[..., str], float]] = {
    "float32": {
        G.var: 8,
        G.load: 2,
        G.full: 0.7,
        G.arithmetic: 7,
        G.unary: 1.5,
        G.function: 1.5,
        G.fma: 1,
        G.extremum: 2,
        G.where: 2,
        G.widen: 3,
        G.transpose: 0.8,
        G.reshape: 0.8,
        G.broadcast: 0.8,
        G.reduce: 3,
        G.choice: 0.3,
        G.dequantize: 0.8,
        G.call: 0.5,
        G.ratio: 0.4,
    },
    "int32": {
        G.var: 6,
        G.load: 2,
        G.arange: 3,
        G.full: 1,
        G.int_arithmetic: 4,
        G.int_division: 1,
        G.logic: 1.5,
        G.unary: 0.7,
        G.extremum: 1.5,
        G.where: 1,
        G.to_int: 1,
        G.transpose: 0.3,
        G.reshape: 0.4,
        G.broadcast: 1,
    },
    "int64": {
        G.var: 6,
        G.load: 3,
        G.full: 1,
        G.int_arithmetic: 4,
        G.int_division: 1,
        G.logic: 1,
        G.to_int: 3,
        G.unary: 0.7,
        G.extremum: 1,
        G.where: 1,
        G.transpose: 0.3,
        G.reshape: 0.4,
        G.broadcast: 1,
    },
    "bool": {
        G.var: 3,
        G.mask: 3,
        G.compare: 5,
        G.logic: 2,
        G.truth: 1,
        G.full: 0.3,
        G.where: 0.3,
        G.transpose: 0.3,
        G.reshape: 0.3,
        G.broadcast: 0.5,
    },
    "half": {G.var: 5, G.load: 4, G.round: 4, G.full: 0.5, G.transpose: 0.5, G.reshape: 0.4, G.broadcast: 0.4},
    "narrow": {G.var: 5, G.load: 4, G.encode: 3, G.cast: 2, G.block_scale: 2, G.transpose: 0.5, G.reshape: 0.2},
}
LEAVES = {G.var, G.load, G.full, G.arange, G.mask}
BODY: dict[Callable[..., None], float] = {
    G.assign: 6,
    G.store: 2,
    G.quantize: 1,
    G.loop: 0.3,
    G.branch: 0.5,
    G.atomic: 0.2,
}
STATEMENTS: dict[Callable[..., None], float] = {
    G.assign: 8,
    G.pair: 0.5,
    G.store: 2,
    G.quantize: 3,
    G.norm: 0.6,
    G.branch: 1.5,
    G.loop: 1.5,
    G.atomic: 0.5,
    G.update: 0.8,
    G.check: 0.1,
    G.extent: 0.4,
    G.guarded: 0.5,
}


def generate(seed: int, allowed: frozenset[str] = frozenset()) -> Program:
    """The program of a seed; `allowed` are the features of KNOWN that it may have."""
    for attempt in range(100):
        try:
            return Generator(seed + (attempt << 40), allowed).program()
        except No:
            continue
    raise AssertionError(f"seed {seed} gives no program")
