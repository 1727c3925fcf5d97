"""Values that nobody can mean, for every argument of the public interface: each works or is an error in our words."""

import dataclasses
import re

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.devices import get_device

X = np.ones((4, 64), np.float32)
GAMMA = np.ones(64, np.float32)
BAD = {
    "None": None,
    "int": 3,
    "negative": -1,
    "text": "x",
    "bytes": b"x",
    "float": 1.5,
    "list": [],
    "tuple": (),
    "dict": {},
    "object": object(),
    "numpy": np.int64(3),
    "nan": float("nan"),
    "bool": True,
    "huge": 2**70,
    "function": lambda *unused: 1,
    "type": int,
    "empty array": np.zeros(0),
    "array": np.zeros((2, 2, 2, 2), np.float32),
    "surrogate": "\udc80",
    "null byte": "a\0b",
}
#: Words of Python, NumPy and pybind11 for a value that they did not expect.
RAW = re.compile(
    "incompatible function|argument must be|object is not|has no attribute|unhashable|unsupported operand|"
    "not supported between|cannot unpack|required positional|has no len|cannot be interpreted|invalid literal|"
    "not iterable|Unable to cast|truth value|codec can't"
)


@dither.jit
def scale(x, y, factor, N: dl.constexpr = 64):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (4, N)) * factor)


def launch(**given):
    arguments = {"x": X, "y": X.copy(), "factor": 2.0, **given}
    scale.launch(1, **arguments)


PREPARED = scale.prepare(1, X, X.copy(), 2.0)
QUANTIZED = dither.quantize(X, "nvfp4")
FIELDS = [field.name for field in dataclasses.fields(QUANTIZED)]


def replaced(name, value):
    return dataclasses.replace(QUANTIZED, **{name: value})


CALLS = {
    "grid": lambda bad: scale[bad](X, X.copy(), 1.0),
    "extent": lambda bad: scale[(1, bad)](X, X.copy(), 1.0),
    "function of the grid": lambda bad: scale[lambda call: bad](X, X.copy(), 1.0),
    "prepared grid": lambda bad: scale.prepare(bad, X, X.copy(), 1.0),
    "prepared tensor": lambda bad: PREPARED(bad, X.copy(), 1.0),
    "prepared number": lambda bad: PREPARED(X, X.copy(), bad),
    "target": lambda bad: scale.compile(X, X.copy(), 1.0, target=bad),
    "warps": lambda bad: scale.compile(X, X.copy(), 1.0, num_warps=bad),
    "quantized tensor": lambda bad: dither.quantize(bad, "nvfp4"),
    "dequantized tensor": lambda bad: dither.dequantize(bad),
    "data type of values": lambda bad: dither.dequantize(QUANTIZED, dtype=bad),
    "base of a view": lambda bad: launch(x=dither.view(bad, dither.float32)),
    "type of a view": lambda bad: dither.view(X, bad),
    "shape of a view": lambda bad: launch(x=dither.view(X, dither.float32, bad)),
    "shape of a view of codes": lambda bad: dither.view(X.view(np.uint8), dither.float4_e2m1, bad),
    "shapes of a view": lambda bad: dither.view(X, shapes=bad),
    "decorated": dither.jit,
    "warps of a kernel": lambda bad: dither.jit(num_warps=bad)(scale.fn),
    "shapes of a kernel": lambda bad: dither.jit(shapes=bad)(scale.fn),
    "shapes of a parameter": lambda bad: dither.jit(shapes={"x": bad})(scale.fn),
    "rounding of scales": lambda bad: dither.MXFP4.with_(scale_rounding=bad),
    "order": lambda bad: dither.NVFP4.with_(order=bad),
    "device": get_device,
    "type of a tensor": lambda bad: dither.TensorType(bad, (1, 2)),
    "shape of a tensor": lambda bad: dither.TensorType(dither.float32, bad),
    "extent of a tensor": lambda bad: dither.TensorType(dither.float32, (1, bad)),
    "strides of a tensor": lambda bad: dither.TensorType(dither.float32, (1, 2), bad),
    "alignment": lambda bad: dither.TensorType(dither.float32, (1, 2), align=bad),
    "type of a scalar": dither.ScalarType,
}
CALLS |= {f"launch, {name}": lambda bad, name=name: launch(**{name: bad}) for name in ("x", "y", "factor", "N")}
CALLS |= {
    f"launch, {name}": lambda bad, name=name: launch(**{name: bad})
    for name in ("device", "stream", "num_warps", "shapes")
}
CALLS |= {
    f"quantize, {name}": lambda bad, name=name: dither.quantize(X, **{"format": "nvfp4", name: bad})
    for name in ("format", "layout", "scale_layout", "amax", "device", "stream", "out")
}
CALLS |= {
    f"rms_norm, {name}": lambda bad, name=name: dither.rms_norm(X, **{"gamma": GAMMA, "format": "nvfp4", name: bad})
    for name in ("gamma", "eps", "format", "layout", "scale_layout", "amax", "device", "stream", "out")
}
CALLS |= {f"dequantize, {name}": lambda bad, name=name: dither.dequantize(replaced(name, bad)) for name in FIELDS}
CALLS |= {
    f"out, {name}": lambda bad, name=name: dither.quantize(X, "nvfp4", out=replaced(name, bad)) for name in FIELDS
}


@pytest.mark.parametrize("call", CALLS)
def test_values_that_nobody_can_mean(call):
    for name, value in BAD.items():
        for _ in range(2):
            try:
                CALLS[call](value)
            except (TypeError, ValueError, dither.CompileError) as error:
                assert str(error), f"{call}, {name}: no words"
                assert not RAW.search(str(error)), f"{call}, {name}: {error}"
            # What works before and after must not be hurt.
            launch()
