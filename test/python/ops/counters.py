"""Kernels of the operator library on a simulated GPU, with what they do counted."""

import dither
from dither.profile import random_array


def run(entry, target):
    """The one launch of an entry, recorded."""
    arguments = {name: tensor and random_array(*tensor) for name, tensor in entry.tensors.items()}
    with dither.profile.record() as runs:
        entry.kernel[entry.grid](**arguments, **entry.constexprs, device=f"sim:{target}")
    (found,) = runs
    return found
