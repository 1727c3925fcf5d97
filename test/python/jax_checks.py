"""What tests of dither in JAX have in common."""

import jax
import ml_dtypes
import numpy as np


def numbers(*shape, dtype=ml_dtypes.bfloat16, seed=3):
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def same_bits(found, want):
    """Pytrees of arrays with the same shapes and bits."""
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(want)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == np.shape(other)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def same(found, want):
    """As `same_bits`, of the same data types, too."""
    same_bits(found, want)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
