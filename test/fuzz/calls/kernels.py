"""The kernels that random calls launch, and what they do to NumPy arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import dither
import dither.language as dl
import numpy as np

#: Captured by `scale`; calls change it.
GAIN: Any = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """A constexpr."""

    gain: Any = 1
    negate: bool = False
    note: str = dataclasses.field(default="", repr=False)


@dither.jit
def scale(x, y, factor, ROWS: dl.constexpr = 4):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, x.shape[1])).to(dl.float32)
    dl.store(y, (r, 0), (t * factor + GAIN).to(y.dtype))


@dither.jit(shapes="dynamic")
def add(x, z, y):
    r, c = dl.program_id(0) * 4, dl.program_id(1) * 32
    t = dl.load(x, (r, c), (4, 32)).to(dl.float32) + dl.load(z, (r, c), (4, 32)).to(dl.float32)
    dl.store(y, (r, c), t.to(y.dtype))


@dither.jit
def update(x, n):
    r = dl.program_id(0) * 2
    t = dl.load(x, (r, 0), (2, x.shape[1])).to(dl.float32)
    if n > 2:
        t = -t
    dl.store(x, (r, 0), (t + n).to(x.dtype))


@dither.jit
def configured(x, y, CONFIG: dl.constexpr):
    r = dl.program_id(0) * 4
    t = dl.load(x, (r, 0), (4, x.shape[1])).to(dl.float32) + CONFIG.gain
    if CONFIG.negate:
        t = -t
    dl.store(y, (r, 0), t.to(y.dtype))


def model(name: str, arrays: list[np.ndarray], number: Any, gain: Any, config: Config) -> None:
    """What a kernel does; `gain` is the captured one."""
    x, y = arrays[0], arrays[-1]
    wide = x.astype(np.float32)
    if name == "scale":
        result = wide * np.float32(number) + np.float32(gain)
    elif name == "add":
        result = wide + arrays[1].astype(np.float32)
    elif name == "update":
        result = (-wide if number > 2 else wide) + np.float32(number)
    else:
        result = wide + np.float32(config.gain)
        result = -result if config.negate else result
    y[...] = result.astype(y.dtype)


KERNELS: dict[str, tuple[Any, int]] = {
    "scale": (scale, 2),
    "add": (add, 3),
    "update": (update, 1),
    "configured": (configured, 2),
}
