"""Arguments: where tensors lie in memory, what programs read of them and where they write."""

from __future__ import annotations

import dataclasses

from .draws import No, Output, Shape
from .program import Argument
from .scalars import Numbers


class Tensors(Numbers):
    """Draws arguments."""

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

    def input(self, dtype: str, shape: Shape) -> Argument:
        """A new tensor to read, about as large as the grid's tiles are together."""
        extents = []
        for extent in shape:
            times = self.pick([1, 1, 2, self.grid[0], self.grid[1]])
            n = extent * times + self.weighted({0: 6, -1: 1, 1: 1, 2: 0.5, 7: 0.5, -(extent // 2): 1})
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

    def offset(self, extent: int) -> str:
        """Where a loaded tile begins along a dimension."""
        kind = self.weighted(
            {"id": 6, "zero": 3, "constant": 1, "integer": 0.7, "far": 0.2, "loop": 6 if self.loops else 0}
        )
        ids = [i.text for i in self.ints if i.text.startswith("p")]
        if kind == "id" and ids:
            text = f"{self.pick(ids)} * {extent}"
            return text + (f" + {self.pick([1, 2, 3])}" if self.chance(0.1) else "")
        if kind == "loop" and self.loops:
            return f"{self.loops[-1].text} * {extent}"
        if kind == "constant":
            return str(self.pick([1, 2, 3, extent, -1, -2, extent + 1]))
        if kind == "integer":
            return self.integer().text
        return self.far() if kind == "far" else "0"

    def far(self) -> str:
        """An offset where there is nothing."""
        if self.chance(0.5):
            if not self.wide or self.chance(0.3):
                name = self.name("w")
                self.numbers[name] = self.pick([2**40, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**31, -(2**33)])
                self.wide.append(name)
            return self.pick(self.wide)
        return self.pick(["2**62", "-(2**40)", "9223372036854775807", "-9223372036854775807 - 1", "4294967296"])

    def output(self, dtype: str, shape: Shape, extents: Shape | None = None) -> Output:
        """A new tensor to write, with a cell for each program; in loops a part of the cell for each iteration."""
        if dtype == "float4_e2m1" and not shape:
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
