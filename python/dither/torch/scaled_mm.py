"""The product of two quantized matrices, on a GPU's matrix units where it has them."""

from __future__ import annotations

from typing import Any

import torch

from ..ops import ScaledTensor1x, ScaledTensor2x
from .matmul import GEMMType, multiply
from .scaled_args import as_torch_scaled_mm_args, native_operands, native_product, native_products
from .storage import QuantizedStorage


def scaled_mm(
    a: Any,
    b: Any,
    *,
    out_dtype: torch.dtype | None = None,
    bias: torch.Tensor | None = None,
    alpha: float | torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    accumulate: bool = False,
    native: bool | None = None,
    convert: bool = False,
) -> torch.Tensor:
    """a b^T of quantized matrices (M, K) and (N, K).

    Args:
        a, b: ScaledTensor1x quantized along rows, or (K, M) and (K, N) along columns; of a ScaledTensor2x or a storage
            the part along rows.
        out_dtype: the data type of the result; that of `out`, or of `a` before quantization, if None.
        bias: (N,), added to each row. alpha: a number that the product is multiplied by.
        out: where the result goes, with `accumulate` added to what is there.
        native: True for torch's product on the device's matrix units, which sums in an order and precision of its own;
            False for `multiply`, which is defined; None for the first where a GPU has it.
        convert: as of `as_torch_scaled_mm_args`.

    Raises TypeError or ValueError; with native=True also what torch raises where a device does not have the product.
    """
    left, right = _along_rows(a, "a"), _along_rows(b, "b")
    operands = native_operands(left, right, convert) if native is None else None
    if native:
        operands = (
            as_torch_scaled_mm_args(left, "a", convert=convert),
            as_torch_scaled_mm_args(right, "b", convert=convert),
        )
    dtype = out_dtype or (out.dtype if out is not None else QuantizedStorage.of(left).dtype)
    if accumulate and out is None:
        raise ValueError("accumulate is True, expected 'out' with it")
    if operands is None:
        kinds = {(False, False): GEMMType.FPROP, (False, True): GEMMType.DGRAD, (True, True): GEMMType.WGRAD}
        kind = kinds.get((left.is_colwise, right.is_colwise))
        if kind is None:
            raise ValueError("a is quantized along columns and b along rows, expected a along rows, or both otherwise")
        parts = QuantizedStorage.of(left), QuantizedStorage.of(right)
        if alpha is None:
            with native_products(False):
                return multiply(kind, *parts, out_dtype=dtype, bias=bias, out=out, accumulate=accumulate)
        with native_products(False):
            result = multiply(kind, *parts, out_dtype=torch.float32) * alpha
    else:
        plain = alpha is None and not accumulate and bias is None
        result = native_product(*operands, dtype if plain else torch.float32)
        result = result if alpha is None else result * alpha
    if bias is not None:
        result = result + bias.float()
    if accumulate and out is not None:
        result = result.float() + out.float()
    return result.to(dtype) if out is None else out.copy_(result)


def _along_rows(x: Any, name: str) -> ScaledTensor1x:
    part = x.rowwise if isinstance(x, (ScaledTensor2x, QuantizedStorage)) else x
    if not isinstance(part, ScaledTensor1x):
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected a ScaledTensor1x or ScaledTensor2x")
    return part
