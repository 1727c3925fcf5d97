"""Integers, floats and truths that a program computes with at run time."""

from __future__ import annotations

from .draws import Draws, Int


class Numbers(Draws):
    """Draws scalars."""

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
