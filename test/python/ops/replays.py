"""Calls of operators, and whether they are run as earlier ones like them were."""

import dataclasses
import inspect

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import frameworks
from ops import data

torch = pytest.importorskip("torch")

F32 = np.float32
#: Types that torch does not take from NumPy.
NAMES = {np.dtype(getattr(ml_dtypes, name)): name for name in ("bfloat16", "float8_e8m0fnu")}
#: Calls until one is run as an earlier one: the first is seen, the second recorded.
UNTIL = 2


@pytest.fixture(autouse=True)
def nothing_recorded():
    """What earlier tests called counts for how much is recorded."""
    for operator in frameworks._operators.values():
        owner = operator.own if inspect.isfunction(operator) else operator
        if getattr(owner, "replays", None) is not None:
            owner.replays = None


def replays_of(operator):
    """What is known of an operator's calls; None before its first."""
    find = (operator.__wrapped__.own if inspect.isfunction(operator) else operator).replays
    return None if find is None else find.__self__


def in_python(operator):
    """An operator whose calls Python runs."""
    if inspect.isfunction(operator):
        return operator.__wrapped__
    return lambda *args, **kwargs: type(operator).__call__.__wrapped__(operator, *args, **kwargs)


def hits(operator):
    """How many of its calls took no Python."""
    known = replays_of(operator)
    return 0 if known is None else known.hits


def of(library, array):
    """An array of NumPy as one of a library."""
    if library == "numpy":
        return array
    name = NAMES.get(array.dtype)
    return (
        torch.from_numpy(array.view(f"u{array.itemsize}")).view(getattr(torch, name))
        if name
        else torch.from_numpy(array)
    )


def bytes_of(tensor):
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().tobytes()


def same(a, b):
    """Whether two results are alike: types, shapes, strides, bits, and all else."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.shape, a.stride(), a.dtype, a.device) == (b.shape, b.stride(), b.dtype, b.device)
        assert a.requires_grad == b.requires_grad and a.is_inference() == b.is_inference()
        assert bytes_of(a) == bytes_of(b)
    elif isinstance(a, np.ndarray):
        assert (a.shape, a.strides, a.dtype, a.flags.writeable) == (b.shape, b.strides, b.dtype, b.flags.writeable)
        assert a.ctypes.data % 64 == b.ctypes.data % 64 == 0
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif dataclasses.is_dataclass(a) and not isinstance(a, (dither.Format, dither.DType)):
        assert vars(a).keys() == vars(b).keys()
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name))
    else:
        assert a is b or a == b


@dither.fuse(saves={"sums": "column_sum"})
def doubled(x, bias: dl.row):
    t = x * 2.0 + bias
    return t, t


X = data.normal(6, 64, "bfloat16")
Y = data.normal(6, 64, "bfloat16", seed=1)
ROW = data.normal(1, 64, "float32", seed=2)[0]
DEEP = data.normal(6, 64, "float32").reshape(2, 3, 64)
WIDE = data.normal(6, 128, "float32")
SQUARE = data.normal(32, 32, "bfloat16")
SCALES = data.aligned(np.arange(96).reshape(6, 16), np.uint8).view(ml_dtypes.float8_e8m0fnu)
NUMBER, LARGER = np.array(4.0, F32), np.array(5.0, F32)
MEAN, RSIGMA = np.zeros(6, F32), np.ones(6, F32)

CALLS = {
    "mxfp8": (dither.quantize, (X, "mxfp8_e4m3"), {}),
    "mxfp4 both": (dither.quantize, (X, dither.MXFP4, "both"), {"scale_layout": "128x4"}),
    "nvfp4": (dither.quantize, (X, "nvfp4", "both"), {}),
    "nvfp4 of an amax": (dither.quantize, (X, "nvfp4"), {"amax": 4.0}),
    "nvfp4 of an amax in memory": (dither.quantize, (X, "nvfp4"), {"amax": NUMBER}),
    "norm of an amax": (dither.rms_norm, (X, ROW), {"eps": 1e-6, "format": "nvfp4", "amax": NUMBER}),
    "mxfp6": (dither.quantize, (X, "mxfp6_e2m3"), {}),
    "fp8 of a tensor": (dither.quantize, (X, "fp8_tensor_e4m3", "both"), {}),
    "delayed": (dither.quantize, (X, "fp8_tensor_e4m3"), {"encode_scale": 2.0}),
    "delayed, in memory": (dither.quantize, (X, "fp8_tensor_e4m3", "both"), {"encode_scale": NUMBER}),
    "decoded by a scale": (dither.quantize, (X, "nvfp4"), {"decode_scale": NUMBER}),
    "blocks": (dither.quantize, (WIDE, "fp8_128x128_e4m3"), {}),
    "stochastic": (dither.quantize, (X, "nvfp4"), {"rounding": "stochastic", "seed": 7}),
    "transform": (dither.quantize, (SQUARE, "nvfp4", "both"), {"transform": dither.RandomHadamard(16, 5)}),
    "three dimensions": (dither.quantize, (DEEP, "mxfp8_e4m3"), {"flatten_axis": 1}),
    "strided": (dither.quantize, (WIDE[:, :64], "mxfp8_e4m3"), {}),
    "cast and transpose": (dither.cast_transpose, (X,), {}),
    "transpose": (dither.transpose, (X,), {}),
    "amax": (dither.amax, (X,), {}),
    "gelu": (dither.gelu, (DEEP,), {}),
    "gelu of a form": (dither.gelu, (X,), {"approximate": "none", "format": "mxfp8_e5m2", "return_amax": True}),
    "dbias_dgelu": (dither.dbias_dgelu, (X, Y), {"format": "mxfp8_e4m3"}),
    "swiglu": (dither.swiglu, (X, Y), {}),
    "swiglu of halves": (dither.swiglu, (WIDE,), {"format": "nvfp4"}),
    "dswiglu": (dither.dswiglu, (X, Y, X), {}),
    "rms_norm": (dither.rms_norm, (X, ROW), {"eps": 1e-6, "format": "mxfp8_e4m3"}),
    "layer_norm": (dither.layer_norm, (X, ROW, ROW), {}),
    "rms_norm_backward": (dither.rms_norm_backward, (X, Y, RSIGMA, ROW), {}),
    "layer_norm_backward": (dither.layer_norm_backward, (X, Y, MEAN, RSIGMA, ROW), {}),
    "add_rms_norm": (dither.add_rms_norm, (X, Y, ROW), {}),
    "softmax": (dither.softmax, (X,), {}),
    "a user's": (doubled, (X, ROW), {"format": "mxfp8_e4m3"}),
    "swizzle": (dither.swizzle_scales, (SCALES,), {}),
    "many": (dither.quantize_many, ([X, Y], "mxfp8_e4m3"), {}),
    "many of an amax": (dither.quantize_many, ([X, Y], "nvfp4"), {"amax": [NUMBER, LARGER]}),
}
LIBRARIES = ("numpy", "torch")


def turned(value):
    """Other values."""
    if isinstance(value, np.ndarray):
        return data.aligned(value.view(np.uint8)[::-1]).view(value.dtype)
    return list(map(turned, value)) if isinstance(value, list) else value


def made(library, value):
    if isinstance(value, np.ndarray):
        return of(library, value)
    return [made(library, each) for each in value] if isinstance(value, list) else value


def arrays_of(value):
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return [value]
    if isinstance(value, tuple):
        return [array for each in value for array in arrays_of(each)]
    if isinstance(value, dither.ScaledTensor2x):
        return [*arrays_of(value.rowwise), *arrays_of(value.colwise)]
    return [value.data, value.scale_inv] if isinstance(value, dither.ScaledTensor1x) else []


def warm(operator, *args, **kwargs):
    """Calls until one is run as an earlier one."""
    for _ in range(UNTIL + 1):
        result = operator(*args, **kwargs)
    return result


def is_replayed(operator, *args, **kwargs):
    before = hits(operator)
    operator(*args, **kwargs)
    return hits(operator) > before


def resized(value, own, rows):
    """A value whose arrays with as many rows as `own` have others, of the same elements again and again."""
    if isinstance(value, list):
        return [resized(each, own, rows) for each in value]
    if not isinstance(value, np.ndarray) or not value.ndim or value.shape[0] != own:
        return value
    flat = np.resize(value.view(f"u{value.itemsize}"), (rows, *value.shape[1:]))
    return data.aligned(flat).view(value.dtype)
