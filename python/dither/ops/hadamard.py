"""The random Hadamard transform that operators apply before they quantize."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..data_classes import dataclass
from ..once import one_for_each
from .allocate import as_numpy, floats

SIZES = (16, 32, 64, 128)
#: The mask that Transformer Engine has by default.
SIGN_MASK = 0xD7E8


@dataclass(frozen=True)
class RandomHadamard:
    """Each `size` elements in a line, times signs, times the Hadamard matrix of that size over the square root of it.

    As `dl.hadamard` computes it, and rounded to the data type of the input. An outlier is spread over its neighbours,
    and the product of two matrices that were both transformed along what is summed is what it was.

    Attributes:
        size: 16, 32, 64 or 128; it divides the columns of a tensor whose rows are transformed. Where columns are, rows
            of zeros follow the last one up to a multiple, and what is quantized along columns has these, too: its
            `shape` says so, with rows as one dimension.
        sign_mask: bit i is set where element i of each `size` gets the other sign; a mask of 16 bits repeats.
        colwise: whether what is quantized along columns is transformed along columns first.
        rowwise: whether what is quantized along rows is transformed along rows first.

    Raises TypeError or ValueError, which name the attribute, for values that it cannot have.
    """

    size: int = 16
    sign_mask: int = SIGN_MASK
    colwise: bool = True
    rowwise: bool = False

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size not in SIZES:
            raise ValueError(f"size is {self.size!r}, expected {', '.join(map(str, SIZES))}")
        if type(self.sign_mask) is not int:
            raise TypeError(f"sign_mask is {self.sign_mask!r}, expected an integer")
        if not 0 <= self.sign_mask < 1 << self.size:
            raise ValueError(f"sign_mask is {self.sign_mask:#x}, expected at most {self.size} bits")
        for what in ("colwise", "rowwise"):
            if not isinstance(getattr(self, what), bool):
                raise TypeError(f"{what} is {getattr(self, what)!r}, expected True or False")
        if not (self.colwise or self.rowwise):
            raise ValueError("colwise and rowwise are False, expected one of them to be True")

    @classmethod
    def from_matrix(cls, matrix: Any, colwise: bool = True, rowwise: bool = False) -> RandomHadamard:
        """The transform that multiplies each `size` elements, as a row, by a matrix: a diagonal of signs times the
        Hadamard matrix over the square root of its size, in any float type, as other libraries have it.

        Raises ValueError for another matrix.
        """
        array = floats(matrix, "matrix")
        size = array.shape[0] if array.shape else 0
        if array.shape != (size, size) or size not in SIZES:
            expected = ", ".join(f"({n}, {n})" for n in SIZES)
            raise ValueError(f"matrix has shape {array.shape}, expected one of {expected}")
        if array.device != "cpu":
            raise ValueError(f"matrix lies on {array.device}, expected memory of the host")
        m = as_numpy(array)
        signs = [1 if row[0] > 0 else -1 for row in m]
        for i, row in enumerate(m):
            for j, value in enumerate(row):
                one = signs[i] * (-1) ** bin(i & j).count("1")
                # As near to it as a type of 8 bits of precision has it.
                if not abs(float(value) * math.sqrt(size) - one) <= 2**-8:
                    raise ValueError(
                        f"matrix has {float(value)} at ({i}, {j}), expected {one / math.sqrt(size):.6g}: signs times "
                        "the Hadamard matrix over the square root of its size"
                    )
        return cls(size, sum(1 << i for i, sign in enumerate(signs) if sign < 0), colwise, rowwise)

    @property
    def signs(self) -> int:
        """A bit for each of `size` elements."""
        if self.sign_mask >> 16:
            return self.sign_mask
        return sum(self.sign_mask << at for at in range(0, self.size, 16))

    def of(self, colwise: bool) -> Transform | None:
        """What one direction is transformed by."""
        return _only(self.size, self.signs) if (self.colwise if colwise else self.rowwise) else None


class Transform(NamedTuple):
    """The transform of one direction, as kernels and quantized tensors have it."""

    size: int
    signs: int


@one_for_each
def _only(size: int, signs: int) -> Transform:
    """One object for each transform: launches know what code is made for by its address."""
    return Transform(size, signs)


def check_transform(value: object) -> RandomHadamard | None:
    """The transform that a call asks for; raises TypeError for what is none."""
    if value is not None and not isinstance(value, RandomHadamard):
        raise TypeError(f"transform is {value!r}, expected a dither.RandomHadamard or None")
    return value
