"""Amaxes in `jax.shard_map`, where calls see parts of tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from .mesh import global_mesh_resource, manual_axes
from .modes import AmaxScope
from .settings import shards, split_over


def axes_of_scope(scope: AmaxScope) -> tuple[str, ...]:
    """Axes that split what is here, and that the scope is over."""
    resource = global_mesh_resource()
    names = {AmaxScope.LOCAL: None, AmaxScope.TPSP: resource.tpsp_resource, AmaxScope.FSDP: resource.fsdp_resource}
    if not isinstance(scope, AmaxScope):
        raise TypeError(f"amax_scope is {scope!r}, expected an AmaxScope")
    return manual_axes([names[scope]])


@contextlib.contextmanager
def of_scope(scope: AmaxScope) -> Iterator[None]:
    """Calls within take amaxes over these devices, whose parts follow one another along the rows, unless
    `dither.jax.shards` says otherwise."""
    axes = axes_of_scope(scope)
    if not axes or split_over() is not None:
        yield
        return
    with shards(rows=axes):
        yield


def largest_over(x: Any, axes: tuple[str, ...]) -> Any:
    """The largest of a number that is not negative over these axes. As integers: NaN are larger than all else."""
    if not axes:
        return x
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    return jax.lax.bitcast_convert_type(jax.lax.pmax(bits, axes), x.dtype)


def reduced_over_all(amax: Any) -> Any:
    """An amax over all devices that have a part of the tensor: over every axis but that of pipelines."""
    return largest_over(amax, manual_axes(global_mesh_resource().axes()))
