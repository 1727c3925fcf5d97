"""Block-scaled formats as data: what a block is, how it is scaled and rounded.

A format is a frozen object; `with_` gives a variant. Where a kernel or an operator takes a format, its
name as a string will do.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import types
from .errors import suggest

SCALE_ROUNDINGS = ("rceil", "floor", "ceil", "even")
SCALE_ORDERS = ("te", "div6_mul", "div6_div")


@dataclasses.dataclass(frozen=True, repr=False)
class Format:
    """A block-scaled format.

    Attributes:
        name: the descriptor's name in the compiler, such as "nvfp4".
        element: data type of the codes.
        scale: data type of the scale of a block.
        block: elements that share a scale.
        tensor_scale: whether the amax of the whole tensor scales the block scales (NVFP4).
        scale_rounding: how the shared exponent of a block is picked: rceil, floor, ceil or even (E8M0 scales).
        order: expression order of the two-level scale: te, div6_mul or div6_div (formats with a tensor scale).
    """

    name: str
    element: types.DType
    scale: types.DType
    block: int
    tensor_scale: bool
    scale_rounding: str
    order: str

    def __repr__(self) -> str:
        changes = ", ".join(f"{name}={value!r}" for name, value in self._changes().items())
        return f"dither.{self.name.upper()}" + (f".with_({changes})" if changes else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_format, (self.name, self._changes())

    def with_(self, *, scale_rounding: str | None = None, order: str | None = None) -> Format:
        """This format with other choices; what is None stays."""
        changes: dict[str, Any] = {}
        if scale_rounding is not None:
            if self.scale is not types.e8m0:
                raise ValueError(f"{self.name} has scales of {self.scale}: scale_rounding is for e8m0 scales")
            changes["scale_rounding"] = _choice("scale_rounding", scale_rounding, SCALE_ROUNDINGS)
        if order is not None:
            if not self.tensor_scale:
                raise ValueError(f"{self.name} has no tensor scale: order is for formats that have one")
            changes["order"] = _choice("order", order, SCALE_ORDERS)
        return dataclasses.replace(self, **changes)

    def mlir(self) -> str:
        """The attribute, such as `#quant.format<mxfp4, scale_rounding = even>`."""
        changes = "".join(f", {name} = {value}" for name, value in self._changes().items())
        return f"#quant.format<{self.name}{changes}>"

    def _changes(self) -> dict[str, str]:
        standard = FORMATS[self.name]
        names = ("scale_rounding", "order")
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(standard, name)}


def restore_format(name: str, changes: dict[str, str]) -> Format:
    """A format that was pickled or copied: the very object where it is a standard one."""
    return FORMATS[name].with_(**changes) if changes else FORMATS[name]


def _choice(what: str, value: object, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{what} is {value!r}, expected {', '.join(choices)}{suggest(value, choices)}")
    return str(value)


NVFP4 = Format("nvfp4", types.float4_e2m1, types.float8_e4m3, 16, True, "rceil", "te")
MXFP4 = Format("mxfp4", types.float4_e2m1, types.e8m0, 32, False, "floor", "te")
MXFP8_E4M3 = Format("mxfp8_e4m3", types.float8_e4m3, types.e8m0, 32, False, "rceil", "te")
MXFP8_E5M2 = Format("mxfp8_e5m2", types.float8_e5m2, types.e8m0, 32, False, "rceil", "te")

FORMATS: dict[str, Format] = {f.name: f for f in (NVFP4, MXFP4, MXFP8_E4M3, MXFP8_E5M2)}


def get_format(value: str | Format) -> Format:
    """The format itself, or the one of this name (in any case).

    Raises TypeError for other objects and ValueError for unknown names, with the nearest known one.
    """
    if isinstance(value, Format):
        return value
    if not isinstance(value, str):
        raise TypeError(f"found {value!r} as a format, expected a dither format or its name")
    name = value.lower()
    if name not in FORMATS:
        raise ValueError(f"unknown format {value!r}, expected {', '.join(FORMATS)}{suggest(name, FORMATS)}")
    return FORMATS[name]
