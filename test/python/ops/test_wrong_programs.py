"""Wrong programs and wrong calls: the exact error of each, or the result that is defined for it."""

import dataclasses

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import CompileError, jit, view
from ops import data
from ops.check import FORMATS, NAN_CODE, array, check_quantized
from ops.dlpack import READ_ONLY, Producer

X = data.normal(64, 128)
Y = data.empty((64, 128), np.float32)
GAMMA = data.normal(1, 128, seed=1)[0]
FORMAT_NAMES = ", ".join(dither.formats.FORMATS)


def error_of(call, kind):
    with pytest.raises(kind) as info:
        call()
    return str(info.value)


# -- kernels -------------------------------------------------------------------------------------


@jit
def rank(x, y):
    dl.load(x, (0,), (64,))  # shape has 1 entries, expected 2: 'x' has rank 2


@jit
def rank_of_a_store(x, y):
    dl.store(y, (0,), dl.load(x, (0, 0), (64, 128)))  # offset has 1 entries, expected 2: one for each dimension


@jit
def unknown_format(x, y):
    dl.block_scale(
        dl.load(x, (0, 0), (64, 128)),
        "nvpf4",  # unknown format 'nvpf4', expected FORMAT_NAMES; did you mean 'nvfp4'?
    )


@jit
def block_across_rows(x, y):
    t = dl.load(x, (0, 0), (64, 48))
    dl.block_scale(t, "mxfp4")  # dimension 1 of the tile has extent 48, expected a multiple of 32, the block of mxfp4


@jit
def block_down_columns(x, y):
    t = dl.load(x, (0, 0), (24, 64))
    dl.block_scale(  # dimension 0 of the tile has extent 24, expected a multiple of 16, the block of nvfp4
        t, "nvfp4", axis=0, amax=1.0
    )


@jit
def axis(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    dl.block_scale(t, "mxfp4", axis=2)  # axis is 2, expected -2 to 1


@jit
def axis_of_a_sum(x, y):
    dl.sum(dl.load(x, (0, 0), (64, 128)), -3)  # axis is -3, expected -2 to 1


@jit
def unsupported_with(x, y):
    with open("x"):  # 'with' is not supported in a kernel
        pass


@jit
def unsupported_while(x, y):
    while True:  # 'while' is not supported in a kernel: use 'for i in range(..)'
        pass


@jit
def stored_type(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    dl.store(y, (0, 0), t.to(dl.bfloat16))  # value is bfloat16, but 'y' is float32: convert with .to(dl.float32)


@jit
def shape_at_run_time(x, y):
    n = dl.program_id(0) + 1
    dl.load(x, (0, 0), (n, 128))  # entry 0 of shape is an index scalar, expected a constexpr integer


@jit
def extent_at_run_time(x, y):
    dl.load(x, (0, 0), (x.shape[0], 128))  # entry 0 of shape is an index scalar, expected a constexpr integer


@jit
def without_amax(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    dl.block_scale(t, "nvfp4")  # nvfp4 has a tensor scale, expected amax=: the amax of the whole tensor


@jit
def with_amax(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    dl.block_scale(t, "mxfp4", amax=1.0)  # mxfp4 has no tensor scale, found amax


@jit
def scale_of_another_format(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    s = dl.block_scale(t, "mxfp4")
    dl.cast(t, s, "nvfp4", amax=1.0)  # scale is an e8m0 tile of shape (64, 4), expected float8_e4m3 for nvfp4


@jit
def scale_of_another_axis(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    s = dl.block_scale(t, "mxfp4", axis=0)
    dl.cast(t, s, "mxfp4", axis=1)  # scale has shape (2, 128), expected (64, 4) for mxfp4


@jit
def swizzle_of_values(x, y):
    t = dl.load(x, (0, 0), (64, 128))
    dl.store(y, (0, 0), t, layout=dl.swizzle_128x4)  # swizzle_128x4 of a tile of float32, expected float8_e4m3 or e8m0


@jit
def gamma_of_another_length(x, y):
    w = dl.full((64,), 1.0)
    dl.rms_norm(dl.load(x, (0, 0), (4, 128)), w, 1e-5)  # gamma has shape (64,), expected (128,)


WRONG = [
    rank,
    rank_of_a_store,
    unknown_format,
    block_across_rows,
    block_down_columns,
    axis,
    axis_of_a_sum,
    unsupported_with,
    unsupported_while,
    stored_type,
    shape_at_run_time,
    extent_at_run_time,
    without_amax,
    with_amax,
    scale_of_another_format,
    scale_of_another_axis,
    swizzle_of_values,
    gamma_of_another_length,
]


@pytest.mark.parametrize("kernel", WRONG, ids=lambda kernel: kernel.__name__)
def test_kernel(kernel):
    """The comment on a line is the error that a launch must give there."""
    with open(__file__) as file:
        lines = file.read().splitlines()
    first = kernel.fn.__code__.co_firstlineno
    expected, number = next(
        (line.partition("  # ")[2], i + 1) for i, line in enumerate(lines) if i >= first and "  # " in line
    )
    with pytest.raises(CompileError) as info:
        kernel[(1,)](X, Y)
    assert info.value.message == expected.replace("FORMAT_NAMES", FORMAT_NAMES)
    assert info.value.span.line == number
    assert info.value.span.file == __file__


@jit
def copy(x, y):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (64, 128)))


@jit
def some_rows(x, y, ROWS: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (ROWS, 128)))


@jit
def scales(x, y):
    s = dl.block_scale(dl.load(x, (0, 0), (64, 128)), "mxfp4")
    dl.store(y, (0, 0), s, layout=dl.swizzle_128x4)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


MISALIGNED = np.frombuffer(bytearray(64 * 128 * 4 + 64), np.uint8)[1:][: 64 * 128 * 4].view(np.float32).reshape(64, 128)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: copy(X, Y), TypeError, "kernel 'copy' was called without a grid, expected copy[grid](...)"),
        (lambda: copy[(1,)](X), TypeError, "kernel 'copy': missing a required argument: 'y'"),
        (lambda: copy[(1,)](X, Y, z=1), TypeError, "kernel 'copy': got an unexpected keyword argument 'z'"),
        (
            lambda: some_rows[(1,)](X, Y, ROW=4),
            TypeError,
            "kernel 'some_rows': got an unexpected keyword argument 'ROW'; did you mean 'ROWS'?",
        ),
        (lambda: copy[(1, 1, 1, 1)](X, Y), ValueError, "grid is (1, 1, 1, 1), expected one to three integers"),
        (lambda: copy[(-1,)](X, Y), ValueError, "grid is (-1,), expected no negative extent"),
        (
            lambda: copy[(1,)](X, read_only(Y)),
            ValueError,
            "argument 'y' is read-only, expected memory that 'copy' can write",
        ),
        (
            lambda: copy[(1,)](X, Producer(Y, (2, 32, 1), flags=READ_ONLY)),
            ValueError,
            "argument 'y' is read-only, expected memory that 'copy' can write",
        ),
        (
            lambda: copy[(1,)](X.astype(np.float64), Y),
            TypeError,
            "argument 'x' has data type float64, expected float32, bfloat16, float16, int32, int64 or a type of codes",
        ),
        (
            lambda: copy[(1,)](X, np.zeros((64, 128), np.uint8)),
            TypeError,
            "argument 'y' has data type uint8, expected a type of codes: dither.view(x, dtype) gives bytes their "
            "meaning",
        ),
        (
            lambda: copy[(1,)](X > 0, Y),
            TypeError,
            "argument 'x' has data type bool, expected float32, bfloat16, float16, int32, int64 or a type of codes: of "
            "a mask pass x.view('int8'), where m.to(dl.float32) != 0",
        ),
        (
            lambda: copy[(1,)](X[:, ::2], Y),
            ValueError,
            "argument 'x' has stride 2 along its last dimension, expected 1: make it contiguous first",
        ),
        (
            lambda: copy[(1,)](np.zeros((1, 1, 1, 1, 1), np.float32), Y),
            ValueError,
            "argument 'x' has rank 5, expected at most 4",
        ),
        (
            lambda: copy[(1,)](X, MISALIGNED),
            ValueError,
            "argument 'y' is at address MISALIGNED, expected a multiple of 4, the size of float32",
        ),
        (
            lambda: copy[(1,)](X, Y, device="gpu"),
            ValueError,
            "device 'gpu': unknown device 'gpu': expected cpu, cuda, cuda:N or sim:TARGET",
        ),
        (lambda: copy[(1,)](X, Y, num_warps=3), ValueError, "num_warps is 3, expected 1, 2, 4, 8, 16 or 32"),
        (lambda: jit(copy.fn, num_warps=64), ValueError, "num_warps is 64, expected 1, 2, 4, 8, 16 or 32"),
        (
            lambda: copy.compile(X, Y, target="sm_90"),
            ValueError,
            "unknown target 'sm_90', expected host, host:base, host:avx2, host:avx512, host:avx512vbmi, "
            "host:avx512fp16, host:neon, sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, "
            "sm_120a, sm_121a, sm_100a:ptx91, sm_103a:ptx91, sm_120a:ptx91, sm_121a:ptx91; did you mean 'sm_90a'?",
        ),
        (
            lambda: scales[(1,)](X, view(np.zeros((64, 4), np.uint8), dither.e8m0)),
            ValueError,
            "argument 'y' has shape (64, 4), expected rows in multiples of 128, the padding of swizzle_128x4",
        ),
        (
            lambda: scales[(1,)](X, view(np.zeros((128, 8), np.uint8)[:, :4], dither.e8m0)),
            ValueError,
            "argument 'y' has strides (8, 1), expected a dense tensor for swizzle_128x4",
        ),
        (lambda: view(X, "float32"), TypeError, "dtype is 'float32', expected a dither data type"),
        (
            lambda: copy[(1,)](X, view(X, dither.e8m0)),
            TypeError,
            "argument 'y': found float32, expected 8 bits for a view as e8m0",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_launch(call, kind, message):
    assert error_of(call, kind) == message.replace("MISALIGNED", f"{MISALIGNED.ctypes.data:#x}")


def test_too_few_columns_for_the_128x4_order():
    with pytest.raises(CompileError) as info:
        scales[(1,)](X, view(np.zeros((128, 3), np.uint8), dither.e8m0))
    assert info.value.message == ("swizzle_128x4 into dimension 1 of extent 3 of the tensor, expected a multiple of 4")


def test_too_few_rows_and_columns_are_not_written():
    """A store past the end of a tensor is defined: what lies outside is left out."""
    out = np.full((40, 100), -1, np.float32)
    small = out[:33, :90]
    copy[(1,)](X, small)
    assert (small == X[:33, :90]).all()
    assert (out[33:] == -1).all()
    assert (out[:, 90:] == -1).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90a"])
def test_target_without_instructions_for_a_format(target):
    """No cvt to FP4 or, before sm_89, to FP8: the bits are the same, from other instructions."""
    for fmt in FORMATS:
        x = data.adversarial(64, 128, "bfloat16")
        result = dither.quantize(x, fmt, amax=3.0 if fmt == "nvfp4" else None, device=f"sim:{target}")
        check_quantized(result, x, "rowwise", amax=np.float32(3) if fmt == "nvfp4" else None)


def test_more_threads_than_a_target_has():
    @jit
    def wide(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (64, 128)))

    assert wide.compile(X, Y, target="sm_90a", num_warps=32).image.num_threads == 1024


def test_code_for_another_target():
    """Code for one target does not load where there is another."""
    code = copy.compile(X, Y, target="sm_90a")
    cpu = dither.devices()[0]
    with pytest.raises(RuntimeError) as info:
        cpu.load(code.image)
    assert str(info.value) == f"kernel 'copy' is for 'sm_90a': this device runs '{cpu.target}' and below"


# -- operators -----------------------------------------------------------------------------------


def replaced(fmt="nvfp4", scale_layout="linear", **fields):
    out = dither.quantize(X, fmt, scale_layout=scale_layout)
    make = {name: value(array(getattr(out, name))) for name, value in fields.items()}
    return dataclasses.replace(out, **make)


Q = dither.quantize
F = "float32, bfloat16 or float16"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: Q(X[0, 0], "nvfp4"), TypeError, "argument 'x' is float32, expected an array"),
        (lambda: Q(X[0, :1].reshape(()), "nvfp4"), ValueError, "argument 'x' has rank 0, expected rows"),
        (lambda: Q([[1.0]], "nvfp4"), TypeError, "argument 'x' is list, expected an array"),
        (lambda: Q(X.astype(np.float64), "nvfp4"), TypeError, f"argument 'x' has data type float64, expected {F}"),
        (
            lambda: Q(X.astype(ml_dtypes.float8_e4m3fn), "nvfp4"),
            TypeError,
            f"argument 'x' has data type float8_e4m3, expected {F}",
        ),
        (
            lambda: Q(X, "nvpf4"),
            ValueError,
            f"unknown format 'nvpf4', expected {FORMAT_NAMES}; did you mean 'nvfp4'?",
        ),
        (lambda: Q(X, 4), TypeError, "found 4 as a format, expected a dither format or its name"),
        (lambda: Q(X, "nvfp4", "row"), ValueError, "layout is 'row', expected rowwise, colwise, both"),
        (
            lambda: Q(X, "nvfp4", scale_layout="swizzled"),
            ValueError,
            "scale_layout is 'swizzled', expected linear, 128x4, 8x4, column_major, packed",
        ),
        (
            lambda: Q(X, "mxfp4", amax=1.0),
            ValueError,
            "argument 'amax' was given, expected none: mxfp4 has no tensor scale",
        ),
        (
            lambda: Q(X, "nvfp4", amax="1"),
            TypeError,
            "argument 'amax' is a str, expected a number or a float32 array",
        ),
        (
            lambda: Q(X, "nvfp4", amax=np.zeros((), np.float16)),
            TypeError,
            "argument 'amax' has data type float16, expected float32",
        ),
        (
            lambda: Q(X, "nvfp4", amax=np.zeros(3, np.float32)),
            ValueError,
            "argument 'amax' has shape (3,), expected one element",
        ),
        (
            lambda: Q(MISALIGNED, "nvfp4"),
            ValueError,
            "argument 'x' is at address MISALIGNED, expected a multiple of 4, the size of float32",
        ),
        (
            lambda: Q(X, "nvfp4", "both", out=replaced()),
            TypeError,
            "argument 'out' is ScaledTensor1x, expected a ScaledTensor2x",
        ),
        (
            lambda: Q(X, "mxfp4", out=replaced()),
            ValueError,
            "argument 'out' is a ScaledTensor1x(nvfp4, rowwise, shape=(64, 128), dtype=float32), expected "
            "dither.MXFP4, rowwise, shape (64, 128), linear scales",
        ),
        (
            lambda: Q(X[:32], "nvfp4", out=replaced()),
            ValueError,
            "argument 'out' is a ScaledTensor1x(nvfp4, rowwise, shape=(64, 128), dtype=float32), expected "
            "dither.NVFP4, rowwise, shape (32, 128), linear scales",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(scale_inv=lambda s: s[:, :4])),
            ValueError,
            "argument 'out' has scale_inv of shape (64, 4), expected (64, 8)",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(scale_inv=lambda s: s[:60])),
            ValueError,
            "argument 'out' has scale_inv of shape (60, 8), expected (64, 8)",
        ),
        (
            lambda: Q(X, "nvfp4", scale_layout="128x4", out=replaced(scale_layout="128x4", scale_inv=lambda s: s[:64])),
            ValueError,
            "argument 'out' has scale_inv of shape (64, 8), expected (128, 8)",
        ),
        (
            lambda: Q(
                X,
                "nvfp4",
                scale_layout="128x4",
                out=replaced(scale_layout="128x4", scale_inv=lambda s: np.repeat(s, 2, 1)[:, :8]),
            ),
            ValueError,
            "argument 'out' has scale_inv with strides (16, 1), expected (8, 1)",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(data=lambda d: d[:60])),
            ValueError,
            "argument 'out' has data of shape (60, 64), expected (64, 64)",
        ),
        (
            lambda: Q(X, "mxfp8_e4m3", out=replaced("mxfp8_e4m3", data=lambda d: d.view(ml_dtypes.float8_e5m2))),
            TypeError,
            "argument 'out' has data of data type float8_e5m2, expected float8_e4m3 or uint8",
        ),
        (
            lambda: Q(
                X,
                "mxfp8_e4m3",
                scale_layout="packed",
                out=replaced("mxfp8_e4m3", scale_layout="packed", scale_inv=lambda s: s.astype(np.uint8)),
            ),
            TypeError,
            "argument 'out' has scale_inv of data type uint8, expected int32",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(data=read_only)),
            ValueError,
            "argument 'out' has read-only data, expected memory that can be written",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(scale_inv=read_only)),
            ValueError,
            "argument 'out' has read-only scale_inv, expected memory that can be written",
        ),
        (
            lambda: Q(X, "nvfp4", out=replaced(data=lambda d: d.tolist())),
            TypeError,
            "argument 'out' has data of type list, expected an array",
        ),
        (
            lambda: dither.rms_norm(X, GAMMA[:4]),
            ValueError,
            "argument 'gamma' has shape (4,), expected (128,)",
        ),
        (
            lambda: dither.rms_norm(X, GAMMA.astype(np.float64)),
            TypeError,
            f"argument 'gamma' has data type float64, expected {F}",
        ),
        (lambda: dither.rms_norm(X, [1.0]), TypeError, "argument 'gamma' is list, expected an array"),
        (
            lambda: dither.rms_norm(X, GAMMA, -1.0),
            ValueError,
            "argument 'eps' is -1.0, expected a finite number that is not negative",
        ),
        (
            lambda: dither.rms_norm(X, GAMMA, "a"),
            ValueError,
            "argument 'eps' is 'a', expected a finite number that is not negative",
        ),
        (
            lambda: dither.rms_norm(X[:, :0], GAMMA[:0]),
            ValueError,
            "argument 'x' has rows of no elements, expected at least one",
        ),
        (
            lambda: dither.rms_norm(X, GAMMA, amax=1.0),
            ValueError,
            "argument 'amax' was given without a format, expected one, or none of the two",
        ),
        (
            lambda: dither.rms_norm(X, GAMMA, format="mxfp4", amax=1.0),
            ValueError,
            "argument 'amax' was given, expected none: mxfp4 has no tensor scale",
        ),
        (
            lambda: dither.dequantize(X),
            TypeError,
            "argument 'x' is ndarray, expected a ScaledTensor1x or ScaledTensor2x",
        ),
        (
            lambda: dither.dequantize(replaced(), "float32"),
            TypeError,
            f"dtype is 'float32', expected {F}: an object, such as dither.float32 or numpy.float32, and no string",
        ),
        (
            lambda: dither.dequantize(replaced(), dither.float8_e4m3),
            TypeError,
            f"dtype is float8_e4m3, expected {F}",
        ),
        (
            lambda: dither.dequantize(replaced(scale_inv=lambda s: s[:, :4])),
            ValueError,
            "argument 'x' has scale_inv of shape (64, 4), expected (64, 8)",
        ),
        (
            lambda: dither.dequantize(replaced(amax=lambda a: None)),
            ValueError,
            "argument 'x' has no amax, expected a float32 array: nvfp4 has a tensor scale",
        ),
        (
            lambda: dither.MXFP4.with_(scale_rounding="flor"),
            ValueError,
            "scale_rounding is 'flor', expected rceil, floor, ceil, even; did you mean 'floor'?",
        ),
        (
            lambda: dither.NVFP4.with_(scale_rounding="floor"),
            ValueError,
            "nvfp4 has scales of float8_e4m3: scale_rounding is for e8m0 scales",
        ),
        (
            lambda: dither.MXFP4.with_(order="te"),
            ValueError,
            "mxfp4 has scales of e8m0: order is for float8_e4m3 and float32 scales",
        ),
    ],
    ids=lambda value: value[:70] if isinstance(value, str) else "",
)
def test_operator(call, kind, message):
    assert error_of(call, kind) == message.replace("MISALIGNED", f"{MISALIGNED.ctypes.data:#x}")


@pytest.mark.parametrize("fmt", FORMATS)
def test_blocks_of_nothing_but_nan(fmt):
    """Defined: amax and scale are those of zeros, and the codes NaN, or the largest in formats without one."""
    x = data.aligned(np.full((64, 128), np.nan, np.float32))
    result = dither.quantize(x, fmt)
    assert not array(result.scale_inv).view(np.uint8).any()
    assert set(array(result.data).view(np.uint8).ravel()) == {0x77 if fmt.endswith("fp4") else NAN_CODE[fmt]}
    if fmt == "nvfp4":
        assert result.amax == 0
    check_quantized(result, x, "rowwise", dequantize=np.float32)
