"""What tests of calls on several devices have in common: a mesh of 8, and what compiled calls exchange."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax_checks import same_bits

if len(jax.devices()) < 8:
    pytest.skip("needs 8 devices", allow_module_level=True)

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))

#: Scales of blocks are a matrix of joined dimensions: where they are not used, XLA gathers nothing.
JOINED = ".* joins the dimensions"


def put(x, *spec, mesh=MESH):
    return jax.device_put(jnp.asarray(x), NamedSharding(mesh, P(*spec)))


def collectives(call, *args):
    """How many of each kind are in the compiled call."""
    return _collectives(jax.jit(call).lower(*args).compile())


def _collectives(compiled):
    text = compiled.as_text()
    kinds = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")
    found = {kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in kinds}
    return {kind: count for kind, count in found.items() if count}


def check_split(call, x, spec, results, exchanged):
    """A call on an array that is split so has the bits of one device and such results, after these exchanges alone."""
    split = put(x, *spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", JOINED)
        compiled = jax.jit(call).lower(split).compile()
        found = compiled(split)
        same_bits(found, call(jnp.asarray(x)))
        assert _collectives(compiled) == exchanged
    assert [tuple(leaf.sharding.spec) for leaf in jax.tree.leaves(found)] == results
