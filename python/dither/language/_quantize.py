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
    (rank 0, float32), for formats with a tensor scale.
    """


@Builtin
def cast(t: Any, scale: Any, fmt: Any, axis: int = 1, amax: Any = None) -> Any:
    """Codes of `t` (float) under the scales of its blocks: t's shape, data type `fmt.element`."""


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
