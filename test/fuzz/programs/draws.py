"""What a program under construction is: its lines, variables and arguments; random draws; undoing a row that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import Any

from . import arithmetic
from .program import Argument

Shape = tuple[int, ...]
NARROW = ("float8_e4m3", "float8_e5m2", "float6_e2m3", "float6_e3m2", "float4_e2m1", "int8", "e8m0")
HALF = ("bfloat16", "float16")
#: of a float32
FUNCTIONS = ("exp", "exp2", "log", "log2", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt")
#: Element type, scale type and block of each format.
FORMATS = {name: about[:3] for name, about in arithmetic.FORMATS.items()}


def format_text(name: str) -> str:
    """What a kernel writes for a format."""
    if not name.startswith("own_"):
        return f"dither.{name.upper()}"
    element, scale, block = FORMATS[name]
    return f"dither.Format(element=dl.{element}, scale=dl.{scale}, block={block})"


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
class Global:
    """A line of the module, and how a kernel reads what it defines: by kind, text and value."""

    line: str
    reads: dict[str, tuple[str, Any]]


@dataclasses.dataclass
class Output:
    """A tensor that programs write: `origin` of this program's cell, and the cell's extents."""

    argument: Argument
    origin: tuple[str, ...]
    cell: Shape
    #: In an order that has no strides.
    dense: bool = False


class Draws:
    """The state of one program."""

    #: Shapes are drawn from these extents, and have no more elements than this.
    rows: int
    columns: int
    cap: int
    grid: tuple[int, int, int]

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
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
        #: What the module defines and the kernel captures.
        self.globals: dict[str, Global] = {}
        #: Numbers of run time that only offsets take.
        self.wide: list[str] = []
        #: Variables that loops have carried.
        self.carried: set[str] = set()
        self.cost = 0
        self.loops: list[Int] = []
        self.in_helper = False
        self.in_branch = 0
        #: For each loop around: the most iterations that it makes.
        self.trips: list[int] = []
        #: Rows of the grammar that made something.
        self.drawn: set[str] = set()

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

    def define(self, text: str, dtype: str, shape: Shape, prefix: str = "v") -> Var:
        """Emits a new variable."""
        var = Var(self.name(prefix), dtype, shape)
        self.emit(f"{var.name} = {text}")
        self.vars.append(var)
        return var

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

    def kept(self) -> list[list[Any]]:
        """The lists that rows append to."""
        made: list[list[Any]] = [self.lines, self.vars, self.ints, self.inputs, self.outputs, self.helpers]
        return [*made, self.floats, self.atomics, self.aliases, self.wide]

    def save(self) -> Any:
        """What a row that fails must not leave behind."""
        return [len(x) for x in self.kept()], dict(self.numbers), dict(self.constants), dict(self.globals), self.indent

    def restore(self, state: Any) -> None:
        """Back to `save`."""
        lengths, self.numbers, self.constants, self.globals, self.indent = state
        for x, length in zip(self.kept(), lengths, strict=True):
            del x[length:]

    def shape(self) -> Shape:
        """A shape of the palette."""
        r, c = self.rows, self.columns
        table = {(r, c): 10, (r, 1): 1.5, (1, c): 1.5, (c,): 1, (c, r): 1, (): 0.5, (r,): 0.4, (1, 1): 0.3}
        if self.chance(0.15):
            other = (self.pick([1, 2, 3, 4, 6, 8, 32]), self.pick([1, 2, 4, 9, 16, 32, 64]))
            if other[0] * other[1] <= self.cap:
                return other
        blocks = self.pick([1, 1, 2, 5, 8]), 32 * self.pick([1, 3, 5, 9, 13])
        if self.chance(0.1) and blocks[0] * blocks[1] <= self.cap:
            return blocks
        return self.weighted(table)

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one."""
        if not shape:
            return ()
        if len(shape) == 1:
            return self.weighted({shape: 5, (1,): 1, (): 1})
        r, c = shape
        return self.weighted({(r, c): 6, (r, 1): 1.5, (1, c): 1.5, (c,): 1, (1, 1): 0.3, (): 0.5})

    # ---- what others make

    def tile(self, dtype: str, shape: Shape, depth: int) -> str:
        """An expression of this type and shape."""
        raise NotImplementedError
