"""Block-scaled formats as data: what a block is, how it is scaled and rounded.

A format is a frozen object that says everything there is to know of it; the built-in ones are such objects with a
name. `with_` gives a variant. Where a kernel or an operator takes a format, the name of a built-in one will do.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from collections.abc import Set
from typing import Any

from . import types
from .data_classes import dataclass
from .errors import suggest

SCALE_ROUNDINGS = ("rceil", "floor", "ceil", "even")
SCALE_ORDERS = ("te", "div6_mul", "div6_div", "encode_first", "mul_inv6")
TENSOR_SCALES = ("amax", "encode", "decode")
INF_SCALES = ("FE", "FF")
FOUR_OVER_SIX = ("none", "mae", "mse")
ELEMENTS = (types.float4_e2m1, types.float6_e2m3, types.float6_e3m2, types.int8, types.float8_e4m3, types.float8_e5m2)
#: The largest finite value of each.
LARGEST = {
    types.float4_e2m1: 6.0,
    types.float6_e2m3: 7.5,
    types.float6_e3m2: 28.0,
    types.int8: 127.0,
    types.float8_e4m3: 448.0,
    types.float8_e5m2: 57344.0,
}
SCALES = (types.e8m0, types.float8_e4m3, types.float32)


@dataclass(frozen=True, repr=False, kw_only=True)
class Format:
    """A block-scaled format.

    `dither.Format(element=dl.float4_e2m1, scale=dl.float8_e4m3, block=64)` is one that nobody has named. The formulas
    are in dialect/Quant/Semantics.md (Block scaling).

    Attributes:
        element: data type of the codes: float4_e2m1, float6_e2m3 or float6_e3m2 (a byte each), float8_e4m3,
            float8_e5m2 or int8 (-127 to 127; under e8m0 scales, in units of 2^-6).
        scale: data type of the scale of a block: e8m0, float8_e4m3 or float32.
        block: elements of a row that share a scale, or (rows, columns) of a block, powers of two; "row" for one scale
            in each row, "tensor" for one in all. Blocks along columns have rows and columns exchanged.
        tensor_scale: whether the amax of the whole tensor scales the block scales (NVFP4; float8_e4m3 scales).
        row_amax: whether operators take the amax of each row, or of each column for blocks along columns, in place of
            the tensor's (formats with a tensor scale and blocks of one row).
        transposed: whether operators store the codes of blocks along columns transposed, as NVFP4 is.
        scale_rounding: how the shared exponent of a block is picked: rceil, floor, ceil or even (e8m0 scales).
        order: expression order of the scale: te, div6_mul, div6_div or mul_inv6 (float8_e4m3 and float32 scales);
            encode_first (float32 scales), as of FP8 of a whole tensor: elements are multiplied by the largest element
            over the amax of their block, and the scale is one over that.
        pow2_scales: whether that quotient is cut to a power of two (order encode_first).
        epsilon: the amax of a block is taken to be at least this (order encode_first), a float32.
        tensor_scale_as: what stands for the tensor scale: its amax, which scales follow from, or a number that the
            tensor is multiplied by (encode) or one over that (decode), as it is.
        largest_scale: under a tensor scale, the scale of a block that has the tensor's amax, a float32 from 1 to 448;
            less leaves room for larger scales.
        least_scale: scales are at least this (float8_e4m3 and float32 scales, not encode_first), a float32.
        inf_scale: the scale of a block with an infinity: FE, 2^127, or FF, NaN (scale_rounding rceil; others give FF).
        nan_scales: whether a block with a NaN has NaN as its scale, and so as all of its values. Without, NaN elements
            do not count, and of formats without NaN they become the largest number.
        four_over_six: whether scales are such that the largest element of a block becomes 4, in place of 6, where the
            error of the block is smaller then: mae (the sum of the absolute errors) or mse (of their squares); none to
            let it be 6 (float4_e2m1 elements and float8_e4m3 scales).
        name: for messages; by default made of the element and the block.

    Raises TypeError or ValueError, which name the attribute, for values that it cannot have.
    """

    element: types.DType
    scale: types.DType
    block: int | tuple[int, int] | str
    tensor_scale: bool = False
    row_amax: bool = False
    transposed: bool = False
    scale_rounding: str = "rceil"
    order: str = "te"
    pow2_scales: bool = False
    epsilon: float = 0.0
    tensor_scale_as: str = "amax"
    largest_scale: float = 448.0
    least_scale: float = 0.0
    inf_scale: str = "FE"
    nan_scales: bool = False
    four_over_six: str = "none"
    name: str = ""

    def __post_init__(self) -> None:
        _type("element", self.element, ELEMENTS)
        _type("scale", self.scale, SCALES)
        rows, cols = _block(self.block)
        if rows is not None and cols is not None:
            object.__setattr__(self, "block", cols if rows == 1 else (rows, cols))
        if not isinstance(self.name, str):
            raise TypeError(f"name is {self.name!r}, expected a string")
        blocks = self.block if isinstance(self.block, str) else f"{rows}x{cols}"
        object.__setattr__(self, "name", self.name or f"{self.element}_{blocks}")
        for what in ("tensor_scale", "row_amax", "transposed", "pow2_scales", "nan_scales"):
            if not isinstance(getattr(self, what), bool):
                raise TypeError(f"{what} is {getattr(self, what)!r}, expected True or False")
        if self.tensor_scale and self.scale is types.e8m0:
            raise ValueError(f"{self.name} has scales of {self.scale}: a tensor scale is for float8_e4m3 scales")
        if self.tensor_scale and isinstance(self.block, str):
            raise ValueError(f"{self.name} has one scale for each {self.block}: a tensor scale is for shorter blocks")
        if self.row_amax and (not self.tensor_scale or rows != 1):
            raise ValueError(f"{self.name} has row_amax, expected it with a tensor scale and blocks of one row")
        _choice("scale_rounding", self.scale_rounding, SCALE_ROUNDINGS)
        _choice("order", self.order, SCALE_ORDERS)
        _choice("tensor_scale_as", self.tensor_scale_as, TENSOR_SCALES)
        _choice("inf_scale", self.inf_scale, INF_SCALES)
        _choice("four_over_six", self.four_over_six, FOUR_OVER_SIX)
        for what in ("epsilon", "largest_scale", "least_scale"):
            object.__setattr__(self, what, _float32(what, getattr(self, what)))
        if not 1 <= self.largest_scale <= 448:
            raise ValueError(f"largest_scale is {self.largest_scale}, expected 1 to 448")
        if self.least_scale > 448 and self.scale is types.float8_e4m3:
            raise ValueError(f"least_scale is {self.least_scale}, expected at most 448 of {self.scale} scales")
        _meant(self, {what for what in _DEFAULTS if getattr(self, what) != _DEFAULTS[what]})

    @property
    def block_rows(self) -> int | None:
        """Rows of a block along rows; None where they are all of the tensor."""
        return self._extents[0]

    @property
    def block_cols(self) -> int | None:
        """Columns of a block along rows; None where they are all of the tensor."""
        return self._extents[1]

    @functools.cached_property
    def _extents(self) -> tuple[int | None, int | None]:
        return _block(self.block)

    @property
    def largest_element(self) -> float:
        """The largest finite value of an element; of int8 under e8m0 scales in units of 2^-6."""
        return LARGEST[self.element]

    @property
    def scales_zeros(self) -> bool:
        """Whether a block of zeros has a scale that is not zero."""
        return self.order in ("div6_div", "encode_first") or self.least_scale > 0

    @property
    def counts_nan(self) -> bool:
        """Whether a NaN in a block changes what becomes of the other elements, or the scale of what is none."""
        return self.nan_scales or self.four_over_six != "none"

    def block_extents(self, axis: int) -> tuple[int | None, int | None]:
        """Rows and columns of a block where rows of blocks run along `axis`; None for all."""
        return self._extents if axis else self._extents[::-1]

    def __repr__(self) -> str:
        standard = self._standard()
        if standard is None:
            fields = dataclasses.fields(self)
            given = [f for f in fields if f.default is dataclasses.MISSING or getattr(self, f.name) != f.default]
            return f"dither.Format({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in given)})"
        changes = ", ".join(f"{name}={value!r}" for name, value in self._changes(standard).items())
        return f"dither.{self.name.upper()}" + (f".with_({changes})" if changes else "")

    def __reduce__(self) -> tuple[Any, ...]:
        standard = self._standard()
        if standard is not None:
            return restore_format, (self.name, self._changes(standard))
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return restore_format, ("", {**fields, "element": self.element.mlir, "scale": self.scale.mlir})

    def with_(self, **changes: Any) -> Format:
        """This format with other attributes; what is None or left out stays. With another element, scale, block,
        tensor_scale or transposed it is no longer what its name says, and has one of its own."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(f"found {name}=, expected {', '.join(names)}{suggest(name, names)}")
        changes = {name: value for name, value in changes.items() if value is not None}
        # Said of a format that cannot have it, the default too is a mistake.
        new = dataclasses.replace(self, **changes)
        _meant(new, changes.keys() & _DEFAULTS.keys(), self.name)
        if "name" not in changes and not new._has_structure_of(self):
            new = dataclasses.replace(new, name="")
        return _first_of(new)

    def mlir(self) -> str:
        """The attribute, such as `#quant.format<mxfp4, scale_rounding = even>`."""
        standard = self._standard()
        if standard is not None:
            changes = self._changes(standard)
            base = self.name
        else:
            rows, cols = ("?" if extent is None else extent for extent in _block(self.block))
            base = f"{self.element.mlir}, scale = {self.scale.mlir}, block = [{rows}, {cols}]"
            flags = {name: "true" for name in ("tensor_scale", "transposed") if getattr(self, name)}
            changes = {what: getattr(self, what) for what in _DEFAULTS if getattr(self, what) != _DEFAULTS[what]}
            changes = {**flags, **changes}
        return f"#quant.format<{base}{''.join(f', {name} = {_text(value)}' for name, value in changes.items())}>"

    def _standard(self) -> Format | None:
        """The built-in format that this is but for how scales are made."""
        standard = FORMATS.get(self.name)
        return standard if standard is not None and self._has_structure_of(standard) else None

    def _has_structure_of(self, other: Format) -> bool:
        """Whether two formats differ in name and in how scales are made at most."""
        return all(getattr(self, name) == getattr(other, name) for name in _STRUCTURE)

    def _changes(self, standard: Format) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _DEFAULTS if getattr(self, name) != getattr(standard, name)}


_STRUCTURE = ("element", "scale", "block", "tensor_scale", "row_amax", "transposed")
#: How scales are made, and what is meant where nothing is said.
_DEFAULTS = {
    "scale_rounding": "rceil",
    "order": "te",
    "pow2_scales": False,
    "epsilon": 0.0,
    "tensor_scale_as": "amax",
    "largest_scale": 448.0,
    "least_scale": 0.0,
    "inf_scale": "FE",
    "nan_scales": False,
    "four_over_six": "none",
}


def restore_format(name: str, fields: dict[str, Any]) -> Format:
    """A format that was pickled or copied: the very object where it is a built-in one; without a name, its fields."""
    if name:
        return FORMATS[name].with_(**fields) if fields else FORMATS[name]
    named = {what: types.dtype_from_mlir(fields[what]) for what in ("element", "scale")}
    return Format(**{**fields, **named})


def _type(what: str, value: object, types_: tuple[types.DType, ...]) -> None:
    if not any(value is dtype for dtype in types_):
        error = ValueError if isinstance(value, types.DType) else TypeError
        raise error(f"{what} is {value!r}, expected {', '.join(map(str, types_))}")


#: Rows and columns of blocks that have a name; None for all of the tensor.
_WHOLE: dict[object, tuple[int | None, None]] = {"row": (1, None), "tensor": (None, None)}


def _block(value: object) -> tuple[int | None, int | None]:
    if isinstance(value, str) and value in _WHOLE:
        return _WHOLE[value]
    extents = (1, value) if isinstance(value, int) else value
    if not isinstance(extents, tuple) or len(extents) != 2 or not all(type(n) is int for n in extents):
        raise TypeError(f"block is {value!r}, expected a number of elements, (rows, columns), 'row' or 'tensor'")
    if not all(n > 0 and n & (n - 1) == 0 for n in extents):
        raise ValueError(f"block is {value!r}, expected positive powers of two")
    return extents


@functools.lru_cache(maxsize=1024)
def _first_of(fmt: Format) -> Format:
    """One object of those that are equal: launches know formats by their address, so that one that is made by each call
    would be new to each."""
    return fmt


def _meant(fmt: Format, said: Set[str], name: str = "") -> None:
    """Refuses what is said of how scales are made where a format has no such choice."""
    name = name or fmt.name
    if "scale_rounding" in said and fmt.scale is not types.e8m0:
        raise ValueError(f"{name} has scales of {fmt.scale}: scale_rounding is for e8m0 scales")
    if "order" in said:
        if fmt.order == "encode_first" and fmt.scale is not types.float32:
            raise ValueError(f"{name} has scales of {fmt.scale}: the order encode_first is for float32 scales")
        if fmt.scale is types.e8m0:
            raise ValueError(f"{name} has scales of e8m0: order is for float8_e4m3 and float32 scales")
    for what in ("pow2_scales", "epsilon"):
        if what in said and fmt.order != "encode_first":
            raise ValueError(f"{name} has the order {fmt.order}: {what} is for the order encode_first")
    for what in ("tensor_scale_as", "largest_scale"):
        if what in said and not fmt.tensor_scale:
            raise ValueError(f"{name} has no tensor scale: {what} is for formats that have one")
    if fmt.row_amax and fmt.tensor_scale_as != "amax":
        raise ValueError(f"{name} has row_amax: tensor_scale_as is for one scale of the tensor, expected 'amax'")
    if "least_scale" in said and (fmt.scale is types.e8m0 or fmt.order == "encode_first"):
        has = f"the order {fmt.order}" if fmt.order == "encode_first" else f"scales of {fmt.scale}"
        instead = ", expected epsilon" if fmt.order == "encode_first" else ""
        raise ValueError(f"{name} has {has}: least_scale is for float8_e4m3 and float32 scales{instead}")
    if "inf_scale" in said and fmt.scale is not types.e8m0:
        raise ValueError(f"{name} has scales of {fmt.scale}: inf_scale is for e8m0 scales")
    if fmt.inf_scale != "FE" and fmt.scale_rounding != "rceil":
        raise ValueError(f"{name} has scale_rounding {fmt.scale_rounding}, which gives FF: inf_scale is for rceil")
    if fmt.nan_scales and isinstance(fmt.block, str):
        raise ValueError(f"{name} has one scale for each {fmt.block}: nan_scales is for shorter blocks")
    four_over_six = fmt.element is types.float4_e2m1 and fmt.scale is types.float8_e4m3
    if "four_over_six" in said and (not four_over_six or isinstance(fmt.block, str)):
        raise ValueError(
            f"{name} has elements of {fmt.element} and scales of {fmt.scale}: four_over_six is for float4_e2m1 "
            "elements in short blocks with float8_e4m3 scales"
        )


def _float32(what: str, value: Any) -> float:
    """A bound, as a float32."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{what} is {value!r}, expected a finite number that is not negative")
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise ValueError(f"{what} is {value!r}, expected a finite float32") from None


def _text(value: Any) -> str:
    """The value of an option of `#quant.format`."""
    if isinstance(value, float):
        digits, mark, exponent = repr(value).partition("e")
        return (digits if "." in digits else f"{digits}.0") + mark + exponent
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choice(what: str, value: object, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{what} is {value!r}, expected {', '.join(choices)}{suggest(value, choices)}")
    return str(value)


NVFP4 = Format(
    name="nvfp4",
    element=types.float4_e2m1,
    scale=types.float8_e4m3,
    block=16,
    tensor_scale=True,
    transposed=True,
)
MXFP4 = Format(name="mxfp4", element=types.float4_e2m1, scale=types.e8m0, block=32, scale_rounding="floor")
MXFP6_E2M3 = Format(name="mxfp6_e2m3", element=types.float6_e2m3, scale=types.e8m0, block=32, scale_rounding="floor")
MXFP6_E3M2 = Format(name="mxfp6_e3m2", element=types.float6_e3m2, scale=types.e8m0, block=32, scale_rounding="floor")
MXFP8_E4M3 = Format(name="mxfp8_e4m3", element=types.float8_e4m3, scale=types.e8m0, block=32)
MXFP8_E5M2 = Format(name="mxfp8_e5m2", element=types.float8_e5m2, scale=types.e8m0, block=32)
MXINT8 = Format(name="mxint8", element=types.int8, scale=types.e8m0, block=32, scale_rounding="floor")


def _fp8(block: int | tuple[int, int] | str, word: str, element: types.DType) -> Format:
    """FP8 with float32 scales: of blocks, as Hopper's matrix products take them, powers of two by default."""
    kind = str(element).removeprefix("float8_")
    return Format(
        name=f"fp8_{word}_{kind}",
        element=element,
        scale=types.float32,
        block=block,
        transposed=True,
        order="encode_first",
        pow2_scales=not isinstance(block, str),
    )


FP8_TENSOR_E4M3 = _fp8("tensor", "tensor", types.float8_e4m3)
FP8_TENSOR_E5M2 = _fp8("tensor", "tensor", types.float8_e5m2)
FP8_ROW_E4M3 = _fp8("row", "row", types.float8_e4m3)
FP8_ROW_E5M2 = _fp8("row", "row", types.float8_e5m2)
FP8_1X128_E4M3 = _fp8(128, "1x128", types.float8_e4m3)
FP8_1X128_E5M2 = _fp8(128, "1x128", types.float8_e5m2)
FP8_128X128_E4M3 = _fp8((128, 128), "128x128", types.float8_e4m3)
FP8_128X128_E5M2 = _fp8((128, 128), "128x128", types.float8_e5m2)
INT8_TENSOR = Format(name="int8_tensor", element=types.int8, scale=types.float32, block="tensor", transposed=True)
INT8_ROW = Format(name="int8_row", element=types.int8, scale=types.float32, block="row", transposed=True)

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        NVFP4,
        MXFP4,
        MXFP6_E2M3,
        MXFP6_E3M2,
        MXFP8_E4M3,
        MXFP8_E5M2,
        MXINT8,
        FP8_TENSOR_E4M3,
        FP8_TENSOR_E5M2,
        FP8_ROW_E4M3,
        FP8_ROW_E5M2,
        FP8_1X128_E4M3,
        FP8_1X128_E5M2,
        FP8_128X128_E4M3,
        FP8_128X128_E5M2,
        INT8_TENSOR,
        INT8_ROW,
    )
}


def get_format(value: str | Format) -> Format:
    """The format itself, or the built-in one of this name (in any case).

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
