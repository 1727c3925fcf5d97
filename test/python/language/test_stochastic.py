"""Stochastic rounding and its random bits, against the rules of dialect/Quant/SemanticsOfModes.md, bit for bit."""

import dither
import dither.language as dl
import ml_dtypes
import mode_oracle
import numpy as np
import oracle
import pytest
from dither import CompileError
from ops import check, data
from ops.check import encoded_values, same_bits

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
TYPES = {
    "f4E2M1FN": dl.float4_e2m1,
    "f6E2M3FN": dl.float6_e2m3,
    "f6E3M2FN": dl.float6_e3m2,
    "f8E4M3FN": dl.float8_e4m3,
    "f8E5M2": dl.float8_e5m2,
    "i8": dl.int8,
}
COLS = 128


def codes_of(m, n, dtype):
    """Memory for codes, as a kernel takes it, and a function that gives a byte for each code."""
    if dtype is dl.int8:
        memory = data.empty((m, n), np.int8)
        return memory, lambda: memory.view(np.uint8)
    memory = data.empty((m, n // 2 if dtype is dl.float4_e2m1 else n), np.uint8)
    if dtype is dl.float4_e2m1:
        return dither.view(memory, dtype), lambda: np.stack([memory & 15, memory >> 4], -1).reshape(m, n)
    return dither.view(memory, dtype), lambda: memory


@dither.jit
def rounded(x, r, q, DTYPE: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i = dl.program_id(0) * ROWS
    t = dl.load(x, (i, 0), (ROWS, COLS))
    dl.store(q, (i, 0), dl.stochastic_round(t, dl.load(r, (i, 0), (ROWS, COLS)), DTYPE).to(DTYPE))


def points(element):
    """Values at and beside every 256th of every cell of both signs, and special ones; with bits that just round each
    up, or just do not.
    """
    grid = element.grid
    steps = np.diff(grid)[:, None] * np.arange(256) / 256
    near = data.around((grid[:-1, None] + steps).reshape(-1).astype(np.float32), ulps=1)
    random = np.random.default_rng(0)
    any_bits = random.integers(0, 2**32, 4096, np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([near, data.around(grid[-2:]), np.array(data.SPECIAL, np.float32), any_bits])
    x = np.concatenate([x, np.zeros(-len(x) % (8 * COLS), np.float32)])
    with np.errstate(invalid="ignore"):
        _, f = mode_oracle.cell(np.nan_to_num(x, nan=0, posinf=0, neginf=0), element)
    r = np.clip(255 - f + random.integers(0, 2, f.shape), 0, 255)
    return data.aligned(x.reshape(-1, COLS)), r.reshape(-1, COLS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TYPES)
def test_every_cell(name, device):
    element = mode_oracle.ELEMENTS[name]
    x, r = points(element)
    if device != "cpu":
        x, r = data.aligned(x[:512]), r[:512]
    # Only the low 8 bits count.
    bits = data.aligned(r | np.random.default_rng(1).integers(-(2**23), 2**23, r.shape) << 8, np.int32)
    q, found = codes_of(*x.shape, TYPES[name])
    rounded[len(x) // 8](x, bits, q, DTYPE=TYPES[name], ROWS=8, COLS=COLS, device=device)
    same_bits(found(), mode_oracle.encode_stochastic(x, r, element), name)


@dither.jit
def values(x, r, y, DTYPE: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i = dl.program_id(0) * ROWS
    t = dl.load(x, (i, 0), (ROWS, COLS))
    dl.store(y, (i, 0), dl.stochastic_round(t, dl.load(r, (i, 0), (ROWS, COLS)), DTYPE))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TYPES)
def test_values_that_are_not_encoded(name, device):
    """What is as large as the largest value, or NaN, stays as it is."""
    element = mode_oracle.ELEMENTS[name]
    x, r = (data.aligned(part[-512:]) for part in points(element))
    y = data.empty(x.shape, np.float32)
    values[len(x) // 8](x, data.aligned(r, np.int32), y, DTYPE=TYPES[name], ROWS=8, COLS=COLS, device=device)
    inside = np.abs(x) < element.grid[-1]
    below, f = mode_oracle.cell(np.where(inside, x, 0), element)
    with np.errstate(invalid="ignore"):
        wanted = np.where(inside, np.copysign(element.grid[below + (f + r >= 256)], x), x).astype(np.float32)
    same_bits(y[inside], wanted[inside], name)
    check.same_values(y[~inside], wanted[~inside], name)


@dither.jit
def drawn(y, seed, offset, line, group, groups, SHAPE: dl.constexpr, AXIS: dl.constexpr, COLUMNWISE: dl.constexpr):
    r = dl.random_bits(seed, (line, group), SHAPE, groups, axis=AXIS, offset=offset, columnwise=COLUMNWISE)
    dl.store(y, (0, 0), r)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("columnwise", [False, True])
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize(
    ("seed", "offset", "line", "group", "groups"),
    [(42, 7, 0, 0, 3), (0, 0, 5, 2, 9), (-1, 2**40 + 3, 2**33 + 5, 2, 2**29 + 1), (2**63 - 1, -5, 2**31, 1, 3)],
)
def test_bits_of_a_part(seed, offset, line, group, groups, axis, columnwise, device):
    lines, count = 6, 3
    shape = (lines, 16 * count) if axis == 1 else (16 * count, lines)
    y = np.zeros(shape, np.int32)
    drawn[1](y, seed, offset, line, group, groups, SHAPE=shape, AXIS=axis, COLUMNWISE=columnwise, device=device)
    first = np.arange(line, line + lines, dtype=np.uint64)[:, None] * np.uint64(groups)
    words = mode_oracle.words(seed, offset, first + np.arange(group, group + count, dtype=np.uint64), columnwise)
    want = words.astype("<u4").view(np.uint8).reshape(lines, -1)
    assert (y == (want if axis == 1 else want.T)).all()


@dither.jit
def quantized(x, s, q, amax, seed, FMT: dl.constexpr, AXIS: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    g = dl.load(amax) if FMT.tensor_scale else None
    scale = dl.block_scale(t, FMT, axis=AXIS, amax=g)
    bits = dl.random_bits(seed, (r, c // 16), (ROWS, COLS), dl.cdiv(x.shape[1], 16))
    dl.store(q, (r, c), dl.cast(t, scale, FMT, axis=AXIS, amax=g, bits=bits))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tile", [(32, 128), (64, 32), (32, 256)])
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp6_e3m2", "mxint8"])
def test_casts(fmt, axis, tile, device):
    """Whatever the tile, each element has its bits by its place."""
    m, n, seed = 96, 224, 1234567
    x = data.adversarial(m, n, "bfloat16")
    x = data.aligned(np.where(np.isfinite(x.astype(np.float32)), x, x.dtype.type(1.5)))
    kind = getattr(dither, fmt.upper())
    q, found = codes_of(m, n, kind.element)
    peak = np.array(oracle.amax(x.astype(np.float32)), np.float32)
    grid = (-(-m // tile[0]), -(-n // tile[1]))
    quantized[grid](x, x, q, peak, seed, FMT=kind, AXIS=axis, ROWS=tile[0], COLS=tile[1], device=device)
    values = encoded_values(x.astype(np.float32), fmt, axis)
    r = mode_oracle.random_bits((m, n), seed, 0)
    element = mode_oracle.ELEMENTS[kind.element.mlir]
    same_bits(found(), mode_oracle.encode_stochastic(values, r, element), fmt)


def test_frequencies():
    """Of 2^16 elements between two values about as many round away as their place says: within six sigmas, which
    happens to all but one of 5e8 of such tests."""
    m, n = 256, 256
    for part in (0.125, 0.5, 0.8125):
        x = np.full((m, n), 1 + part / 8, np.float32)
        y = np.empty_like(x)

        @dither.jit
        def kernel(x, y, ROWS: dl.constexpr, COLS: dl.constexpr):
            r = dl.program_id(0) * ROWS
            bits = dl.random_bits(99, (r, 0), (ROWS, COLS), COLS // 16)
            dl.store(y, (r, 0), dl.stochastic_round(dl.load(x, (r, 0), (ROWS, COLS)), bits, dl.float8_e4m3))

        kernel[m // 8](x, y, ROWS=8, COLS=n)
        assert set(np.unique(y)) == {np.float32(1), np.float32(1.125)}
        away = int((y > 1).sum())
        assert abs(away - part * m * n) < 6 * np.sqrt(m * n * part * (1 - part))


WRONG = {
    "dl.stochastic_round(t, r, dl.bfloat16)": "dtype is bfloat16, expected one of float4_e2m1, float6_e2m3",
    "dl.stochastic_round(t, t, dl.float8_e4m3)": r"bits is .*, expected an int32 tile of shape \(8, 64\)",
    "dl.stochastic_round(t, dl.full((8, 1), 0, dl.int32), dl.float8_e4m3)": r"expected an int32 tile of shape \(8, 64\)",
    "dl.random_bits(7, (0, 0), (8, 24), 2)": "axis 1 of shape has 24 elements, expected whole groups of 16",
    "dl.random_bits(7, 0, (8, 32), 2)": "at is .*, expected a line and a group",
    "dl.random_bits(7, (0, 0.5), (8, 32), 2)": "group is .*, expected an integer",
    "dl.random_bits(0.5, (0, 0), (8, 32), 2)": "seed is .*, expected an integer of 64 bits",
    "dl.random_bits(2**64, (0, 0), (8, 32), 2)": "seed is .*, expected an integer of 64 bits",
    "dl.random_bits(7, (0, 0), (8, 32), t)": "groups is .*, expected an integer",
    "dl.random_bits(7, (0, 0), (32,), 2)": "expected two extents",
    "dl.random_bits(7, (0, 0), (8, 32), 2, columnwise=1)": "columnwise is 1, expected a constexpr bool",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls(call, tmp_path, monkeypatch):
    name = f"wrong_{list(WRONG).index(call)}"
    lines = ["import dither", "import dither.language as dl", "", "@dither.jit", "def kernel(x, y):"]
    lines += ["    t = dl.load(x, (0, 0), (8, 64))", "    r = dl.full((8, 64), 0, dl.int32)"]
    lines += [f"    dl.store(y, (0, 0), {call})", ""]
    (tmp_path / f"{name}.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    x = np.zeros((8, 64), np.float32)
    with pytest.raises(CompileError, match=WRONG[call]):
        __import__(name).kernel[1](x, x.copy())


@dither.jit
def of_columns(x, y, COLS: dl.constexpr):
    r = dl.program_id(0) * 2
    most = dl.amax(dl.load(x, (r, 0), (2, COLS)), 0)
    s = dl.block_scale(most, dither.MXFP8_E4M3, axis=1)
    bits = dl.random_bits(7, (r, 0), (1, COLS), COLS // 16)
    dl.store(y, (dl.program_id(0), 0), dl.cast(most, s, dither.MXFP8_E4M3, axis=1, bits=bits))


@pytest.mark.parametrize("cols", [64, 96, 320, 2048])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_bits_of_what_all_rows_decide(rows, cols):
    """Each block of 16 has its own, also of a program whose rows are past the end: memory of a band has neither."""
    x = np.random.default_rng(0).standard_normal((rows, cols), np.float32)
    found, want = (np.zeros((4, cols), ml_dtypes.float8_e4m3fn) for _ in range(2))
    of_columns[(4,)](x, found, COLS=cols)
    of_columns[(4,)](x, want, COLS=cols, device="sim:sm_90a")
    assert found.tobytes() == want.tobytes()
    whole = dither.quantize(np.abs(x[:1]), "mxfp8_e4m3", rounding="stochastic", seed=7) if rows == 1 else None
    assert whole is None or np.asarray(whole.data).tobytes() == found[:1].tobytes()
