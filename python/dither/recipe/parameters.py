"""What recipes are made of: element types, parameters of tensors and of products, and their checks."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

from .. import formats
from ..data_classes import dataclass
from ..errors import suggest
from ..types import DType, float4_e2m1, float8_e4m3, float8_e5m2


class Largest(NamedTuple):
    """The largest magnitudes of a `Format`."""

    max_fwd: float
    max_bwd: float


class Format(enum.Enum):
    """Element types of a recipe, forward and backward. The value has their largest magnitudes."""

    E2M1 = Largest(6.0, 6.0)
    E4M3 = Largest(448.0, 448.0)
    E5M2 = Largest(57344.0, 57344.0)
    HYBRID = Largest(448.0, 57344.0)

    @property
    def max_fwd(self) -> float:
        """The largest magnitude of what is quantized in the forward pass."""
        return self.value.max_fwd

    @property
    def max_bwd(self) -> float:
        """The largest magnitude of gradients."""
        return self.value.max_bwd

    @property
    def fwd(self) -> DType:
        """The element type of what is quantized in the forward pass."""
        return _ELEMENTS[self.max_fwd]

    @property
    def bwd(self) -> DType:
        """The element type of gradients."""
        return _ELEMENTS[self.max_bwd]


_ELEMENTS = {6.0: float4_e2m1, 448.0: float8_e4m3, 57344.0: float8_e5m2}


@dataclass(frozen=True)
class MMParams:
    """Of a matrix product: whether sums are float32 throughout, where hardware has a faster way, too."""

    use_split_accumulator: bool = True

    def __post_init__(self) -> None:
        flags(self, "use_split_accumulator")


@dataclass(frozen=True)
class QParams:
    """Of a tensor that is quantized.

    Attributes:
        power_2_scale: whether its float32 scales are cut to powers of two.
        amax_epsilon: the least amax that a scale is made of.
        random_hadamard_transform: whether it is transformed along columns before it is quantized along them.
        stochastic_rounding: whether its codes are rounded at random.
        fp4_2d_quantization: whether blocks are 16 x 16.
    """

    power_2_scale: bool = False
    amax_epsilon: float = 0.0
    random_hadamard_transform: bool = False
    stochastic_rounding: bool = False
    fp4_2d_quantization: bool = False

    def __post_init__(self) -> None:
        flags(self, "power_2_scale", "random_hadamard_transform", "stochastic_rounding", "fp4_2d_quantization")
        value = self.amax_epsilon
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise ValueError(f"amax_epsilon is {value!r}, expected a finite number that is not negative")


@dataclass(frozen=True)
class Quantization:
    """How one tensor is quantized: what `dither.quantize` is told of it.

    Attributes:
        format: the block-scaled format.
        delayed: whether its scale comes from the amaxes of earlier steps (`dither.DelayedScaling`).
        hadamard: whether what is quantized along columns is transformed first (`dither.RandomHadamard`).
        stochastic: whether codes are rounded at random.
    """

    format: formats.Format
    delayed: bool = False
    hadamard: bool = False
    stochastic: bool = False


def flags(params: Any, *names: str) -> None:
    """Raises TypeError for attributes that are not True or False."""
    for name in names:
        if not isinstance(getattr(params, name), bool):
            raise TypeError(f"{name} is {getattr(params, name)!r}, expected True or False")


def integer(name: str, value: Any) -> int:
    """The value, if it is an integer; raises TypeError."""
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r}, expected an integer")
    return value


def choice(name: str, value: Any, choices: tuple[Any, ...], more: str = "") -> None:
    """Raises ValueError for what is none of these."""
    if value not in choices:
        hint = suggest(value, [one for one in choices if one]) if isinstance(value, str) else ""
        raise ValueError(f"{name} is {value!r}, expected {', '.join(map(str, choices))}{more}{hint}")
