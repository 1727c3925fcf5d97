"""Independent reference for block-scaled quantization, in NumPy.

Written from the definitions of the formats (OCP MX v1.0, the NVFP4 recipe of
Transformer Engine, the PTX ISA's cvt), not from dither's code: element codes are found by
searching the table of all values of a format, scales by the formulas in fp32.

Conventions: `axis=1` blocks run along rows ("rowwise"), `axis=0` along columns. All arithmetic is
IEEE fp32, round to nearest even, unless a comment says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

F32 = np.float32
FMAX32 = F32(np.finfo(np.float32).max)


# ---------------------------------------------------------------------------
# Element formats: every non-negative finite value, in code order.
# ---------------------------------------------------------------------------


def _table(exponent_bits: int, mantissa_bits: int, bias: int, codes: int) -> np.ndarray:
    values = []
    for code in range(codes):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            values.append(mantissa * 2.0 ** (1 - bias - mantissa_bits))
        else:
            values.append((1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias))
    return np.array(values, np.float64)


E2M1 = _table(2, 1, 1, 8)
E2M3 = _table(2, 3, 1, 32)
E3M2 = _table(3, 2, 3, 32)
MXINT8 = np.arange(128) / 64.0  # OCP MX v1.0, 5.3.4: two's complement, in units of 2^-6
E4M3 = _table(4, 3, 7, 127)  # 0x7F is NaN
E5M2 = _table(5, 2, 15, 124)  # 0x7C is infinity


def encode(x: np.ndarray, table: np.ndarray, nan_code: int, sign_bit: int) -> np.ndarray:
    """Nearest value, ties to the even code, saturating; NaN gives `nan_code`; -0 keeps its sign."""
    x = np.asarray(x, np.float32)
    magnitude = np.minimum(np.abs(x).astype(np.float64), table[-1])
    magnitude = np.where(np.isnan(magnitude), 0.0, magnitude)
    middles = (table[1:] + table[:-1]) / 2  # exact in float64
    low = np.searchsorted(middles, magnitude, side="left")
    # On a middle `low` is the code below it; the even neighbour wins.
    tie = (low < len(middles)) & (middles[np.minimum(low, len(middles) - 1)] == magnitude)
    code = np.where(tie & (low % 2 == 1), low + 1, low).astype(np.uint8)
    code = np.where(np.signbit(x), code | sign_bit, code)
    return np.where(np.isnan(x), nan_code, code).astype(np.uint8)


def encode_e2m1(x: np.ndarray) -> np.ndarray:
    return encode(x, E2M1, 0x7, 0x8)


def encode_e2m3(x: np.ndarray) -> np.ndarray:
    return encode(x, E2M3, 0x1F, 0x20)


def encode_e3m2(x: np.ndarray) -> np.ndarray:
    return encode(x, E3M2, 0x1F, 0x20)


def encode_int8(x: np.ndarray) -> np.ndarray:
    """Nearest integer, ties to the even one, from -127 to 127; NaN gives 127."""
    rounded = np.clip(np.rint(np.asarray(x, np.float32).astype(np.float64)), -127, 127)
    return np.where(np.isnan(rounded), 127.0, rounded).astype(np.int8).view(np.uint8)


def encode_mxint8(x: np.ndarray) -> np.ndarray:
    return encode_int8(np.clip(x, F32(-2), F32(2)) * F32(64))


def encode_e4m3(x: np.ndarray) -> np.ndarray:
    return encode(x, E4M3, 0x7F, 0x80)


def encode_e5m2(x: np.ndarray) -> np.ndarray:
    return encode(x, E5M2, 0x7F, 0x80)


def decode_e2m1(code: np.ndarray) -> np.ndarray:
    return (np.where(code & 8, -1.0, 1.0) * E2M1[code & 7]).astype(np.float32)


def decode_e2m3(code: np.ndarray) -> np.ndarray:
    return (np.where(code & 32, -1.0, 1.0) * E2M3[code & 31]).astype(np.float32)


def decode_e3m2(code: np.ndarray) -> np.ndarray:
    return (np.where(code & 32, -1.0, 1.0) * E3M2[code & 31]).astype(np.float32)


def decode_int8(code: np.ndarray) -> np.ndarray:
    return code.astype(np.uint8).view(np.int8).astype(np.float32)


def decode_mxint8(code: np.ndarray) -> np.ndarray:
    return decode_int8(code) / F32(64)


def decode_e4m3(code: np.ndarray) -> np.ndarray:
    return code.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)


def decode_e5m2(code: np.ndarray) -> np.ndarray:
    return code.astype(np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float32)


def decode_e8m0(code: np.ndarray) -> np.ndarray:
    e = code.astype(np.int32)
    return np.where(e == 255, np.nan, np.ldexp(1.0, e - 127)).astype(np.float32)


def inverse_e8m0(code: np.ndarray) -> np.ndarray:
    e = code.astype(np.int32)
    return np.where(e == 255, np.nan, np.ldexp(1.0, 127 - e)).astype(np.float32)


# ---------------------------------------------------------------------------
# Formats
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    name: str
    block: int
    bits: int  # of a code in memory
    fmax: float
    emax: int
    encode: object
    decode: object
    scale: str  # "e4m3", "e8m0_rceil" or "e8m0_floor"


FORMATS = {
    f.name: f
    for f in (
        Format("nvfp4", 16, 4, 6.0, 2, encode_e2m1, decode_e2m1, "e4m3"),
        Format("mxfp4", 32, 4, 6.0, 2, encode_e2m1, decode_e2m1, "e8m0_floor"),
        Format("mxfp6_e2m3", 32, 8, 7.5, 2, encode_e2m3, decode_e2m3, "e8m0_floor"),
        Format("mxfp6_e3m2", 32, 8, 28.0, 4, encode_e3m2, decode_e3m2, "e8m0_floor"),
        Format("mxfp8_e4m3", 32, 8, 448.0, 8, encode_e4m3, decode_e4m3, "e8m0_rceil"),
        Format("mxfp8_e5m2", 32, 8, 57344.0, 15, encode_e5m2, decode_e5m2, "e8m0_rceil"),
        Format("mxint8", 32, 8, 127 / 64, 0, encode_mxint8, decode_mxint8, "e8m0_floor"),
    )
}


def amax(x: np.ndarray, axis=None) -> np.ndarray:
    """fmaxf chain over |x| from +0: NaN loses, infinity counts."""
    a = np.abs(np.asarray(x, np.float32))
    return np.max(np.where(np.isnan(a), F32(0), a), axis=axis, initial=F32(0)).astype(np.float32)


def e8m0_rceil(a: np.ndarray) -> np.ndarray:
    """Round up to a power of two: cvt.rp.satfinite.ue8m0x2."""
    bits = np.asarray(a, np.float32).view(np.uint32).astype(np.int64)
    field, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    up = (mantissa != 0) & (field != 0xFE) & ~((field == 0) & (mantissa <= 0x400000))
    e = field + up
    e = np.where(field == 0xFF, np.where(mantissa != 0, 0xFF, 0xFE), e)
    return e.astype(np.uint8)


def e8m0_floor(a: np.ndarray, emax: int) -> np.ndarray:
    """Exponent field of a, less emax, clamped; infinity and NaN give FF (OCP MX v1.0, 6.3)."""
    field = np.asarray(a, np.float32).view(np.uint32).astype(np.int64) >> 23 & 0xFF
    return np.where(field == 0xFF, 0xFF, np.maximum(field - emax, 0)).astype(np.uint8)


def nvfp4_encode_scale(tensor_amax: np.ndarray) -> np.float32:
    with np.errstate(all="ignore"):
        s = F32(2688) / F32(tensor_amax)
    s = F32(FMAX32) if np.isnan(s) else min(s, FMAX32)
    return F32(1) if tensor_amax == 0 or s == 0 else F32(s)


def nvfp4_decode_scale(tensor_amax: np.ndarray) -> np.float32:
    """Of the order div6_div (torchao's nvfp4_quantize)."""
    with np.errstate(all="ignore"):
        d = F32(tensor_amax) / F32(2688)
    return F32(1) if d == 0 or d == np.inf else d


def nvfp4_scale(b: np.ndarray, tensor_amax, order: str) -> tuple[np.ndarray, np.ndarray]:
    """Scales of blocks with these amax, and what their elements are multiplied by, in each expression order."""
    s_enc, d = nvfp4_encode_scale(tensor_amax), nvfp4_decode_scale(tensor_amax)
    if order == "te":
        value = np.fmin(b * F32(s_enc * F32(F32(1) / F32(6))), FMAX32)
    elif order == "div6_mul":
        value = np.fmin(b / F32(6) * s_enc, FMAX32)
    else:
        value = np.fmax(np.fmin(b / F32(6) / d, F32(448)), F32(2.0**-6))
    scale = encode_e4m3(value.astype(np.float32))
    if order == "div6_div":
        inv = F32(1) / d / decode_e4m3(scale)
    else:
        inv = F32(1) / (decode_e4m3(scale) * F32(F32(1) / s_enc))
    return scale, np.fmin(inv.astype(np.float32), FMAX32)


@dataclass
class Quantized:
    codes: np.ndarray  # one code per uint8, in the shape of the input (or its transpose)
    data: np.ndarray  # as stored: FP4 packed two to a byte, low nibble first
    scale: np.ndarray  # logical shape, uint8
    amax: np.float32 | None


def pack_fp4(codes: np.ndarray) -> np.ndarray:
    m, n = codes.shape
    padded = np.zeros((m, n + n % 2), np.uint8)
    padded[:, :n] = codes
    return padded[:, ::2] | padded[:, 1::2] << 4


def _rowwise(x: np.ndarray, fmt: Format, tensor_amax, order: str = "te") -> tuple[np.ndarray, np.ndarray]:
    m, n = x.shape
    blocks = -(-n // fmt.block)
    padded = np.zeros((m, blocks * fmt.block), np.float32)
    padded[:, :n] = x
    tiles = padded.reshape(m, blocks, fmt.block)
    b = amax(tiles, axis=2)
    with np.errstate(all="ignore"):
        if fmt.scale == "e4m3":
            scale, inv = nvfp4_scale(b, tensor_amax, order)
        elif fmt.scale == "e8m0_rceil":
            scale = e8m0_rceil((b * F32(F32(1) / F32(fmt.fmax))).astype(np.float32))
            inv = inverse_e8m0(scale)
        else:
            scale = e8m0_floor(b, fmt.emax)
            inv = inverse_e8m0(scale)
        codes = fmt.encode((tiles * inv[:, :, None]).astype(np.float32))
    return codes.reshape(m, blocks * fmt.block)[:, :n], scale


def quantize(x: np.ndarray, name: str, axis: int = 1, tensor_amax=None, order: str = "te") -> Quantized:
    """Quantizes a 2-D array. Columnwise (axis=0) NVFP4 is stored transposed, the MX formats are not."""
    fmt = FORMATS[name]
    x = np.asarray(x).astype(np.float32)
    if name == "nvfp4" and tensor_amax is None:
        tensor_amax = amax(x)
    if axis == 1:
        codes, scale = _rowwise(x, fmt, tensor_amax, order)
    else:
        codes, scale = _rowwise(np.ascontiguousarray(x.T), fmt, tensor_amax, order)
        if name != "nvfp4":
            codes, scale = np.ascontiguousarray(codes.T), np.ascontiguousarray(scale.T)
    data = pack_fp4(codes) if fmt.bits == 4 else codes
    return Quantized(codes, data, scale, tensor_amax)


def dequantize(codes, scale, name: str, axis: int = 1, tensor_amax=None) -> np.ndarray:
    """fp32 values of unpacked codes, in the orientation in which the codes are stored."""
    fmt = FORMATS[name]
    stored_axis = 1 if axis == 1 or name == "nvfp4" else 0
    spread = np.repeat(scale, fmt.block, axis=stored_axis)
    spread = spread[tuple(slice(0, n) for n in codes.shape)]
    with np.errstate(all="ignore"):
        if fmt.scale == "e4m3":
            f = (decode_e4m3(spread) * F32(tensor_amax)).astype(np.float32)
            f = (f * F32(F32(1) / F32(2688))).astype(np.float32)
        else:
            f = decode_e8m0(spread)
        return (fmt.decode(codes) * f).astype(np.float32)


# ---------------------------------------------------------------------------
# Scale layouts
# ---------------------------------------------------------------------------


def padded_scale(scale: np.ndarray, name: str, axis: int) -> np.ndarray:
    """Zero-padded to (128, 4); columnwise MX scales, stored (M/32, K), to (4, 128)."""
    r, c = scale.shape
    pr, pc = (4, 128) if axis == 0 and name != "nvfp4" else (128, 4)
    out = np.zeros((-(-r // pr) * pr, -(-c // pc) * pc), np.uint8)
    out[:r, :c] = scale
    return out


def swizzle_128x4(scale: np.ndarray) -> np.ndarray:
    """The 128x4 order of a padded (R, C) scale matrix, flat: pad, view, transpose, flatten."""
    r, c = scale.shape
    return scale.reshape(r // 128, 4, 32, c // 4, 4).transpose(0, 3, 2, 1, 4).reshape(-1)


# ---------------------------------------------------------------------------
# Norms
# ---------------------------------------------------------------------------


def canonical_sum(x: np.ndarray) -> np.ndarray:
    """Row sums in the order that depends on the row length alone (architecture.md, Order of sums)."""
    m, n = x.shape
    chains = 1
    while chains * 2 <= min(8, max(1, n // 1024)):
        chains *= 2
    width = 256 * chains
    acc = np.full((m, width), F32(-0.0), np.float32)
    for start in range(0, n, width):
        part = x[:, start : start + width]
        acc[:, : part.shape[1]] = acc[:, : part.shape[1]] + part
    while width > 1:
        acc = acc[:, 0::2] + acc[:, 1::2]
        width //= 2
    return acc[:, 0]


def rms_norm(x, gamma, eps: float, zero_centered_gamma: bool = False):
    """(y fp32, rsigma fp32): mean = sum * fl(1/N), rs = fl(1/fl(sqrt(fl(mean + eps))))."""
    x = np.asarray(x).astype(np.float32)
    g = np.asarray(gamma).astype(np.float32)
    if zero_centered_gamma:
        g = g + F32(1)
    mean = canonical_sum(x * x) * F32(F32(1) / F32(x.shape[1]))
    rs = F32(1) / np.sqrt(mean + F32(eps))
    return (g * (rs[:, None] * x)).astype(np.float32), rs.astype(np.float32)


def layer_norm(x, gamma, beta, eps: float, zero_centered_gamma: bool = False):
    """(y, mean, rsigma) in fp32, one rounding for each operation; the variance in a second pass (Semantics.md)."""
    with np.errstate(all="ignore"):
        x, g, b = (np.asarray(v).astype(np.float32) for v in (x, gamma, beta))
        if zero_centered_gamma:
            g = g + F32(1)
        rn = F32(1) / F32(x.shape[1])
        mean = canonical_sum(x) * rn
        d = x - mean[:, None]
        rs = F32(1) / np.sqrt(canonical_sum(d * d) * rn + F32(eps))
        return (g * (rs[:, None] * d) + b).astype(np.float32), mean.astype(np.float32), rs.astype(np.float32)


def _backward(dz, gamma, zero_centered_gamma, y, rsigma, centered):
    """What both backward forms have in common: y is what the norm scales by gamma."""
    rn = F32(F32(1) / F32(y.shape[1]))
    g = np.asarray(gamma).astype(np.float32)
    if zero_centered_gamma:
        g = g + F32(1)
    dz = np.asarray(dz).astype(np.float32)
    dy = g * dz
    along = (canonical_sum(dy * y) * rn)[:, None] * y
    if centered:
        along = along + (canonical_sum(dy) * rn)[:, None]
    return (rsigma * (dy - along)).astype(np.float32), (dz * y).astype(np.float32)


def rms_norm_backward(dz, x, gamma, rsigma, zero_centered_gamma: bool = False):
    """(dx, dgamma terms) in fp32, one rounding for each operation; rsigma is a column (Semantics.md)."""
    with np.errstate(all="ignore"):
        y = rsigma * np.asarray(x).astype(np.float32)
        return _backward(dz, gamma, zero_centered_gamma, y, rsigma, centered=False)


def layer_norm_backward(dz, x, gamma, mean, rsigma, zero_centered_gamma: bool = False):
    """(dx, dgamma terms) in fp32, one rounding for each operation; mean and rsigma are columns (Semantics.md)."""
    with np.errstate(all="ignore"):
        y = rsigma * (np.asarray(x).astype(np.float32) - mean)
        return _backward(dz, gamma, zero_centered_gamma, y, rsigma, centered=True)
