"""dither.quantize against the reference: shapes, special values, and every point where a code or a scale changes."""

import dither
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import FORMATS, LAYOUTS, NAN_CODE, array, check_quantized, parts, same_bits

BLOCK = {fmt: oracle.FORMATS[fmt].block for fmt in FORMATS}
RAGGED = (1, 15, 17, 33, 100)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("n", [*RAGGED, 128, 4097])
def test_ragged_shapes(fmt, n):
    """Every row count with each row length; fewer for NVFP4, whose transposed codes are specialized by both."""
    for m in RAGGED if (fmt != "nvfp4" or n == 33) and n < 4097 else (1, 33):
        x = data.adversarial(m, n, "bfloat16")
        check_quantized(dither.quantize(x, fmt, "both"), x, "both")


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("n", [448, 480, 640, 768, 992, 1000, 2880])
def test_widths(fmt, n):
    """Rows that are no whole number of the parts that CPUs take at once: parts are narrower there, of more rows."""
    x = data.adversarial(37, n, "bfloat16")
    x[:32] = data.normal(32, n, "bfloat16")
    for layout in ("rowwise", "both"):
        check_quantized(dither.quantize(x, fmt, layout), x, layout)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 100), (129, 100), (127, 4097), (300, 257)])
def test_ragged_scale_tiles(fmt, m, n):
    """Padding of the 128x4 order reaches past the tensor in both directions, and is zero."""
    x = data.adversarial(m, n, "bfloat16")
    check_quantized(dither.quantize(x, fmt, "both", "128x4"), x, "both", "128x4")


def test_many_rows():
    """More rows than columns by far: 4097 rows, columnwise blocks across every tile."""
    for fmt in FORMATS:
        x = data.adversarial(4097, 100, "bfloat16")
        check_quantized(dither.quantize(x, fmt, "both"), x, "both")


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scales", ["linear", "128x4"])
@pytest.mark.parametrize("shape", [(0, 100), (37, 0), (0, 0)])
def test_empty(fmt, layout, scales, shape):
    x = data.empty(shape, np.float32)
    result = dither.quantize(x, fmt, layout, scales)
    assert result.shape == shape
    check_quantized(result, x, layout, scales)
    assert array(result.dequantize(dither.float32)).shape == shape


def blocks_of(values, maximum, block):
    """Rows of one block each, which begins with `maximum` and goes on with `values`; (rows, 100)."""
    values = np.asarray(values, np.float32)
    rows = -(-values.size // (block - 1))
    x = np.zeros((rows, block), np.float32)
    x[:, 0] = maximum
    x[:, 1:] = np.resize(values, (rows, block - 1))
    return x


TABLES = {
    "nvfp4": oracle.E2M1,
    "mxfp4": oracle.E2M1,
    "mxfp6_e2m3": oracle.E2M3,
    "mxfp6_e3m2": oracle.E3M2,
    "mxfp8_e4m3": oracle.E4M3,
    "mxfp8_e5m2": oracle.E5M2,
    "mxint8": oracle.MXINT8,
}


@pytest.mark.parametrize("fmt", FORMATS)
def test_element_decisions(fmt):
    """Every midpoint between neighbouring codes and every code, 2 ulp around, with a scale of exactly 1."""
    table = TABLES[fmt]
    midpoints = (table[1:] + table[:-1]) / 2
    values = data.around(np.concatenate([midpoints, table]).astype(np.float32))
    values = values[np.abs(values) <= table[-1]]
    x = blocks_of(values, table[-1], BLOCK[fmt])
    # A tensor amax of 6 * 448 makes the block scale that of the block alone.
    amax = np.float32(2688) if fmt == "nvfp4" else None
    for layout in ("rowwise", "colwise"):
        given = data.aligned(x if layout == "rowwise" else x.T)
        result = dither.quantize(given, fmt, layout, amax=amax)
        one = {"nvfp4": 0x38}.get(fmt, 127)
        assert set(np.unique(array(result.scale_inv).view(np.uint8))) == {one}
        check_quantized(result, given, layout, amax=amax, dequantize=np.float32)
    codes = array(dither.quantize(data.aligned(x), fmt, amax=amax).data).view(np.uint8)
    if TABLES[fmt] is oracle.E2M1:
        codes = np.stack([codes & 15, codes >> 4])
    found = np.unique(codes)
    signed_zero = fmt != "mxint8"
    assert len(found) == 2 * len(table) - (not signed_zero), "not every code came out"


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "nvfp4"])
def test_e8m0_decisions(fmt):
    """Amax around every power of two, and around each times the largest code: where the exponent steps."""
    exponents = np.arange(-149, 128)
    powers = np.ldexp(1.0, exponents)
    with np.errstate(over="ignore"):
        points = np.concatenate([powers, powers * TABLES[fmt][-1], powers * 1.5, powers * 1.75]).astype(np.float32)
    values = data.around(points[np.isfinite(points)])
    x = np.zeros((values.size, 32), np.float32)
    x[:, 5] = values
    x[:, 7] = values / 3
    x[:, 8] = -values / 2
    x = data.aligned(x)
    result = dither.quantize(x, fmt)
    check_quantized(result, x, "rowwise", dequantize=np.float32)
    assert len(np.unique(array(result.scale_inv).view(np.uint8))) > 240
    transposed = data.aligned(x[:100].T)
    check_quantized(dither.quantize(transposed, fmt, "colwise"), transposed, "colwise")


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "nvfp4"])
@pytest.mark.parametrize("exponents", [(-133, 127), (-133, -90), (-101, -99), (-100, 127), (-20, 20)])
def test_blocks_of_bfloat16(fmt, exponents):
    """Blocks of zeros, and with an amax of every exponent, down to what is subnormal; elements up to 2^40 below it.

    Where CPUs multiply in f16, small blocks are not multiplied so, and float32 never is: both give the same codes.
    """
    rng = np.random.default_rng(200 + exponents[0])
    shape = (64, 1536)
    amax = rng.integers(*exponents, (64, 1536 // 32), endpoint=True)
    below = np.minimum(rng.geometric(0.2, shape) - 1, 40)
    values = np.ldexp(rng.uniform(1, 2, shape), np.repeat(amax, 32, 1) - below) * rng.choice([-1, 1], shape)
    values *= np.repeat(rng.random(amax.shape) > 0.1, 32, 1)
    values[32:, :40] = 0
    largest = 2.0**127 * (2 - 2.0**-7)
    x = data.aligned(np.clip(values, -largest, largest), data.DTYPES["bfloat16"])
    for given in (x, data.aligned(x.T)):
        check_quantized(dither.quantize(given, fmt, "both"), given, "both")
        up = dither.quantize(given, dither.formats.FORMATS[fmt].with_(scale_rounding="rceil"), "both")
        wide = dither.quantize(data.aligned(given, np.float32), up.format, "both")
        for found, expected in zip(parts(up), parts(wide), strict=True):
            same_bits(found.data, array(expected.data).view(array(found.data).dtype))
            same_bits(found.scale_inv, array(expected.scale_inv))


@pytest.mark.parametrize("amax", [2688.0, 1.0, 3.0, 1.015625, 1000.0, 448.0 * 6 / 7, 1e-3])
def test_e4m3_scale_decisions(amax):
    """Block amax around every midpoint of E4M3 in units of the block scale, for several tensor scales."""
    table = np.concatenate([oracle.E4M3, (oracle.E4M3[1:] + oracle.E4M3[:-1]) / 2])
    points = (table * 6 * (amax / 2688)).astype(np.float32)
    values = data.around(points, 3)
    x = np.zeros((values.size, 16), np.float32)
    x[:, 3] = values
    x[:, 4] = values / 3
    x[:, 9] = -values * np.float32(0.45)
    x = data.aligned(x)
    result = dither.quantize(x, "nvfp4", amax=amax)
    check_quantized(result, x, "rowwise", amax=np.float32(amax), dequantize=np.float32)
    assert len(np.unique(array(result.scale_inv).view(np.uint8))) == 127


def test_folded_multiplication_of_the_block_scale():
    """amax * (S / 6), not (amax / 6) * S: the bf16 values at which one rounding more or less shows."""
    x = np.zeros((1, 16), np.float32)
    x[0, 0] = 0.76171875
    result = dither.quantize(data.aligned(x), "nvfp4", amax=1.015625)
    assert array(result.scale_inv).view(np.uint8)[0, 0] == 0x7B


GOLDEN = [1, -0.5, 0.25, 0.125, 0, -0.0, 3, -2, 1.5, 0.75, 0.0625, -0.03125, 0.3, -0.7, 2.5, 1e-8]


@pytest.mark.parametrize(
    ("amax", "scale", "codes"),
    [
        (3.0, 0x7E, "4A10087E53081B60"),
        (1000.0, 0x3B, "4A10087E53081B60"),
        (1e6, 0x01, "3910086D42081A50"),
    ],
)
def test_nvfp4_by_hand(amax, scale, codes):
    """One block whose scale and codes were worked out on paper."""
    x = data.aligned(np.array([GOLDEN], np.float32))
    result = dither.quantize(x, "nvfp4", amax=amax)
    assert array(result.scale_inv).view(np.uint8)[0, 0] == scale
    packed = array(result.data)[0]
    found = "".join(f"{byte & 15:X}{byte >> 4:X}" for byte in packed)
    assert found == codes


AMAXES = [0.0, 1e-45, 1e-40, 1.17549435e-38, 7.8e-36, 8e-36, 1e-30, 0.5, 1.0, 6.0, 2688.0, 1e30, 3.4e38]


@pytest.mark.parametrize("amax", AMAXES)
def test_amax_given(amax):
    """Tensor amax at its limits, far below and far above what the tensor holds."""
    x = data.adversarial(37, 100)
    for layout in ("rowwise", "colwise"):
        result = dither.quantize(x, "nvfp4", layout, amax=amax)
        check_quantized(result, x, layout, amax=np.float32(amax), dequantize=np.float32)


@pytest.mark.parametrize("tiny", [1e-45, 1e-40, 1.17549435e-38, 1e-37, 7e-36, 9e-36, 1e-33])
@pytest.mark.parametrize("fmt", FORMATS)
def test_tiny_tensors(fmt, tiny):
    """Every element within a few binades of the smallest numbers: nothing flushes subnormals."""
    x = data.aligned(np.float32(tiny) * data.normal(37, 100).astype(np.float32))
    check_quantized(dither.quantize(x, fmt, "both"), x, "both", dequantize=np.float32)


@pytest.mark.parametrize("dtype", data.DTYPES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_blocks_of_one_kind(fmt, dtype):
    """Whole blocks of one special value, in either direction."""
    values = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-40, data.FMAX, 65504, 1, -1], np.float32)
    x = data.aligned(np.repeat(np.repeat(values[:, None], 100, 1), 32, 0), data.DTYPES[dtype])
    check_quantized(dither.quantize(x, fmt, "both"), x, "both")
    for value in values:  # and alone, so that the tensor's amax is the block's
        x = data.aligned(np.full((37, 100), value, np.float32), data.DTYPES[dtype])
        check_quantized(dither.quantize(x, fmt, "both"), x, "both")


def test_nan_does_not_reach_its_block():
    """A NaN takes the largest code or NaN itself; scale, amax and the neighbours are as without it."""
    clean = data.normal(37, 100)
    clean[:, ::10] = 0
    x = data.aligned(clean)
    x[:, ::10] = np.nan
    for fmt in FORMATS:
        a, b = dither.quantize(clean, fmt), dither.quantize(x, fmt)
        same_bits(a.scale_inv, b.scale_inv)
        if fmt == "nvfp4":
            same_bits(a.amax, b.amax)
        codes = [array(r.data).view(np.uint8) for r in (a, b)]
        if fmt.endswith("fp4"):
            codes = [np.stack([c & 15, c >> 4], -1).reshape(37, 100) for c in codes]
        here = np.isnan(x)
        assert set(codes[1][here]) == {NAN_CODE[fmt]}
        same_bits(codes[0][~here], codes[1][~here])


@pytest.mark.parametrize("n", [1, 3, 15, 33, 257])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_last_half_byte_of_odd_rows_is_zero(n, layout):
    """Even where the next element in memory is not: the input is a slice."""
    wide = data.normal(33, n + 7)
    for fmt in ("nvfp4", "mxfp4"):
        x = wide[:, :n]
        result = dither.quantize(x, fmt, layout)
        check_quantized(result, x, layout)
        for part in parts(result):
            columns = 33 if part.is_transposed else n
            assert columns % 2 == 1
            assert not (array(part.data)[:, -1] >> 4).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_all_values_of_narrow_inputs(dtype):
    """Each of the 65536 bit patterns once, in blocks sorted by magnitude and in blocks of random ones."""
    every = np.arange(65536, dtype=np.uint16)
    order = np.argsort(every & 0x7FFF, kind="stable")
    for ids in (order, np.random.default_rng(0).permutation(65536)):
        x = data.aligned(every[ids].view(data.DTYPES[dtype]).reshape(512, 128))
        for fmt in FORMATS:
            check_quantized(
                dither.quantize(x, fmt, amax=100.0 if fmt == "nvfp4" else None),
                x,
                "rowwise",
                amax=np.float32(100) if fmt == "nvfp4" else None,
            )


def test_random_bits():
    """Every fp32 exponent in one block."""
    raw = np.random.default_rng(0).integers(0, 2**32, (500, 128), dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = data.aligned(raw)
    for fmt in FORMATS:
        check_quantized(dither.quantize(x, fmt, "both"), x, "both")
