"""The step of delayed scaling as a function of its state."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from .. import ops
from ..ops.flatten import reshape
from .arrays import kind_of_dtype
from .calls import call, shards


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
    history = jnp.asarray(state.amax_history)
    matrix = history.reshape(history.shape[0], -1)
    tensors = matrix.shape[1]
    for name, x in (("scale", state.scale), ("amax", amax)):
        if jnp.size(x) != tensors:
            found = f"argument '{name}' has shape {jnp.shape(x)}"
            raise ValueError(f"{found}, expected {tensors} elements beside a history of shape {history.shape}")
    options = (kind_of_dtype(q_dtype), int(margin), algorithm, inf_scale)
    scale, row = jnp.reshape(state.scale, (1, tensors)), jnp.reshape(amax, tensors)
    with shards():  # a state is whole on each device
        scale, matrix = call(_step, scale, matrix, row, *options)
    return DelayedState(scale.reshape(jnp.shape(state.scale)), matrix.reshape(history.shape))


def _step(scale: Any, amax_history: Any, amax: Any, kind: Any, margin: int, algorithm: str, inf_scale: str) -> Any:
    scale, amax_history = (ops.pad_scales(x, 1, 1) for x in (scale, amax_history))  # copies, which may be written
    written = reshape(scale, amax.shape, "scale")
    ops.update_scale(written, amax_history, amax, format=kind, margin=margin, algorithm=algorithm, inf_scale=inf_scale)
    return scale, amax_history
