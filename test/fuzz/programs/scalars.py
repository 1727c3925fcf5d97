"""Integers, floats and truths that a program computes with at run time."""

from __future__ import annotations

from typing import Any

from .draws import FUNCTIONS, Draws, Global, Int

#: What a kernel captures: a class of configurations.
CONFIG = """@dataclasses.dataclass(frozen=True)
class Config:
    gain: float
    count: int
    on: bool
    name: str = "a"


"""


class Numbers(Draws):
    """Draws scalars."""

    def captured(self, kind: str) -> tuple[str, Any]:
        """A float, an integer or a truth of the module: how to read it, and its value."""
        known = [g.reads[kind] for g in self.globals.values() if kind in g.reads]
        if known and self.chance(0.5):
            return self.pick(known)
        gain = self.pick(["0.75", "-2.0", 'float("inf")', '-float("inf")', 'float("nan")', "1e-3"])
        values = {
            "float": (gain, None),
            "int": (count := self.pick([1, 2, 3]), count),
            "bool": (on := self.chance(0.5), on),
        }
        form = self.pick(["VALUE", "TABLE", "CONFIG"])
        name = self.name(form)
        if form == "VALUE":
            text, value = values[kind]
            made = Global(f"{name} = {text}", {kind: (name, value)})
        elif form == "TABLE":
            entries = {k: (f"{name}[{i}]", value) for i, (k, (_, value)) in enumerate(values.items())}
            made = Global(f"{name} = ({', '.join(str(text) for text, _ in values.values())})", entries)
        else:
            fields = dict(zip(values, ("gain", "count", "on"), strict=True))
            given = ", ".join(f"{fields[k]}={text}" for k, (text, _) in values.items())
            made = Global(f"{name} = Config({given})", {k: (f"{name}.{fields[k]}", v) for k, (_, v) in values.items()})
        self.globals[name] = made
        return made.reads[kind]

    def constant_integer(self) -> Int:
        """An integer that is known while compiling, in the ways that kernels write one."""
        shaped = [v for v in self.vars if v.shape]
        form = self.weighted({"literal": 3, "captured": 1, "programs": 1, "shape": 1 if shaped else 0})
        if form == "captured":
            text, number = self.captured("int")
            return Int(text, number, number)
        if form == "programs":
            axis = self.random.randrange(3)
            return Int(f"dl.num_programs({axis})", self.grid[axis], self.grid[axis])
        if form == "shape":
            v = self.pick(shaped[-4:])
            d = self.random.randrange(len(v.shape))
            return Int(f"{v.name}.shape[{d}]", v.shape[d], v.shape[d])
        value = self.pick([0, 1, 2, 3, 4])
        return Int(str(value), value, value)

    def integer(self, depth: int = 1) -> Int:
        """A small integer."""
        if depth == 0 or not self.ints or self.chance(0.5):
            if self.ints and self.chance(0.8):
                return self.pick(self.ints)
            return self.constant_integer()
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
        if self.chance(0.06):
            return f"({self.captured('bool')[0]})"
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
                *(f"dl.{self.pick(FUNCTIONS)}({a})", f"dl.maximum({a}, {b})"),
                *(f"dl.minimum({b}, {a})", f"dl.where({a} > {b}, {a}, {b})", f"({a} if {self.condition(0)} else {a})"),
            ]
        )

    def comparison(self) -> str:
        """A symbol."""
        return self.pick(["<", "<=", ">", ">=", "==", "!="])

    def literal(self) -> str:
        """A float that is a constexpr."""
        if self.chance(0.1):
            return self.captured("float")[0]
        return self.pick(
            [
                *("0.0", "-0.0", "1.0", "0.5", "-1.5", "2.0", "3.0", "0.1", "-0.3", "1e-3", "448.0", "65504.0", "1e30"),
                *("1e-40", "-1e38", "0.3333333333", "6.0", "1e-20"),
            ]
        )
