"""The operators of the library, and which kernels of them are worth having ahead of time: a row for each."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from .. import types
from ..data_classes import dataclass
from ..types import DType, ScalarType
from . import activations, gated, norm_gradients, norms
from .dropout import add_dropout, ddropout
from .fuse import Fused
from .operator import Operator
from .producer import Producer
from .quantize import QUANTIZE
from .rope import drope, rope
from .softmax import dsoftmax, softmax


@dataclass(frozen=True)
class Row:
    """An operator of the library, and the kernels of it that are worth having ahead of time.

    Attributes:
        operator: the producer and its kernel.
        constants: its constexprs, as calls have them by default.
        variants: other choices of them, by a word for names; plain output in bfloat16.
        plain: whether calls ask for plain output.
        whole: whether there is each layout and order of scales for every data type, and not for bfloat16 alone.
        few: whether nothing is quantized of other inputs than bfloat16.
        given: parameters that calls may leave out, and that these kernels have.
        dtypes: of operands that are not of the data type of the others.
        period: columns of operands that repeat along rows; 0 where there are none.
        again: whether a pass over the same tensors came before.
    """

    operator: Operator
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    plain: bool = True
    whole: bool = False
    few: bool = False
    given: frozenset[str] = frozenset()
    dtypes: Mapping[str, DType] = dataclasses.field(default_factory=dict)
    period: int = 0
    again: bool = False

    @functools.cached_property
    def producer(self) -> Producer:
        """The producer, as it is for operands of this period."""
        producer = self.operator.producer
        return producer.of_period(self.period) if self.period else producer

    def fits(self, cols: int) -> bool:
        """Whether there are kernels for rows of so many columns."""
        return not self.period or cols % (self.period * self.producer.periods) == 0

    @functools.cached_property
    def passes(self) -> tuple[Row, Row] | None:
        """The two passes of the operator, where it has them."""
        two = self.operator.passes
        return None if two is None else (self._part(two.first), self._part(two.second, again=True))

    def _part(self, operator: Operator, again: bool = False) -> Row:
        roles = operator.producer.roles
        constants = {name: self.constants[name] for name, role in roles.items() if role == "constexpr"}
        dtypes = {name: types.float32 for name, role in roles.items() if role == "column"}
        return dataclasses.replace(self, operator=operator, constants=constants, dtypes=dtypes, again=again)


#: What numbers are, by their role.
NUMBERS = {"scalar": ScalarType(types.float32), "integer": ScalarType(types.int64)}

#: Operators that stand for the others: their kernels take every path of the compiler.
OPERATORS = (
    Row(QUANTIZE, plain=False, whole=True),
    Row(
        norms.RMS_NORM,
        {"eps": 1e-5, "zero_centered": False},
        {"zero_centered": {"zero_centered": True}},
    ),
    Row(
        norms.layer_norm.operator,
        {"eps": 1e-5, "zero_centered_gamma": False},
        {"zero_centered": {"zero_centered_gamma": True}},
    ),
    Row(gated.swiglu.operator, given=frozenset(("up",))),
)


def _row(fused: Fused, *given: str, period: int = 0, **dtypes: DType) -> Row:
    """The row of an operator with the defaults of its constexprs."""
    producer = fused.operator.producer
    parameters = inspect.signature(producer.function).parameters
    constants = {name: parameters[name].default for name, role in producer.roles.items() if role == "constexpr"}
    variants = {"none": {"approximate": "none"}} if "approximate" in constants else {}
    return Row(fused.operator, constants, variants, few=True, given=frozenset(given), dtypes=dtypes, period=period)


def _gated(name: str) -> Iterator[Row]:
    """A gated activation, of two tensors, and its gradients."""
    if name != "swiglu":
        yield _row(getattr(gated, name), "up")
    yield _row(getattr(gated, f"d{name}"), "up")
    yield _row(getattr(gated, f"dbias_d{name}"), "up")
    yield _row(getattr(gated, f"dfactor_d{name}"), "up", "factor", factor=types.float32)


#: All other operators. A new one is a producer and a row here, or above.
MORE = (
    *(_row(getattr(activations, name)) for name in ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")),
    *(_row(getattr(activations, f"d{name}")) for name in ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")),
    _row(activations.quantize_dbias),
    *(_row(getattr(activations, f"dbias_d{name}")) for name in ("gelu", "silu", "qgelu", "relu", "srelu")),
    *(
        row
        for name in ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")
        for row in _gated(name)
    ),
    _row(norms.add_rms_norm),
    _row(norms.add_layer_norm),
    _row(norm_gradients.rms_norm_backward, rsigma=types.float32),
    _row(norm_gradients.layer_norm_backward, mean=types.float32, rsigma=types.float32),
    _row(softmax),
    _row(dsoftmax),
    _row(add_dropout, "residual", "dropout_seed"),
    _row(ddropout, "dropout_seed"),
    # Of heads of 128.
    _row(rope, period=64, cos=types.float32, sin=types.float32),
    _row(drope, period=64, cos=types.float32, sin=types.float32),
)
