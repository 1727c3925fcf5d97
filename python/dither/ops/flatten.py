"""Tensors of any rank as matrices: the dimensions before an axis are rows, those from it on are columns."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, describe, describe_argument, row_major
from ..data_classes import dataclass
from ..torch_tensors import are_extents
from ..types import int8
from .allocate import DeviceArray, floats
from .producer import Producer
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x


@dataclass(frozen=True)
class Flattened:
    """How a tensor is a matrix.

    Attributes:
        shape: its extents.
        axis: the first dimension that is along columns.
    """

    shape: tuple[int, ...]
    axis: int

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns."""
        return math.prod(self.shape[: self.axis]), math.prod(self.shape[self.axis :])

    @property
    def plain(self) -> bool:
        """Whether it is a matrix anyway."""
        return len(self.shape) == 2

    def stored(self, transposed: bool, bits: int) -> tuple[int, ...]:
        """The shape of an array with a code for each element.

        The dimensions along columns come first where codes are transposed. Codes of 4 bits lie two to a byte: where
        both would not be of one row of the last dimension, the array is the matrix.
        """
        shape, first = self.shape, self.axis
        if transposed:
            shape, first = shape[first:] + shape[:first], len(shape) - first
        if bits != 4 or not shape:
            return shape
        *lead, last = shape
        if first == len(shape) or (last % 2 and math.prod(lead[first:]) != 1):
            lead, last = [math.prod(shape[:first])], math.prod(shape[first:])
        return (*lead, (last + 1) // 2)


def flattened(shape: tuple[int, ...], axis: Any) -> Flattened:
    """A shape with the axis of a call, counted from the end where it is negative. Raises TypeError or ValueError."""
    try:
        at = operator.index(axis)
    except TypeError:
        raise TypeError(f"flatten_axis is {axis!r}, expected an integer") from None
    rank = len(shape)
    at = at + rank if at < 0 else at
    if not (0 < at < rank or (rank == 1 and at == 0)):
        raise ValueError(f"flatten_axis is {axis} for shape {shape}, expected 1 to {rank - 1}, or -1 to {1 - rank}")
    return Flattened(shape, at)


def flatten_operands(
    producer: Producer, operands: Mapping[str, Any], axis: Any
) -> tuple[Mapping[str, Any], Flattened | None, frozenset[str]]:
    """Operands as matrices, rows and columns, and how they were flattened; None where they are matrices anyway. Last
    come the tables that do not have the first dimensions of rows: those share them."""
    x = operands[producer.tile]
    shared: set[str] = set()
    if getattr(x, "ndim", 0) == 2 and axis in (-1, 1):
        return operands, None, frozenset()
    array = floats(x, producer.tile)
    if not array.shape:
        raise ValueError(f"argument '{producer.tile}' has rank 0, expected rows")
    flat = flattened(array.shape, axis)
    if flat.plain:
        return operands, None, frozenset()
    m, n = flat.matrix
    expected = {"tile": flat.shape, "row": flat.shape[flat.axis :], "column": flat.shape[: flat.axis]}
    wanted = {"tile": (m, n), "row": (n,), "column": (m,)}
    found: dict[str, Any] = {}
    for name, value in operands.items():
        role = producer.roles[name]
        if role == "periodic" and (value is not None or name not in producer.optional):
            shape = floats(value, name).shape
            if len(shape) < 2 or shape[:-1] != expected["column"][1 - len(shape) :]:
                last = [expected["column"][first:] for first in range(flat.axis)]
                known = " or ".join(f"({''.join(f'{extent}, ' for extent in lead)}k)" for lead in last)
                raise ValueError(f"argument '{name}' has shape {shape}, expected {known}: see flatten_axis")
            if len(shape) <= flat.axis:
                shared.add(name)
            value = reshape(value, (math.prod(shape[:-1]), shape[-1]), name)
        if role in wanted and (value is not None or name not in producer.optional):
            shape = floats(value, name).shape
            if shape != expected[role]:
                raise ValueError(f"argument '{name}' has shape {shape}, expected {expected[role]}")
            value = reshape(value, wanted[role], name)
        found[name] = value
    return found, flat, frozenset(shared)


def reshape(x: Any, shape: tuple[int, ...], name: str) -> Any:
    """An array with the same elements in another shape; a copy where its memory does not allow it."""
    if isinstance(x, DeviceArray):
        return x.reshaped(shape)
    array = describe_argument(name, x)
    assert array is not None
    if hasattr(x, "reshape"):
        return x.reshape(shape)
    kind = array.dtype
    assert kind is not None
    if array.strides == row_major(array.shape, kind) or math.prod(array.shape) <= 1:
        return dataclasses.replace(array, shape=shape, strides=row_major(shape, kind))
    strides = _strides_of_matrix(array, shape)
    if strides is None:
        raise ValueError(f"argument '{name}' has strides {array.strides}, expected a dense array: make it contiguous")
    return dataclasses.replace(array, shape=shape, strides=strides)


def _strides_of_matrix(array: Array, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Those of an array as a matrix of this shape, such as the left half of the columns of a dense one; None where its
    dimensions do not follow each other so."""
    axis = next((k for k in range(1, len(array.shape)) if math.prod(array.shape[:k]) == shape[0]), None)
    if len(shape) != 2 or axis is None:
        return None
    for half in (range(axis - 1), range(axis, len(array.shape) - 1)):
        if any(array.strides[i] != array.strides[i + 1] * array.shape[i + 1] for i in half):
            return None
    return array.strides[axis - 1], array.strides[-1]


def restore_result(result: ScaledTensor1x | ScaledTensor2x, flat: Flattened) -> ScaledTensor1x | ScaledTensor2x:
    """A quantized matrix as the tensor that was flattened."""
    if isinstance(result, ScaledTensor2x):
        return ScaledTensor2x(_restored(result.rowwise, flat), _restored(result.colwise, flat))
    return _restored(result, flat)


def _restored(part: ScaledTensor1x, flat: Flattened) -> ScaledTensor1x:
    if part.shape[0] != flat.matrix[0]:  # with rows of zeros at the end, which are of no dimension
        flat = Flattened((part.shape[0], *flat.shape[flat.axis :]), 1)
    shape = flat.stored(part.is_transposed, part.format.element.bits)
    data = reshape(part.data, shape, "data")
    return dataclasses.replace(part, data=data, shape=flat.shape, flatten_axis=flat.axis)


def flatten_result(x: ScaledTensor1x | ScaledTensor2x, name: str) -> ScaledTensor1x | ScaledTensor2x:
    """A quantized tensor as the matrix that it is; codes that are written must be dense."""
    if isinstance(x, ScaledTensor2x):
        return ScaledTensor2x(flatten_part(x.rowwise, name), flatten_part(x.colwise, name))
    return flatten_part(x, name)


def flatten_part(part: ScaledTensor1x, name: str) -> ScaledTensor1x:
    """As `flatten_result`, of one direction."""
    shape = part.shape if isinstance(part, ScaledTensor1x) else ()
    if len(shape) == 2 or not isinstance(shape, tuple) or not are_extents(shape):
        return part  # who checks its fields says what is wrong
    flat = flattened(part.shape, part.flatten_axis)
    bits = part.format.element.bits
    want = flat.stored(part.is_transposed, bits)
    array = describe(part.data)
    if array is None or array.shape != want:
        found = None if array is None else array.shape
        raise ValueError(f"argument '{name}' has data of shape {found}, expected {want}")
    if math.prod(want) and array.strides != row_major(want, int8):
        raise ValueError(f"argument '{name}' has data with strides {array.strides}, expected a dense array")
    rows, cols = flat.matrix[::-1] if part.is_transposed else flat.matrix
    data = reshape(part.data, (rows, (cols + 1) // 2 if bits == 4 else cols), name)
    return dataclasses.replace(part, data=data, shape=flat.matrix, flatten_axis=-1)
