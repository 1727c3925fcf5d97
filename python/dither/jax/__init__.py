"""dither in JAX: operators on JAX's arrays, under `jax.jit` and the other transformations.

Every operator of `dither` takes JAX's arrays and gives JAX's arrays; importing `dither` needs no JAX, and calls with
JAX's arrays import this package. docs/jax.md has the rest.
"""

from .calls import call, cuda_target, shards
from .calls import register_handlers as _register_handlers
from .straight_through import straight_through
from .tensors import register as _register_tensors

_register_tensors()
_register_handlers()

__all__ = ["call", "cuda_target", "shards", "straight_through"]
