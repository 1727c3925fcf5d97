"""The hand-written kernels give the bits of the reference: what they are a limit of is the same work."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks import limit as limit_module

oracle = pytest.importorskip("oracle", reason="the NumPy reference, test/python/oracle.py")

BF16, F32 = ml_dtypes.bfloat16, np.float32
DTYPES = {"bf16": BF16, "f32": F32}
FORMATS = ("nvfp4", "mxfp8_e4m3", "mxfp4", "mxfp4_rceil")


def ties(table: np.ndarray) -> np.ndarray:
    """Every value of a format, every middle of two, and the fp32 neighbours of both, of both signs."""
    points = np.concatenate([table, (table[1:] + table[:-1]) / 2, [table[-1] * 1.5]]).astype(F32)
    points = np.concatenate([points, np.nextafter(points, F32(np.inf)), np.nextafter(points, F32(0))])
    return np.concatenate([points, -points])


def adversarial(kind: str, rows: int, cols: int, rng: np.random.Generator) -> np.ndarray:
    """fp32 data for a matrix; the caller rounds it to the input type."""
    x = rng.standard_normal((rows, cols)).astype(F32)
    blocks = x.reshape(-1, 16)
    if kind == "scaled":  # blocks of all magnitudes, down to subnormals
        x = np.ldexp(x, rng.integers(-149, 120, x.size // 16).repeat(16).reshape(x.shape)).astype(F32)
    elif kind == "bits":  # every bit pattern, NaN and infinities among them
        x = rng.integers(0, 2**32, x.shape, np.uint32).view(F32)
    elif kind == "finite bits":
        bits = rng.integers(0, 2**32, x.shape, np.uint32)
        x = np.where(bits >> 23 & 0xFF == 0xFF, bits & 0x80FFFFFF, bits).astype(np.uint32).view(F32)
    elif kind == "ties":  # decision points of all formats; the largest element of a block fixes its scale at one
        points = np.concatenate([ties(oracle.E2M1), ties(oracle.E4M3) / 64])
        x = rng.choice(points, x.shape)
        x.reshape(-1, 16)[:, 0] = rng.choice(np.array([6, 7, 4, 448 / 64], F32), len(blocks))
    elif kind == "zeros":
        x = np.where(rng.random(x.shape) < 0.9, np.copysign(F32(0), x), x * F32(1e-40))
        x[: rows // 2] = np.copysign(F32(0), x[: rows // 2])
    elif kind == "rare specials":
        where = rng.random(x.shape) < 1 / 500
        x[where] = rng.choice(np.array([np.nan, -np.nan, np.inf, -np.inf], F32), where.sum())
    elif kind == "powers":  # amax next to powers of two and to 448 times them
        steps = rng.integers(-3, 4, (len(blocks), 1))
        base = np.ldexp(
            rng.choice(np.array([1, 448, 6, 7], F32), (len(blocks), 1)), rng.integers(-130, 100, (len(blocks), 1))
        )
        near = (base.astype(F32).view(np.int32) + steps.astype(np.int32)).view(F32)
        x = (rng.uniform(-1, 1, blocks.shape).astype(F32) * near).reshape(x.shape)
        x.reshape(-1, 16)[:, 5] = near[:, 0]
    else:
        assert kind == "normal"
    return x


KINDS = ("normal", "scaled", "bits", "finite bits", "ties", "zeros", "rare specials", "powers")


def reference(x: np.ndarray, format: str, amax: np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Stored data and scales; rceil for MXFP4 is the formula of MXFP8 with the largest E2M1."""
    if format != "mxfp4_rceil":
        expected = oracle.quantize(x, format, 1, amax if format == "nvfp4" else None)
        return expected.data, expected.scale
    tiles = np.asarray(x).astype(F32).reshape(x.shape[0], -1, 32)
    with np.errstate(all="ignore"):
        scale = oracle.e8m0_rceil(oracle.amax(tiles, axis=2) * F32(F32(1) / F32(6)))
        codes = oracle.encode_e2m1(tiles * oracle.inverse_e8m0(scale)[:, :, None]).reshape(x.shape)
    return oracle.pack_fp4(codes), scale


def cast(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(x.astype(DTYPES[dtype]))


def outputs(x: np.ndarray, format: str) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = x.shape
    q = limit_module.empty((rows, cols if format == "mxfp8_e4m3" else cols // 2))
    scale = limit_module.empty((rows, cols // limit_module.BLOCK[format]))
    q[:], scale[:] = 0xA5, 0xA5
    return q, scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_quantize(limit, kind: str, format: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    # 1056 columns: whole groups and blocks left over
    x = cast(adversarial(kind, 48, 1056, rng), dtype)
    true = oracle.amax(x)
    seen: set[int] = set()
    for amax in {float(true), float(true) / 8, 1e-38, 3e38, 0.0, float("inf")} if format == "nvfp4" else {0.0}:
        q, scale = outputs(x, format)
        limit.quantize(x, format, amax, q, scale, threads=2)
        data, expected_scale = reference(x, format, F32(amax))
        np.testing.assert_array_equal(scale, expected_scale)
        np.testing.assert_array_equal(q, data)
        seen.update(np.unique(q).tolist())
    assert len(seen) > (2 if kind == "zeros" else 16), "the data says nothing"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_bf16(limit, format: str, dtype: str) -> None:
    """Every bf16 value as an element, in blocks whose scale it does not fix and in blocks whose scale it does."""
    every = np.arange(65536, dtype=np.uint32) << 16
    every = every.view(F32)
    beside = np.repeat(np.ldexp(F32(1.37), np.arange(-126, 128, 4)).astype(F32), 1024)
    x = cast(np.concatenate([every, beside, every[:65536]]).reshape(-1, 1024), dtype)
    shuffled = cast(np.random.default_rng(3).permutation(x.astype(F32).reshape(-1)).reshape(x.shape), dtype)
    for data in (x, shuffled):
        q, scale = outputs(data, format)
        limit.quantize(data, format, 3.0, q, scale)
        expected, expected_scale = reference(data, format, F32(3.0))
        np.testing.assert_array_equal(scale, expected_scale)
        np.testing.assert_array_equal(q, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_quantize_both(limit, kind: str, dtype: str) -> None:
    x = cast(adversarial(kind, 96, 1120, np.random.default_rng(11)), dtype)
    rows, cols = x.shape
    row_q, col_q = limit_module.empty(x.shape), limit_module.empty(x.shape)
    row_scale, col_scale = limit_module.empty((rows, cols // 32)), limit_module.empty((rows // 32, cols))
    limit.quantize_both(x, row_q, row_scale, col_q, col_scale, threads=2)
    row, column = (oracle.quantize(x, "mxfp8_e4m3", axis) for axis in (1, 0))
    np.testing.assert_array_equal(row_scale, row.scale)
    np.testing.assert_array_equal(row_q, row.data)
    np.testing.assert_array_equal(col_scale, column.scale)
    np.testing.assert_array_equal(col_q, column.data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", ("nvfp4", "mxfp8_e4m3"))
@pytest.mark.parametrize("cols", (32, 256, 288, 1024, 2080, 4096, 7168, 8192))
@pytest.mark.parametrize("round_intermediate", (False, True))
def test_rms_norm(limit, cols: int, format: str, dtype: str, round_intermediate: bool) -> None:
    rng = np.random.default_rng(cols)
    x = cast(adversarial("normal", 9, cols, rng), dtype)
    x[3] = 0
    x[4, 5] = np.inf
    x[5, 7] = np.nan
    gamma = cast(rng.standard_normal(cols), dtype)
    with np.errstate(all="ignore"):
        y, rsigma = oracle.rms_norm(x, gamma, 1e-5)
        if round_intermediate:
            y = y.astype(DTYPES[dtype])
    q, scale = outputs(x, format)
    got = np.full(len(x), 7, F32)
    limit.rms_norm(x, gamma, format, 1e-5, 3.0, q, scale, got, round_intermediate, threads=2)
    np.testing.assert_array_equal(got.view(np.uint32)[np.isfinite(got)], rsigma.view(np.uint32)[np.isfinite(rsigma)])
    data, expected_scale = reference(y, format, F32(3.0))
    np.testing.assert_array_equal(scale, expected_scale)
    np.testing.assert_array_equal(q, data)


def test_large_outputs_are_streamed(limit) -> None:
    """Past the size where stores are non-temporal, and with outputs that are not aligned for them."""
    x = cast(adversarial("normal", 512, 32768, np.random.default_rng(5)), "bf16")
    expected = oracle.quantize(x[-8:], "mxfp8_e4m3")
    for shift in (0, 1):
        q = limit_module.empty((x.size + shift,))[shift:].reshape(x.shape)
        scale = limit_module.empty((512, 1024))
        limit.quantize(x, "mxfp8_e4m3", 0.0, q, scale, threads=2)
        np.testing.assert_array_equal(q[-8:], expected.data)
        np.testing.assert_array_equal(scale[-8:], expected.scale)


def test_refuses_partial_blocks(limit) -> None:
    x = np.zeros((4, 40), F32)
    with pytest.raises(limit_module.LimitError, match="whole blocks"):
        limit.quantize(x, "mxfp8_e4m3", 0.0, np.zeros(160, np.uint8), np.zeros(5, np.uint8))
