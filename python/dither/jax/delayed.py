"""The step of delayed scaling as a function of its state."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from .. import ops
from .arrays import kind_of_dtype
from .settings import shards


class DelayedState(NamedTuple):
    """Scales of tensors, and the history that they come from: `scale` (T,), `amax_history` (L, T) or, of one tensor,
    (L,), float32."""

    scale: Any
    amax_history: Any


def initial_state(history: int = 1024, tensors: int | None = None) -> DelayedState:
    """Scales of 1 and a history of `history` steps of 0, of one tensor or of so many."""
    if type(history) is not int or history < 1:
        raise ValueError(f"history is {history!r}, expected at least 1")
    shape = (history,) if tensors is None else (history, tensors)
    return DelayedState(jnp.ones(1 if tensors is None else tensors, jnp.float32), jnp.zeros(shape, jnp.float32))


def update(
    state: DelayedState,
    amax: Any,
    *,
    q_dtype: Any,
    margin: float = 0,
    algorithm: str = "max",
    inf_scale: str = "largest",
) -> DelayedState:
    """The state after a step whose largest magnitudes were `amax`, with the bits of `dither.update_scale`, which says
    what a step is; state and amax stay as they are. One custom call.

    Args:
        state: of one tensor, or of T.
        amax: float32 of one element, or (T,).
        q_dtype: the data type of codes, such as `jnp.float8_e4m3fn`.
        margin: a whole number; scales are 2^-margin times what they would be.
        algorithm, inf_scale: as of `dither.update_scale`.
    """
    if int(margin) != margin:
        raise ValueError(f"margin is {margin!r}, expected a whole number")
    options: dict[str, Any] = {"format": kind_of_dtype(q_dtype), "algorithm": algorithm, "inf_scale": inf_scale}
    with shards():  # a state is whole on each device
        made = ops.updated_scale(state.scale, state.amax_history, amax, margin=int(margin), **options)
    return DelayedState(*made)
