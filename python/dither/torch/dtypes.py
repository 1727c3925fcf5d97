"""Data types of torch and of dither."""

from __future__ import annotations

from typing import Any

import torch

from .. import types
from ..types import DType

_TORCH: dict[DType, torch.dtype] = {
    types.float32: torch.float32,
    types.bfloat16: torch.bfloat16,
    types.float16: torch.float16,
    types.float8_e4m3: torch.float8_e4m3fn,
    types.float8_e5m2: torch.float8_e5m2,
    types.e8m0: torch.float8_e8m0fnu,
    types.float4_e2m1: torch.float4_e2m1fn_x2,
}
_DITHER = {value: key for key, value in _TORCH.items()}


def check_dtype(dtype: Any, what: str) -> None:
    """Raises TypeError for a data type that values of tensors have not; `what` has it, as messages say."""
    if dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise TypeError(f"{what} has data type {dtype}, expected float32, bfloat16 or float16")


def torch_dtype(dtype: Any) -> torch.dtype:
    """The data type of torch, of one of dither or torch. Raises TypeError where torch has none."""
    found = dtype if isinstance(dtype, torch.dtype) else _TORCH.get(dtype)
    if found is None:
        raise TypeError(f"found {dtype!r}, expected a data type that torch has")
    return found


def dither_dtype(dtype: Any) -> DType:
    """The data type of dither, of one of torch or dither. Raises TypeError where dither has none."""
    found = dtype if isinstance(dtype, DType) else _DITHER.get(dtype)
    if found is None:
        raise TypeError(f"found {dtype!r}, expected {', '.join(map(str, _DITHER))}")
    return found
