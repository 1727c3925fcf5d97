"""Recipes: how the matrix products of a model are quantized, without any framework.

A recipe is a frozen object: what it means is what its arguments say, and nothing of the environment. Names, parameters
and defaults are those of Transformer Engine's `common.recipe`. `Recipe.quantization` says of each tensor of a linear
layer what `dither.quantize` is told.

`dither.recipe.Format` is which elements a recipe takes forward and backward; `dither.Format` is a format of blocks.
`dither.recipe.DelayedScaling` is a recipe; `dither.DelayedScaling` is the state of delayed scaling of some tensors.
"""

from .parameters import Format, MMParams, QParams, Quantization
from .recipes import (
    BACKWARD_TENSORS,
    FORWARD_TENSORS,
    TENSORS,
    CustomRecipe,
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
    Recipe,
)

__all__ = [
    "BACKWARD_TENSORS",
    "FORWARD_TENSORS",
    "TENSORS",
    "CustomRecipe",
    "DelayedScaling",
    "Float8BlockScaling",
    "Float8CurrentScaling",
    "Format",
    "MMParams",
    "MXFP8BlockScaling",
    "NVFP4BlockScaling",
    "QParams",
    "Quantization",
    "Recipe",
]
