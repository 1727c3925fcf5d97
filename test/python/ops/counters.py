"""Kernels of the operator library on a simulated GPU, with what they do counted."""

import dither
import ml_dtypes
import numpy as np
from dither import types

STORAGE = {types.float32: np.float32, types.bfloat16: ml_dtypes.bfloat16, types.float16: np.float16}


def argument(tensor, rng):
    """An array for a tensor of an entry: normal values, or bytes that are valid codes and scales."""
    if tensor is None:
        return None
    dtype, shape = tensor
    if dtype in STORAGE:
        return rng.standard_normal(shape, np.float32).astype(STORAGE[dtype])
    last = (*shape[:-1], (shape[-1] * dtype.bits + 7) // 8)
    return dither.view(np.full(last, 0x38, np.uint8), dtype, shape)


def run(entry, target):
    """The one launch of an entry, recorded."""
    rng = np.random.default_rng(0)
    arguments = {name: argument(tensor, rng) for name, tensor in entry.tensors.items()}
    with dither.profile.record() as runs:
        entry.kernel[entry.grid](**arguments, **entry.constexprs, device=f"sim:{target}")
    (found,) = runs
    return found
