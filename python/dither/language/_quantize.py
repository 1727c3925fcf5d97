"""Block scaling and norms. `fmt` is a format of `dither.formats` or its name."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin


@Builtin
def block_scale(t: Any, fmt: Any, axis: int = 1, amax: Any = None) -> Any:
    """Scale of every block of `t` (float): blocks run along `axis`, 1 rowwise and 0 columnwise.

    The result has t's shape, divided by `fmt.block` along `axis`, and data type `fmt.scale`. Where blocks have
    rows, too, it is divided by both. Under one scale for a row, or the tensor, what the tile holds of it is the
    block: of a longer one, the scale is that of a tile of extent 1 with its amax. `amax` is that of the whole tensor
    (rank 0, float32), for formats with a tensor scale. Of formats with the order encode_first it is one over
    `dl.encode_scale`.
    """


@Builtin
def encode_scale(t: Any, fmt: Any, axis: int = 1) -> Any:
    """What the elements of every block of `t` (float) are multiplied by, in a format with the order encode_first.

    The largest element of the format over the largest magnitude of the block, float32; 1 for a block of zeros, and of
    infinities. One over it is the scale:

        e = dl.encode_scale(t, dither.FP8_1X128_E4M3)
        q = dl.cast(t, None, dither.FP8_1X128_E4M3, encode_scale=e)
        s = 1.0 / e  # what dl.dequantize takes
    """


@Builtin
def cast(
    t: Any, scale: Any, fmt: Any, axis: int = 1, amax: Any = None, bits: Any = None, encode_scale: Any = None
) -> Any:
    """Codes of `t` (float) under the scales of its blocks: t's shape, data type `fmt.element`.

    They are rounded to nearest; with `bits`, int32 of t's shape, stochastically, as by `dl.stochastic_round`:

        q = dl.cast(t, s, dither.MXFP8_E4M3, bits=dl.random_bits(seed, (r, 0), (ROWS, 64), groups=4))

    Formats with the order encode_first take `encode_scale` (float32, one for each block) and None as `scale`: what
    elements were multiplied by does not follow from its rounded reciprocal, but where it is a power of two.
    """


@Builtin
def stochastic_round(t: Any, bits: Any, dtype: Any) -> Any:
    """`t` (float) rounded to values of `dtype` by random bits, as float32; converting it to `dtype` rounds no more.

    An element between two values of the type becomes the one further from zero with the probability of how far it is
    past the other, in 256ths of their distance, rounded down: if that and the low 8 of its `bits` (int32) are 256
    or more together. NaN, and what is larger than the largest value, stay as they are. `dtype` is one of float4_e2m1,
    float6_e2m3, float6_e3m2, float8_e4m3, float8_e5m2 and int8.
    """


@Builtin
def random_bits(
    seed: Any, at: Any, shape: Any, groups: Any, axis: int = 1, offset: Any = 0, columnwise: bool = False
) -> Any:
    """Eight random bits for each element of a part of a tensor, int32 from 0 to 255, as `dl.cast` takes them.

    They depend on seed, offset, output and place alone: a line of the tensor, along `axis`, is cut into groups of 16
    elements, and each group has a block of `dl.philox`. `at` is (line, group): the first line of the part and its
    first group; `groups` how many groups a line has, rounded up, from 0 to 2^32 - 1; `shape` has whole groups along
    `axis`. `seed` and `offset` are integers of 64 bits. The codes of the columnwise output have other bits than those
    of the rowwise one; where they are stored transposed, lines go along axis 0.
    """


@Builtin
def dequantize(q: Any, scale: Any, fmt: Any, axis: int = 1, amax: Any = None) -> Any:
    """float32 values of codes under the scales of their blocks."""


@Builtin
def rms_norm(t: Any, gamma: Any, eps: float, zero_centered_gamma: bool = False, count: int | None = None) -> Any:
    """Root-mean-square norm of the rows of a (rows, n) tile.

    Returns (y, rsigma): (rows, n) and (rows, 1), float32. `gamma` has shape (n,); 1 is
    added to it where `zero_centered_gamma`. `eps` is a constexpr, and so is `count`: rows have that many
    elements, and the rest of the tile is padding.
    """


@Builtin
def layer_norm(
    t: Any, gamma: Any, beta: Any, eps: float, zero_centered_gamma: bool = False, count: int | None = None
) -> Any:
    """Norm of the rows of a (rows, n) tile by their mean and variance.

    Returns (y, mean, rsigma): (rows, n), and twice (rows, 1), float32. `gamma` and `beta` have shape (n,); the rest is
    as in `dl.rms_norm`.
    """


@Builtin
def rms_norm_backward(
    dz: Any, x: Any, gamma: Any, rsigma: Any, zero_centered_gamma: bool = False, count: int | None = None
) -> Any:
    """Gradients through `dl.rms_norm`, of `dz`, the gradient of its y.

    Returns (dx, dgamma_terms), (rows, n) float32: the gradient of gamma is the sum of these over all rows of a tensor.
    `x` is what was normalized, `rsigma` (rows, 1) what the norm gave. Past `count` both results are 0.
    """


@Builtin
def layer_norm_backward(
    dz: Any, x: Any, gamma: Any, mean: Any, rsigma: Any, zero_centered_gamma: bool = False, count: int | None = None
) -> Any:
    """Gradients through `dl.layer_norm`, of `dz`, the gradient of its y; the gradient of beta is the sum of `dz` over
    all rows. The rest is as in `dl.rms_norm_backward`, `mean` (rows, 1) what the norm gave."""
