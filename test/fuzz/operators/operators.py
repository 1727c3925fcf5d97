"""Random calls of operators: what is drawn of a seed, and how results of two devices are compared.

What a call gives is compared to the byte, with the padding of scales, and fresh memory is filled with other bytes for
each device: what a kernel leaves out differs. A call may be refused, in words, by both devices, or by a GPU alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import dither
import ml_dtypes
import numpy as np
from dither.ops import allocate

FORMATS = (
    *("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4"),
    *("fp8_tensor_e4m3", "fp8_tensor_e5m2", "fp8_row_e4m3", "fp8_1x128_e4m3", "fp8_128x128_e4m3", "int8_row"),
)
#: Options of formats that have forms of their own in kernels.
FORMS: tuple[dict[str, Any], ...] = (
    *({}, {}, {}, {"tensor_scale_as": "decode"}, {"tensor_scale_as": "encode"}, {"tensor_scale": False}),
    *({"row_amax": True}, {"block": (16, 16)}, {"block": (32, 32)}, {"block": (1, 16)}, {"four_over_six": "mse"}),
)
ORDERS = ("linear", "linear", "128x4", "128x4", "8x4", "packed", "column_major")
ROWS = (1, 2, 3, 7, 16, 31, 32, 33, 64, 96, 100, 128, 130, 200)
COLUMNS = (
    *(1, 2, 8, 16, 17, 24, 32, 33, 48, 64, 80, 96, 100, 128, 136),
    *(160, 192, 200, 256, 288, 320, 384, 500, 640, 1056),
)
DTYPES = (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32, np.float16)
UNARY = ("gelu", "qgelu", "silu", "relu", "srelu", "sigmoid")
GATED = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")


@dataclasses.dataclass(frozen=True)
class Case:
    """A call: `call(device)` runs it; `text` says what it is. `all_written`: each byte of the result is written."""

    text: str
    call: Callable[[str], Any]
    all_written: bool = True


class Draw:
    """What random calls are made of."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def one(self, *of: Any) -> Any:
        return self.r.choice(of)

    def often(self, share: float) -> bool:
        return self.r.random() < share

    def shape(self) -> tuple[int, ...]:
        m, n = self.r.choice(ROWS), self.r.choice(COLUMNS)
        return (self.one(1, 2, 3), m, n) if self.often(0.1) and m < 100 else (m, n)

    def array(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Rows of different sizes, at times with numbers that are none, infinite, zero or the least there are."""
        dtype = self.r.choice(DTYPES) if dtype is None else dtype
        x = self.numbers.standard_normal(shape, np.float32)
        x *= np.exp2(self.numbers.integers(-6, 7, (*shape[:-1], 1))).astype(np.float32)
        if x.size and self.often(0.3):
            special = np.array([0.0, -0.0, 1e-40, -1e-30, 3e38, 448.0, 6.0, np.inf, -np.inf, np.nan], np.float32)
            count = self.r.choice([7, 7, 8, 10])
            at = self.numbers.integers(0, x.size, self.r.randint(1, 1 + x.size // 20))
            x.reshape(-1)[at] = self.numbers.choice(special[:count], at.size)
        if self.often(0.05):
            x = np.zeros_like(x)
        with np.errstate(all="ignore"):
            return x.astype(dtype)

    def format(self) -> Any:
        fmt = getattr(dither, self.r.choice(FORMATS).upper())
        form = self.r.choice(FORMS)
        try:
            return fmt.with_(**form)
        except (ValueError, TypeError):
            return fmt

    def options(self, n: int, fused: bool = False, record: bool = False) -> dict[str, Any]:
        """Of what quantizes rows of `n`, all of which a call takes, but for what a GPU says alone."""
        fmt = self.format()
        layout = self.one("rowwise", "rowwise", "colwise", "both", "both")
        found: dict[str, Any] = {"format": fmt, "layout": layout}
        orders = [order for order in ORDERS if _takes(fmt, order)]
        found["scale_layout"] = self.r.choice(orders)
        if self.often(0.2):
            found |= {"rounding": "stochastic", "seed": self.r.randint(0, 1 << 40), "offset": self.r.randint(0, 99)}
        size = self.one(16, 16, 32, 64, 128)
        if self.often(0.15) and n % size == 0:
            ways = {"rowwise": layout != "colwise", "colwise": layout != "rowwise"}
            if layout == "both" and self.often(0.5):
                ways["rowwise"] = False
            found["transform"] = dither.RandomHadamard(size, self.r.getrandbits(16), **ways)
        if self.often(0.3) and isinstance(fmt.block, tuple):
            found["repeat_scales"] = True
        if self.often(0.3) and not fused and fmt in (dither.NVFP4, dither.MXFP8_E4M3):
            found["numerics"] = self.one("te", "torchao", "nvfuser", "jax", "ocp")
        if self.often(0.3) and (fmt.tensor_scale or fmt.block == "tensor") and "transform" not in found:
            found["amax"] = np.float32(self.one(1.0, 3.5, 448.0, 0.0))
        if self.often(0.1) and not fmt.tensor_scale and fmt.block not in ("tensor", "row"):
            found |= {"record_amax": True} if record else {}
        elif fused and self.often(0.2):
            found["return_amax"] = True
        return found

    def sections(self, m: int) -> list[int]:
        """How many of `m` rows each of some parts has, which may be none."""
        cuts = [0, *sorted(self.r.randint(0, m) for _ in range(self.r.randint(0, 4))), m]
        return [b - a for a, b in itertools.pairwise(cuts)]

    def gated(self, shape: tuple[int, ...], two: bool, dtype: Any) -> list[Any]:
        """Two tensors, or one of both."""
        return (
            [self.array(shape, dtype) for _ in range(2)] if two else [self.array((*shape[:-1], 2 * shape[-1]), dtype)]
        )


def _takes(fmt: Any, order: str) -> bool:
    """Whether scales of a format have an order."""
    if order == "linear":
        return True
    if isinstance(fmt.block, str) or fmt.scale.name == "float32":
        return order == "column_major" and not isinstance(fmt.block, str)
    return order in ("128x4", "8x4") or fmt.scale.name == "e8m0"


def _fused(d: Draw, name: str, arrays: list[Any], named: dict[str, Any], n: int) -> Case:
    """A call of a fused operator, quantized or not."""
    options = d.options(n, fused=True, record=True) if d.often(0.75) else {}
    if not options and d.often(0.5) and name != "rms_norm":
        options["dtype"] = d.one(dither.bfloat16, dither.float32, dither.float16)
    if "gated" in named and d.often(0.2):
        options["interleave"] = d.one(1, 16, 32)
    named.pop("gated", None)
    return _case(f"dither.{name}", getattr(dither, name), arrays, {**named, **options})


def _case(text: str, fn: Any, arrays: list[Any], options: dict[str, Any]) -> Case:
    def call(device: str) -> Any:
        given = {k: np.zeros(1, np.float32) if k == "record_amax" else v for k, v in options.items()}
        result = fn(*arrays, **given, device=device)
        return result, given.get("record_amax")

    return Case(f"{text}({', '.join(map(_short, arrays))}, {_named(options)})", call)


def _named(options: dict[str, Any]) -> str:
    return ", ".join(f"{k}={_short(v)}" for k, v in options.items())


def _short(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)


def _ways(q: Any) -> list[Any]:
    """A quantized tensor along rows, along columns, or both."""
    return [q.rowwise, q.colwise] if isinstance(q, (dither.ScaledTensor2x, dither.GroupedScaledTensor2x)) else [q]


def draw(seed: int) -> Case:
    """The call of a seed."""
    d = Draw(seed)
    shape = d.shape()
    n = shape[-1]
    m = int(np.prod(shape[:-1]))
    kind = d.one(
        *("quantize",) * 3, *("unary", "dunary", "gated", "dgated"), *("norm",) * 2,
        *("backward", "softmax", "back", "back", "many", "split", "grouped", "grouped", "scales", "transpose", "rope"),
    )  # fmt: skip
    return _KINDS[kind](d, shape, m, n)


def _quantize(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    return _case("dither.quantize", dither.quantize, [d.array(shape)], d.options(n, record=True))


def _unary(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    x = d.array(shape)
    named = {"bias": d.array((n,), x.dtype)} if d.often(0.3) else {}
    return _fused(d, d.r.choice(UNARY), [x], named, n)


def _dunary(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    x = d.array(shape)
    return _fused(d, d.one("d", "dbias_d") + d.r.choice(UNARY[:5]), [d.array(shape, x.dtype), x], {}, n)


def _gated(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    name, two = d.r.choice(GATED), d.often(0.5)
    dtype = d.r.choice(DTYPES)
    named: dict[str, Any] = {} if two else {"gated": True}
    if d.often(0.3):
        named["factor"] = d.array(shape[:-1], np.float32)
    return _fused(d, name, d.gated(shape, two, dtype), named, n)


def _dgated(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    name, two = d.one("d", "d", "dbias_d", "dfactor_d") + d.r.choice(GATED), d.often(0.5)
    dtype = d.r.choice(DTYPES)
    grad = d.array(shape, dtype)
    named: dict[str, Any] = {} if two else {"gated": True}
    if d.often(0.3) or name.startswith("dfactor"):
        named["factor"] = d.array(shape[:-1], np.float32)
    return _fused(d, name, [grad, *d.gated(shape, two, dtype)], named, n)


def _norm(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    x = d.array(shape)
    gamma, beta = d.array((n,), d.one(x.dtype, np.float32)), d.array((n,), x.dtype)
    named = {"zero_centered_gamma": True} if d.often(0.2) else {}
    name = d.one("rms_norm", "rms_norm", "layer_norm", "add_rms_norm", "add_layer_norm")
    arrays = [x, *([d.array(shape, x.dtype)] if name.startswith("add") else []), gamma]
    return _fused(d, name, [*arrays, *([beta.astype(gamma.dtype)] if "layer" in name else [])], named, n)


def _backward(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    x = d.array(shape)
    dz, sigma, gamma = d.array(shape, x.dtype), np.abs(d.array(shape[:-1], np.float32)), d.array((n,), x.dtype)
    if d.often(0.5):
        return _fused(d, "rms_norm_backward", [dz, x, sigma, gamma], {}, n)
    return _fused(d, "layer_norm_backward", [dz, x, d.array(shape[:-1], np.float32), sigma, gamma], {}, n)


def _softmax(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    if d.often(0.4):
        x = d.array(shape)
        return _fused(d, "dsoftmax", [x, d.array(shape, x.dtype)], {}, n)
    return _fused(d, "softmax", [d.array(shape)], {"scale": 0.125} if d.often(0.5) else {}, n)


def _rope(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    heads, width = d.one(1, 2, 3), d.one(16, 32, 64, 96, 128)
    named = {"interleaved": True} if d.often(0.5) else {}
    angles = [d.array((m, width // 2), np.float32) for _ in range(2)]
    return _fused(d, d.one("rope", "drope"), [d.array((m, heads * width)), *angles], named, n)


def _back(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    """Of codes that the CPU made: to numbers, to MXFP8, to other scales."""
    options, x = d.options(n), d.array(shape)
    name = d.one("dequantize", "dequantize", "requantize")
    if options["format"] in (dither.FP8_1X128_E4M3, dither.FP8_128X128_E4M3):
        name = "as_mxfp8"
    own: dict[str, Any] = {}
    if name == "dequantize" and d.often(0.5):
        own["dtype"] = d.one(dither.bfloat16, dither.float32, dither.float16)
    if name == "dequantize" and "transform" in options and d.often(0.5):
        own["undo_transform"] = True
    if name != "dequantize" and d.often(0.5):
        own["scale_layout"] = d.r.choice(ORDERS)

    def call(device: str) -> Any:
        q = dither.quantize(x, **options, device="cpu")
        return [getattr(dither, name)(each, **own, device=device) for each in _ways(q)]

    return Case(f"dither.{name}(dither.quantize({_short(x)}, {_named({**options, **own})}))", call)


def _many(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    options = d.options(n)
    dtype = d.r.choice(DTYPES)
    xs = [d.array((d.r.choice(ROWS), d.one(n, d.r.choice(COLUMNS))), dtype) for _ in range(d.r.randint(1, 5))]
    return Case(
        f"dither.quantize_many([{', '.join(map(_short, xs))}], {_named(options)})",
        lambda device: dither.quantize_many(xs, **options, device=device),
    )


def _split(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    options = d.options(n)
    sections = d.sections(m)
    x = d.array((m, n))
    return Case(
        f"dither.split_quantize({_short(x)}, {sections}, {_named(options)})",
        lambda device: dither.split_quantize(x, sections, **options, device=device),
    )


def _grouped(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    options = d.options(n)
    options.pop("amax", None)
    sizes = np.array(d.sections(m), np.int64)
    x = d.array((m, n))
    if d.often(0.2):
        options["pad"] = d.one(16, 32, 128)
    back = d.often(0.5)

    def call(device: str) -> Any:
        q = dither.grouped_quantize(x, **options, group_sizes=sizes, device="cpu" if back else device)
        if not back:
            return q
        return [dither.grouped_dequantize(each, device=device) for each in _ways(q)]

    name = "dither.grouped_dequantize of " if back else ""
    text = f"{name}dither.grouped_quantize({_short(x)}, group_sizes={sizes.tolist()}, {_named(options)})"
    # Of two codes to a byte along columns, groups of odd sizes have room for more than there are.
    return Case(text, call, all_written=options["format"].element.bits != 4)


def _scales(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    """Orders of scales, and back."""
    order = d.one("128x4", "8x4", "packed", "column_major")
    scales = d.numbers.integers(0, 255, (m, n), np.uint8)
    scales = scales.view(ml_dtypes.float8_e8m0fnu if d.often(0.7) else ml_dtypes.float8_e4m3fn)
    if order == "column_major" and d.often(0.5):
        scales = d.array((m, n), np.float32)

    def call(device: str) -> Any:
        ordered = dither.swizzle_scales(scales, order, device=device)
        here = dither.swizzle_scales(scales, order, device="cpu")
        padded = dither.pad_scales(scales, device=device)
        return ordered, dither.unswizzle_scales(here, (m, n), order, device=device), padded

    return Case(f"dither.swizzle_scales({scales.dtype}{[m, n]}, {order})", call)


def _transpose(d: Draw, shape: tuple[int, ...], m: int, n: int) -> Case:
    dtype = d.one(*DTYPES, ml_dtypes.float8_e4m3fn, np.int8)
    of_bytes = np.dtype(dtype).itemsize == 1
    x = d.numbers.integers(0, 255, shape, np.uint8).view(dtype) if of_bytes else d.array(shape, dtype)
    return _case("dither.transpose", dither.transpose, [x], {"flatten_axis": -1} if len(shape) == 2 else {})


_KINDS: dict[str, Callable[[Draw, tuple[int, ...], int, int], Case]] = {
    "quantize": _quantize,
    "unary": _unary,
    "dunary": _dunary,
    "gated": _gated,
    "dgated": _dgated,
    "norm": _norm,
    "backward": _backward,
    "softmax": _softmax,
    "rope": _rope,
    "back": _back,
    "many": _many,
    "split": _split,
    "grouped": _grouped,
    "scales": _scales,
    "transpose": _transpose,
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays of a result, and what else it says, by where they are."""
    if value is None or isinstance(value, (str, int, float, bool)):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            yield from leaves(one, f"{path}[{i}]")
    elif isinstance(value, (dither.ScaledTensor2x, dither.GroupedScaledTensor2x)):
        yield from leaves(value.rowwise, path + ".rowwise")
        yield from leaves(value.colwise, path + ".colwise")
    elif isinstance(value, (dither.ScaledTensor1x, dither.GroupedScaledTensor1x)):
        for name in ("data", "scale_inv", "amax", "tensor_scale"):
            yield from leaves(getattr(value, name, None), f"{path}.{name}")
    else:
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"{path} is {type(value).__name__}, expected an array")
        if array.dtype in DTYPES:  # NaN has no one form
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        yield path, array


def difference(found: Any, expected: Any) -> str:
    """Where two results differ; empty where they do not."""
    ours, theirs = dict(leaves(found)), dict(leaves(expected))
    if ours.keys() != theirs.keys():
        return f"found {sorted(ours)}, expected {sorted(theirs)}"
    for path, want in theirs.items():
        got = ours[path]
        if not isinstance(want, np.ndarray):
            if got != want:
                return f"{path}: found {got}, expected {want}"
        elif got.dtype != want.dtype or got.shape != want.shape:
            return f"{path}: found {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        elif got.tobytes() != want.tobytes():
            a, b = (np.frombuffer(one.tobytes(), np.uint8).reshape(-1, one.itemsize) for one in (got, want))
            at = np.flatnonzero((a != b).any(axis=1))
            where = np.unravel_index(at[0], want.shape) if want.shape else ()
            first = f"{a[at[0]].tobytes()[::-1].hex()}, expected {b[at[0]].tobytes()[::-1].hex()}"
            return f"{path}: {at.size} of {want.size} differ, first at {tuple(map(int, where))}: found {first}"
    return ""


@contextlib.contextmanager
def filled(byte: int) -> Iterator[None]:
    """Fills new memory of results with a byte."""
    fresh = allocate.aligned

    def aligned(shape: tuple[int, ...], kind: Any) -> Any:
        made = fresh(shape, kind)
        if made.size:
            made.reshape(-1).view(np.uint8).fill(byte)
        return made

    allocate.aligned = aligned
    try:
        yield
    finally:
        allocate.aligned = fresh


def run(case: Case, device: str) -> tuple[str, str]:
    """("same", ""), ("wrong", where), ("refused", what a GPU says alone) or ("both", what both say)."""
    results: list[Any] = []
    for where in ("cpu", device):
        with filled(0x5A if where == "cpu" or not case.all_written else 0xA5):
            try:
                results.append(case.call(where))
            except (ValueError, TypeError, NotImplementedError, dither.CompileError) as error:
                results.append(error)
    expected, found = results
    if isinstance(expected, Exception):
        if isinstance(found, Exception):
            return "both", str(expected)
        return "wrong", f"the CPU alone refuses: {expected}"
    if isinstance(found, Exception):
        return "refused", f"{type(found).__name__}: {found}"
    where = difference(found, expected)
    return ("wrong", where) if where else ("same", "")
