"""Data types, and what the compiler is told about the arguments of a kernel."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from .data_classes import dataclass

Kind = Literal["float", "narrow", "int", "bool"]


@dataclass(frozen=True, repr=False)
class DType:
    """An element type.

    `name` is ours ("float8_e4m3"), `mlir` the compiler's ("f8E4M3FN"), `bits` the size in memory, where a code of 6
    bits has a byte.
    `kind`: "float" takes part in arithmetic, "narrow" (8 bits and fewer, int8 too) is only ever a code.
    """

    name: str
    mlir: str
    bits: int
    kind: Kind

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        # There is one object for each type, which is told by its identity: in copies and other processes too.
        return dtype_from_mlir, (self.mlir,)

    @property
    def is_float(self) -> bool:
        """float32, bfloat16 or float16."""
        return self.kind == "float"

    @property
    def is_narrow(self) -> bool:
        """A type of codes: FP8, FP6, FP4, int8 or E8M0."""
        return self.kind == "narrow"

    @property
    def is_int(self) -> bool:
        """int32, int64 or an index (the type of program ids and extents)."""
        return self.kind == "int"


float32 = DType("float32", "f32", 32, "float")
bfloat16 = DType("bfloat16", "bf16", 16, "float")
float16 = DType("float16", "f16", 16, "float")
float8_e4m3 = DType("float8_e4m3", "f8E4M3FN", 8, "narrow")
float8_e5m2 = DType("float8_e5m2", "f8E5M2", 8, "narrow")
float6_e2m3 = DType("float6_e2m3", "f6E2M3FN", 8, "narrow")
float6_e3m2 = DType("float6_e3m2", "f6E3M2FN", 8, "narrow")
float4_e2m1 = DType("float4_e2m1", "f4E2M1FN", 4, "narrow")
int8 = DType("int8", "i8", 8, "narrow")
e8m0 = DType("e8m0", "f8E8M0FNU", 8, "narrow")
int32 = DType("int32", "i32", 32, "int")
int64 = DType("int64", "i64", 64, "int")
bool_ = DType("bool", "i1", 1, "bool")
index = DType("index", "index", 64, "int")

DTYPES: tuple[DType, ...] = (
    float32,
    bfloat16,
    float16,
    float8_e4m3,
    float8_e5m2,
    float6_e2m3,
    float6_e3m2,
    float4_e2m1,
    int8,
    e8m0,
    int32,
    int64,
    bool_,
    index,
)
_BY_MLIR = {dtype.mlir: dtype for dtype in DTYPES}


def dtype_from_mlir(text: str) -> DType:
    """The data type that the compiler writes as `text`."""
    if text not in _BY_MLIR:
        raise ValueError(f"found element type {text}, expected one of {', '.join(_BY_MLIR)}")
    return _BY_MLIR[text]


@dataclass(frozen=True)
class TensorType:
    """A tensor argument: rank 0 to 4, last stride 1.

    `shape` and `strides` (in elements) hold None where a number is known only at launch. Strides
    default to an unknown leading stride and rows that follow each other: the outer strides None, the last 1.
    `align` is the alignment of the pointer in bytes and `stride_align` what every outer stride is
    a multiple of, in bytes; None stands for the element's size.
    """

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None
    align: int | None = None
    stride_align: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, DType):
            raise TypeError(f"dtype is {self.dtype!r}, expected a dither data type")
        object.__setattr__(self, "shape", _extents("shape", self.shape))
        if self.strides is not None:
            object.__setattr__(self, "strides", _extents("strides", self.strides))
        for name in ("align", "stride_align"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1 or value & (value - 1)):
                raise ValueError(f"{name} is {value!r}, expected a power of two")
        rank = len(self.shape)
        if rank > 4:
            raise ValueError(f"shape has rank {rank}, expected at most 4")
        if self.strides is None:
            object.__setattr__(self, "strides", (None,) * (rank - 1) + (1,) * min(rank, 1))
        assert self.strides is not None
        if len(self.strides) != rank:
            raise ValueError(f"found {len(self.strides)} strides, expected {rank}")
        if rank and self.strides[-1] != 1:
            raise ValueError(f"the last stride is {self.strides[-1]}, expected 1")
        for extent in self.shape:
            if extent is not None and extent < 0:
                raise ValueError(f"found extent {extent}, expected none below 0")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def mlir(self) -> str:
        """The memref type, such as `memref<?x4096xbf16, strided<[?, 1]>>`."""
        assert self.strides is not None
        dims = "".join(f"{_text(extent)}x" for extent in self.shape)
        layout = ""
        if self.strides != self._row_major():
            layout = f", strided<[{', '.join(_text(stride) for stride in self.strides)}]>"
        return f"memref<{dims}{self.dtype.mlir}{layout}>"

    def unaligned(self) -> TensorType:
        """The same of any alignment: that of an element."""
        size = max(self.dtype.bits // 8, 1)
        return dataclasses.replace(self, align=size, stride_align=size)

    def _row_major(self) -> tuple[int, ...] | None:
        """Strides of a dense tensor of this shape; None where an extent other than the first is unknown."""
        step = 1
        strides = [step] if self.shape else []
        for extent in reversed(self.shape[1:]):
            if extent is None:
                return None
            step *= extent
            strides.append(step)
        return tuple(reversed(strides))


@dataclass(frozen=True)
class ScalarType:
    """A scalar argument: int32, int64, index or float32."""

    dtype: DType

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, DType) or self.dtype not in (int32, int64, index, float32):
            raise ValueError(f"found a scalar of {self.dtype!r}, expected int32, int64, index or float32")

    def mlir(self) -> str:
        """The type in the compiler's text."""
        return self.dtype.mlir


@dataclass(frozen=True)
class SameAs:
    """A tensor argument that is, at each launch, the very tensor that the earlier parameter `name` is.

    To the compiler the two are one: what is stored to one is loaded from the other.
    """

    name: str


ArgType = TensorType | ScalarType | SameAs


@dataclass(frozen=True)
class Structure:
    """How an argument is put together: "tuple", or the name of its class, and its entries by label, in order.

    `ordered`: whether a class is a NamedTuple, whose entries have places besides names."""

    kind: str
    entries: tuple[tuple[str, Structure | str], ...]
    ordered: bool = False

    def leaves(self) -> Iterator[str]:
        """Paths of what is no structure itself, in order."""
        for _, entry in self.entries:
            if isinstance(entry, Structure):
                yield from entry.leaves()
            else:
                yield entry

    def build(self, leaf: Callable[[str], Any], make: Callable[[str, dict[str, Any], bool], Any]) -> Any:
        """The argument of other leaves: tuples of them, and what `make` makes of a class and its fields."""
        items = {
            label.lstrip("."): entry.build(leaf, make) if isinstance(entry, Structure) else leaf(entry)
            for label, entry in self.entries
        }
        return tuple(items.values()) if self.kind == "tuple" else make(self.kind, items, self.ordered)


def _extents(name: str, values: object) -> tuple[int | None, ...]:
    """Numbers of elements, None for those that are known at launch, checked."""
    try:
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError
        numbers = tuple(None if value is None else operator.index(value) for value in values)
    except TypeError:
        raise TypeError(f"{name} is {values!r}, expected a tuple of integers or None") from None
    if any(number is not None and not -(2**63) <= number < 2**63 for number in numbers):
        raise ValueError(f"{name} is {values!r}, expected integers of 64 bits")
    return numbers


def _text(extent: int | None) -> str:
    return "?" if extent is None else str(extent)
