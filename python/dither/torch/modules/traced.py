"""Forward passes as the compiler of torch takes them: one node each (tracing.py)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch


class ModuleFunction(torch.autograd.Function):
    """What both passes of a module are, in eager mode and in graphs."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """As of torch's. Raises RuntimeError under transforms of torch.func, which have no rule for quantized tensors
        that are saved."""
        if torch._C._are_functorch_transforms_active():
            raise RuntimeError(
                "a module of dither is called under a transform of torch.func (grad, vmap, ..), expected backward() or "
                "torch.autograd.grad() for its gradients"
            )
        return super().apply(*args)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass whose gradients have none themselves. Raises TypeError where one is to be made, which torch's own
    decorator does only if the gradient that comes in has one."""

    @functools.wraps(backward)
    def checked(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled():
            what = "the gradient of a gradient was asked for, which modules of dither have not"
            raise TypeError(f"{what}: expected create_graph=False")
        return backward(ctx, *grads)

    return checked


class TracedModule(torch.nn.Module):
    """A module of which a compiler's graph has the operators of both passes, without a look at how they come about."""

    def run(self, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        """`compute`, or where the compiler traces a node that stands for it. Read by the compiler."""
        if torch.compiler.is_dynamo_compiling():
            traced: torch.Tensor = sys.modules["dither"].torch.tracing.module(self, x, rest)
            return traced
        return self.compute(x, *rest)

    def compute(self, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        """The forward pass."""
        raise NotImplementedError

    def options(self) -> tuple[Any, ...]:
        """All that the forward pass reads of the module, but for tensors: roles first. Graphs are made anew where it
        differs. Read by the compiler."""
        return ((),)

    def keeps_state(self, rest: Sequence[Any]) -> bool:
        """Whether a call writes what outlives it, and so is none of a graph's. Read by the compiler."""
        return False
