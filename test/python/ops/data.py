"""Inputs for the operators: random, adversarial, and around every point where a result changes.

Arrays start at multiples of 64 bytes: alignment is part of a specialization, and what malloc gives is chance.
"""

import ml_dtypes
import numpy as np

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
F32 = np.float32
FMAX = np.finfo(np.float32).max


def empty(shape, dtype):
    """An uninitialised array at a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def aligned(x, dtype=None):
    """A copy of `x` at a multiple of 64 bytes; out of range becomes infinite."""
    out = empty(np.shape(x), dtype or np.asarray(x).dtype)
    with np.errstate(all="ignore"):
        out[...] = np.asarray(x).astype(out.dtype)
    return out


def normal(m, n, dtype="float32", seed=0):
    """Normal numbers, rows of different size."""
    rng = np.random.default_rng([seed, m, n])
    return aligned(rng.standard_normal((m, n)) * np.exp(rng.uniform(-9, 9, (m, 1))), DTYPES[dtype])


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -3e-45, 2**-126, 448, 464, -465, 6, -5, 2.5]
SPECIAL += [57344, 61440, 65504, 0.25, -0.75, 1e30, -FMAX]


def adversarial(m, n, dtype="float32", seed=0):
    """Normal numbers among which lie what casts treat specially, and rows of 0, -0, NaN, Inf and subnormals."""
    rng = np.random.default_rng([seed, m, n])
    x = normal(m, n, seed=seed).astype(np.float32)
    flat = x.reshape(-1)
    where = rng.integers(0, max(flat.size, 1), flat.size // 50)
    flat[where] = rng.choice(np.array(SPECIAL, np.float32), where.size)
    rows = [0.0, -0.0, np.nan, np.inf, None]
    for row, value in zip(range(m // 2, m), rows, strict=False):
        x[row] = rng.integers(1, 2**23, n).astype(np.uint32).view(np.float32) if value is None else value
    return aligned(x, DTYPES[dtype])


def around(points, ulps=2):
    """Each fp32 point and its neighbours up to `ulps` away, both signs; non-negative points."""
    bits = np.asarray(points, np.float32).view(np.int32).astype(np.int64)
    near = (bits[:, None] + np.arange(-ulps, ulps + 1)).reshape(-1)
    near = near[(near >= 0) & (near < 0x7F800000)].astype(np.uint32).view(np.float32)
    return np.concatenate([near, -near])
