"""Rows of the grammar for 16-bit floats, codes and scales."""

from __future__ import annotations

import contextlib

from .draws import FORMATS, No, Shape, format_text
from .tensors import Tensors


class Codes(Tensors):
    """Draws expressions of narrow types."""

    def round(self, dtype: str, shape: Shape, depth: int) -> str:
        """float32 rounded to 16 bits."""
        source = self.weighted({"float32": 5, "half": 1, "int32": 0.5, "int64": 0.3, "bool": 0.3})
        if source == "half":
            source = "bfloat16" if dtype == "float16" else "float16"
        like = [v.name for v in self.vars if v.dtype == dtype]
        name = f"{self.pick(like)}.dtype" if like and self.chance(0.2) else f"dl.{dtype}"
        return f"{self.tile(source, shape, depth - 1)}.to({name})"

    def encode(self, dtype: str, shape: Shape, depth: int) -> str:
        """Codes of floats."""
        source = self.weighted({"float32": 5, "bfloat16": 1, "float16": 1})
        rounding = f", rounding={self.pick(['rceil', 'floor'])!r}" if dtype == "e8m0" else ""
        return f"{self.tile(source, shape, depth - 1)}.to(dl.{dtype}{rounding})"

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
            elif FORMATS[name][1] == "e8m0":
                options = f".with_(scale_rounding={self.pick(['rceil', 'floor', 'ceil', 'even'])!r})"
        text = f"{format_text(name)}{options}"
        if self.chance(0.4) and not self.in_helper:
            constant = self.name("FMT")
            self.constants[constant] = text
            return name, constant
        return name, text if options or name.startswith("own_") or self.chance(0.5) else repr(name)

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
        name, text = self.format(element=dtype)
        axis = self.axis_for(shape, FORMATS[name][2])
        scales = self.scaled(shape, axis, FORMATS[name][2])
        x = self.tile(self.weighted({"float32": 4, "bfloat16": 1, "float16": 1}), shape, depth - 1)
        s = self.tile(FORMATS[name][1], scales, depth - 1)
        bits = f", bits={self.bits_for(shape, depth - 1)}" if self.chance(0.3) else ""
        return f"dl.cast({x}, {s}, {text}, axis={axis}{self.tensor_amax(name)}{bits})"

    def stochastic_round(self, dtype: str, shape: Shape, depth: int) -> str:
        """`dl.stochastic_round`, with any bits."""
        kinds = ["float4_e2m1", "float6_e2m3", "float6_e3m2", "float8_e4m3", "float8_e5m2", "int8"]
        x = self.tile(self.weighted({"float32": 4, "bfloat16": 1, "float16": 1}), shape, depth - 1)
        return f"dl.stochastic_round({x}, {self.bits_for(shape, depth - 1)}, dl.{self.pick(kinds)})"

    def bits_for(self, shape: Shape, depth: int) -> str:
        """Random bits of each element of a tile, or any others."""
        if self.chance(0.5):
            with contextlib.suppress(No):
                return self.random_bits("int32", shape, depth)
        return self.tile("int32", shape, depth)

    def random_bits(self, dtype: str, shape: Shape, depth: int) -> str:
        """`dl.random_bits` of any part of a tensor."""
        axes = [d for d, n in enumerate(shape) if n % 16 == 0]
        if len(shape) != 2 or not axes:
            raise No
        seed, offset, line, group, groups = (
            self.integer().text if self.ints and self.chance(0.3) else str(self.pick(numbers))
            for numbers in ([0, 7, -1, 2**40], [0, 3, 2**33], [0, 5, 2**31], [0, 1, 9], [1, 3, 2**29])
        )
        options = f", axis={self.pick(axes)}, offset={offset}, columnwise={self.chance(0.5)}"
        return f"dl.random_bits({seed}, ({line}, {group}), {shape}, {groups}{options})"

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
        axis = self.axis_for(shape, block)
        q = self.tile(element, shape, depth - 1)
        s = self.tile(scale, self.scaled(shape, axis, block), depth - 1)
        return f"dl.dequantize({q}, {s}, {text}, axis={axis}{self.tensor_amax(name)})"
