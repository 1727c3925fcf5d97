"""Ready quantizer factories: functions of a role, for `CustomRecipe`, or to be called.

    recipe = dither.recipe.CustomRecipe(dither.torch.factories.mxfp8_factory)
    x = dither.torch.factories.nvfp4_factory("input").quantize(x)

`role` is a QuantizerRole, a string such as "input", or None. What the pass forward takes is along rows, and what the
one backward takes of inputs and weights along columns: so mixes are of a quantizer for each direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..recipe import (
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
    Recipe,
)
from .quantizer import Quantizer
from .quantizers import HybridQuantizer, IdentityQuantizer, MXFP8Quantizer, NVFP4Quantizer
from .roles import DelayedScalingRequest, factory_of, is_backward, tensor_of


def _of(recipe: Recipe, doc: str) -> Callable[[Any], Any]:
    of_recipe = factory_of(recipe)

    def factory(role: Any = None) -> Any:
        return of_recipe(role)

    factory.__doc__ = doc
    return factory


def high_precision_factory(role: Any = None) -> Quantizer:
    """Nothing is quantized."""
    tensor_of(role)
    return IdentityQuantizer()


def delayed_scaling_factory(role: Any = None) -> DelayedScalingRequest:
    """FP8 with one scale for a tensor, of the amaxes of earlier steps: a request, as the module owns these."""
    return factory_of(DelayedScaling())(role)


current_scaling_factory = _of(Float8CurrentScaling(), "FP8 with one scale for a tensor, of its own amax.")
float8_block_scaling_factory = _of(Float8BlockScaling(), "FP8 of blocks of 128, those of weights square.")
mxfp8_factory = _of(MXFP8BlockScaling(), "MXFP8.")
nvfp4_factory = _of(NVFP4BlockScaling(), "NVFP4, with the transforms, square blocks and rounding of its recipe.")
nvfp4_1d_weight_factory = _of(
    NVFP4BlockScaling(disable_2d_quantization=True), "NVFP4, as nvfp4_factory, but blocks of weights are of one row."
)


def high_precision_fwd_mxfp8_bwd_factory(role: Any = None) -> Quantizer:
    """Forward in high precision, backward in MXFP8."""
    return MXFP8Quantizer("e4m3") if is_backward(role) else HybridQuantizer(IdentityQuantizer(), MXFP8Quantizer("e4m3"))


def mxfp8_fwd_high_precision_bwd_factory(role: Any = None) -> Quantizer:
    """Forward in MXFP8, backward in high precision."""
    if is_backward(role):
        return IdentityQuantizer()
    return HybridQuantizer(MXFP8Quantizer("e4m3"), IdentityQuantizer())


def mxfp8_fwd_nvfp4_bwd_factory(role: Any = None) -> Quantizer:
    """Forward in MXFP8, backward in NVFP4 as its recipe has it."""
    backward = nvfp4_factory(role)
    return backward if is_backward(role) else HybridQuantizer(MXFP8Quantizer("e4m3"), backward)


def nvfp4_row_scaled_fwd_mxfp8_bwd_factory(role: Any = None) -> Quantizer:
    """Forward in NVFP4, inputs with an amax of each row, backward in MXFP8."""
    if is_backward(role):
        return MXFP8Quantizer("e4m3")
    return HybridQuantizer(_nvfp4_forward(role), MXFP8Quantizer("e4m3"))


def nvfp4_row_scaled_fwd_high_precision_bwd_factory(role: Any = None) -> Quantizer:
    """Forward in NVFP4, inputs with an amax of each row, backward in high precision."""
    return IdentityQuantizer() if is_backward(role) else HybridQuantizer(_nvfp4_forward(role), IdentityQuantizer())


def nvfp4_linear_fp8_dpa_factory(role: Any = None) -> Quantizer:
    """NVFP4 of linear layers, FP8 with current scaling of attention."""
    attention = getattr(role, "module_type", "") == "dpa"
    return current_scaling_factory(role) if attention else nvfp4_factory(role)


def _nvfp4_forward(role: Any) -> Quantizer:
    return NVFP4Quantizer(row_scaled_nvfp4=tensor_of(role) != "weight")


FACTORIES: dict[str, Callable[[Any], Any]] = {
    name.removesuffix("_factory"): value for name, value in list(globals().items()) if name.endswith("_factory")
}
