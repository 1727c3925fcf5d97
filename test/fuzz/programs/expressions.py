"""Rows of the grammar for expressions, and `EXPRESSIONS`, the weight of each.

A method that cannot make what was asked for raises `No`, and another one is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from .codes import Codes
from .draws import FUNCTIONS, HALF, NARROW, Int, No, Shape, Var


class Expressions(Codes):
    """Draws tiles."""

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
        if dtype == "float4_e2m1" and not shape:
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
        offsets = [self.offset(extent) for extent in shape]
        return f"dl.load({x.name}, ({', '.join(offsets)},), {shape})"

    def rows(self, dtype: str, shape: Shape, depth: int) -> str:
        """Rows of an input that a tile names, most of them there."""
        if len(shape) != 2 or dtype == "bool" or self.in_helper:
            raise No
        found = [a for a in self.inputs if a.dtype == dtype and len(a.shape) == 2]
        x = self.pick(found) if found and self.chance(0.6) else self.input(dtype, shape)
        index = self.tile("int32", self.pick([(shape[0],), (shape[0], 1)]), depth - 1)
        if self.chance(0.8):
            index = f"({index} % {x.shape[0] + 1})"
        return f"dl.load({x.name}, ({index}, {self.offset(shape[1])},), {shape})"

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
        name = self.pick([*FUNCTIONS, "floor", "ceil", "rint"])
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

    def choose(self, dtype: str, shape: Shape, depth: int) -> str:
        """A choice of the two that are compared, or of one with either sign: no maximum and no magnitude, as zeros and
        NaN tell."""
        a = self.widen(dtype, shape, 1) if self.chance(0.4) else self.tile(dtype, shape, depth - 1)
        b = self.pick(["0.0", "-0.0", self.literal()]) if self.chance(0.7) else self.tile(dtype, shape, 0)
        compared, chosen = [a, b], [a, b]
        if self.chance(0.3):
            chosen[1] = self.pick([f"(-{a})", f"(0.0 - {a})", f"dl.abs({a})"])
        self.random.shuffle(compared)
        self.random.shuffle(chosen)
        return f"dl.where({f' {self.comparison()} '.join(compared)}, {', '.join(chosen)})"

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
                "float6_e2m3": 0.5,
                "float6_e3m2": 0.5,
                "int8": 0.5,
                "float4_e2m1": 1,
                "e8m0": 0.6,
            }
        )
        return f"{self.tile(source, shape, depth - 1)}.to(dl.float32)"

    def transpose(self, dtype: str, shape: Shape, depth: int) -> str:
        """`t.T`."""
        if len(shape) != 2:
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

    def part(self, dtype: str, shape: Shape, depth: int) -> str:
        """`t[2:10, :]`, `t[3]`, `t[:, 1::2]`."""
        if not shape:
            raise No
        if dtype in ("float32", *HALF) and self.chance(0.25):
            return self.every(dtype, shape, depth)
        whole = [n + self.weighted({0: 3, 1: 1, 3: 1, 16: 1, n: 2}) for n in shape]
        keys = []
        for n, extent in zip(shape, whole, strict=True):
            start = self.pick([0, extent - n, self.random.randint(0, extent - n)])
            entry = f"{start or ''}:{start + n if start + n < extent else ''}"
            keys.append(f"{start - extent}:{start - extent + n or ''}" if self.chance(0.1) else entry)
        if len(shape) == 1 and self.chance(0.4):
            at = self.random.randrange(2)
            extent = self.pick([2, 3, 8])
            whole.insert(at, extent)
            keys.insert(at, str(self.random.randint(-extent, extent - 1)))
        if len(whole) == 2 and whole[0] * whole[1] > self.cap:
            raise No
        return f"{self.tile(dtype, tuple(whole), depth - 1)}[{', '.join(keys)}]"

    def every(self, dtype: str, shape: Shape, depth: int) -> str:
        """`t[:, 1::2]`: some elements of as many whole steps, and a few more at times."""
        whole, keys = [], []
        for n in shape:
            step = self.weighted({1: 2, 2: 4, 4: 1, 8: 0.5})
            extent = n * step + self.weighted({0: 5, 1: 1, 3: 1})
            start = self.random.randint(0, extent - 1 - (n - 1) * step)
            last = start + (n - 1) * step
            stop = self.random.randint(last + 1, min(last + step, extent))
            whole.append(extent)
            keys.append(f"{start or ''}:{stop if stop < extent else ''}:{step}")
        if math.prod(whole) > self.cap:
            raise No
        return f"{self.tile(dtype, tuple(whole), depth - 1)}[{', '.join(keys)}]"

    def concat(self, dtype: str, shape: Shape, depth: int) -> str:
        """`dl.concat`."""
        axes = [d for d, n in enumerate(shape) if n > 1]
        if not axes:
            raise No
        axis = self.pick(axes)
        cuts = {self.random.randint(1, shape[axis] - 1) for _ in range(self.weighted({1: 4, 2: 1}))}
        if shape[axis] % 2 == 0 and self.chance(0.5):
            cuts = {shape[axis] // 2}
        ends = [0, *sorted(cuts), shape[axis]]
        tiles = [
            self.tile(dtype, (*shape[:axis], end - start, *shape[axis + 1 :]), depth - 1)
            for start, end in itertools.pairwise(ends)
        ]
        shown = axis - len(shape) if self.chance(0.2) else axis
        return f"dl.concat(({', '.join(tiles)}), {shown})"

    def hadamard(self, dtype: str, shape: Shape, depth: int) -> str:
        """`dl.hadamard`."""
        sizes = [(d, size) for d, n in enumerate(shape) for size in (2, 4, 8, 16, 32, 64) if n % size == 0]
        if not sizes:
            raise No
        axis, size = self.pick(sizes[-3:])
        signs = f", signs={self.random.randrange(1 << size)}" if self.chance(0.3) else ""
        inner = self.tile(self.pick(["float32", "float32", *HALF]), shape, depth - 1)
        return f"dl.hadamard({inner}, {axis}, {size}{signs})"

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
        if dtype == "int32" and self.chance(0.1):
            a = self.tile(dtype, shape, depth - 1)
            factor = self.pick([self.tile(dtype, self.broadcastable(shape), depth - 1), "0xD2511F53", "-7"])
            return f"dl.{self.pick(['mulhi', 'umulhi'])}({a}, {factor})"
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


G = Expressions
EXPRESSIONS: dict[str, dict[Callable[..., str], float]] = {
    "float32": {
        G.var: 8,
        G.load: 2,
        G.rows: 0.6,
        G.full: 0.7,
        G.arithmetic: 7,
        G.unary: 1.5,
        G.function: 1.5,
        G.fma: 1,
        G.extremum: 2,
        G.where: 2,
        G.choose: 0.7,
        G.widen: 3,
        G.transpose: 0.8,
        G.hadamard: 0.5,
        G.stochastic_round: 0.5,
        G.part: 0.7,
        G.concat: 0.6,
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
        G.rows: 0.3,
        G.arange: 3,
        G.full: 1,
        G.int_arithmetic: 4,
        G.int_division: 1,
        G.logic: 1.5,
        G.unary: 0.7,
        G.extremum: 1.5,
        G.where: 1,
        G.to_int: 1,
        G.random_bits: 1.5,
        G.transpose: 0.3,
        G.part: 0.3,
        G.concat: 0.2,
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
        G.part: 0.3,
        G.concat: 0.2,
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
        G.part: 0.3,
        G.concat: 0.2,
        G.reshape: 0.3,
        G.broadcast: 0.5,
    },
    "half": {
        G.var: 5,
        G.load: 4,
        G.rows: 0.4,
        G.round: 4,
        G.full: 0.5,
        G.transpose: 0.5,
        G.part: 0.4,
        G.concat: 0.3,
        G.reshape: 0.4,
        G.broadcast: 0.4,
    },
    "narrow": {
        G.var: 5,
        G.load: 4,
        G.rows: 0.4,
        G.encode: 3,
        G.cast: 2,
        G.block_scale: 2,
        G.transpose: 0.5,
        G.part: 0.4,
        G.concat: 0.3,
        G.reshape: 0.2,
    },
}
LEAVES = {G.var, G.load, G.full, G.arange, G.mask}
