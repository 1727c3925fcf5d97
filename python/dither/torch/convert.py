"""Models whose linear layers become dither's."""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable
from typing import Any

import torch

from ..recipe import Recipe
from .autocast import autocast
from .modules import Linear


class _Runs(torch.nn.Module):
    """What a model that runs under a recipe is, before all that its own class is.

    Hooks would leave the region open where the forward pass is stopped, as by Ctrl-C: torch calls none then.
    """

    _dither_recipe: Recipe
    #: The model's own class.
    _dither_class: type[torch.nn.Module]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The call of the model, in a region."""
        with autocast(recipe=self._dither_recipe):
            return _inside(super().__call__, args, kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles make the class anew, which has no module to be found in."""
        made = super().__reduce_ex__(max(protocol, 2))
        if made[0] is copyreg.__newobj__ and "_dither_class" in vars(type(self)):  # type: ignore[attr-defined]
            made = (_new, (self._dither_class,), *made[2:])
        return made


def _inside(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call in a region: where torch compiles, its first graph begins here, and may reach through torch's modules."""
    return call(*args, **kwargs)


@functools.cache
def _running(of: Any) -> Any:
    """A class of models, by its own name, whose calls are in a region."""
    same = {name: getattr(of, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(of)(of.__name__, (_Runs, of), {**same, "_dither_class": of})


def _new(of: Any) -> Any:
    """A model of such a class, without its attributes."""
    return _running(of).__new__(_running(of))


def _keeps_slow_path(module: torch.nn.Module, args: Any) -> None:
    """A hook of torch's encoder layers that does nothing: where there is one they call their linear layers, and else
    read the weights of these in evaluation mode."""


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
    for module in model.modules():
        _without_fast_paths(module)
    if recipe is not None:
        own: Any = type(model)
        if not issubclass(own, _Runs):
            model.__class__ = _running(own)
        vars(model)["_dither_recipe"] = recipe
    return model


def _without_fast_paths(module: torch.nn.Module) -> None:
    """Turns off what computes with the weights of swapped layers by itself."""
    if isinstance(module, torch.nn.TransformerEncoderLayer) and _has_swapped(module):
        if _keeps_slow_path not in module._forward_pre_hooks.values():
            module.register_forward_pre_hook(_keeps_slow_path)
    elif isinstance(module, torch.nn.TransformerEncoder) and any(map(_has_swapped, module.layers)):
        module.use_nested_tensor = False  # which the fast path of layers alone takes


def _has_swapped(layer: Any) -> bool:
    return any(isinstance(getattr(layer, name, None), Linear) for name in ("linear1", "linear2"))


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
