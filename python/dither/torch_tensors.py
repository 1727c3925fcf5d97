"""What torch's tensors are besides memory: subclasses, lazy signs, transformations."""

from __future__ import annotations

import sys
from typing import Any

from .extents import is_integer


def is_memory(kind: type) -> bool:
    """Whether tensors of this type are what their memory says: `torch.Tensor`, Parameter, plain subclasses.

    Those that take operations apart themselves (FakeTensor, DTensor, wrappers) only stand for other tensors.
    """
    return getattr(kind, "__torch_dispatch__", None) is sys.modules["torch"].Tensor.__torch_dispatch__


def is_symbol(extent: Any) -> bool:
    """Whether an extent is a symbol of torch, which it has while it traces for any batch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(extent, torch.SymInt)


def are_extents(shape: Any) -> bool:
    """Whether all of a shape is extents: integers that are not negative, or symbols."""
    return all((is_integer(n) or is_symbol(n)) and n >= 0 for n in shape)


def check(x: Any) -> None:
    """Raises TypeError for a tensor whose memory is not its values, with what to pass instead."""
    torch = sys.modules["torch"]
    if not is_memory(type(x)):
        raise TypeError(
            f"found a {type(x).__name__}, which stands for other tensors, expected a plain torch.Tensor: "
            "pass the one that it holds"
        )
    if x.is_nested:
        raise TypeError("found a nested tensor, expected a plain one: pass its parts, or to_padded_tensor()")
    if x.layout is not torch.strided:
        raise TypeError(f"found a {x.layout} tensor, expected a strided one: to_dense() makes one")
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"found a tensor on device '{x.device}', expected one on a CPU or CUDA device")
    if x.is_neg():
        raise TypeError("found a view with the sign of its memory changed, expected values: x.resolve_neg() makes them")


def data_pointer(x: Any) -> int:
    """The address of the first element, 0 where there is none."""
    try:
        return x.data_ptr()
    except RuntimeError:
        # A wrapper of torch.func (vmap, grad) or of a compiler, whose type is torch.Tensor.
        return 0


def check_writable(name: str, owner: Any) -> None:
    """Raises ValueError where an output is a tensor that requires a gradient, while such are recorded."""
    if _requires_gradient(owner):
        raise ValueError(
            f"argument '{name}' requires a gradient, which what a kernel writes has not: launch under torch.no_grad(), "
            f"or pass {name}.detach()"
        )


def begin_write(owner: Any) -> None:
    """Tells autograd that a kernel writes memory, so that gradients that would need what it held are errors."""
    if _requires_gradient(owner):
        raise ValueError("found a tensor that requires a gradient, expected none for an output")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.Tensor):
        torch.autograd.graph.increment_version(owner)


def _requires_gradient(owner: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(owner, torch.Tensor):
        return False
    return owner.requires_grad and torch.is_grad_enabled()
