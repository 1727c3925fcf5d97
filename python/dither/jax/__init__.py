"""dither in JAX: operators on JAX's arrays, under `jax.jit` and the other transformations.

Every operator of `dither` takes JAX's arrays and gives JAX's arrays; importing `dither` needs no JAX, and calls with
JAX's arrays import this package. docs/jax.md has the rest.
"""

import jax as _jax

from . import versions as _versions

# Before anything that uses JAX's names.
_versions.check(_jax.__version__)

from .calls import call, cuda_target, shards  # noqa: E402
from .calls import register_handlers as _register_handlers  # noqa: E402
from .straight_through import straight_through  # noqa: E402
from .tensors import register as _register_tensors  # noqa: E402

_register_tensors()
_register_handlers()

__all__ = ["call", "cuda_target", "shards", "straight_through"]
