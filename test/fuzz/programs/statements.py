"""Rows of the grammar for statements, and their weights: `STATEMENTS`, and `BODY` for those of loops and branches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from .draws import FORMATS, HALF, NARROW, Int, No, Shape, Var
from .expressions import Expressions

#: Elements that a warp has registers for: loops and branches hand on no larger tile.
REGISTERS = 1024
#: Shapes of tiles that loops carry: an odd number of blocks.
CARRIED = tuple((r, 32 * n) for r in (1, 2, 5, 8) for n in (3, 5, 9, 13) if r * 32 * n <= REGISTERS)


class Statements(Expressions):
    """Draws lines of a kernel."""

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

    def assign(self) -> None:
        """`v = ..`, new or again."""
        dtype = self.weighted({"float32": 8, "int32": 1, "int64": 0.5, "bool": 0.7, "bfloat16": 1, "float16": 1})
        if self.chance(0.12):
            dtype = self.pick(NARROW)
        shape = self.shape()
        text = self.tile(dtype, shape, self.weighted({1: 3, 2: 4, 3: 1}))
        self.define(text, dtype, shape)

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
        if all(n % block for n in shape) or self.chance(0.2):
            few = (self.pick([1, 2, 3, 4, 5, 8]), self.pick([1, 1, 2, 3, 5, 9]) * block)
            shape = self.pick([few, (block, self.pick([1, 2, 4, 5, 8, 32]))])
        if self.chance(0.2):
            shape = (self.pick([block, block, 2 * block, 4 * block]),)
        known = [v for v in self.vars if v.dtype in ("float32", *HALF) and any(n % block == 0 for n in v.shape)]
        ran = [v for v in known if v.name in self.carried]
        given = self.pick(ran or known[-3:]) if known and self.chance(0.6 if ran else 0.4) else None
        shape = given.shape if given else shape
        axis = self.axis_for(shape, block)
        amax = self.tensor_amax(name)
        source = self.weighted({"float32": 5, "bfloat16": 1.5, "float16": 1.5})
        t = given or self.define(self.tile(source, shape, 2), source, shape)
        s = self.define(
            f"dl.block_scale({t.name}, {text}, axis={axis}{amax})", scale, self.scaled(shape, axis, block), "s"
        )
        if self.chance(0.9 if len(shape) == 2 else 0.6):
            bits = f", bits={self.bits_for(shape, 1)}" if self.chance(0.2) else ""
            q = self.define(f"dl.cast({t.name}, {s.name}, {text}, axis={axis}{amax}{bits})", element, shape, "q")
            s.used = t.used = True
            if self.chance(0.3):
                self.define(f"dl.dequantize({q.name}, {s.name}, {text}, axis={axis}{amax})", "float32", shape)
            if self.chance(0.6):
                self.store_var(q)
        if self.chance(0.6):
            self.store_scales(s)

    def store_scales(self, s: Var) -> None:
        """Scales in either order, those of a byte."""
        if len(s.shape) != 2 or s.dtype == "float32" or self.chance(0.6) or self.loops or self.in_branch:
            self.store_var(s)
            return
        text, shape = s.name, s.shape
        if self.chance(0.3):
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
        return [v for v in self.vars if math.prod(v.shape) <= REGISTERS]

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
        header, number, low, high, trips = self.iterations()
        i = self.name("i")
        number = number.replace("@", i)
        carried = []
        found = self.reassignable()
        if found and self.chance(0.7):
            carried.append(self.pick(found[-4:]))
        if not carried or self.chance(0.4):
            shape = self.pick(CARRIED) if self.chance(0.3) else self.shape()
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
        with self.block():
            self.ints.append(Int(i, low, high))
            self.loops.append(Int(number, 0, max(trips, 1) - 1))
            self.trips.append(max(trips, 1))
            if count is not None:
                self.emit(f"{count.text} = {count.text} + {self.pick([i, '1', '2', i])}")
                reach = 4 * (max(abs(low), abs(high)) + 8)
                count.low, count.high = count.low - reach, count.high + reach
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
                    whole = len(var.shape) == 2 and self.chance(0.5)
                    text = self.whole(var) if whole else text
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
        self.carried |= {v.name for v in carried}
        if self.chance(0.5):
            self.statement({Statements.quantize: 1})

    def whole(self, v: Var) -> str:
        """What all of a row or column gives, as in norms of tiles that come one by one."""
        inner = v.name if self.chance(0.3) else self.tile("float32", v.shape, self.pick([0, 1]))
        return f"dl.{self.pick(['sum', 'sum', 'max', 'amax'])}({inner}, axis={self.pick([1, 1, 0])})"

    def running(self) -> None:
        """A tile that takes up sums or maxima, one part after the other, and is quantized."""
        if self.indent > 2:
            raise No
        name, text = self.format()
        element, scale, block = FORMATS[name]
        shape: Shape = self.pick(CARRIED)
        if self.chance(0.4):
            shape = (self.pick([1, 2, 5, 8]), block * self.pick([1, 2, 3]))
        if self.chance(0.2):
            shape = shape[::-1]
        start = self.pick([f"dl.zeros({shape})", self.load("float32", shape, 0), self.tile("float32", shape, 1)])
        v = self.define(start, "float32", shape)
        header, number, low, high, trips = self.iterations()
        i = self.name("i")
        self.emit(f"for {i} in {header}:")
        with self.block():
            self.ints.append(Int(i, low, high))
            self.loops.append(Int(number.replace("@", i), 0, max(trips, 1) - 1))
            self.trips.append(max(trips, 1))
            part = self.whole(v)
            self.emit(f"{v.name} = {self.pick([f'{v.name} + {part}', f'dl.maximum({v.name}, {part})'])}")
            self.loops.pop()
            self.trips.pop()
        axis = self.axis_for(shape, block)
        amax = self.tensor_amax(name)
        s = self.define(
            f"dl.block_scale({v.name}, {text}, axis={axis}{amax})", scale, self.scaled(shape, axis, block), "s"
        )
        if self.chance(0.4):
            q = self.define(f"dl.cast({v.name}, {s.name}, {text}, axis={axis}{amax})", element, shape, "q")
            self.store_var(q)
        self.store_scales(s)

    def iterations(self) -> tuple[str, str, int, int, int]:
        """What a loop runs over: text, iterations before that of the variable @, its bounds, number of iterations."""
        trips = self.weighted({1: 1, 2: 3, 3: 2, 4: 0.5, 0: 0.2})
        bounded = [n for n in self.numbers if isinstance(self.numbers[n], int) and 0 <= self.numbers[n] <= 4]
        form = self.weighted(
            {"unrolled": 2, "plain": 4, "number": 4, "down": 1, "step": 1, "far": 0.3, "programs": 0.7}
        )
        if form == "number" and bounded:
            n = self.pick(bounded)
            count = int(self.numbers[n])
            return self.pick([f"range({n})", f"range(0, {n})"]), "@", 0, max(count - 1, 0), count
        if form == "step" and bounded:
            n = self.pick(bounded)
            step = max(int(self.numbers[n]), 1)
            return f"range(0, 4, {n})", f"(@ // {step})", 0, 3, len(range(0, 4, step)) if self.numbers[n] else 0
        if form == "programs" and any(i.text == "p0" for i in self.ints):
            last = self.pick([2, 3, 4])
            text = f"range(p0, {last}, dl.num_programs(0))"
            return text, "((@ - p0) // dl.num_programs(0))", 0, last, -(-last // self.grid[0])
        function = "dl.static_range" if form == "unrolled" else "range"
        if form == "down" or (form == "unrolled" and self.chance(0.2)):
            step = self.pick([-1, -2, -3])
            text = f"{function}({trips - 1}, -1, {step})"
            return text, f"((@ - {trips - 1}) // {step})", 0, max(trips - 1, 0), len(range(trips - 1, -1, step))
        if form == "far":
            return f"{function}(5, {5 + 2 * trips}, 2)", "((@ - 5) // 2)", 5, 5 + 2 * max(trips - 1, 0), trips
        return f"{function}({trips})", "@", 0, max(trips - 1, 0), trips

    def store_var(self, v: Var) -> None:
        """Writes a variable, perhaps transposed."""
        text, shape = v.name, v.shape
        if v.dtype == "bool":
            text, dtype = f"{text}.to(dl.int32)", "int32"
        else:
            dtype = v.dtype
        if len(shape) == 2 and self.chance(0.12):
            text, shape = f"{text}.T", shape[::-1]
        if dtype == "float32" and self.chance(0.25):
            dtype = self.pick([*HALF, "float8_e4m3", "float8_e5m2", "float6_e2m3", "float6_e3m2", "int8"])
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

    def nowhere(self) -> None:
        """Writes outside of a tensor: nothing."""
        found = [v for v in self.vars if v.shape and v.dtype != "bool"]
        if not found:
            raise No
        v = self.pick(found)
        output = self.output(v.dtype, v.shape)
        parts = list(output.origin)
        parts[self.random.randrange(len(parts))] = self.far()
        v.used = True
        self.emit(f"dl.store({output.argument.name}, ({', '.join(parts)},), {v.name})")

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

    def count(self) -> None:
        """`dl.atomic_add` of integers, from all programs."""
        dtype = self.pick(["int32", "int32", "int64"])
        shape = self.pick([(), (self.rows, 1), (1, self.columns), (self.rows, self.columns)])
        argument = self.argument("a", dtype, shape, "any")
        argument.shapes = None
        self.atomics.append(argument)
        offset = f"({', '.join(str(self.pick([0, 0, 1, -1])) for _ in shape)})"
        self.emit(f"dl.atomic_add({argument.name}, {offset}, {self.tile(dtype, shape, 1)})")

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
        texts = [f"{x.name}.ndim == {len(x.shape)}, 'rank'", f"{x.name}.dtype == dl.{x.dtype}"]
        for v in self.vars[-2:]:
            texts += [f"{v.name}.shape == {v.shape}", f"{v.name}.dtype == dl.{v.dtype}, '{v.name}'"]
        for name, value in self.constants.items():
            texts.append(f"{name} == {name}" if isinstance(value, str) else f"{name} == {value}")
        self.emit(f"dl.static_assert({self.pick(texts)})")

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


G = Statements
BODY: dict[Callable[..., None], float] = {
    G.assign: 6,
    G.store: 2,
    G.quantize: 1,
    G.loop: 0.3,
    G.branch: 0.5,
    G.atomic: 0.2,
    G.count: 0.2,
}
STATEMENTS: dict[Callable[..., None], float] = {
    G.assign: 8,
    G.pair: 0.5,
    G.store: 2,
    G.quantize: 3,
    G.norm: 0.6,
    G.branch: 1.5,
    G.loop: 1.5,
    G.running: 0.8,
    G.atomic: 0.5,
    G.count: 0.3,
    G.update: 0.8,
    G.check: 0.3,
    G.nowhere: 0.3,
    G.extent: 0.4,
    G.guarded: 0.5,
}
