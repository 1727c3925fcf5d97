"""Views that a quantized tensor has no memory for: copies of values, which are read and not written."""

from __future__ import annotations

from typing import Any

import torch

#: Methods of Python that write their first operand.
_WRITING = {
    "__setitem__",
    *("__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__"),
    *("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"),
}
#: Methods whose names end as those of operations in place do, and which change no values.
_HARMLESS = {"requires_grad_"}


class ReadOnly(torch.Tensor):
    """Values of a part of a quantized tensor, or of its transpose: what torch has as a view, which is a copy here.

    What is written to it would be lost, and raises RuntimeError. What is computed of it is a plain tensor.
    """

    @classmethod
    def of(cls, x: torch.Tensor) -> torch.Tensor:
        """A plain tensor as one."""
        return x.as_subclass(cls) if type(x) is torch.Tensor else x

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        in_place = name.endswith("_") and not name.startswith("_") and name not in _HARMLESS
        written = args[0] if in_place or name in _WRITING else kwargs.get("out")
        if isinstance(written, cls):
            raise RuntimeError(
                f"{name} writes a copy of the values of a quantized tensor, expected rows of whole blocks, which are "
                "its memory: write the tensor itself, or clone() the values"
            )
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **kwargs)
        if type(found) is cls:
            found = found.as_subclass(torch.Tensor)
        return cls.of(found) if isinstance(found, torch.Tensor) and found._is_view() else found
