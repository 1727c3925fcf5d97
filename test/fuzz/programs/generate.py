"""Makes a program from a seed: typed, right by construction, over the whole language.

`EXPRESSIONS` and `STATEMENTS` are the grammar: a row is a weight and a method. A new feature of the language is a new
row.

Right by construction: a program writes to its own part of an output (its cell) alone, and reads none but its own;
what Semantics.md leaves undefined has no row.
"""

from __future__ import annotations

import contextlib
import re

from .draws import Int, No
from .program import HEADER, Program
from .scalars import CONFIG
from .statements import STATEMENTS, Statements


def names_in(text: str) -> set[str]:
    """The words of a text."""
    return set(re.findall(r"\w+", text))


class Generator(Statements):
    """Draws a program."""

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
                # By the seed: what it drew before this was there, it draws still.
                backwards = ", backwards=True" if (self.seed + axis) % 5 == 0 else ""
                self.emit(f"p{axis} = dl.program_id({axis}{backwards})")
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
        # Some kernels do one thing alone: much of the compiler is for them.
        alone = self.chance(0.2)
        for _ in range(1 if alone else self.weighted({1: 2, 2: 2, 3: 3, 4: 3, 5: 2, 7: 1})):
            self.statement(STATEMENTS)
        stores = self.weighted({1: 3, 2: 2, 3: 1}) if not (alone and self.outputs) else 0
        for _ in range(stores):
            self.statement({Statements.store: 1})
        if not self.outputs and not self.atomics:
            self.define(self.tile("float32", (self.rows, self.columns), 0), "float32", (self.rows, self.columns))
            self.statement({Statements.store: 1})
        return self.finish()

    def finish(self) -> Program:
        """Text and arguments; those that the text does not name are left out."""
        self.interleave()
        body = "\n".join(self.lines) + "\n"
        everything = [*self.inputs, *(o.argument for o in self.outputs), *self.atomics, *self.aliases]
        words = names_in(body)
        owners = {a.of for a in everything if a.name in words}
        arguments = [a for a in everything if a.name in words or a.name in owners]
        numbers = {n: v for n, v in self.numbers.items() if n in words}
        constants = {n: v for n, v in self.constants.items() if n in words}
        helpers = [h for h in self.helpers if h.split("def ", 1)[1].split("(", 1)[0] in words]
        for h in helpers:
            assert not names_in(h) & set(self.constants), h
        parameters = [a.name for a in arguments] + list(numbers) + [f"{n}: dl.constexpr" for n in constants]
        shapes = self.weighted({None: 8, "static": 1, "dynamic": 1})
        decorator = "@dither.jit" + (f"(shapes={shapes!r})" if shapes else "")
        named = words.union(*(names_in(h) for h in helpers))
        lines = [g.line for name, g in self.globals.items() if name in named]
        head = CONFIG if any("Config(" in line for line in lines) else ""
        head += "".join(f"{line}\n" for line in [*lines, *([""] * 2 if lines else [])])
        source = f"{HEADER}\n{head}{''.join(h + chr(10) + chr(10) for h in helpers)}{decorator}\n"
        source += f"def k({', '.join(parameters)}):\n{body}"
        warps = self.weighted({None: 6, 1: 1, 2: 1, 4: 1, 8: 1})
        return Program(source, arguments, numbers, constants, self.grid, warps, shapes)


def generate(seed: int) -> Program:
    """The program of a seed."""
    for attempt in range(100):
        try:
            return Generator(seed + (attempt << 40)).program()
        except No:
            continue
    raise AssertionError(f"seed {seed} gives no program")
