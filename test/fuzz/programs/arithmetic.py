"""Elementwise arithmetic of the tile language in NumPy, written from dialect/Quant/Semantics.md.

Formats and their scales come from test/python/oracle.py; nothing here knows dither's code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))

import mode_oracle
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


def _constant(text: str) -> np.float32:
    return F32(float.fromhex(text))


def _horner(x: Any, coefficients: str) -> Any:
    """A polynomial, its highest power first."""
    first, *rest = (_constant(c) for c in coefficients.split())
    p: Any = np.full_like(x, first)
    for c in rest:
        p = fma(p, x, c)
    return p


def _clamped(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """NaN stays."""
    return np.minimum(np.maximum(x, F32(low)), F32(high))


_ROUND = F32(1.5 * 2**23)
_LN2 = _constant("0x1.62e43p-1")
_LN2_REST = _constant("-0x1.05c61p-29")
_LOG2E = _constant("0x1.715476p+0")


def _power_of_two(n: np.ndarray) -> np.ndarray:
    """2^n of integers; of NaN anything, since it is multiplied by NaN."""
    with np.errstate(over="ignore"):
        return np.ldexp(F32(1), np.where(np.isnan(n), 0, n).astype(np.int32)).astype(np.float32)


def _nearest_of_product(x: np.ndarray, factor: np.float32, offset: int = 127) -> np.ndarray:
    """The integer next to a product that is not rounded before, as sums with a large number find it."""
    big = _ROUND + F32(offset)
    return fma(x, factor, big) - big


def exp(x: np.ndarray) -> np.ndarray:
    """include/dither/Numerics/Elementary.h: x = 2 n ln 2 + r, a polynomial of r, times 2^n twice."""
    c = _clamped(np.asarray(x, np.float32), -104, 89)
    n = _nearest_of_product(c, _LOG2E / F32(2))
    r = fma(n, F32(-2) * _LN2_REST, fma(n, F32(-2) * _LN2, c))
    p = _horner(r, "0x1.9baaaep-13 0x1.71bf96p-10 0x1.1126e4p-7 0x1.5549eep-5 0x1.555514p-3 0x1.00000cp-1 1 1")
    return p * _power_of_two(n) * _power_of_two(n)


def exp2(x: np.ndarray) -> np.ndarray:
    """x = 2 n + f, a polynomial of f, times 2^n twice."""
    c = _clamped(np.asarray(x, np.float32), -151, 129)
    n = _nearest_of_product(c, F32(0.5))
    p = _horner(
        c - F32(2) * n,
        "0x1.f4ab76p-17 0x1.481d4ap-13 0x1.5dbe40p-10 0x1.3b1fe8p-7 0x1.c6af9ep-5 0x1.ebfbf8p-3 0x1.62e432p-1 1",
    )
    return p * _power_of_two(n) * _power_of_two(n)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """e / (1 + e) or 1 / (1 + e) with e = e^-|x|, which is made in one step."""
    x = np.asarray(x, np.float32)
    c = np.maximum(-np.abs(x), F32(-104))
    n = _nearest_of_product(c, _LOG2E, 127 + 24)
    r = fma(n, -_LN2_REST, fma(n, -_LN2, c))
    p = _horner(r, "0x1.6a4d62p-10 0x1.12398ep-7 0x1.5558b0p-5 0x1.555492p-3 0x1.fffffcp-2 1 1")
    e = (p * F32(2.0**-24)) * _power_of_two(n + F32(24))
    return np.where(x < 0, e, F32(1)) * (F32(1) / (e + F32(1)))


def tanh(x: np.ndarray) -> np.ndarray:
    """h / (1 + h) with h = (e^2|x| - 1) / 2."""
    x = np.asarray(x, np.float32)
    a = np.minimum(np.abs(x), F32(9.5))
    n = _nearest_of_product(a, F32(2) * _LOG2E)
    r = fma(n, -_LN2 / F32(2), a)
    q = fma(r * r, _horner(r, "0x1.6b9cccp-5 0x1.122562p-3 0x1.5556f2p-2 0x1.5554b4p-1 0x1.fffffep-1"), r)
    p = _power_of_two(n)
    h = fma(p, q, fma(p, F32(0.5), F32(-0.5)))
    return np.copysign(h * (F32(1) / (h + F32(1))), x)


def erf(x: np.ndarray) -> np.ndarray:
    """x + x P(x^2) below 0.9, 1 - 2^-Q(|x|) above."""
    x = np.asarray(x, np.float32)
    a = np.minimum(np.abs(x), F32(3.95))
    with np.errstate(over="ignore", invalid="ignore"):
        small = fma(
            _horner(x * x, "-0x1.3d5fe4p-11 0x1.47f6fcp-8 -0x1.b6a7c6p-6 0x1.ce1c1ep-4 -0x1.8126eep-2 0x1.06eba6p-3"),
            x,
            x,
        )
    q = _horner(
        a,
        "-0x1.2a483ep-12 0x1.20e618p-8 -0x1.074814p-5 0x1.336472p-3 0x1.d69210p-1 0x1.a082fcp+0 0x1.0c8110p-12",
    )
    big = _ROUND + F32(127)
    n = (big - q) - big
    f = -n - q
    p = _horner(f, "0x1.5bd98ap-10 0x1.3ce8b8p-7 0x1.c6b6dap-5 0x1.ebf9c2p-3 0x1.62e42ap-1 1")
    large = np.copysign(fma(-_power_of_two(n), p, F32(1)), x)
    return np.where(a < F32(0.9), small, large)


def _logarithm(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k and ln(m) of x = 2^k m, 2/3 <= m < 4/3."""
    small = x < F32(2.0**-126)
    bits = np.where(small, x * F32(2.0**23), x).view(np.int32)
    k = (bits - np.int32(0x3F2AAAAB)) & np.int32(-0x800000)
    f = (bits - k).view(np.float32) - F32(1)
    p = _horner(
        f,
        "-0x1.07c50ep-3 0x1.1e6d1ap-3 -0x1.f33276p-4 0x1.1ed55ap-3 -0x1.559c68p-3 0x1.99d050p-3 -0x1.fffefap-3 "
        "0x1.555506p-2 -0x1p-1",
    )
    return (k >> 23).astype(np.float32) - np.where(small, F32(23), F32(0)), fma(f * f, p, f)


def _log(x: np.ndarray, combine: Any) -> np.ndarray:
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        result = combine(*_logarithm(np.where((x > 0) & np.isfinite(x), x, F32(1))))
    result = np.where(x == 0, F32(-np.inf), np.where(x > 0, result, F32(np.nan)))
    return np.where(x == np.inf, x, result)


def log(x: np.ndarray) -> np.ndarray:
    return _log(x, lambda k, l: fma(k, _LN2, l))


def log2(x: np.ndarray) -> np.ndarray:
    return _log(x, lambda k, l: fma(l, _LOG2E, k))


def _quadrant(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rest of a number below 2^16 next to a multiple of pi/2, and which multiple."""
    n = _nearest_of_product(a, _constant("0x1.45f306p-1"), 0)
    r = fma(n, _constant("-0x1.921fb6p+0"), a)
    r = fma(n, _constant("0x1.777a5cp-25"), r)
    return fma(n, _constant("0x1.ee59dap-50"), r), n.astype(np.int64)


#: The first 224 bits of 2 / pi.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB


def _quadrant_of_large(a: float) -> tuple[np.float32, int]:
    """The same of one number from 2^16 on, with 62 bits of the rest."""
    m, exponent = int(np.float32(a).view(np.uint32)) & 0x7FFFFF | 0x800000, int(np.frexp(np.float32(a))[1]) - 24
    turns = m * ((_TWO_OVER_PI << 64) >> (224 + 64 - exponent - 94))
    turns = (turns >> 32) % 2**64
    quadrant = (turns + 2**61) >> 62
    rest = turns - (quadrant << 62)
    upper = rest + 2**39 >> 40
    middle, lower = F32((rest >> 18) - (upper << 22)), F32(rest & 0x3FFFF)
    small = fma(lower, F32(2.0**-18), middle)
    f = fma(F32(upper), F32(2.0**22), small)
    small = small - fma(F32(upper), F32(-(2.0**22)), f)
    unit = F32(2.0**-44)
    r = fma(f, _constant("-0x1.777a5cp-25") * unit, small * (_constant("0x1.921fb6p+0") * unit))
    return F32(fma(f, _constant("0x1.921fb6p+0") * unit, r)), quadrant


def _sine(x: np.ndarray, ahead: int) -> np.ndarray:
    x = np.asarray(x, np.float32)
    a = np.abs(x).reshape(-1)
    usual = a < F32(2.0**16)
    r, quadrant = _quadrant(np.where(usual, a, F32(0)))
    for i in np.flatnonzero(~usual):
        r[i], quadrant[i] = _quadrant_of_large(a[i]) if np.isfinite(a[i]) else (F32(np.nan), 0)
    quadrant = quadrant + ahead
    z = r * r
    sin = fma(z * r, _horner(z, "-0x1.9951eap-13 0x1.110774p-7 -0x1.555546p-3"), r)
    cos = fma(z, _horner(z, "0x1.99e80cp-16 -0x1.6c0c28p-10 0x1.55554ap-5 -0x1p-1"), F32(1))
    y = np.where(quadrant & 1, cos, sin)
    return np.where(quadrant & 2, -y, y).reshape(x.shape)


def sin(x: np.ndarray) -> np.ndarray:
    """Of |x| less a multiple of pi/2, by polynomials."""
    y = _sine(x, 0)
    return np.where(np.signbit(x), -y, y)


def cos(x: np.ndarray) -> np.ndarray:
    """A quadrant ahead of sin(|x|)."""
    return _sine(x, 1)


def mulhi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of int32; the upper half of the product."""
    return (a.astype(np.int64) * b.astype(np.int64) >> 32).astype(np.int32)


def umulhi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of the bits of int32, read as unsigned."""
    wide = np.asarray(a).astype(np.uint32).astype(np.uint64) * np.asarray(b).astype(np.uint32).astype(np.uint64)
    return (wide >> np.uint64(32)).astype(np.uint32).astype(np.int32)


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


#: What codes are rounded to stochastically, by the name of the language.
STOCHASTIC = {
    "float4_e2m1": mode_oracle.E2M1,
    "float6_e2m3": mode_oracle.E2M3,
    "float6_e3m2": mode_oracle.E3M2,
    "float8_e4m3": mode_oracle.E4M3,
    "float8_e5m2": mode_oracle.E5M2,
    "int8": mode_oracle.I8,
}


def stochastic_round(x: np.ndarray, bits: np.ndarray, name: str) -> np.ndarray:
    """Values of a narrow type by the low 8 bits of each element; what is out of range as it is."""
    element = STOCHASTIC[name]
    i, f = mode_oracle.cell(np.where(np.isnan(x), F32(0), x), element)
    magnitude = element.grid[np.minimum(i + (f + (bits & 0xFF) >= 256), element.max_code)]
    rounded = np.copysign(magnitude.astype(np.float32), x)
    return np.where(np.abs(x) < element.grid[-1], rounded.view(np.uint32), x.view(np.uint32)).view(np.float32)


def cast(
    x: np.ndarray, scale: np.ndarray, name: str, order: str, g: np.float32 | None, bits: np.ndarray | None = None
) -> np.ndarray:
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
    product = x * np.repeat(factor, block, axis=-1)
    if bits is None:
        return ENCODE[_codes(element, kind)](product)
    if _codes(element, kind) == "mxint8":
        product = product * F32(64)
    return mode_oracle.encode_stochastic(product, bits & 0xFF, STOCHASTIC[element])


def dequantize(codes: np.ndarray, scale: np.ndarray, name: str, order: str, g: np.float32 | None) -> np.ndarray:
    """Values of codes under the scales of their blocks along the last axis."""
    element, kind, block, *_ = FORMATS[name]
    factor = _value(scale, kind)
    if g is not None and order in ("div6_mul", "div6_div"):
        factor = factor * _decode_scale(g)
    elif g is not None:
        factor = (factor * g) * F32(F32(1) / F32(2688))
    return DECODE[_codes(element, kind)](codes) * np.repeat(factor, block, axis=-1)
