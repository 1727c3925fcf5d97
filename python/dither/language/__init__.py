"""The tile language, usually imported as `dl`.

    import dither, dither.language as dl

    @dither.jit
    def double(x, y, ROWS: dl.constexpr):
        r = dl.program_id(0) * ROWS
        t = dl.load(x, (r, 0), (ROWS, x.shape[1])).to(dl.float32)
        dl.store(y, (r, 0), (t + t).to(dl.bfloat16))

A tile is a tensor of rank 0 to 2 with a static shape. Kernel arguments are tensors in memory (`x.shape`,
`x.dtype`; read and written by `dl.load` and `dl.store`), scalars, and constexprs. Everything known while
compiling (constexprs, globals, static extents, arithmetic on those) is a constexpr: an `if` on one picks a
branch, and tuples, strings, formats, functions and None are ordinary Python. Tensors may come in tuples and
dataclasses. `dl.row`, `dl.column`, `dl.scalar` and `dl.row_length` annotate parameters for `dither.fuse`.

Operators on tiles: `+ - * / // % << >>`, `t ** 3` with a constexpr, comparisons, `& | ^ ~`, unary `-`, `t.T`,
`t.to(dtype)`, `t.shape`, `t.dtype`, `t[:, :64]` and `t[:, None]`, with NumPy's broadcasting. bfloat16 and float16
operands become float32; codes (FP8, FP6, FP4, int8, E8M0) take part in nothing but loads, stores and `.to(dl.float32)`.
"""

from ..types import (
    DType,
    bfloat16,
    e8m0,
    float4_e2m1,
    float6_e2m3,
    float6_e3m2,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    int8,
    int32,
    int64,
)
from ..types import bool_ as bool
from ..types import index as index
from ._builtin import (
    Builtin,
    ScaleLayout,
    column,
    constexpr,
    linear,
    row,
    row_length,
    scalar,
    static_range,
    swizzle_128x4,
)
from ._math import (
    abs,
    amax,
    bitcast,
    cdiv,
    ceil,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    hadamard,
    log,
    log2,
    max,
    maximum,
    min,
    minimum,
    mulhi,
    philox,
    rint,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sum,
    tanh,
    umulhi,
    where,
)
from ._program import atomic_add, atomic_max, load, num_programs, print, program_id, static_assert, store
from ._quantize import block_scale, cast, dequantize, layer_norm, random_bits, rms_norm, stochastic_round
from ._shape import arange, broadcast_to, concat, full, reshape, zeros

__all__ = [
    "Builtin",
    "DType",
    "ScaleLayout",
    "abs",
    "amax",
    "arange",
    "atomic_add",
    "atomic_max",
    "bfloat16",
    "bitcast",
    "block_scale",
    "bool",
    "broadcast_to",
    "cast",
    "cdiv",
    "ceil",
    "column",
    "concat",
    "constexpr",
    "cos",
    "dequantize",
    "e8m0",
    "erf",
    "exp",
    "exp2",
    "float4_e2m1",
    "float6_e2m3",
    "float6_e3m2",
    "float8_e4m3",
    "float8_e5m2",
    "float16",
    "float32",
    "floor",
    "fma",
    "full",
    "hadamard",
    "index",
    "int8",
    "int32",
    "int64",
    "layer_norm",
    "linear",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "mulhi",
    "num_programs",
    "philox",
    "print",
    "program_id",
    "random_bits",
    "reshape",
    "rint",
    "rms_norm",
    "row",
    "row_length",
    "rsqrt",
    "scalar",
    "sigmoid",
    "sin",
    "sqrt",
    "static_assert",
    "static_range",
    "stochastic_round",
    "store",
    "sum",
    "swizzle_128x4",
    "tanh",
    "umulhi",
    "where",
    "zeros",
]
