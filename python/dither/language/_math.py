"""Elementwise functions and reductions. A scalar is taken where a tile is; shapes broadcast like NumPy's."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin, HostBuiltin


@Builtin
def exp(x: Any) -> Any:
    """e^x, float32, the same bits on every target."""


@Builtin
def exp2(x: Any) -> Any:
    """2^x, float32, the same bits on every target."""


@Builtin
def log(x: Any) -> Any:
    """Natural logarithm, float32; -Inf of zeros, NaN of negative numbers."""


@Builtin
def log2(x: Any) -> Any:
    """Binary logarithm, float32; -Inf of zeros, NaN of negative numbers."""


@Builtin
def tanh(x: Any) -> Any:
    """Hyperbolic tangent, float32."""


@Builtin
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x), float32."""


@Builtin
def erf(x: Any) -> Any:
    """The error function, float32; GELU of x is x / 2 * (1 + dl.erf(x / sqrt(2)))."""


@Builtin
def sin(x: Any) -> Any:
    """Sine of an angle in radians, float32; NaN of infinities."""


@Builtin
def cos(x: Any) -> Any:
    """Cosine of an angle in radians, float32; NaN of infinities."""


@Builtin
def sqrt(x: Any) -> Any:
    """Square root, float32, correctly rounded."""


@Builtin
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x), float32, both correctly rounded."""


@Builtin
def floor(x: Any) -> Any:
    """The largest integer that is not above x, float32; zeros, infinities and NaN stay."""


@Builtin
def ceil(x: Any) -> Any:
    """The smallest integer that is not below x, float32, -0 for -1 < x < 0."""


@Builtin
def rint(x: Any) -> Any:
    """The nearest integer, the even one of two, float32 with the sign of x."""


@Builtin
def bitcast(x: Any, dtype: Any) -> Any:
    """The bits of float32 as int32, or the other way round."""


@Builtin
def mulhi(a: Any, b: Any) -> Any:
    """The upper 32 bits of the 64-bit product of two int32."""


@Builtin
def umulhi(a: Any, b: Any) -> Any:
    """The upper 32 bits of the 64-bit product of the bits of two int32, read as unsigned integers."""


@Builtin
def philox(seed: Any, counter: Any) -> Any:
    """Random bits by a counter: the four int32 that Philox4x32-10 makes of each element.

    `seed` is an integer of 64 bits, known or of run time; `counter` one to four int32 tiles or numbers, the lowest word
    first, missing ones 0. The bits depend on these alone: not on tiles, grids or devices. An example, uniform in
    [0, 1), each element by its place in a tensor of n columns:

        at = (row + dl.arange(ROWS)[:, None]) * n + dl.arange(n)[None, :]
        w, _, _, _ = dl.philox(seed, at.to(dl.int32))
        u = (w & 0xFFFFFF).to(dl.float32) * 2.0**-24
    """


@Builtin
def uniform(seed: Any, offset: Any = 0) -> Any:
    """A random number in [0, 1) for each element of the tile that a function of `dither.fuse` sees: float32, a multiple
    of 2^-24.

    It depends on seed, offset and the element's row and column in the tensor alone: not on tiles, grids or devices.
    `seed` and `offset` are integers of 64 bits, as parameters annotated `dl.integer` are. Numbers of one seed and
    offset are the same in every call; the bits that round codes stochastically (`dl.random_bits`) are others. Kernels
    of their own have `dl.philox`.
    """


@Builtin
def abs(x: Any) -> Any:
    """|x|, float32 or integers."""


@Builtin
def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once, float32."""


@Builtin
def maximum(a: Any, b: Any) -> Any:
    """The larger one; NaN if either is, and +0 is larger than -0. float32 or integers."""


@Builtin
def minimum(a: Any, b: Any) -> Any:
    """The smaller one; NaN if either is, and -0 is smaller than +0. float32 or integers."""


@Builtin
def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where `condition` (bool) holds, `b` elsewhere, both evaluated; all three broadcast."""


@HostBuiltin
def cdiv(a: Any, b: Any) -> Any:
    """Integers divided rounding up (0 for b = 0 at run time); outside kernels too: `grid = (dl.cdiv(rows, ROWS),)`."""
    if not isinstance(a, int) or not isinstance(b, int):
        raise TypeError(f"cdiv of {type(a).__name__} and {type(b).__name__}, expected integers")
    return -(-a // b)


@Builtin
def hadamard(t: Any, axis: int, size: int = 16, signs: int = 0) -> Any:
    """The orthonormal Hadamard transform of each `size` elements along an axis, float32.

    Before it, element i of each run changes its sign where bit i of `signs` is set. With the mask of NVFP4 training,
    both operands of a product may be transformed along what is summed, and it stays what it is:

        r = dl.hadamard(t, axis=0, signs=0xD7E8).to(dl.bfloat16)

    Sums and differences of elements 1, 2, 4, .. apart, each rounded, then times `size**-0.5`.
    """


@Builtin
def sum(t: Any, axis: int, count: int | None = None) -> Any:
    """Sums along an axis, which stays with extent 1; float32, in an order fixed by the extent alone.

    With `count` only that many elements take part. Of all rows of a tensor, one program for each few columns:

        total = dl.zeros((1, COLS), dl.float32)
        for i in range(0, x.shape[0], ROWS):
            total += dl.sum(dl.load(x, (i, c), (ROWS, COLS)), axis=0)

    Many programs, beside other outputs and in two passes, are `dither.fuse(f, saves={"bias": "column_sum"})`.
    """


@Builtin
def max(t: Any, axis: int, count: int | None = None) -> Any:
    """Maxima along an axis, which stays with extent 1; float32. NaN is ignored where there is a number.

    With `count` only that many elements take part.
    """


@Builtin
def min(t: Any, axis: int, count: int | None = None) -> Any:
    """Minima along an axis, which stays with extent 1; float32. NaN is ignored where there is a number.

    With `count` only that many elements take part.
    """


@Builtin
def amax(t: Any, axis: int, count: int | None = None) -> Any:
    """Maxima of |t| from +0 along an axis, which stays with extent 1; float32. NaN is ignored.

    With `count` only that many elements take part.
    """
