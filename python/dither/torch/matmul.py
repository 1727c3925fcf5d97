"""Products of quantized matrices: one definition of the result, on every device.

Both operands become float32, their exact values where float32 has them, and are multiplied in float32: products are
rounded to float32, and summed in float32 in the order of torch's product of matrices on the device. A bias, and what
`out` held (accumulate), are added in float32, in this order, and the result is rounded once to its data type.

GPUs that multiply codes and scales themselves do so (scaled_args.py): products of codes are exact there as well, and
sums have an order and precision of the GPU's. `native_products(False)` has the definition there, too.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

import torch

from ..ops import ScaledTensor1x, ScaledTensor2x
from .dtypes import check_dtype
from .scaled_args import ScaledMMArgs, native_operands, native_product
from .storage import Part, QuantizedStorage, values
from .values import is_traced


class GEMMType(enum.Enum):
    """The product of a linear layer, y = x w^T: forward, and those that give dx = dy w and dw = dy^T x."""

    FPROP = "fprop"
    DGRAD = "dgrad"
    WGRAD = "wgrad"


#: Which direction of each operand a product takes, and whether what it takes is transposed: sums run over its rows.
_TAKES = {
    GEMMType.FPROP: (("rowwise", False), ("rowwise", False)),
    GEMMType.DGRAD: (("rowwise", False), ("colwise", True)),
    GEMMType.WGRAD: (("colwise", True), ("colwise", True)),
}


def multiply(
    kind: GEMMType,
    a: QuantizedStorage | torch.Tensor,
    b: QuantizedStorage | torch.Tensor,
    *,
    out_dtype: torch.dtype | None = None,
    bias: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    accumulate: bool = False,
) -> torch.Tensor:
    """A product of a linear layer: FPROP of x (M, K) and w (N, K), DGRAD of dy (M, N) and w, WGRAD of dy and x.

    Args:
        kind: which of them, or its name.
        a, b: the operands, quantized in the direction that the product sums over: along rows for FPROP, dy along rows
            and w along columns for DGRAD, both along columns for WGRAD. QuantizedTensors are what they hold; plain
            tensors, and groups, are taken by their values. Of other ranks than 2, dimensions before the last one are
            rows.
        out_dtype: the data type of the result, float32, bfloat16 or float16; that of `out`, or of `a` before
            quantization, if None.
        bias: (N,), added to each row.
        out: where the result goes; with `accumulate` it is added to what is there.

    Returns the result, with the leading dimensions of `a` for FPROP and DGRAD. Raises TypeError or ValueError.
    """
    kind = _kind(kind, "kind")
    (way_a, turned_a), (way_b, turned_b) = _TAKES[kind]
    parts = _part(a, way_a, "a", kind), _part(b, way_b, "b", kind)
    lead = tuple(a.shape[:-1])
    dtype = _result_dtype(out_dtype=out_dtype, out=out, a=a)
    kept = dtype if bias is None and not accumulate else torch.float32
    operands = _native(*parts, kept)
    if operands is not None:
        result = native_product(*operands, kept)
        final = (*lead, result.shape[1]) if kind is not GEMMType.WGRAD else tuple(result.shape)
        return _finish(result, final, dtype, bias, out, accumulate)
    left, right = _operands(*parts)
    left, right = left.reshape(-1, left.shape[-1]), right.reshape(-1, right.shape[-1])
    left, right = left.t() if turned_a else left, right.t() if turned_b else right
    if left.shape[1] != right.shape[1]:
        found = f"{kind.name} of {tuple(a.shape)} and {tuple(b.shape)} sums over {left.shape[1]} and {right.shape[1]}"
        raise ValueError(f"{found}, expected one length")
    shape = (left.shape[0], right.shape[0])
    final = (*lead, shape[1]) if kind is not GEMMType.WGRAD else shape
    return _finish(_product(left, right), final, dtype, bias, out, accumulate)


def qgemm(
    qx: Any,
    qw: Any,
    m_params: Any = None,
    out_dtype: torch.dtype | None = None,
    sx: torch.Tensor | None = None,
    sw: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    accumulate: bool = False,
    gemm_type: GEMMType = GEMMType.FPROP,
    qresult_x: QuantizedStorage | None = None,
    qresult_w: QuantizedStorage | None = None,
) -> torch.Tensor:
    """The product of a linear layer, of storages or of codes and their scales.

    Args:
        qx, qw: storages, as `a` and `b` of `multiply`; or codes of FP8, x (M, K) and w (N, K), whose product is x w^T
            whatever `gemm_type` is. Where `qresult_x` and `qresult_w` are given codes and scales are those of these.
        m_params: MMParams, or None; sums are float32 throughout either way.
        sx, sw: what codes are multiplied by: one float32, one for each row, (M, 1), or (M, K / block).
        gemm_type: FPROP, DGRAD or WGRAD.
        qresult_x, qresult_w: the storages that codes are of; needed where they are of FP4.

    Other arguments are those of `multiply`. Returns (M, N).
    """
    kind = _kind(gemm_type, "gemm_type")
    if qresult_x is not None and qresult_w is not None:
        qx, qw = qresult_x, qresult_w
    if _is_quantized(qx) and _is_quantized(qw):
        return multiply(kind, qx, qw, out_dtype=out_dtype, bias=bias, out=out, accumulate=accumulate)
    left, right = _of_codes("qx", qx, sx), _of_codes("qw", qw, sw)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"qx has shape {tuple(left.shape)} and qw {tuple(right.shape)}, expected rows of one length")
    if out_dtype is None and out is None:
        raise ValueError("out_dtype is None, expected the data type of the result of codes")
    dtype = _result_dtype(out_dtype=out_dtype, out=out)
    return _finish(_product(left, right), (left.shape[0], right.shape[0]), dtype, bias, out, accumulate)


def custom_gemm(
    A: QuantizedStorage,
    B: QuantizedStorage,
    workspace: Any = None,
    out_dtype: torch.dtype | None = None,
    quantization_params: Any = None,
    gelu: bool = False,
    gelu_in: torch.Tensor | None = None,
    accumulate: bool = False,
    layout: str = "TN",
    out: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    use_split_accumulator: bool = True,
    grad: bool = False,
) -> tuple[torch.Tensor, None, None, None]:
    """The product that Transformer Engine asks of operands of a custom quantizer: A is the second operand, such as the
    weight, and B the first, as it sees matrices by columns.

    `layout` is TN (FPROP), NN (DGRAD) or NT (WGRAD). `accumulate` adds to `out`. Returns the result and three None.
    """
    kinds = {"TN": GEMMType.FPROP, "NN": GEMMType.DGRAD, "NT": GEMMType.WGRAD}
    if layout not in kinds:
        raise ValueError(f"layout is {layout!r}, expected TN, NN or NT")
    for name, x in (("A", A), ("B", B)):
        if not _is_quantized(x):
            raise TypeError(f"argument '{name}' is {type(x).__name__}, expected a QuantizedStorage")
    if quantization_params is not None:
        raise ValueError("quantization_params was given, expected None: the result is to be quantized by itself")
    if gelu or gelu_in is not None:
        raise ValueError("gelu was asked for, expected none: it is an operator of its own (dither.gelu)")
    result = multiply(kinds[layout], B, A, out_dtype=out_dtype, bias=bias, out=out, accumulate=accumulate)
    return result, None, None, None


def _held(x: torch.Tensor) -> Any:
    """What a QuantizedTensor holds; None of others, and of groups."""
    found = getattr(x, "quantized", None)
    return found if isinstance(found, (ScaledTensor1x, ScaledTensor2x)) else None


def _is_quantized(x: Any) -> bool:
    return isinstance(x, QuantizedStorage) or (isinstance(x, torch.Tensor) and _held(x) is not None)


def _kind(value: Any, argument: str) -> GEMMType:
    """A GEMMType, or one of another library by its name."""
    name = getattr(value, "name", value)
    if not isinstance(name, str) or name.upper() not in GEMMType.__members__:
        raise ValueError(f"{argument} is {value!r}, expected FPROP, DGRAD or WGRAD")
    return GEMMType[name.upper()]


def _result_dtype(**said: Any) -> torch.dtype:
    """The data type of a result, by the first argument that says one: a data type, or what has one."""
    name, value = next((name, value) for name, value in said.items() if value is not None)
    dtype: torch.dtype = value if isinstance(value, torch.dtype) else value.dtype
    check_dtype(dtype, f"argument '{name}'")
    return dtype


def _part(x: Any, way: str, name: str, kind: GEMMType) -> Part:
    """The direction of an operand that a product takes."""
    if isinstance(x, torch.Tensor):
        held = _held(x)
        # Values along rows have a gradient, which what is held has not.
        if held is None or (way == "rowwise" and x.requires_grad and torch.is_grad_enabled()):
            return x
        x = QuantizedStorage.of(held)
    if not isinstance(x, QuantizedStorage):
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected a QuantizedStorage or a tensor")
    part = getattr(x, way)
    if part is None:
        has = " and ".join(way for way, used in x.get_usages().items() if used) or "none"
        raise ValueError(f"argument '{name}' is quantized {has}, expected {way} for {kind.name}")
    return part


def _native(a: Part, b: Part, dtype: torch.dtype) -> tuple[ScaledMMArgs, ScaledMMArgs] | None:
    """Both as a GPU's own product takes them, whose result has this data type; None where there is none."""
    if not isinstance(a, ScaledTensor1x) or not isinstance(b, ScaledTensor1x) or a.transform != b.transform:
        return None
    if (
        "row" in (a.format.block, b.format.block) and dtype is not torch.bfloat16
    ):  # torch has no other for scales of rows
        return None
    return native_operands(a, b, convert=True)


def _operands(a: Part, b: Part) -> tuple[torch.Tensor, torch.Tensor]:
    """The float32 values of both. What was transformed cancels where both were; else it is transformed back."""
    transforms = [x.transform if isinstance(x, ScaledTensor1x) else None for x in (a, b)]
    undo = transforms[0] != transforms[1]
    return values(a, torch.float32, undo), values(b, torch.float32, undo)


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left right^T of float32 matrices, in float32."""
    # In a graph it is an operator of its own: what torch was told of products does not reach it there.
    found: torch.Tensor = (_float32_product if is_traced(left) else _plain_product)(left, right)
    return found


def _plain_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    with _full_precision(left.device.type):
        return left @ right.t()


_float32_product = torch.library.custom_op("dither::float32_product", _plain_product, mutates_args=())


@_float32_product.register_fake
def _(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return left.new_empty(left.shape[0], right.shape[0])


@contextlib.contextmanager
def _full_precision(device: str) -> Iterator[None]:
    """Products of float32 as such, whatever torch was told."""
    if torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False), _full_precision(device):
            yield
        return
    said = torch.get_float32_matmul_precision()
    if said == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(said)


def _finish(
    result: torch.Tensor,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    bias: torch.Tensor | None,
    out: torch.Tensor | None,
    accumulate: bool,
) -> torch.Tensor:
    """Adds what is to be added, and rounds."""
    if bias is not None:
        if bias.shape != result.shape[1:]:
            raise ValueError(f"argument 'bias' has shape {tuple(bias.shape)}, expected ({result.shape[1]},)")
        result += bias.float()
    if out is None:
        if accumulate:
            raise ValueError("accumulate is True, expected 'out' with it")
        return result.reshape(shape).to(dtype)
    if out.shape not in (result.shape, shape):
        raise ValueError(f"argument 'out' has shape {tuple(out.shape)}, expected {shape}")
    if out.dtype != dtype:
        raise TypeError(f"argument 'out' has data type {out.dtype}, expected {dtype}")
    result = result.reshape(out.shape)
    if accumulate:
        result += out.float()
    return out.copy_(result)


def _of_codes(name: str, codes: Any, scales: Any) -> torch.Tensor:
    """The values of FP8 codes (M, K), under one scale, one for each row, or one for each block of a row."""
    if not isinstance(codes, torch.Tensor) or codes.dim() != 2:
        raise TypeError(f"argument '{name}' is {type(codes).__name__}, expected a storage or a matrix of codes")
    if codes.dtype not in (torch.float8_e4m3fn, torch.float8_e5m2):
        raise TypeError(f"argument '{name}' has data type {codes.dtype}, expected FP8, or its storage as qresult")
    if scales is None:
        raise ValueError(f"argument '{name}' has codes without scales, expected s{name[1:]}")
    x = codes.float()
    m, k = x.shape
    factors = scales.float()
    if factors.numel() == 1:
        return x * factors.reshape(())
    if factors.dim() != 2 or factors.shape[0] != m or not factors.shape[1] or k % factors.shape[1]:
        raise ValueError(f"argument 's{name[1:]}' has shape {tuple(factors.shape)}, expected one, ({m}, 1) or blocks")
    return x * factors.repeat_interleave(k // factors.shape[1], 1)
