"""Models whose linear layers become dither's."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable
from typing import Any

import torch

from ..recipe import Recipe
from .autocast import autocast
from .modules import Linear

#: What hooks have opened in this context, the innermost last: whose hook, the region, and the error that was handled
#: outside. Threads that run one model have one each.
_OPEN: contextvars.ContextVar[tuple[tuple[Any, Any, Any], ...]] = contextvars.ContextVar("dither_convert", default=())


class _Runs:
    """Hooks that run a model under a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def enter(self, module: torch.nn.Module, args: Any) -> None:
        """Before the forward pass."""
        region = autocast(recipe=self.recipe)
        region.__enter__()
        _OPEN.set((*_OPEN.get(), (self, region, sys.exc_info()[1])))

    def leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """After it, also where it raised an error: then no scale is updated."""
        opened = _OPEN.get()
        if not opened or opened[-1][0] is not self:  # a hook before `enter` raised
            return
        _, region, handled = opened[-1]
        _OPEN.set(opened[:-1])
        error = sys.exc_info()[1]
        if error is None or error is handled:
            region.__exit__(None, None, None)
        else:
            region.__exit__(type(error), error, error.__traceback__)


def convert(
    model: torch.nn.Module,
    recipe: Recipe | None = None,
    filter: Callable[[str, torch.nn.Module], bool] | None = None,
) -> torch.nn.Module:
    """Swaps the `torch.nn.Linear` layers of a model for `dither.torch.Linear` of the same parameters, in place.

        model = dither.torch.convert(model, dither.recipe.MXFP8BlockScaling(), lambda name, _: name != "lm_head")

    Args:
        model: any module; a layer that is used in several places is swapped in all of them.
        recipe: what the model runs under whenever it is called; None to leave that to `dither.torch.autocast`.
        filter: a function of the name and the layer that says which are swapped; all if None. Layers of subclasses of
            `torch.nn.Linear` stay as they are: what they do besides is not known.

    Returns the model, or the new layer where it is a linear layer itself. Raises ValueError where no layer is swapped,
    and for a layer whose forward pass is not that of torch.nn.Linear; the model is as it was then.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"argument 'model' is {type(model).__name__}, expected a torch.nn.Module")
    if recipe is not None and not isinstance(recipe, Recipe):
        raise TypeError(f"recipe is {recipe!r}, expected a recipe of dither.recipe")
    layers = [
        (name, layer)
        for name, layer in model.named_modules(remove_duplicate=False)
        if type(layer) is torch.nn.Linear and (filter is None or filter(name, layer))
    ]
    if not layers:
        raise ValueError("no torch.nn.Linear is swapped, expected a model that has one, and a filter that takes it")
    for name, layer in layers:
        _check_forward(layer, name)
    swapped: dict[int, Linear] = {}
    for name, layer in layers:
        new = swapped.setdefault(id(layer), _linear(layer, name))
        if layer is model:
            model = new
        else:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, new)
    if recipe is not None:
        runs = _Runs(recipe)
        model.register_forward_pre_hook(runs.enter)
        model.register_forward_hook(runs.leave, always_call=True)
    return model


def _check_forward(layer: torch.nn.Linear, name: str) -> None:
    """Raises ValueError for a layer whose forward pass was put in the place of torch's."""
    if "forward" in vars(layer):
        raise ValueError(
            f"the layer {name!r} has a forward of its own, expected that of torch.nn.Linear: take off what put it "
            "there (such as the hooks of a library that moves layers), or leave the layer out by the filter"
        )


def _linear(layer: torch.nn.Linear, name: str) -> Linear:
    """A layer of dither with all that one of torch has: parameters, buffers, hooks, mode and other attributes.

    Both have the same dictionaries, so that handles of hooks remove them from either.
    """
    new = Linear(layer.in_features, layer.out_features, layer.bias is not None, device="meta", name=name)
    vars(new).update(vars(layer))
    new.name = name
    return new
