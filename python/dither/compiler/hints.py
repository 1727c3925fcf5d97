"""What to write in place of names that other languages and libraries have."""

from __future__ import annotations

from .. import language
from ..language import Builtin

_AT_PLACE = "i = dl.arange(n).to(dl.float32)"
_NO_PRODUCT = "kernels have no matrix product"
_RESHAPE = "use dl.reshape, which inserts and drops dimensions of extent 1"
_CONCAT = "use dl.concat((t, u), axis=1)"
_MATRIX = "use dl.load(x, offset, shape), whose offset names the tile"
_INTEGERS = "arithmetic has dl.int32 and dl.int64 alone"
_NO_DOUBLE = "dl.float32 is the widest float"
_NO_INVERSE = "dither has no inverses of trigonometric functions"
_NO_SCAN = "dither has no scans, and reduces by dl.sum, dl.max, dl.min and dl.amax"
_NO_ORDER = "dither does not move single elements of a tile"
_NO_HINT = "leave it out, since dither finds alignment and bounds itself"
_ATOMICS = "dither has dl.atomic_add and dl.atomic_max alone"
_RANDOM = "use dl.philox, whose bits make numbers as its docstring shows"
_EXTRA = "functions are in dl itself, such as dl.exp"
#: By the name.
INSTEAD = {
    # Elementwise functions.
    "clamp": "use dl.minimum(dl.maximum(t, low), high)",
    "clip": "use dl.minimum(dl.maximum(t, low), high)",
    "relu": "use dl.maximum(t, 0.0)",
    "silu": "use t * dl.sigmoid(t)",
    "softmax": "use e = dl.exp(t - dl.max(t, 1)), and e / dl.sum(e, 1)",
    "pow": "use '**' with an integer, or dl.exp2(y * dl.log2(t))",
    "power": "use '**' with an integer, or dl.exp2(y * dl.log2(t))",
    "square": "use t * t",
    "neg": "use -t",
    "negative": "use -t",
    "add": "use '+'",
    "sub": "use '-'",
    "mul": "use '*'",
    "divide": "use '/'",
    "round": "use dl.rint",
    "trunc": "use dl.where(t < 0.0, dl.ceil(t), dl.floor(t))",
    "sign": "use dl.where(t > 0.0, 1.0, dl.where(t < 0.0, -1.0, 0.0))",
    "log1p": "use dl.log(1.0 + t)",
    "log10": "use dl.log(t) / math.log(10.0)",
    "expm1": "use dl.exp(t) - 1.0",
    "exp10": "use dl.exp2(t * math.log2(10.0))",
    "tan": "use dl.sin(t) / dl.cos(t)",
    "sinh": "use (dl.exp(t) - dl.exp(-t)) / 2.0",
    "cosh": "use (dl.exp(t) + dl.exp(-t)) / 2.0",
    **dict.fromkeys(("asin", "acos", "atan", "atan2"), _NO_INVERSE),
    "div_rn": "use '/'",
    "fdiv": "use '/'",
    "sqrt_rn": "use dl.sqrt",
    "reciprocal": "use 1.0 / t",
    "logical_and": "use '&'",
    "logical_or": "use '|'",
    "logical_not": "use '~'",
    "isnan": "use t != t",
    "isinf": "use dl.abs(t) == math.inf",
    "isfinite": "use dl.abs(t) < math.inf",
    "math": _EXTRA,
    "extra": _EXTRA,
    # Constants and data types.
    "inf": "use math.inf",
    "nan": "use math.nan",
    "pi": "use math.pi",
    "half": "use dl.float16",
    "double": _NO_DOUBLE,
    "float64": _NO_DOUBLE,
    "int1": "use dl.bool",
    **dict.fromkeys(("int16", "uint8", "uint16", "uint32", "uint64"), _INTEGERS),
    "float8e4nv": "use dl.float8_e4m3",
    "float8e5": "use dl.float8_e5m2",
    # Reductions.
    "argmax": f"use dl.min(dl.where(t == dl.max(t, 1), i, math.inf), 1) with {_AT_PLACE}",
    "argmin": f"use dl.min(dl.where(t == dl.min(t, 1), i, math.inf), 1) with {_AT_PLACE}",
    "mean": "use dl.sum(t, 1) / n",
    "norm": "use dl.sqrt(dl.sum(t * t, 1))",
    "prod": "use dl.exp2(dl.sum(dl.log2(t), 1)) of positive elements",
    "any": "use dl.max(mask.to(dl.float32), 1)",
    "all": "use dl.min(mask.to(dl.float32), 1)",
    **dict.fromkeys(("cumsum", "cumprod", "associative_scan", "reduce", "xor_sum"), _NO_SCAN),
    "dot": _NO_PRODUCT,
    "dot_scaled": _NO_PRODUCT,
    "matmul": _NO_PRODUCT,
    "histogram": "use dl.sum((t == bin).to(dl.float32), 1) for each bin",
    # Tiles and their shapes.
    "zeros_like": "use dl.zeros(t.shape, t.dtype)",
    "ones": "use dl.full(shape, 1.0)",
    "ones_like": "use dl.full(t.shape, 1.0, t.dtype)",
    "full_like": "use dl.full(t.shape, value, t.dtype)",
    "empty": "use dl.zeros",
    "iota": "use dl.arange",
    "tril": "use dl.where(dl.arange(m)[:, None] >= dl.arange(n), t, 0.0)",
    "triu": "use dl.where(dl.arange(m)[:, None] <= dl.arange(n), t, 0.0)",
    "trans": "use t.T",
    "transpose": "use t.T",
    "permute": "use t.T",
    "view": f"{_RESHAPE}, or dl.bitcast",
    "ravel": _RESHAPE,
    "flatten": _RESHAPE,
    "squeeze": _RESHAPE,
    "expand_dims": "use t[:, None]",
    "unsqueeze": "use t[:, None]",
    "cat": _CONCAT,
    "concatenate": _CONCAT,
    "join": _CONCAT,
    "split": "use t[:, :n] and t[:, n:]",
    "tile": "use dl.cycle, or dl.repeat of each element",
    "roll": "use dl.concat((t[:, n:], t[:, :n]), axis=1)",
    **dict.fromkeys(("sort", "flip", "interleave"), _NO_ORDER),
    "astype": "use .to(dtype)",
    "cast": "use .to(dtype)",
    "type": "use .to(dtype)",
    # Memory and programs.
    "gather": "use dl.load(x, (rows, 0), shape), where rows is an int32 tile",
    "scatter": "use dl.store(x, (rows, 0), t), where rows is an int32 tile",
    "make_block_ptr": _MATRIX,
    "make_tensor_descriptor": _MATRIX,
    "advance": _MATRIX,
    **dict.fromkeys(("atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_cas", "atomic_xchg"), _ATOMICS),
    **dict.fromkeys(("multiple_of", "max_contiguous", "max_constancy", "assume"), _NO_HINT),
    "debug_barrier": "leave it out, since a program loads and stores in the order of the source",
    "range": "use Python's range",
    "static_print": "use dl.print",
    "device_print": "use dl.print",
    "device_assert": "use dl.static_assert of constexprs",
    **dict.fromkeys(("rand", "randn", "randint"), _RANDOM),
}
#: Functions of Python and NumPy that are not called as what the language has for them.
_CALLS = {
    "print": "use dl.print",
    "range": "use it in a 'for'",
    "type": "use .dtype",
    "sum": "use dl.sum(t, axis)",
    "int": "convert with .to(dl.int32)",
    "bool": "convert with .to(dl.bool)",
    "float": "convert with .to(dl.float32)",
}


def hint_of_name(name: str) -> str:
    """`: use ..` for a name that the language does not have, or nothing."""
    return f": {INSTEAD[name]}" if name in INSTEAD else ""


def hint_of_attribute(name: str) -> str:
    """`: use ..` for what a tile does not have, or nothing."""
    return hint_of_name(name) or (f": use dl.{name}(t, ..)" if _is_builtin(name) else "")


def hint_of_call(name: str) -> str:
    """`: use ..` for a function of Python or NumPy, or nothing."""
    if name in _CALLS:
        return f": {_CALLS[name]}"
    return f": use dl.{name}" if _is_builtin(name) else hint_of_name(name)


def _is_builtin(name: str) -> bool:
    return isinstance(getattr(language, name, None), Builtin)
