"""The rules and vectors of dialect/Quant/SemanticsOfModes.md, recomputed in NumPy by mode_oracle.py."""

import pathlib
import re

import mode_oracle as modes
import numpy as np
import oracle
import pytest

TEXT = (pathlib.Path(__file__).parents[3] / "dialect" / "Quant" / "SemanticsOfModes.md").read_text()
VECTORS = TEXT.split("\n## Vectors\n")[1]
EACH_ELEMENT = pytest.mark.parametrize("element", modes.ELEMENTS.values(), ids=lambda element: element.name)
EACH_ORDER = pytest.mark.parametrize("order", modes.ORDERS.values(), ids=lambda order: order.name)
#: What rounds to nearest, from the oracle of the library's formats.
NEAREST = {
    "f4E2M1FN": oracle.encode_e2m1,
    "f6E2M3FN": oracle.encode_e2m3,
    "f6E3M2FN": oracle.encode_e3m2,
    "f8E4M3FN": oracle.encode_e4m3,
    "f8E5M2": oracle.encode_e5m2,
    "i8": oracle.encode_int8,
}


def table(title: str) -> list[list[str]]:
    """The cells of the rows of the table under a heading, without the marks of code."""
    section = re.split(r"^### ", VECTORS.split(f"### {title}\n")[1], maxsplit=1, flags=re.M)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def integers(text: str) -> list[int]:
    return [int(digits, 16) for digits in text.split()]


def test_every_rule_has_vectors():
    assert {row[0] for row in table("Stochastic codes")} == set(modes.ELEMENTS)
    assert {row[0] for row in table("Bytes of scales")} == set(modes.ORDERS)
    titles = re.findall(r"^### (.+)$", VECTORS, re.M)
    assert len(titles) == 8 and all(table(title) for title in titles)


# ---------------------------------------------------------------------------
# Stochastic rounding
# ---------------------------------------------------------------------------


def value(text: str) -> np.float32:
    """What the column x says; after `below` the next value towards zero."""
    number = text.removeprefix("below ")
    x = np.float32(float.fromhex(number) if "0x" in number else float(number))
    return x if number == text else np.nextafter(x, np.float32(0))


@pytest.mark.parametrize("row", table("Stochastic codes"), ids=lambda row: f"{row[0]}: {row[1]}")
def test_codes(row):
    name, text, bits, r, codes = row
    x = np.array(int(bits, 16), np.uint32).view(np.float32)
    assert np.array_equal(x, value(text), equal_nan=True)
    assert np.signbit(x) == text.startswith("-")
    given, expected = integers(r), integers(codes)
    assert len(given) == len(expected)
    assert modes.encode_stochastic(x, given, modes.ELEMENTS[name]).tolist() == expected


def points_of_cells(element: modes.Element) -> tuple[np.ndarray, np.ndarray]:
    """(x, f), float32 and integers: values at and between all multiples of 2^-8 of the step, of all cells."""
    low, high = element.grid[:-1, None, None], element.grid[1:, None, None]
    f = np.arange(256)[:, None]
    x = low + (high - low) * (f + np.array([0, 0.5, 1 - 2.0**-8])) / 256
    assert (x == x.astype(np.float32)).all()
    return x.astype(np.float32), np.broadcast_to(f, x.shape)


@EACH_ELEMENT
def test_as_many_r_as_f_round_away(element):
    r = np.arange(256)
    for i, (x, f) in enumerate(zip(*points_of_cells(element), strict=True)):
        for sign in (1, -1):
            codes = modes.encode_stochastic(sign * x[..., None], r, element)
            away = codes != modes.with_sign(i, sign < 0, element)
            assert (codes[away] == modes.with_sign(i + 1, sign < 0, element)).all()
            assert (away.sum(axis=-1) == f).all()
            assert (away[..., 1:] >= away[..., :-1]).all()


@EACH_ELEMENT
def test_codes_do_not_fall_where_x_grows(element):
    x, _ = points_of_cells(element)
    codes = modes.encode_stochastic(x.reshape(-1, 1), np.arange(256), element)
    assert (np.diff(codes.astype(int), axis=0) >= 0).all()


@EACH_ELEMENT
def test_grid_values_have_the_codes_of_nearest_rounding(element):
    x = np.append(element.grid, -element.grid).astype(np.float32)
    nearest = NEAREST[element.name](x)
    for r in (0, 1, 128, 255):
        assert (modes.encode_stochastic(x, r, element) == nearest).all()
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0], np.float32)
    assert (modes.encode_stochastic(x[:, None], np.arange(256), element) == NEAREST[element.name](x)[:, None]).all()


def in_integers(x: np.ndarray, r: np.ndarray, element: modes.Element) -> np.ndarray:
    """The form of the rule that targets compute, of uint8 codes; x float32 without NaN and r of the same shape."""
    m, bias = element.mantissa_bits, element.bias
    u = np.abs(x).view(np.uint32).astype(np.int64)
    normal = ((u + (r << (15 - m))) >> (23 - m)) - ((127 - bias) << m)
    smallest = np.float32(2.0 ** (1 - bias))
    scaled = np.minimum(np.abs(x), smallest).astype(np.float64) * 2.0 ** (7 + m + bias)
    subnormal = (np.floor(scaled).astype(np.int64) + r) >> 8
    code = np.minimum(np.where(np.abs(x) >= smallest, normal, subnormal), element.max_code)
    return modes.with_sign(code, np.signbit(x), element)


@EACH_ELEMENT
def test_integers_give_the_rule(element):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 200_000, np.uint32)
    exponents = rng.integers(-30, 20, 200_000)
    small = np.ldexp(rng.uniform(-2, 2, 200_000), exponents).astype(np.float32)
    points = points_of_cells(element)[0].reshape(-1)
    x = np.concatenate([bits.view(np.float32), small, points, -points])
    x = x[~np.isnan(x)]
    r = rng.integers(0, 256, x.shape)
    assert (in_integers(x, r, element) == modes.encode_stochastic(x, r, element)).all()


def test_top_of_a_wider_field():
    r, wide = np.arange(256), np.arange(2**16)
    narrow = wide[:, None] // 256 + r >= 256
    assert (narrow == (wide[:, None] + 256 * r >= 2**16)).all()
    f = np.arange(256)[:, None]
    for s in range(256):
        assert ((256 * f + 256 * r + s >= 2**16) == (f + r >= 256)).all()


# ---------------------------------------------------------------------------
# Random bits
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", table("Philox"))
def test_philox(row):
    key, counter, words = map(integers, row)
    assert modes.philox(key, counter).tolist() == words


@pytest.mark.parametrize("row", table("Words of groups"))
def test_words(row):
    seed, offset, group = (int(cell, 16) for cell in row[:3])
    assert modes.words(seed, offset, group, row[3] == "columnwise").tolist() == integers(row[4])
    assert row[3] in ("rowwise", "columnwise")
    if seed >> 63:
        assert modes.words(seed - 2**64, offset, group, row[3] == "columnwise").tolist() == integers(row[4])


@pytest.mark.parametrize("row", table("Uniform numbers"))
def test_uniform(row):
    seed, offset = (int(cell, 16) for cell in row[:2])
    at, columns = int(row[2]), int(row[3])
    numbers = modes.uniform(at + 1, columns, seed, offset)[at]
    assert (numbers * 2**24).astype(np.int64).tolist() == integers(row[4])


def test_bits_are_bytes_of_words():
    seed, offset, shape = 42, 7, (2, 3, 37)
    for columnwise in (False, True):
        bits = modes.random_bits(shape, seed, offset, columnwise)
        assert bits.shape == shape and bits.dtype == np.uint8
        for a, b, column in np.ndindex(shape):
            g, i = (3 * a + b) * 3 + column // 16, column % 16
            word = int(modes.words(seed, offset, g, columnwise)[i // 4])
            assert bits[a, b, column] == word >> 8 * (i % 4) & 0xFF
        assert (modes.random_bits((6, 37), seed, offset, columnwise) == bits.reshape(6, 37)).all()
    assert (modes.random_bits((37,), seed, offset) == modes.random_bits(shape, seed, offset)[0, 0]).all()


def test_bits_are_even():
    """A coarse check that no bit is stuck or shared: means of bits, and of products of two elements' bits."""
    bits = np.unpackbits(modes.random_bits((4096, 16), 1, 2), axis=1).astype(np.float64) - 0.5
    assert (np.abs(bits.mean(axis=0)) < 0.04).all()
    product = bits.T @ bits / len(bits)
    assert (np.abs(product - np.diag(np.diag(product))) < 0.025).all()


@pytest.mark.parametrize("row", table("Codes of a tensor"), ids=lambda row: " ".join(row[:3]))
def test_codes_of_a_tensor(row):
    name, output, number, codes = row
    r, c = np.indices((3, 20))
    x = ((20 * r + c - 30) * 11 / 64).astype(np.float32)
    x = x.T if output == "transposed" else x
    bits = modes.random_bits(x.shape, 42, 7, output != "rowwise")
    found = modes.encode_stochastic(x, bits, modes.ELEMENTS[name])
    assert found[int(number)].tolist() == integers(codes)


# ---------------------------------------------------------------------------
# Orders of scales
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", table("Bytes of scales"), ids=lambda row: f"{row[0]}: {row[1]}")
def test_offsets(row):
    name, extents, size, padded, total, offsets = row
    rows, columns = map(int, extents.split(" x "))
    order, size = modes.ORDERS[name], int(size)
    assert order.padded(rows, columns, size) == tuple(map(int, padded.split(" x ")))
    scales = np.zeros((rows, columns), {1: np.uint8, 4: np.float32}[size])
    assert order.arrange(scales).size == int(total)
    found = re.findall(r"\((\d+), (\d+)\): (\d+)", offsets)
    assert len(found) == offsets.count(":")
    for r, c, byte in (map(int, place) for place in found):
        assert order.offset(r, c, rows, columns, size) == byte
        assert order.inverse(byte, rows, columns, size) == (r, c)


@pytest.mark.parametrize("row", table("Whole matrices of scales"), ids=lambda row: row[0])
def test_bytes(row):
    r, c = np.indices((3, 5))
    assert modes.ORDERS[row[0]].arrange((16 * (r + 1) + c + 1).astype(np.uint8)).tolist() == integers(row[1])


def test_bytes_of_f32():
    (listing,) = re.findall(r"^`([0-9A-F ]+)`\.$", VECTORS, re.M)
    scales = np.array([[1, 0.5], [2, 4], [8, -1]], np.float32)
    assert modes.COLUMN_MAJOR.arrange(scales).tolist() == integers(listing)


SHAPES = [(1, 1), (3, 5), (8, 4), (9, 4), (16, 16), (20, 10), (127, 3), (129, 9), (256, 8)]


@EACH_ORDER
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orders_are_bijections_and_their_inverses(order, shape):
    for size in order.sizes:
        padded = order.padded(*shape, size)
        assert all(0 <= p - n < 128 for p, n in zip(padded, shape, strict=True))
        r, c = np.indices(padded)
        byte = order.offset(r, c, *shape, size)
        assert (np.sort(byte.reshape(-1)) == np.arange(padded[0] * padded[1]) * size).all()
        back = order.inverse(byte, *shape, size)
        assert (back[0] == r).all() and (back[1] == c).all()
        assert (order.inverse(byte + size - 1, *shape, size)[0] == r).all()


@EACH_ORDER
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orders_are_transposes_of_the_padded_matrix(order, shape):
    scales = np.random.default_rng(0).integers(1, 256, shape).astype(np.uint8)
    rows, columns = order.padded(*shape)
    m = np.zeros((rows, columns), np.uint8)
    m[: shape[0], : shape[1]] = scales
    wanted = {
        "linear": lambda: scales,
        "swizzle_128x4": lambda: oracle.swizzle_128x4(m),
        "swizzle_8x4": lambda: m.reshape(rows // 8, 8, columns // 4, 4).transpose(0, 2, 1, 3),
        "column_major": lambda: m.transpose(1, 0),
        "packed_column_major": lambda: m.reshape(rows, columns // 4, 4).transpose(1, 0, 2),
    }[order.name]()
    assert (order.arrange(scales) == wanted.reshape(-1)).all()


def test_packed_scales_are_integers_in_column_major_order():
    scales = np.random.default_rng(0).integers(0, 256, (21, 10)).astype(np.uint8)
    words = modes.PACKED_COLUMN_MAJOR.arrange(scales).view("<u4").reshape(3, 24)
    for r, c in np.ndindex(scales.shape):
        assert words[c // 4, r] >> 8 * (c % 4) & 0xFF == scales[r, c]
    whole = np.zeros((21, 12), np.uint8)
    whole[:, :10] = scales
    assert (modes.COLUMN_MAJOR.arrange(whole.view("<u4")).view("<u4").reshape(3, 24) == words).all()


def test_sizes_of_scales():
    with pytest.raises(ValueError, match="swizzle_8x4 has no scales of 4 bytes"):
        modes.SWIZZLE_8X4.arrange(np.zeros((8, 4), np.float32))


@pytest.mark.parametrize("row", table("Rows of repeated scales"), ids=lambda row: row[0])
def test_repeated_scales(row):
    scales = np.array([[0x11, 0x12, 0x13], [0x21, 0x22, 0x23]], np.uint8)
    scales, rows = {"rowwise": (scales, 6), "columnwise": (scales.T, 11)}[row[0]]
    assert modes.repeat_scales(scales, rows, 4).tolist() == [integers(line) for line in row[1].split(",")]


def test_repeated_scales_of_square_blocks():
    scales = np.random.default_rng(0).integers(0, 256, (3, 2)).astype(np.uint8)
    rowwise = modes.repeat_scales(scales, 96, 32)
    columnwise = modes.repeat_scales(scales.T, 64, 32)
    assert rowwise.shape == (96, 2) and columnwise.shape == (64, 3)
    # An element has one scale, in whichever output it is looked up.
    i, j = np.indices((96, 64))
    assert (rowwise[i, j // 32] == columnwise[j, i // 32]).all()
    assert (rowwise[i, j // 32] == scales[i // 32, j // 32]).all()
