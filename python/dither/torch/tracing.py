"""Calls where torch's compiler traces: it does not look inside, and traces what a call does with its tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..frameworks import named_in_graphs
from . import calls
from .autocast import SAID, Region, backward_pass, current, within
from .pytrees import HOLDERS, Failed, Fields, constant, opened
from .roles import DelayedScalingRequest, QuantizerRole, factory_of, made


@torch._dynamo.nonstrict_trace
def _traced(name: str, args: Any, kwargs: Any) -> Any:
    try:
        result = calls.call(named_in_graphs(name), *args, **kwargs)
        result = pytree.tree_map(opened, result, is_leaf=lambda value: isinstance(value, HOLDERS))
        return Fields(result) if hasattr(result, "_fields") else result
    except (TypeError, ValueError) as error:
        return Failed(isinstance(error, TypeError), str(error))


def call(name: str, args: Any, kwargs: Any) -> Any:
    """The call of an operator by its name in graphs; read by the compiler. Raises what the operator raises."""
    result = _traced(name, [opened(value) for value in args], {key: opened(value) for key, value in kwargs.items()})
    if isinstance(result, Failed):
        if result.is_type_error:
            raise TypeError(result.message)
        raise ValueError(result.message)
    return result


# -- modules -------------------------------------------------------------------------------------


@torch._dynamo.nonstrict_trace
def _traced_module(module: Any, regions: tuple[Region, ...], options: Any, x: torch.Tensor, rest: Any) -> torch.Tensor:
    if options[0]:
        _check_region(module, regions)
    # Of torch.autocast `x` has the data type already.
    with within(regions[0] if regions else None), torch.autocast(x.device.type, enabled=False):
        result: torch.Tensor = module.compute(x, *rest)
        return result


def _check_region(module: Any, regions: tuple[Region, ...]) -> None:
    """Raises RuntimeError where a backward pass computes again under another region than the forward pass had: graphs
    are found by the region that is open where they are called."""
    if backward_pass() is not None and module.region() != (regions[0] if regions else None):
        raise RuntimeError(
            "a compiled module is computed again under another recipe than that of the forward pass, expected autocast "
            "inside of what torch.utils.checkpoint calls, or torch.compile around the checkpoint"
        )


@torch._dynamo.disable(reason="this module of dither keeps state under its recipe, or in this call")
def _eager_module(module: Any, x: Any, rest: Any) -> torch.Tensor:
    result: torch.Tensor = module.compute(x, *rest)
    return result


@constant
def _has_state(roles: tuple[tuple[str, str, str], ...]) -> bool:
    """Whether quantizers of the recipe have tensors of their own: scales of delayed scaling, and the like."""
    region: Any = current()
    factory = factory_of(region.recipe)
    found = [made(factory, QuantizerRole(*role)) for role in roles]
    return any(isinstance(q, DelayedScalingRequest) or q._owns_tensors() for q in found)


def module(self: Any, x: torch.Tensor, rest: tuple[Any, ...]) -> torch.Tensor:
    """The forward pass of a module as one node, of which graphs have the operators; where it keeps state a call outside
    of the graph. Read by the compiler."""
    options = self.options()
    eager: bool = self.keeps_state(rest)
    regions: tuple[Region, ...] = ()
    if options[0]:
        region = SAID.region
        if region is not SAID and (region.enabled or region.calibrating):
            regions = (region,)
            eager = eager or region.calibrating or _has_state(options[0])
    if eager:
        return _eager_module(self, x, rest)
    kind = x.device.type
    x = x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x
    return _traced_module(self, regions, options, x, tuple([each for each in rest if each is not None]))
