"""Elementwise arithmetic of the tile language in NumPy, written from dialect/Quant/Semantics.md.

Formats and their scales come from test/python/oracle.py; nothing here knows dither's code.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))

import oracle

F32 = np.float32
FLT_MAX = F32(np.finfo(np.float32).max)
np.seterr(all="ignore")

# ---------------------------------------------------------------------------
# 16-bit floats, as codes in uint16
# ---------------------------------------------------------------------------


def decode_bf16(code: np.ndarray) -> np.ndarray:
    """The upper half of a binary32."""
    return (code.astype(np.uint32) << 16).view(np.float32)


def encode_bf16(x: np.ndarray) -> np.ndarray:
    """Nearest even; overflow gives infinity, a NaN the quiet one."""
    bits = x.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FFF, rounded).astype(np.uint16)


def decode_f16(code: np.ndarray) -> np.ndarray:
    """Exact."""
    return code.view(np.float16).astype(np.float32)


def encode_f16(x: np.ndarray) -> np.ndarray:
    """Nearest even; overflow gives infinity, a NaN the quiet one."""
    return np.where(np.isnan(x), np.uint16(0x7FFF), x.astype(np.float16).view(np.uint16))


# ---------------------------------------------------------------------------
# Functions
# ---------------------------------------------------------------------------


def fma(a: Any, b: Any, c: Any) -> np.ndarray:
    """a * b + c rounded once: exact product, sum rounded to odd in binary64, then to binary32."""
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    product, addend = np.broadcast_arrays(product, np.asarray(c, np.float64))
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = np.atleast_1d(total).view(np.int64).reshape(total.shape).copy()
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    bits = np.where(inexact, bits + step, bits)
    return bits.view(np.float64).astype(np.float32)


_EXP = [F32(1 / math.factorial(n)) for n in (7, 6, 5, 4, 3, 2, 1, 0)]
_TANH = [F32(c) for c in (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)]


def exp(x: np.ndarray) -> np.ndarray:
    """include/dither/Numerics/Elementary.h: x = n ln 2 + r, Taylor's polynomial of r, times 2^n in two steps."""
    x = np.asarray(x, np.float32)
    c = np.where(x > F32(89), F32(89), x)
    c = np.where(c < F32(-104), F32(-104), c)
    big = F32(1.5 * 2**23)
    n = (c * F32(float.fromhex("0x1.715476p+0")) + big) - big
    r = fma(n, -F32(float.fromhex("0x1.62e4p-1")), c)
    r = fma(n, -F32(float.fromhex("0x1.7f7d1cp-20")), r)
    p: Any = np.full_like(x, _EXP[0])
    for coefficient in _EXP[1:]:
        p = fma(p, r, coefficient)
    k = np.where(np.isnan(x), F32(0), n).astype(np.int32)
    half = k >> 1
    return (p * np.ldexp(F32(1), half)).astype(np.float32) * np.ldexp(F32(1), k - half)


def tanh(x: np.ndarray) -> np.ndarray:
    """An odd polynomial below 0.625, 1 - 2 / (e^2|x| + 1) above."""
    x = np.asarray(x, np.float32)
    a, z = np.abs(x), x * x
    p: Any = np.full_like(x, _TANH[0])
    for coefficient in _TANH[1:]:
        p = fma(p, z, coefficient)
    small = fma(p * z, x, x)
    one, two = F32(1), F32(2)
    large = np.copysign(one - two / (exp(a + a) + one), x)
    return np.where(a < F32(0.625), small, large)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x)."""
    return F32(1) / (F32(1) + exp(-x))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN if either is; +0 above -0."""
    zeros = (a == 0) & (b == 0)
    result = np.where(a > b, a, b)
    result = np.where(zeros, np.where(np.signbit(a) & np.signbit(b), F32(-0.0), F32(0)), result)
    return np.where(np.isnan(a) | np.isnan(b), F32(np.nan), result)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN if either is; -0 below +0."""
    return -maximum(-a, -b)


# ---------------------------------------------------------------------------
# Reductions along the last axis, which stays with extent 1
# ---------------------------------------------------------------------------


def reduce(kind: str, x: np.ndarray, count: int | None) -> np.ndarray:
    """`x` has rank 2; only the first `count` elements of a row exist."""
    x = x[:, :count]
    if kind == "sum":
        return oracle.canonical_sum(x)[:, None]
    if kind == "amax":
        return oracle.amax(x, axis=1)[:, None]
    if kind == "min":
        negated = reduce("max", -x, None)
        return np.where(negated == 0, F32(0), -negated)
    numbers = np.where(np.isnan(x), F32(-np.inf), x).max(axis=1)
    result = np.where(np.isnan(x).all(axis=1), F32(np.nan), numbers)
    return np.where(result == 0, F32(0), result).astype(np.float32)[:, None]


# ---------------------------------------------------------------------------
# Codes
# ---------------------------------------------------------------------------

ENCODE = {
    "float8_e4m3": oracle.encode_e4m3,
    "float8_e5m2": oracle.encode_e5m2,
    "float6_e2m3": oracle.encode_e2m3,
    "float6_e3m2": oracle.encode_e3m2,
    "float4_e2m1": oracle.encode_e2m1,
    "int8": oracle.encode_int8,
    "mxint8": oracle.encode_mxint8,
}
DECODE = {
    "float6_e2m3": oracle.decode_e2m3,
    "float6_e3m2": oracle.decode_e3m2,
    "float8_e4m3": oracle.decode_e4m3,
    "float8_e5m2": oracle.decode_e5m2,
    "float4_e2m1": oracle.decode_e2m1,
    "int8": oracle.decode_int8,
    "mxint8": oracle.decode_mxint8,
    "e8m0": oracle.decode_e8m0,
}


def encode_e8m0(x: np.ndarray, rounding: str) -> np.ndarray:
    """Of |x|: up to a power of two, or the exponent field."""
    magnitude = np.abs(x)
    return oracle.e8m0_rceil(magnitude) if rounding == "rceil" else oracle.e8m0_floor(magnitude, 0)


#: element type, scale type, block, largest element, its exponent, bits of the mantissa, default rounding
FORMATS: dict[str, tuple[str, str, int, float, int, int, str]] = {
    "nvfp4": ("float4_e2m1", "float8_e4m3", 16, 6.0, 2, 1, ""),
    "mxfp4": ("float4_e2m1", "e8m0", 32, 6.0, 2, 1, "floor"),
    "mxfp6_e2m3": ("float6_e2m3", "e8m0", 32, 7.5, 2, 3, "floor"),
    "mxfp6_e3m2": ("float6_e3m2", "e8m0", 32, 28.0, 4, 2, "floor"),
    "mxfp8_e4m3": ("float8_e4m3", "e8m0", 32, 448.0, 8, 3, "rceil"),
    "mxfp8_e5m2": ("float8_e5m2", "e8m0", 32, 57344.0, 15, 2, "rceil"),
    "mxint8": ("int8", "e8m0", 32, 127 / 64, 0, 6, "floor"),
    # Those that have no name in dither.
    "own_e2m1": ("float4_e2m1", "float8_e4m3", 64, 6.0, 2, 1, ""),
    "own_e3m2": ("float6_e3m2", "e8m0", 8, 28.0, 4, 2, "rceil"),
    "own_int8": ("int8", "float32", 16, 127.0, 6, 6, ""),
    "own_e4m3": ("float8_e4m3", "float32", 16, 448.0, 8, 3, ""),
    "own_e5m2": ("float8_e5m2", "float32", 128, 57344.0, 15, 2, ""),
}


def _fmin(v: Any, c: np.float32) -> Any:
    return np.where(v < c, v, c).astype(np.float32)


def _encode_scale(g: np.float32) -> np.float32:
    s = _fmin(F32(2688) / g, FLT_MAX)
    return F32(1) if g == 0 or s == 0 else F32(s)


def _decode_scale(g: np.float32) -> np.float32:
    d = g / F32(2688)
    return F32(1) if d == 0 or d == np.inf else d


def block_scale(x: np.ndarray, name: str, rounding: str, order: str, g: np.float32 | None) -> np.ndarray:
    """The scales of blocks along the last axis: codes, or values where they are float32."""
    _, scale, block, largest, exponent, mantissa, _ = FORMATS[name]
    b = oracle.amax(x.reshape(*x.shape[:-1], -1, block), axis=-1)
    if g is not None:
        s, sixth = _encode_scale(g), F32(1) / F32(6)
        if order == "te":
            value = _fmin(b * F32(s * sixth), FLT_MAX)
        elif order == "div6_mul":
            value = _fmin(b / F32(6) * s, FLT_MAX)
        else:
            value = _fmin(b / F32(6) / _decode_scale(g), F32(448))
            value = np.where(value > F32(2.0**-6), value, F32(2.0**-6))
        return oracle.encode_e4m3(value)
    if scale != "e8m0":
        value = b * (F32(1) / F32(largest))
        return oracle.encode_e4m3(value) if scale == "float8_e4m3" else _fmin(value, FLT_MAX)
    if rounding == "rceil":
        return oracle.e8m0_rceil(b * F32(F32(1) / F32(largest)))
    bits = b.view(np.uint32).astype(np.int64)
    field = bits >> 23
    if rounding == "ceil":
        field = field + ((bits & 0x7FFFFF) != 0)
    elif rounding == "even":
        field = (bits + (1 << (22 - mantissa))) >> 23
    return np.where(np.isinf(b), 0xFF, np.maximum(field - exponent, 0)).astype(np.uint8)


def _codes(element: str, scale: str) -> str:
    """What the codes of a format are: under shared exponents, int8 counts in units of 2^-6."""
    return "mxint8" if (element, scale) == ("int8", "e8m0") else element


def _value(scale: np.ndarray, kind: str) -> np.ndarray:
    return scale if kind == "float32" else DECODE[kind](scale)


def cast(x: np.ndarray, scale: np.ndarray, name: str, order: str, g: np.float32 | None) -> np.ndarray:
    """Codes of elements under the scales of their blocks along the last axis."""
    element, kind, block, *_ = FORMATS[name]
    if kind == "e8m0":
        factor = oracle.inverse_e8m0(scale)
    elif g is None:
        factor = _fmin(F32(1) / _value(scale, kind), FLT_MAX)
    elif order == "div6_div":
        factor = _fmin(F32(1) / _decode_scale(g) / oracle.decode_e4m3(scale), FLT_MAX)
    else:
        factor = _fmin(F32(1) / (oracle.decode_e4m3(scale) * F32(F32(1) / _encode_scale(g))), FLT_MAX)
    return ENCODE[_codes(element, kind)](x * np.repeat(factor, block, axis=-1))


def dequantize(codes: np.ndarray, scale: np.ndarray, name: str, g: np.float32 | None) -> np.ndarray:
    """Values of codes under the scales of their blocks along the last axis."""
    element, kind, block, *_ = FORMATS[name]
    factor = _value(scale, kind)
    if g is not None:
        factor = (factor * g) * F32(F32(1) / F32(2688))
    return DECODE[_codes(element, kind)](codes) * np.repeat(factor, block, axis=-1)
