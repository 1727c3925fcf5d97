"""Quantized matrices as torch's scaled products take them, and these products on GPUs that have them."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from ..formats import Format
from ..language import ScaleLayout
from ..ops import ScaledTensor1x, swizzle_scales, transpose, unswizzle_scales
from ..ops.orders import OF_LAYOUT
from ..ops.scaled_tensor import scale_matrix
from ..types import e8m0, float4_e2m1, float8_e4m3, float8_e5m2, float32

_NATIVE: contextvars.ContextVar[bool] = contextvars.ContextVar("dither_native_products", default=True)
_KIND = functional.ScalingType
_ORDER = functional.SwizzleType


class ScaledMMArgs(NamedTuple):
    """An operand of `torch.nn.functional.scaled_mm`: the matrix, its scales, and what they are.

    Attributes:
        mat: codes: (M, K) by rows for side "a", (K, N) by columns for side "b".
        scale: scales that codes are multiplied by; with that of the tensor for NVFP4.
        recipe: `torch.nn.functional.ScalingType` of each.
        swizzle: `torch.nn.functional.SwizzleType` of each.
    """

    mat: torch.Tensor
    scale: list[torch.Tensor]
    recipe: list[Any]
    swizzle: list[Any]


def as_torch_scaled_mm_args(t: ScaledTensor1x, side: str, *, convert: bool = False) -> ScaledMMArgs:
    """A quantized matrix as an operand of `torch.nn.functional.scaled_mm`.

    Args:
        t: of rank 2; sums run along the blocks: (M, K) quantized along rows, or (K, M) along columns.
        side: "a" or "b".
        convert: whether scales that are in another order than torch takes them are put in it, and codes that are not
            stored transposed are transposed. Without, they are refused: it costs a launch each.

    FP8 of a tensor and of rows need no order; 1 x 128 has `scale_layout="column_major"` of M a multiple of 4, MXFP8,
    MXFP4 and NVFP4 "128x4". Raises TypeError or ValueError, also for formats that torch has no product of.
    """
    if not isinstance(t, ScaledTensor1x):
        raise TypeError(f"argument 't' is {type(t).__name__}, expected a ScaledTensor1x, such as one of the two halves")
    if side not in ("a", "b"):
        raise ValueError(f"side is {side!r}, expected 'a' or 'b'")
    if len(t.shape) != 2:
        raise ValueError(f"argument 't' has shape {t.shape}, expected rank 2")
    fmt = t.format
    codes = t.data
    if fmt.element not in (float8_e4m3, float8_e5m2, float4_e2m1):
        raise ValueError(f"torch has no product of {fmt.name}, expected FP8, MXFP8, MXFP4 or NVFP4")
    if t.is_colwise and not fmt.transposed:
        if not convert:
            raise ValueError(f"codes of {fmt.name} along columns lie by rows, expected convert=True to transpose them")
        codes = transpose(t)
    if fmt.element is float4_e2m1:
        codes = codes.view(torch.float4_e2m1fn_x2)
    rows = t.shape[::-1] if t.is_colwise else t.shape
    scale, recipe, swizzle = _scales(t, fmt, (rows[0], rows[1]), side, convert)
    return ScaledMMArgs(codes if side == "a" else codes.t(), scale, recipe, swizzle)


def _scales(
    t: ScaledTensor1x, fmt: Format, shape: tuple[int, int], side: str, convert: bool
) -> tuple[list[torch.Tensor], list[Any], list[Any]]:
    """The scales of codes (M, K), their kinds and orders."""
    plain = [_ORDER.NO_SWIZZLE]
    if fmt.scale is float32 and fmt.block == "tensor":
        return [t.scale_inv.reshape(1)], [_KIND.TensorWise], plain
    if fmt.scale is float32 and fmt.block == "row":
        column = t.scale_inv.reshape(-1, 1)
        return [column if side == "a" else column.t()], [_KIND.RowWise], plain
    if fmt.scale is float32 and fmt.block == 128:
        by_columns = _in_order(t, shape, "column_major", convert)[:, : shape[0]]
        return [by_columns.t()], [_KIND.BlockWise1x128], plain
    if fmt.scale is float32 and fmt.block == (128, 128):
        if side == "a":
            raise ValueError("blocks of 128 x 128 are for side 'b': torch has no product of them on side 'a'")
        matrix = _in_order(t, shape, "linear", convert)
        padded = functional.pad(matrix, (0, -matrix.shape[1] % 4)).contiguous()
        return [padded.t()], [_KIND.BlockWise128x128], plain
    kinds: dict[Any, Any] = {(e8m0, 32): _KIND.BlockWise1x32, (fmt.scale, 16): _KIND.BlockWise1x16}
    kind = kinds.get((fmt.scale, fmt.block_cols if fmt.block_rows == 1 or t.repeated else 0))
    if kind is None or fmt.row_amax or fmt.tensor_scale_as == "encode":
        raise ValueError(f"torch has no product of {fmt.name}, expected FP8, MXFP8, MXFP4 or NVFP4")
    scales, order = _in_order(t, shape, "128x4", convert), [_ORDER.SWIZZLE_32_4_4]
    if not fmt.tensor_scale:
        return [scales], [kind], order
    if fmt.tensor_scale_as == "decode":
        whole = t.tensor_scale
    else:
        whole = t.amax * _reciprocal(fmt.largest_element * fmt.largest_scale, t.amax.device)
    return [scales, whole.reshape(1)], [kind, _KIND.TensorWise], [*order, *plain]


def _reciprocal(value: float, device: torch.device) -> torch.Tensor:
    """1 / value in float32: the decode scale of an amax of 1, as values have it."""
    return 1.0 / torch.tensor(value, dtype=torch.float32, device=device)


def _in_order(t: ScaledTensor1x, shape: tuple[int, int], order: str, convert: bool) -> torch.Tensor:
    """The scales of codes (M, K) in an order of dither."""
    have = OF_LAYOUT[t.scale_layout]
    if have.name == order and (order != "linear" or not t.is_colwise or t.format.transposed):
        return t.scale_inv
    if not convert:
        raise ValueError(f"scales are in the order {have.name}, expected scale_layout={order!r}, or convert=True")
    kind, scales = t.format.scale, t.scale_inv
    if t.scale_layout is not ScaleLayout.linear:
        matrix = scale_matrix(t.shape, t.format, t.is_colwise, t.repeated)
        scales = unswizzle_scales(scales, matrix, have.name, kind)
    elif t.is_colwise and not t.format.transposed:
        scales = scales.view(torch.uint8).t().contiguous().view(scales.dtype)
    return scales if order == "linear" else swizzle_scales(scales, order, kind)


# -- products on GPUs ----------------------------------------------------------------------------


@contextlib.contextmanager
def native_products(enabled: bool = True) -> Iterator[None]:
    """Whether products of quantized matrices are, where a GPU has them, those of its matrix units: so it is by default.

    They sum in an order and precision of their own. `with native_products(False):` has the product that is defined on
    every device (`dither.torch.multiply`), backward passes that run inside too.
    """
    token = _NATIVE.set(enabled)
    try:
        yield
    finally:
        _NATIVE.reset(token)


def capability(device: torch.device) -> tuple[int, int]:
    """The compute capability of a GPU of NVIDIA, (0, 0) of any other device."""
    if device.type != "cuda" or torch.version.hip:
        return (0, 0)
    return torch.cuda.get_device_capability(device)


def has_products(fmt: Format, device: torch.device) -> bool:
    """Whether torch has a product of matrices in a format on a device, in their order of scales."""
    least = {"row": (9, 0), "tensor": (8, 9), 128: (9, 0), (128, 128): (9, 0)}.get(fmt.block, (10, 0))
    return _NATIVE.get() and capability(device) >= least


def native_operands(
    a: ScaledTensor1x, b: ScaledTensor1x, convert: bool = False
) -> tuple[ScaledMMArgs, ScaledMMArgs] | None:
    """Two matrices as torch's product takes them on the GPU that they lie on; None where it does not."""
    device = a.data.device
    if not (has_products(a.format, device) and has_products(b.format, device)):
        return None
    m, k = a.shape[::-1] if a.is_colwise else a.shape
    n = b.shape[1] if b.is_colwise else b.shape[0]
    if k % 32 or n % 16 or not m or (a.format.block == 128 and m % 4):
        return None
    if a.format.element is b.format.element is float8_e5m2:
        return None
    try:
        return as_torch_scaled_mm_args(a, "a", convert=convert), as_torch_scaled_mm_args(b, "b", convert=convert)
    except (TypeError, ValueError):
        return None


def native_product(a: ScaledMMArgs, b: ScaledMMArgs, dtype: torch.dtype) -> torch.Tensor:
    """torch's product a b of operands."""
    found: torch.Tensor = functional.scaled_mm(
        a.mat, b.mat, a.scale, a.recipe, b.scale, b.recipe, a.swizzle, b.swizzle, output_dtype=dtype
    )
    return found
