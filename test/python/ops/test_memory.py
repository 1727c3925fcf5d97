"""Where inputs and outputs may lie, and that nothing else is touched."""

import dataclasses
import mmap

import dither
import ml_dtypes
import numpy as np
import pytest
from dither.ops.scaled_tensor import ScaledTensor1x, ScaledTensor2x
from guarded import GUARD, Guarded
from ops import data
from ops.check import FORMATS, array, check_quantized, parts, same_bits

M, N = 37, 100


# -- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
def test_rows_apart(fmt):
    """Rows of a wider matrix, and every other row; what lies between must not be read as part of a block."""
    wide = data.normal(2 * M, N + 28, "bfloat16")
    wide[:, N:] = np.nan
    wide[1::2] = np.inf
    check_quantized(dither.quantize(wide[::2, :N], fmt, "both"), wide[::2, :N], "both")


@pytest.mark.parametrize("first", [1, 2, 7, 8])
def test_column_slices(first):
    """Slices that start anywhere: pointers are aligned to an element, to 16 bytes or to more."""
    wide = data.normal(M, 128, "bfloat16")
    x = wide[:, first : first + N]
    for fmt in ("nvfp4", "mxfp8_e4m3"):
        check_quantized(dither.quantize(x, fmt, "both"), x, "both")
    gamma = data.normal(1, N, seed=1)[0]
    same_bits(dither.rms_norm(x, gamma).out, dither.rms_norm(data.aligned(x), gamma).out)


def test_rows_backwards():
    x = data.normal(M, N)[::-1]
    check_quantized(dither.quantize(x, "mxfp8_e4m3", "both"), x, "both")


def test_one_row_for_all():
    """A row stride of 0."""
    x = np.broadcast_to(data.normal(1, N), (M, N))
    check_quantized(dither.quantize(x, "nvfp4", "both"), x, "both")


@pytest.mark.parametrize("x", [data.normal(N, M).T, data.normal(M, 2 * N)[:, ::2], data.normal(M, N)[:, ::-1]])
def test_columns_apart_are_copied(x):
    check_quantized(dither.quantize(x, "nvfp4", "both"), x, "both")
    gamma = data.normal(1, x.shape[1], seed=1)[0]
    same_bits(dither.rms_norm(x, gamma).out, dither.rms_norm(data.aligned(x), gamma).out)


def test_read_only_input():
    x = data.normal(M, N)
    x.flags.writeable = False
    check_quantized(dither.quantize(x, "nvfp4"), x, "rowwise")


# -- more than 2^31 elements ---------------------------------------------------------------------


def address_space(gibibytes):
    """Memory of zeros, of which only what is written takes any; skips where there is not even the space."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    try:
        return mmap.mmap(-1, gibibytes << 30, flags=flags)
    except OSError as error:
        pytest.skip(f"{gibibytes} GiB of address space are not to be had: {error}")


@pytest.fixture(scope="module")
def sparse():
    return address_space(20)


def far_rows(memory, rows, columns, dtype, start=0):
    """Rows more than 2^32 bytes, and where elements are of 2 bytes more than 2^31 elements, apart."""
    dtype = np.dtype(dtype)
    stride = (1 << 32) + 4096 + (64 if dtype.itemsize > 1 else 32)
    return np.ndarray((rows, columns), dtype, memory, start, (stride, dtype.itemsize))


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
def test_input_beyond_2_31_elements(sparse, fmt):
    x = far_rows(sparse, 4, N, ml_dtypes.bfloat16)
    assert x.strides[0] // 2 * 3 > 2**32
    x[:] = data.adversarial(4, N, "bfloat16")
    check_quantized(dither.quantize(x, fmt, "both"), x, "both")
    gamma = data.normal(1, N, seed=1)[0]
    same_bits(dither.rms_norm(x, gamma).out, dither.rms_norm(data.aligned(x), gamma).out)


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
def test_outputs_beyond_2_32_bytes(sparse, fmt):
    x = data.normal(4, N)
    like = dither.quantize(x, fmt)
    out = dataclasses.replace(
        like,
        data=far_rows(sparse, *array(like.data).shape, array(like.data).dtype, start=1 << 20),
        scale_inv=far_rows(sparse, *array(like.scale_inv).shape, array(like.scale_inv).dtype, start=1 << 21),
    )
    check_quantized(dither.quantize(x, fmt, out=out), x, "rowwise", dequantize=np.float32)


def test_dense_beyond_2_31_elements():
    """Every element of a dense tensor counts, the last too."""
    from dither.ops.quantize import QUANTIZE

    rows, columns = (1 << 19) + 1, 4096
    x = np.ndarray((rows, columns), ml_dtypes.bfloat16, address_space(5))
    assert x.size > 2**31
    x[-1, -1] = -7.5
    amax = np.zeros((), np.float32)
    named = {**QUANTIZE.absent, **QUANTIZE.choices({"x": x}), "out_amax": amax}
    QUANTIZE.kernel.launch((-(-rows // 8), 1), x=x, **named, ROWS=8, COLS=4096)
    assert amax == 7.5


# -- outputs -------------------------------------------------------------------------------------


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("scales", ["linear", "128x4"])
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("producer", ["quantize", "rms_norm"])
def test_nothing_beyond_the_outputs_is_written(producer, fmt, scales):
    """Outputs with guard bytes around every row, in shapes that end inside of tiles, blocks and bytes."""
    gamma = data.normal(1, 100, seed=1)[0]
    for m, n in ((37, 100), (33, 99)):
        x = data.normal(m, n)

        def run(out=None, x=x, n=n):
            if producer == "quantize":
                return dither.quantize(x, fmt, "both", scales, amax=3.0 if fmt == "nvfp4" else None, out=out)
            return dither.rms_norm(x, gamma[:n], format=fmt, layout="both", scale_layout=scales, out=out).out

        plain = run()
        guarded = [
            (Guarded(array(p.data), True), Guarded(array(p.scale_inv), scales == "linear")) for p in parts(plain)
        ]
        before = x.copy()
        outs = [
            dataclasses.replace(part, data=codes.array, scale_inv=scale.array)
            for part, (codes, scale) in zip(parts(plain), guarded, strict=True)
        ]
        found = run(ScaledTensor2x(*outs))
        for part, other, around in zip(parts(found), parts(plain), guarded, strict=True):
            assert part.data is around[0].array
            same_bits(part.data, other.data)
            same_bits(part.scale_inv, other.scale_inv)
            assert around[0].intact(), "codes"
            assert around[1].intact(), "scales"
        same_bits(x, before, "the input")


@pytest.mark.parametrize("colwise", [False, True])
@pytest.mark.parametrize("fmt", FORMATS)
def test_dequantize_writes_its_output_only(fmt, colwise):
    """dequantize makes its output itself: through its kernel, into guarded memory."""
    from dither import view
    from dither.ops import kernels

    q = dither.quantize(data.normal(37, 99), fmt, "colwise" if colwise else "rowwise")
    want = q.dequantize(dither.float32)
    rows, cols = (99, 37) if q.is_transposed else (37, 99)
    around = Guarded(array(want), True)
    kernels.dequantize_kernel[(1, 1)](
        view(q.data, q.format.element, (rows, cols)),
        view(q.scale_inv, q.format.scale),
        q.amax,
        around.array,
        FMT=q.format,
        BLOCK=q.format.block_extents(0 if colwise and not q.is_transposed else 1),
        AXIS=0 if colwise and not q.is_transposed else 1,
        TRANSPOSED=q.is_transposed,
        TRANSFORM=None,
        ACROSS=False,
        ROWS=128,
        COLS=128,
    )
    same_bits(around.array, want)
    assert around.intact()


def test_padding_is_zero_whatever_was_there():
    x = data.normal(37, 100)
    for fmt in FORMATS:
        out = dither.quantize(x, fmt, "both", "128x4")
        for part in parts(out):
            array(part.data).view(np.uint8)[:] = GUARD
            array(part.scale_inv).view(np.uint8)[:] = GUARD
        check_quantized(dither.quantize(x, fmt, "both", "128x4", out=out), x, "both", "128x4")


@pytest.mark.parametrize("layout", ["rowwise", "both"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_out_is_reused(fmt, layout):
    first, second = data.normal(37, 100, seed=1), data.normal(37, 100, seed=2)
    out = dither.quantize(first, fmt, layout)
    again = dither.quantize(second, fmt, layout, out=out)
    for a, b in zip(parts(out), parts(again), strict=True):
        assert isinstance(b, ScaledTensor1x)
        assert a.data is b.data
        assert a.scale_inv is b.scale_inv
    check_quantized(again, second, layout)


def test_results_do_not_share_memory():
    x = data.normal(37, 100)
    one, other = dither.quantize(x, "nvfp4", "both"), dither.quantize(x, "nvfp4", "both")
    arrays = [a for r in (one, other) for p in parts(r) for a in (p.data, p.scale_inv)] + [one.amax, other.amax, x]
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[i + 1 :])
