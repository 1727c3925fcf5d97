"""What peers and dither are both given, and dither's casts of elements by themselves."""

import functools

import dither
import dither.language as dl
import ml_dtypes
import numpy as np

F32 = np.float32
SHAPE = (128, 1024)
DTYPES = {"float32": F32, "bfloat16": ml_dtypes.bfloat16}


def normal(random):
    """A normal distribution."""
    return random.standard_normal(SHAPE).astype(F32)


def ranges(random):
    """Each 16 elements have a power of two of their own, from 2^-40 to 2^40."""
    powers = np.exp2(np.repeat(random.integers(-40, 41, (SHAPE[0], SHAPE[1] // 16)), 16, axis=1))
    return (random.uniform(-1, 1, SHAPE) * powers).astype(F32)


def any_bits(random):
    """Any finite numbers: all exponents in every block."""
    bits = random.integers(0, 0x7F800000, SHAPE, np.uint32) | random.integers(0, 2, SHAPE, np.uint32) << 31
    return bits.view(F32)


def subnormal(random):
    """Subnormal numbers, in a third of the rows beside numbers up to 2^-110."""
    bits = random.integers(0, 0x00800000, SHAPE, np.uint32) >> random.integers(0, 23, SHAPE, np.uint32)
    bits[::3] += random.integers(0, 17, (len(bits[::3]), 1), np.uint32) << 23
    return (bits | random.integers(0, 2, SHAPE, np.uint32) << 31).view(F32)


def zero_blocks(random):
    """Half of the blocks of 32 are zero; a tenth of the elements is minus zero."""
    x = normal(random)
    x.reshape(SHAPE[0], -1, 32)[random.random((SHAPE[0], SHAPE[1] // 32)) < 0.5] = 0
    return np.where(random.random(SHAPE) < 0.1, F32(-0.0), x)


def boundaries(random):
    """Multiples of a 32nd of a power of two, where codes and scales of all formats change, and 2 ulp around."""
    exponents = np.repeat(random.integers(-90, 120, (SHAPE[0], SHAPE[1] // 32)), 32, axis=1)
    exponents = exponents - random.integers(0, 6, SHAPE)
    x = np.ldexp(1 + random.integers(0, 32, SHAPE) / 32, exponents).astype(F32)
    bits = x.view(np.uint32).astype(np.int64) + random.integers(-2, 3, SHAPE)
    return (bits.astype(np.uint32) | random.integers(0, 2, SHAPE, np.uint32) << 31).view(F32)


DISTRIBUTIONS = {f.__name__: f for f in (normal, ranges, any_bits, subnormal, zero_blocks, boundaries)}


@functools.cache
def source(name, dtype):
    """Finite numbers of a distribution; nobody writes to them."""
    x = DISTRIBUTIONS[name](np.random.default_rng([len(name), ord(name[0])]))
    largest = ml_dtypes.finfo(DTYPES[dtype]).max
    x = np.clip(x, -F32(largest), F32(largest)).astype(DTYPES[dtype])
    x.setflags(write=False)
    return x


def sources(*names):
    """(what it is, the array) for these distributions, or all, in both data types."""
    for name in names or DISTRIBUTIONS:
        for dtype in DTYPES:
            yield f"{name} {dtype}", source(name, dtype)


def elements():
    """(what they are, values) for casts: every bfloat16 and float16, float32 of any bits and around all ties."""
    yield "bfloat16", np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    yield "float16", np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    random = np.random.default_rng(0)
    yield "float32", random.integers(0, 1 << 32, 1 << 19, np.uint64).astype(np.uint32).view(F32)
    # Significands with five bits, which hold all codes and the middles between them, and 2 ulp around.
    bits = (random.integers(95, 145, 1 << 19) << 23) + (random.integers(0, 32, 1 << 19) << 18)
    bits += random.integers(-2, 3, 1 << 19) + (random.integers(0, 2, 1 << 19) << 31)
    yield "ties", bits.astype(np.uint32).view(F32)


def is_nan(x):
    return np.isnan(np.asarray(x).astype(F32))


@dither.jit
def cast_with_scales(x, scales, codes, FMT: dl.constexpr, COLS: dl.constexpr):
    i = dl.program_id(0) * 8
    t = dl.load(x, (i, 0), (8, COLS))
    s = dl.load(scales, (i, 0), (8, COLS // 32))
    dl.store(codes, (i, 0), dl.cast(t, s, FMT, axis=1))


def cast(x, fmt):
    """Codes of numbers whose count is a multiple of 8192, under scales of 1: one in a byte."""
    rows = x.reshape(-1, 1024)
    scales = np.full((len(rows), 32), 127, np.uint8).view(ml_dtypes.float8_e8m0fnu)
    codes = np.zeros((len(rows), 1024 * fmt.element.bits // 8 if fmt.element.bits == 4 else 1024), np.uint8)
    cast_with_scales[len(rows) // 8](rows, scales, dither.view(codes, fmt.element), FMT=fmt, COLS=1024)
    return unpacked(codes, fmt).reshape(x.shape)


def unpacked(codes, fmt):
    """Codes as bytes, one in each: FP4 lies two to a byte, the even one in the low half."""
    codes = np.asarray(codes).view(np.uint8)
    if fmt.element.bits != 4:
        return codes
    return np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)


def blocks(x, length):
    """(rows, blocks, elements of a block)."""
    return np.asarray(x).reshape(len(x), -1, length)


def block_amax(x, length):
    """The largest magnitude of each block of a row, as float32."""
    return np.abs(blocks(x, length).astype(F32)).max(axis=2)


def middles(table):
    """The numbers halfway between neighbours."""
    return (table[1:] + table[:-1]) / 2


def beside_a_middle(x, table):
    """Whether numbers (float64) are nearer than 2^-21 of themselves to a place where rounding changes."""
    points = middles(table)
    i = np.searchsorted(points, x).clip(1, len(points) - 1)
    return np.minimum(np.abs(x - points[i - 1]), np.abs(x - points[i])) <= x * 2.0**-21
