"""Any format, layout and order of scales in NumPy: what `dither.quantize` must give, from the formulas of
dialect/Quant/Semantics.md and SemanticsOfModes.md."""

import dither
import dither.language as dl
import mode_oracle
import numpy as np
import oracle
from ops import check
from ops.data import DTYPES

F32 = np.float32
CODES = {
    "float4_e2m1": (oracle.encode_e2m1, oracle.decode_e2m1, oracle.E2M1),
    "float6_e2m3": (oracle.encode_e2m3, oracle.decode_e2m3, oracle.E2M3),
    "float6_e3m2": (oracle.encode_e3m2, oracle.decode_e3m2, oracle.E3M2),
    "int8": (oracle.encode_int8, oracle.decode_int8, np.arange(128.0)),
    "float8_e4m3": (oracle.encode_e4m3, oracle.decode_e4m3, oracle.E4M3),
    "float8_e5m2": (oracle.encode_e5m2, oracle.decode_e5m2, oracle.E5M2),
}
#: Orders by their names in calls and in SemanticsOfModes.md.
ORDERS = {
    "linear": mode_oracle.LINEAR,
    "128x4": mode_oracle.SWIZZLE_128X4,
    "8x4": mode_oracle.SWIZZLE_8X4,
    "column_major": mode_oracle.COLUMN_MAJOR,
    "packed": mode_oracle.PACKED_COLUMN_MAJOR,
}


def block_of(fmt, shape):
    """Rows and columns of a block of a matrix whose rows of blocks run along rows."""
    if isinstance(fmt.block, str):
        rows, cols = (max(extent, 1) for extent in shape)
        return {"row": (1, cols), "tensor": (rows, cols)}[fmt.block]
    return (1, fmt.block) if isinstance(fmt.block, int) else fmt.block


def over_blocks(per_block, shape, rows, cols):
    """A value of each block for each element of a matrix."""
    return np.repeat(np.repeat(per_block, rows, axis=0), cols, axis=1)[: shape[0], : shape[1]]


def encode_scales(b, fmt, most):
    """What elements of blocks of these amax are multiplied by (order encode_first); `most` is the largest number of
    the type that they come in."""
    b = np.asarray(b, F32)
    nan = np.isnan(b)
    b = np.where(b < F32(fmt.epsilon), F32(fmt.epsilon), b)
    with np.errstate(all="ignore"):
        scale = (F32(CODES[fmt.element.name][2][-1]) / b).astype(F32)
    scale = np.where(np.isinf(scale), F32(most), scale)
    if fmt.pow2_scales:
        scale = (scale.view(np.uint32) & np.uint32(0xFF800000)).view(F32)
    scale = np.where((b == 0) | ~np.isfinite(b), F32(1), scale)
    return np.where(nan, F32(np.nan), scale).astype(F32)


def tensor_scales(g, fmt, most):
    """What the tensor is multiplied by, what its codes are, and g / most, from what stands for the tensor scale."""
    one, g = F32(1), np.asarray(g, F32)
    if fmt.tensor_scale_as == "encode":
        return g, one / g, None
    if fmt.tensor_scale_as == "decode":
        return one / g, g, None
    s = np.fmin((most / g).astype(F32), np.finfo(F32).max)
    s = np.where((g == 0) | (s == 0), one, s).astype(F32)
    d = (g / most).astype(F32)
    d = np.where((d == 0) | (d == np.inf), one, d).astype(F32)
    return s, d if fmt.order == "div6_div" else (one / s).astype(F32), d


def two_level_scales(x, b, fmt, g, largest, codes_of, over):
    """Scales, factors and values of scales of blocks, of formats with E4M3 scales."""
    fmax, one = np.finfo(F32).max, F32(1)
    most = F32(largest * F32(fmt.largest_scale))
    s = d = whole = one
    if g is not None:
        s, d, whole = tensor_scales(g, fmt, most)
    divides = fmt.order in ("div6_mul", "div6_div")
    if fmt.order == "div6_div":
        u = np.fmax(np.fmin((b / largest / d).astype(F32), F32(448)), F32(2**-6))
    elif divides or (fmt.order == "te" and fmt.four_over_six != "none"):
        u = np.fmin(b / largest * s, fmax)
    elif fmt.order == "mul_inv6":
        u = np.fmin(b * F32(one / largest) * s, fmax)
    else:
        u = np.fmin(b * (s * F32(one / largest)).astype(F32), fmax)

    def rounded(u):
        code = oracle.encode_e4m3(np.maximum(u, F32(fmt.least_scale)).astype(F32))
        return np.where(np.isnan(b), np.uint8(0x7F), code)

    def factor(code):
        value = oracle.decode_e4m3(code)
        inverse = one / d / value if fmt.order == "div6_div" else one / (value * d).astype(F32)
        return np.fmin(inverse.astype(F32), fmax)

    def error(code):
        value = (codes_of((x * over(factor(code))).astype(F32)) * over(oracle.decode_e4m3(code))).astype(F32)
        if g is not None:
            if fmt.tensor_scale_as != "amax":
                value = value * d
            elif divides:
                value = value * whole
            else:
                value = (value * np.asarray(g, F32)).astype(F32) / most
        difference = (value - x).astype(F32)
        each = np.abs(difference) if fmt.four_over_six == "mae" else (difference * difference).astype(F32)
        rows, cols = block_of(fmt, x.shape)
        each = each.reshape(x.shape[0] // rows, rows, x.shape[1] // cols, cols)
        total = each[..., 0]
        for i in range(1, cols):
            total = (total + each[..., i]).astype(F32)
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = (total[:, :half] + total[:, half:]).astype(F32)
        return total[:, 0]

    scale = rounded(u)
    if fmt.four_over_six != "none":
        four = rounded((u * F32(1.5)).astype(F32))
        scale = np.where(error(four) < error(scale), four, scale)
    value = oracle.decode_e4m3(scale)
    if g is None:
        return scale, factor(scale), value
    if fmt.tensor_scale_as != "amax":
        return scale, factor(scale), (value * d).astype(F32)
    if divides:
        return scale, factor(scale), (value * whole).astype(F32)
    return scale, factor(scale), (value * np.asarray(g, F32)).astype(F32) * F32(one / most)


def least_of_order(fmt):
    """What the order div6_div takes float32 scales to be at least."""
    return np.finfo(F32).smallest_normal if fmt.order == "div6_div" else 0.0


def reference(x, fmt, g=None, encode_scale=None, most=None, random=None):
    """Codes, scales and values of a float32 matrix whose rows of blocks run along rows; `random` has the bits of each
    element, of codes that are rounded stochastically."""
    encode, decode, table = CODES[fmt.element.name]
    if fmt.element is dl.int8 and fmt.scale is dl.e8m0:
        encode, decode, table = oracle.encode_mxint8, oracle.decode_mxint8, oracle.MXINT8
    largest, fmax = F32(table[-1]), np.finfo(F32).max
    rows, cols = block_of(fmt, x.shape)
    m, n = (-(-extent // of) for extent, of in zip(x.shape, (rows, cols), strict=True))
    padded = np.zeros((m * rows, n * cols), F32)
    padded[: x.shape[0], : x.shape[1]] = x
    tiles = padded.reshape(m, rows, n, cols)
    b = oracle.amax(tiles, axis=(1, 3))
    if fmt.nan_scales:
        b = np.where(np.isnan(tiles).any(axis=(1, 3)), F32(np.nan), b)
    with np.errstate(all="ignore"):
        if fmt.order == "encode_first":
            factor = encode_scales(b, fmt, fmax if most is None else most)
            if encode_scale is not None:
                factor = np.full_like(factor, encode_scale)
            scale = value = (F32(1) / factor).astype(F32)
        elif fmt.scale is dl.e8m0:
            assert fmt.scale_rounding in ("rceil", "floor")
            if fmt.scale_rounding == "floor":
                scale = oracle.e8m0_floor(b, int(np.floor(np.log2(largest))))
            else:
                scale = oracle.e8m0_rceil(b * F32(F32(1) / largest))
                if fmt.inf_scale == "FF":
                    scale = np.where(np.isinf(b), np.uint8(0xFF), scale)
            factor, value = oracle.inverse_e8m0(scale), oracle.decode_e8m0(scale)
        elif fmt.scale is dl.float32:
            quotient = b * F32(F32(1) / largest) if fmt.order in ("te", "mul_inv6") else b / largest
            scale = np.maximum(np.fmin(quotient, fmax), F32(max(fmt.least_scale, least_of_order(fmt))))
            scale = value = np.where(np.isnan(b), F32(np.nan), scale).astype(F32)
            factor = np.fmin(F32(1) / value, fmax).astype(F32)
        else:
            scale, factor, value = two_level_scales(
                padded,
                b,
                fmt,
                g,
                largest,
                lambda v: decode(encode(v)),
                lambda v: over_blocks(v, padded.shape, rows, cols),
            )
        scaled = (x * over_blocks(factor, x.shape, rows, cols)).astype(F32)
        if random is None:
            codes = encode(scaled)
        else:
            integers = fmt.element is dl.int8 and fmt.scale is dl.e8m0
            scaled = (scaled * F32(64)).astype(F32) if integers else scaled
            codes = mode_oracle.encode_stochastic(scaled, random, mode_oracle.ELEMENTS[fmt.element.mlir])
        values = (decode(codes) * over_blocks(value, x.shape, rows, cols)).astype(F32)
    return codes, scale, values


def hadamard(x, size, mask, dtype, axis):
    """The definition of dl.hadamard, in NumPy: signs, butterflies of neighbours 1, 2, 4, .. apart, the factor, and the
    type of the input."""
    t = np.asarray(x).astype(F32)
    t = (t.T if axis == 0 else t).copy()
    mask = mask if mask >> 16 else sum(mask << at for at in range(0, size, 16))
    sign = np.array([-1 if mask >> i & 1 else 1 for i in range(size)], F32)
    groups = t.reshape(t.shape[0], t.shape[1] // size, size) * sign
    step = 1
    with np.errstate(all="ignore"):
        while step < size:
            pairs = groups.reshape(t.shape[0], t.shape[1] // size, size // (2 * step), 2, step)
            groups = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2)
            step *= 2
        t = groups.reshape(t.shape) * F32(size**-0.5)
        if dtype != "float32":
            t = t.astype(DTYPES[dtype]).astype(F32)
    return np.ascontiguousarray(t.T if axis == 0 else t)


def stored_scales(scale, fmt, colwise, scales, rows=None):
    """The array of a matrix of scales in an order; `rows` of the tensor where they are repeated for each."""
    if rows is not None:
        scale = mode_oracle.repeat_scales(scale, rows, fmt.block_rows)
    if scales == "linear":
        return np.ascontiguousarray(scale.T if colwise and not fmt.transposed else scale)
    order = ORDERS[scales]
    raw = order.arrange(scale)
    r, c = order.padded(*scale.shape, scale.dtype.itemsize)
    if scales == "packed":
        return raw.view(np.int32).reshape(c // 4, r)
    return raw.view(scale.dtype).reshape((c, r) if scales == "column_major" else (r, c))


def check_part(part, x, fmt, scales, g=None, device="cpu", encode_scale=None, most=None, seed=None):
    """One direction of a result of quantizing `x` (float32) against the reference, and what it dequantizes to.

    `seed` is that of codes rounded stochastically, with the offset 0.
    """
    colwise = part.is_colwise
    given = np.ascontiguousarray(x.T) if colwise else x
    random = None
    if seed is not None:
        turned = colwise and not fmt.transposed
        random = mode_oracle.random_bits(given.shape[::-1] if turned else given.shape, seed, 0, colwise)
        random = random.T if turned else random
    codes, scale, values = reference(given, fmt, g, encode_scale, most, random)
    if colwise and not fmt.transposed:
        codes = codes.T
    codes = np.ascontiguousarray(codes)
    check.same_bits(part.data, oracle.pack_fp4(codes) if fmt.element is dl.float4_e2m1 else codes, "codes")
    want = stored_scales(scale, fmt, colwise, scales, given.shape[0] if part.repeated else None)
    check.same_bits(part.scale_inv, want, "scales")
    got = dither.dequantize(part, dither.float32, device=device)
    check.same_values(got, np.ascontiguousarray(values.T if colwise else values), "values")


def orders(fmt):
    """The orders of scales that a format can have."""
    if isinstance(fmt.block, str):
        return ("linear",)
    if fmt.scale.bits == 32:
        return ("linear", "column_major")
    return tuple(ORDERS) if fmt.scale is dl.e8m0 else tuple(name for name in ORDERS if name != "packed")
