"""What is hashed: every operator in every format, layout and type, and every function of the language."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import dither
import ml_dtypes
import numpy as np
from golden import functions
from ops import data
from ops.check import FORMATS, LAYOUTS, SCALE_LAYOUTS, array, parts

#: Runs on a device and gives all that it wrote.
Case = Callable[[str], list[np.ndarray]]

SHAPE = (96, 128)
RAGGED = (37, 100)
DTYPES = ("float32", "bfloat16", "float16")
NARROW = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float6_e2m3": ml_dtypes.float6_e2m3fn,
    "float6_e3m2": ml_dtypes.float6_e3m2fn,
    "int8": np.int8,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
NUMPY = {**data.DTYPES, "int32": np.int32, "int64": np.int64}
ROUNDINGS = ("rceil", "floor", "ceil", "even")
ORDERS = ("te", "div6_mul", "div6_div")


def cases() -> Iterator[tuple[str, Case]]:
    """All of them; names are unique."""
    yield from _operators()
    yield from _fused()
    yield from _elementwise()
    yield from _conversions()
    yield from _tiles()


def _operators() -> Iterator[tuple[str, Case]]:
    for shape in (SHAPE, RAGGED):
        for dtype in DTYPES:
            x = data.adversarial(*shape, dtype, seed=7)
            gamma = data.normal(1, shape[1], dtype, seed=8)[0]
            at = f"{shape[0]}x{shape[1]} {dtype}"
            yield f"amax {at}", functools.partial(_amax, x)
            yield f"rms_norm {at}", functools.partial(_rms_norm, x, gamma)
            for fmt in FORMATS:
                for layout in LAYOUTS:
                    for scales in SCALE_LAYOUTS:
                        what = f"{fmt} {layout} {scales} {at}"
                        yield f"quantize {what}", functools.partial(_quantize, x, fmt, layout, scales)
                        more = {"format": fmt, "layout": layout, "scale_layout": scales}
                        yield f"rms_norm {what}", functools.partial(_rms_norm, x, gamma, **more)
                yield f"dequantize {fmt} {at}", functools.partial(_dequantize, x, fmt, dtype)
    x = data.adversarial(*SHAPE, seed=9)
    for fmt in FORMATS:
        choices = {"order": ORDERS} if fmt == "nvfp4" else {"scale_rounding": ROUNDINGS}
        for name, values in choices.items():
            for value in values:
                variant = dither.formats.FORMATS[fmt].with_(**{name: value})
                yield f"quantize {fmt} {name} {value}", functools.partial(_quantize, x, variant, "both", "linear")


def _fused() -> Iterator[tuple[str, Case]]:
    """Operators that are a producer and a row of the library's table."""
    m, n = RAGGED
    for dtype in DTYPES:
        x, gate = data.adversarial(m, n, dtype, seed=7), data.normal(m, n, dtype, seed=10)
        gamma, beta = (data.normal(1, n, dtype, seed=seed)[0] for seed in (8, 9))
        calls = {
            "layer_norm": functools.partial(dither.layer_norm, x, gamma, beta, 1e-5),
            "swiglu": functools.partial(dither.swiglu, gate, x),
        }
        for name, call in calls.items():
            yield f"{name} {m}x{n} {dtype}", functools.partial(_results, call)
            for fmt in FORMATS:
                for layout in LAYOUTS:
                    named = functools.partial(call, format=fmt, layout=layout)
                    yield f"{name} {fmt} {layout} {m}x{n} {dtype}", functools.partial(_results, named)


def _results(call: Callable[..., object], device: str) -> list[np.ndarray]:
    result = call(device=device, return_amax=True)
    out, *besides = result
    stored = _stored(out) if isinstance(out, (dither.ScaledTensor1x, dither.ScaledTensor2x)) else [array(out)]
    return [*stored, *map(array, besides)]


def _stored(result: object) -> list[np.ndarray]:
    return [array(a) for part in parts(result) for a in (part.data, part.scale_inv, part.amax) if a is not None]


def _quantize(x: np.ndarray, fmt: object, layout: str, scales: str, device: str) -> list[np.ndarray]:
    return _stored(dither.quantize(x, fmt, layout, scales, device=device))


def _dequantize(x: np.ndarray, fmt: str, dtype: str, device: str) -> list[np.ndarray]:
    both = dither.quantize(x, fmt, "both", device=device)
    to = getattr(dither, dtype)
    return [array(dither.dequantize(part, to, device=device)) for part in parts(both)]


def _amax(x: np.ndarray, device: str) -> list[np.ndarray]:
    return [array(dither.quantize(x, "nvfp4", device=device).amax)]


def _rms_norm(x: np.ndarray, gamma: np.ndarray, device: str, **options: object) -> list[np.ndarray]:
    result = dither.rms_norm(x, gamma, device=device, **options)
    written = [array(result.rsigma)]
    return [*written, *(_stored(result.out) if options else [array(result.out)])]


def _kernel(kernel: object, inputs: dict[str, object], outputs: dict[str, np.ndarray], grid: int = 1, **constexprs):
    def run(device: str) -> list[np.ndarray]:
        written = {name: array.copy() for name, array in outputs.items()}
        kernel[grid,](**inputs, **{n: _view(a) for n, a in written.items()}, **constexprs, device=device)
        return list(written.values())

    return run


def _view(a: np.ndarray) -> object:
    """Bytes are FP4 codes."""
    return dither.view(a, dither.float4_e2m1) if a.dtype == np.uint8 else a


def _all_halves(dtype: str) -> np.ndarray:
    """Every value of a type of 16 bits."""
    return data.aligned(np.arange(65536, dtype=np.uint16).view(NUMPY[dtype]).reshape(256, 256))


def _elementwise() -> Iterator[tuple[str, Case]]:
    for dtype in DTYPES:
        x = _all_halves("bfloat16").astype(np.float32) if dtype == "float32" else _all_halves(dtype)
        for f, function in functions.UNARY.items():
            out = {"y": np.zeros(x.shape, np.float32)}
            yield f"{f} {dtype}", _kernel(functions.unary, {"x": x}, out, F=function, SHAPE=x.shape)
        a, b = (data.adversarial(64, 96, dtype, seed=seed) for seed in (1, 2))
        b[::3] = a[::3]
        for f in functions.BINARY:
            out = {"y": np.zeros(a.shape, np.float32)}
            yield f"{f} {dtype}", _kernel(functions.binary, {"a": a, "b": b}, out, F=f, SHAPE=a.shape)
    for dtype in ("int32", "int64"):
        limits = np.iinfo(dtype)
        edges = np.array([0, 1, -1, 2, 3, -7, 10, limits.max, limits.min, limits.min + 1, 12345, -98765], dtype)
        a, b = (np.ascontiguousarray(m) for m in np.meshgrid(edges, edges, indexing="ij"))
        for f in functions.INTEGER:
            out = {"y": np.zeros_like(a)}
            yield f"{f} {dtype}", _kernel(functions.binary, {"a": a, "b": b}, out, F=f, SHAPE=a.shape)


def _conversions() -> Iterator[tuple[str, Case]]:
    sources: dict[str, np.ndarray] = {"float32": data.adversarial(64, 96, seed=3)}
    sources |= {dtype: _all_halves(dtype) for dtype in ("bfloat16", "float16")}
    for name, kind in NARROW.items():
        sources[name] = np.arange(256, dtype=np.uint8).view(kind).reshape(16, 16)
    for name in ("int32", "int64"):
        edges = np.array([0, 1, -1, 255, 2049, -70000, 16777217, -33554435], name)
        sources[name] = np.resize(edges, (4, 8))
    targets = {**NUMPY, **NARROW}
    for source, x in sources.items():
        for target, kind in targets.items():
            if target == source or (target in ("int32", "int64") and source not in ("int32", "int64")):
                continue
            if source in ("int32", "int64", *NARROW) and target in NARROW:
                continue
            to = getattr(dither, target)
            for rounding in ("rceil", "floor") if target == "e8m0" else (None,):
                given = {"TO": to, "ROUNDING": rounding, "SHAPE": x.shape}
                name = f"{source} to {target}{f' {rounding}' if rounding else ''}"
                yield name, _kernel(functions.convert, {"x": x}, {"y": np.zeros(x.shape, kind)}, **given)


def _tiles() -> Iterator[tuple[str, Case]]:
    x = data.adversarial(64, 96, seed=4)
    for dtype in DTYPES:
        t = data.aligned(x, data.DTYPES[dtype])
        for f in functions.REDUCTIONS:
            for axis in (0, 1):
                y = np.zeros((1, 96) if axis == 0 else (64, 1), np.float32)
                name = f"{f} axis {axis} {dtype}"
                yield name, _kernel(functions.reduction, {"x": t}, {"y": y}, F=f, AXIS=axis, SHAPE=t.shape)
        for fmt in FORMATS:
            format = dither.formats.FORMATS[fmt]
            for axis in (0, 1):
                extents = (64 // format.block, 96) if axis == 0 else (64, 96 // format.block)
                four = format.element is dither.float4_e2m1
                outputs = {
                    "q": np.zeros((64, 48), np.uint8) if four else np.zeros((64, 96), NARROW[str(format.element)]),
                    "s": np.zeros(extents, NARROW[str(format.scale)]),
                    "y": np.zeros((64, 96), np.float32),
                }
                amax = np.array(448.0, np.float32) if format.tensor_scale else None
                given = {"x": t, "amax": amax}
                name = f"blocks {fmt} axis {axis} {dtype}"
                yield name, _kernel(functions.blocks, given, outputs, FMT=fmt, AXIS=axis, SHAPE=t.shape)
    gamma = data.normal(1, 96, seed=5)[0]
    for centered in (False, True):
        out = {"y": np.zeros((64, 96), np.float32), "rsigma": np.zeros((64, 1), np.float32)}
        given = {"x": x, "gamma": gamma}
        yield f"norm {centered}", _kernel(functions.norm, given, out, ZERO_CENTERED=centered, SHAPE=x.shape)
    yield "atomic_max", _kernel(functions.most, {"x": x}, {"y": np.zeros((1, 96), np.float32)}, 2, SHAPE=(32, 96))
    out = {"y": np.zeros((96, 64), np.float32), "z": np.zeros((2, 64), np.float32)}
    yield "moved", _kernel(functions.moved, {"x": x}, out, SHAPE=x.shape)
