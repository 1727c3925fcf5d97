"""What reductions, block scaling, casts and norms mean."""

from __future__ import annotations

from typing import Any

from .. import types
from ..formats import Format, get_format
from .builtins import HANDLERS, axis_of, float_tile, handles, tile
from .emit import Emitter
from .parts import inside, row_count
from .values import Problem, Scalar, Tile, describe


def _reduction(name: str) -> None:
    def handler(e: Emitter, t: Any, axis: Any, count: Any) -> Tile:
        t = e.widen(float_tile(t, "t", name))
        axis = axis_of(axis, len(t.shape))
        count = _count(row_count(e, name, t.shape, axis, count), t.shape[axis])
        attrs = {"kind": f"#quant<reduce_kind {name}>", "axis": axis, "count": count}
        return e.tile("quant.reduce", [t], attrs)

    HANDLERS[name] = handler


for _name in ("sum", "max", "min", "amax"):
    _reduction(_name)


def _count(value: Any, extent: int) -> int | None:
    """How many of `extent` elements take part; None for all."""
    if value is None or value == extent:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem(f"count is {describe(value)}, expected a constexpr integer", "count")
    if not 1 <= value <= extent:
        raise Problem(f"count is {value}, expected 1 to {extent}, the extent of the tile", "count")
    return value


def _format(value: Any) -> Format:
    try:
        return get_format(value)
    except TypeError:
        raise Problem(f"fmt is {describe(value)}, expected a format such as dither.NVFP4 or its name", "fmt") from None
    except ValueError as error:
        raise Problem(str(error), "fmt") from None


def _tensor_amax(e: Emitter, value: Any, fmt: Format, shape: tuple[int, ...], axis: int) -> list[Any]:
    """The operand for the amax of the tensor, one rank-0 tile, or of the rows of blocks of a tile of this shape; none
    for formats without."""
    if value is None:
        if fmt.tensor_scale:
            raise Problem(f"{fmt.name} has a tensor scale, expected amax=: the amax of the whole tensor")
        return []
    if not fmt.tensor_scale:
        raise Problem(f"{fmt.name} has no tensor scale, found amax", "amax")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [e.splat((), value, types.float32)]
    if isinstance(value, Scalar) and value.dtype is types.float32:
        return [e.broadcast(value, ())]
    rows = tuple(1 if d == axis else n for d, n in enumerate(shape))
    by_rows = fmt.block_rows == 1 and len(shape) == 2 and any(n != 1 for n in rows)
    if by_rows and isinstance(value, Tile) and value.dtype is types.float32 and value.shape == rows:
        return [value]
    if not isinstance(value, Tile) or value.dtype is not types.float32 or any(n != 1 for n in value.shape):
        also = f", or of shape {rows}" if by_rows else ""
        raise Problem(f"amax is {describe(value)}, expected a float32 tile of one element{also}", "amax")
    return [e.reshape(value, ())]


def _scales_shape(shape: tuple[int, ...], axis: int, fmt: Format) -> tuple[int, ...]:
    if len(shape) == 1 and fmt.block_rows != 1:
        rows = fmt.block_rows or "all"
        raise Problem(f"the tile has rank 1, expected rank 2 for {fmt.name}, whose blocks have {rows} rows")
    blocks = fmt.block_extents(axis)
    for dimension, (extent, block) in enumerate(zip(shape, blocks, strict=False)):
        if block is not None and extent % block:
            raise Problem(
                f"dimension {dimension} of the tile has extent {extent}, "
                f"expected a multiple of {block}, the block of {fmt.name}"
            )
    return tuple(1 if block is None else extent // block for extent, block in zip(shape, blocks, strict=False))


def _require_tile(value: Tile, argument: str, shape: tuple[int, ...], dtype: types.DType, fmt: Format) -> None:
    if value.dtype is not dtype:
        raise Problem(f"{argument} is {describe(value)}, expected {dtype} for {fmt.name}", argument)
    if value.shape != shape:
        raise Problem(f"{argument} has shape {value.shape}, expected {shape} for {fmt.name}", argument)


@handles("block_scale")
def block_scale(e: Emitter, t: Any, fmt: Any, axis: Any, amax: Any) -> Tile:
    fmt = _format(fmt)
    if fmt.order == "encode_first":
        scale = _block_scale(e, "block_scale", t, fmt, axis, amax)
        return _reciprocal(e, scale)
    return _block_scale(e, "block_scale", t, fmt, axis, amax)


@handles("encode_scale")
def encode_scale(e: Emitter, t: Any, fmt: Any, axis: Any) -> Tile:
    fmt = _format(fmt)
    if fmt.order != "encode_first":
        raise Problem(f"fmt is {fmt.name}, whose order is {fmt.order}, expected one with the order encode_first", "fmt")
    return _block_scale(e, "encode_scale", t, fmt, axis, None)


def _reciprocal(e: Emitter, t: Tile) -> Tile:
    result: Tile = e.elementwise("arith.divf", [e.splat(t.shape, 1.0, types.float32), t])
    return result


def _block_scale(e: Emitter, function: str, t: Any, fmt: Format, axis: Any, amax: Any) -> Tile:
    t = float_tile(t, "t", function)
    axis = axis_of(axis, len(t.shape))
    _scales_shape(t.shape, axis, fmt)
    if e.part is not None:
        for dimension, extent in enumerate(fmt.block_extents(axis)):
            if extent is None:
                row_count(e, function, t.shape, dimension, None)
        t = inside(e, t, e.part, (fmt.counts_nan, fmt.counts_nan))
    return e.tile(
        "quant.block_scale", [t, *_tensor_amax(e, amax, fmt, t.shape, axis)], {"axis": axis, "format": fmt.mlir()}
    )


_CASTS = {
    types.float4_e2m1: "quant.cast_fp4",
    types.float6_e2m3: "quant.cast_fp6",
    types.float6_e3m2: "quant.cast_fp6",
    types.int8: "quant.cast_int8",
    types.float8_e4m3: "quant.cast_fp8",
    types.float8_e5m2: "quant.cast_fp8",
}


@handles("cast")
def cast(e: Emitter, t: Any, scale: Any, fmt: Any, axis: Any, amax: Any, bits: Any, encode_scale: Any) -> Tile:
    t = float_tile(t, "t", "cast")
    fmt = _format(fmt)
    axis = axis_of(axis, len(t.shape))
    scale = _factor(e, scale, encode_scale, _scales_shape(t.shape, axis, fmt), fmt)
    operands = [t, scale, *_tensor_amax(e, amax, fmt, t.shape, axis)]
    attrs = {"axis": axis, "format": fmt.mlir()}
    if bits is None:
        return e.tile(_CASTS[fmt.element], operands, attrs)
    rounded = _stochastic_round(e, e.tile("quant.scale", operands, attrs), bits, fmt.element, "cast")
    return e.like("quant.encode", rounded, fmt.element)


def _factor(e: Emitter, scale: Any, encode_scale: Any, shape: tuple[int, ...], fmt: Format) -> Tile:
    """What quant.cast takes: scales, or encode scales of formats with the order encode_first."""
    first = fmt.order == "encode_first"
    if encode_scale is not None:
        if not first:
            raise Problem(f"encode_scale is for the order encode_first, expected None: {fmt.name} has scales alone")
        if scale is not None:
            raise Problem("found scale and encode_scale, expected None as scale", "scale")
        factor = tile(encode_scale, "encode_scale", "cast")
        _require_tile(factor, "encode_scale", shape, types.float32, fmt)
        return factor
    scale = tile(scale, "scale", "cast")
    _require_tile(scale, "scale", shape, fmt.scale, fmt)
    if first and not fmt.pow2_scales:
        raise Problem(f"{fmt.name} multiplies by encode scales, expected encode_scale=dl.encode_scale(t, fmt)", "scale")
    return _reciprocal(e, scale) if first else scale


@handles("stochastic_round")
def stochastic_round(e: Emitter, t: Any, bits: Any, dtype: Any) -> Tile:
    t = e.widen(float_tile(t, "t", "stochastic_round"))
    if dtype not in _CASTS:
        names = ", ".join(d.name for d in _CASTS)
        raise Problem(f"dtype is {describe(dtype)}, expected one of {names}", "dtype")
    return _stochastic_round(e, t, bits, dtype, "stochastic_round")


def _stochastic_round(e: Emitter, t: Tile, bits: Any, dtype: types.DType, function: str) -> Tile:
    bits = tile(bits, "bits", function)
    if bits.dtype is not types.int32 or bits.shape != t.shape:
        raise Problem(f"bits is {describe(bits)}, expected an int32 tile of shape {t.shape}", "bits")
    return e.tile("quant.stochastic_round", [t, bits], {"elem": dtype.mlir})


@handles("dequantize")
def dequantize(e: Emitter, q: Any, scale: Any, fmt: Any, axis: Any, amax: Any) -> Tile:
    q = tile(q, "q", "dequantize")
    scale = tile(scale, "scale", "dequantize")
    fmt = _format(fmt)
    axis = axis_of(axis, len(q.shape))
    _require_tile(q, "q", q.shape, fmt.element, fmt)
    _require_tile(scale, "scale", _scales_shape(q.shape, axis, fmt), fmt.scale, fmt)
    return e.tile(
        "quant.dequantize", [q, scale, *_tensor_amax(e, amax, fmt, q.shape, axis)], {"axis": axis, "format": fmt.mlir()}
    )


@handles("rms_norm")
def rms_norm(e: Emitter, t: Any, gamma: Any, eps: Any, zero_centered_gamma: Any, count: Any) -> tuple[Tile, ...]:
    return _norm(e, "rms_norm", t, {"gamma": gamma}, eps, zero_centered_gamma, count)


@handles("layer_norm")
def layer_norm(
    e: Emitter, t: Any, gamma: Any, beta: Any, eps: Any, zero_centered_gamma: Any, count: Any
) -> tuple[Tile, ...]:
    return _norm(e, "layer_norm", t, {"gamma": gamma, "beta": beta}, eps, zero_centered_gamma, count)


@handles("rms_norm_backward")
def rms_norm_backward(
    e: Emitter, dz: Any, x: Any, gamma: Any, rsigma: Any, zero_centered_gamma: Any, count: Any
) -> tuple[Tile, ...]:
    return _norm_backward(e, "rms_norm_backward", dz, x, gamma, {"rsigma": rsigma}, zero_centered_gamma, count)


@handles("layer_norm_backward")
def layer_norm_backward(
    e: Emitter, dz: Any, x: Any, gamma: Any, mean: Any, rsigma: Any, zero_centered_gamma: Any, count: Any
) -> tuple[Tile, ...]:
    statistics = {"mean": mean, "rsigma": rsigma}
    return _norm_backward(e, "layer_norm_backward", dz, x, gamma, statistics, zero_centered_gamma, count)


def _norm_backward(
    e: Emitter,
    name: str,
    dz: Any,
    x: Any,
    gamma: Any,
    statistics: dict[str, Any],
    zero_centered_gamma: Any,
    count: Any,
) -> tuple[Tile, ...]:
    """The gradient of a norm of rows, and the terms of that of gamma."""
    x = float_tile(x, "x", name)
    if len(x.shape) != 2:
        raise Problem(f"x has shape {x.shape}, expected rank 2", "x")
    shapes = {"dz": x.shape, "gamma": x.shape[1:], **dict.fromkeys(statistics, (x.shape[0], 1))}
    tiles = {"dz": dz, "gamma": gamma, **statistics}
    for what, shape in shapes.items():
        tiles[what] = float_tile(tiles[what], what, name)
        if tiles[what].shape != shape:
            raise Problem(f"{what} has shape {tiles[what].shape}, expected {shape}", what)
    columns = [e.widen(tiles[what]) for what in statistics]
    attrs = {
        "zero_centered_gamma": _flag(zero_centered_gamma, "zero_centered_gamma"),
        "count": _count(row_count(e, name, x.shape, 1, count), x.shape[1]),
    }
    return tuple(map(e.as_tile, e.op(f"quant.{name}", [tiles["dz"], x, tiles["gamma"], *columns], attrs)))


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise Problem(f"{what} is {describe(value)}, expected a constexpr bool")
    return value


def _norm(
    e: Emitter, name: str, t: Any, parameters: dict[str, Any], eps: Any, zero_centered_gamma: Any, count: Any
) -> tuple[Tile, ...]:
    """A norm of rows, with its parameters for each column: the tile and its statistics."""
    t = float_tile(t, "t", name)
    if len(t.shape) != 2:
        raise Problem(f"t has shape {t.shape}, expected rank 2", "t")
    for what, parameter in parameters.items():
        parameters[what] = float_tile(parameter, what, name)
        if parameters[what].shape != t.shape[1:]:
            raise Problem(f"{what} has shape {parameters[what].shape}, expected {t.shape[1:]}", what)
    if isinstance(eps, bool) or not isinstance(eps, (int, float)):
        raise Problem(f"eps is {describe(eps)}, expected a constexpr number", "eps")
    attrs = {
        "eps": float(eps),
        "zero_centered_gamma": _flag(zero_centered_gamma, "zero_centered_gamma"),
        "count": _count(row_count(e, name, t.shape, 1, count), t.shape[1]),
    }
    return tuple(map(e.as_tile, e.op(f"quant.{name}", [t, *parameters.values()], attrs)))
