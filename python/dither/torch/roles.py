"""What a tensor is to a module, and what a factory may ask for in place of a quantizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..data_classes import dataclass
from ..errors import suggest
from ..recipe import BACKWARD_TENSORS, TENSORS, DelayedScaling, Format, Recipe
from .quantizer import Quantizer
from .quantizers import quantizer_of

#: Tensors of attention, and which of a linear layer's they are quantized like.
ATTENTION_TENSORS = {"qkv": "input", "s": "input", "do": "grad_output", "dp": "grad_output", "dqkv": "grad_input"}


@dataclass(frozen=True, eq=False)
class QuantizerRole:
    """What a tensor is to a module. Empty strings are for what is not known.

    It is equal to the string of its tensor type, too, and has its hash, so that factories of strings and of roles are
    called alike.

    Attributes:
        module_type: "linear", "grouped_linear" or "dpa" (attention).
        tensor_type: "input", "weight", "output", "grad_output" or "grad_input"; of attention "qkv", "s", "do", "dp" or
            "dqkv".
        name: that of the module, such as "fc1".
    """

    module_type: str = ""
    tensor_type: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not isinstance(getattr(self, field.name), str):
                raise TypeError(f"{field.name} is {getattr(self, field.name)!r}, expected a string")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.tensor_type == other
        if not isinstance(other, QuantizerRole):
            return NotImplemented
        return dataclasses.astuple(self) == dataclasses.astuple(other)

    def __hash__(self) -> int:
        return hash(self.tensor_type)


def tensor_of(role: Any) -> str:
    """The tensor of a linear layer that a role stands for: "input" where it is not known.

    `role` is a QuantizerRole, or any object with a `tensor_type`, a string that is one, or None. Raises TypeError or
    ValueError for what is none.
    """
    kind = role if isinstance(role, str) else "" if role is None else getattr(role, "tensor_type", None)
    if not isinstance(kind, str):
        raise TypeError(f"role is {role!r}, expected a QuantizerRole, a string or None")
    kind = ATTENTION_TENSORS.get(kind, kind)
    if kind and kind not in TENSORS:
        known = (*TENSORS, *ATTENTION_TENSORS)
        raise ValueError(f"role is {kind!r}, expected {', '.join(known)}{suggest(kind, known)}")
    return kind or "input"


@dataclass(frozen=True)
class QuantizerRequest:
    """What a factory returns for a quantizer whose state the module is to own."""


@dataclass(frozen=True)
class DelayedScalingRequest(QuantizerRequest):
    """Asks for delayed scaling, with the parameters of `dither.recipe.DelayedScaling`.

    All requests for the forward slots of a module are equal, and so are those for the backward ones.
    """

    fp8_format: Format = Format.HYBRID
    margin: int = 0
    amax_history_len: int = 1024
    amax_compute_algo: str | Callable[[Any], Any] = "max"
    scaling_factor_compute_algo: Callable[[Any, Any, Any, Any], Any] | None = None
    reduce_amax: bool = True

    def __post_init__(self) -> None:
        self.recipe  # noqa: B018 - raises for what the recipe refuses

    @property
    def recipe(self) -> DelayedScaling:
        """The recipe with these parameters."""
        return DelayedScaling(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})


def made(factory: Callable[[Any], Any], role: Any) -> Quantizer | DelayedScalingRequest:
    """What a factory gives for a role, checked."""
    found = factory(role)
    if found is None:
        raise ValueError(
            f"the quantizer factory gives None for {role!r}, expected a quantizer; IdentityQuantizer() leaves "
            "a tensor as it is"
        )
    if not isinstance(found, (Quantizer, DelayedScalingRequest)):
        kind = type(found).__name__
        raise TypeError(f"the quantizer factory gives a {kind} for {role!r}, expected a Quantizer or a request for one")
    return found


def factory_of(recipe: Recipe) -> Callable[[Any], Any]:
    """The factory of a recipe's quantizers."""
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is {recipe!r}, expected a recipe of dither.recipe")
    if recipe.qfactory is not None:
        return recipe.qfactory

    def factory(role: Any) -> Quantizer | DelayedScalingRequest:
        if isinstance(recipe, DelayedScaling):
            tensor_of(role)
            fields = [field.name for field in dataclasses.fields(DelayedScalingRequest)]
            return DelayedScalingRequest(**{name: getattr(recipe, name) for name in fields})
        return quantizer_of(recipe.quantization(tensor_of(role)))

    return factory


def is_backward(role: Any) -> bool:
    """Whether a role is of the backward pass."""
    return tensor_of(role) in BACKWARD_TENSORS
