"""The recipe that modules run under, in a context variable: threads and tasks have their own."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..recipe import CustomRecipe, DelayedScaling, Float8CurrentScaling, MXFP8BlockScaling, NVFP4BlockScaling, Recipe
from .delayed import History


# Not frozen, which the compiler of torch takes apart: it is a constant of graphs as it is.
@dataclasses.dataclass(unsafe_hash=True)
class Region:
    """What a `with autocast(..)` says.

    Attributes:
        enabled: whether modules quantize. calibrating: whether they record amaxes where they do not.
        recipe: how.
        group: processes whose amaxes are reduced, None for all.
        histories: those of delayed scaling that modules recorded in; updated when the outermost region ends.
        backward_pass: the backward pass that it was opened in, as torch counts them, or None.
    """

    enabled: bool
    calibrating: bool
    recipe: Recipe
    group: Any
    histories: dict[int, History] = dataclasses.field(compare=False, repr=False)
    backward_pass: int | None = dataclasses.field(compare=False, repr=False)


pytree.register_constant(Region)
_REGION: contextvars.ContextVar[Region | None] = contextvars.ContextVar("dither_autocast", default=None)


class Said:
    """The innermost region as the compiler of torch reads it: `SAID.region`.

    It reads attributes, and guards graphs by reading them again: so this one is what the context variable has then,
    and `SAID` itself where that has nothing.
    """

    region: Any = property(_REGION.get)


SAID = Said()
#: The recipe of parameters that are made quantized, and whether their first values are kept.
_INIT: contextvars.ContextVar[tuple[Recipe, bool] | None] = contextvars.ContextVar("dither_init", default=None)


def current() -> Region | None:
    """The innermost region, or None."""
    return _REGION.get()


def current_init() -> tuple[Recipe, bool] | None:
    """What `quantized_model_init` says, or None."""
    return _INIT.get()


def backward_pass() -> int | None:
    """The backward pass that this is called in, as torch counts them, or None: what modules run there is computed
    again."""
    task = torch._C._current_graph_task_id()
    return None if task == -1 else task


@contextlib.contextmanager
def within(region: Region | None) -> Iterator[None]:
    """Has a region as the innermost one."""
    token = _REGION.set(region)
    try:
        yield
    finally:
        _REGION.reset(token)


@contextlib.contextmanager
def autocast(
    enabled: bool = True,
    calibrating: bool = False,
    recipe: Recipe | None = None,
    amax_reduction_group: Any = None,
) -> Iterator[None]:
    """Has the modules of `dither.torch` quantize what they multiply.

        with dither.torch.autocast(recipe=dither.recipe.MXFP8BlockScaling()):
            loss = model(x)
        loss.backward()

    Args:
        enabled: False has them multiply in high precision, inside of another region, too.
        calibrating: whether amaxes of delayed scaling are recorded where nothing is quantized (`enabled=False`).
        recipe: a recipe of `dither.recipe`; None for `get_default_recipe()`.
        amax_reduction_group: the processes, of torch.distributed, whose amaxes of delayed scaling are reduced.

    The backward pass has the recipe of the forward one, wherever it runs. Scales of delayed scaling are updated when
    the outermost region ends, in one launch, and those of gradients when the backward pass ends; modules in evaluation
    mode, or without gradients, record nothing.
    """
    for name, value in (("enabled", enabled), ("calibrating", calibrating)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, expected True or False")
    if recipe is not None and not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is {recipe!r}, expected a recipe of dither.recipe")
    outer = _REGION.get()
    histories = {} if outer is None else outer.histories
    recipe = recipe or get_default_recipe()
    region = Region(enabled, calibrating, recipe, amax_reduction_group, histories, backward_pass())
    ended = histories.values() if outer is None else ()
    try:
        with within(region):
            yield
    except BaseException:
        for history in ended:  # the step did not happen
            history.forget()
        raise
    for history in ended:
        history.update()


def fp8_autocast(
    enabled: bool = True, calibrating: bool = False, fp8_recipe: Recipe | None = None, fp8_group: Any = None
) -> contextlib.AbstractContextManager[None]:
    """`autocast`, by its earlier name and arguments."""
    return autocast(enabled, calibrating, fp8_recipe, fp8_group)


@contextlib.contextmanager
def quantized_model_init(
    enabled: bool = True, recipe: Recipe | None = None, preserve_high_precision_init_val: bool = False
) -> Iterator[None]:
    """Has modules that are made inside hold their weights quantized alone, as `recipe` quantizes weights.

    With `preserve_high_precision_init_val` a weight keeps its first values besides, on the host, for an optimizer's
    master weights: `weight.get_high_precision_init_val()`, until `weight.clear_high_precision_init_val()`.
    """
    said = (recipe or get_default_recipe(), preserve_high_precision_init_val) if enabled else None
    token = _INIT.set(said)
    try:
        yield
    finally:
        _INIT.reset(token)


def fp8_model_init(
    enabled: bool = True, recipe: Recipe | None = None, preserve_high_precision_init_val: bool = False
) -> contextlib.AbstractContextManager[None]:
    """`quantized_model_init`, by its earlier name."""
    return quantized_model_init(enabled, recipe, preserve_high_precision_init_val)


def get_default_recipe() -> Recipe:
    """MXFP8 on sm_100 and its like, FP8 with current scaling from sm_120 on, delayed scaling elsewhere."""
    major = torch.cuda.get_device_capability()[0] if torch.cuda.is_available() and not torch.version.hip else 0
    if major >= 12:
        return Float8CurrentScaling()
    return MXFP8BlockScaling() if major >= 10 else DelayedScaling()


def get_align_size_for_quantization(recipe: Recipe) -> int:
    """What rows are padded to a multiple of, where they are padded: dither takes any number, but for transforms."""
    if isinstance(recipe, CustomRecipe):
        return recipe.quantization_alignment
    return 32 if isinstance(recipe, MXFP8BlockScaling) else 128 if isinstance(recipe, NVFP4BlockScaling) else 16


def _available(return_reason: bool) -> Any:
    return (True, "") if return_reason else True


def is_fp8_available(return_reason: bool = False) -> Any:
    """Whether FP8 recipes run here: everywhere. True, or with `return_reason` (True, ""); the same of the others.

    Products are torch's own where a GPU has them, and float32 elsewhere: `dither.torch.scaled_mm`.
    """
    return _available(return_reason)


def is_mxfp8_available(return_reason: bool = False) -> Any:
    """Whether MXFP8BlockScaling runs here: everywhere."""
    return _available(return_reason)


def is_fp8_block_scaling_available(return_reason: bool = False) -> Any:
    """Whether Float8BlockScaling runs here: everywhere."""
    return _available(return_reason)


def is_nvfp4_available(return_reason: bool = False) -> Any:
    """Whether NVFP4BlockScaling runs here: everywhere."""
    return _available(return_reason)
