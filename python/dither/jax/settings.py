"""What holds for calls of a context: the target of what is lowered for CUDA, and how tensors are split in parts."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import jax

from ..devices import checked_target, get_device, host_target, is_gpu

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Axes of a mesh that split the rows, and the columns, of what arrays are parts of.
Axes = tuple[tuple[str, ...], tuple[str, ...]]

_cuda_target: contextvars.ContextVar[str] = contextvars.ContextVar("dither_cuda_target", default="")
_dimensions: contextvars.ContextVar[bool] = contextvars.ContextVar("dither_dimensions", default=False)
_parts: contextvars.ContextVar[Axes | None] = contextvars.ContextVar("dither_parts", default=None)

#: What calls mean in a context, as part of what `jax.jit` knows a trace by; None for a JAX that has no such contexts.
_key_of_jit: Any = jax.make_user_context() if hasattr(jax, "make_user_context") else None
_told: list[contextvars.ContextVar[Any]] = [_cuda_target, _parts]


def told_to_jit(variable: contextvars.ContextVar[Any]) -> contextvars.ContextVar[Any]:
    """A variable whose values what is traced depends on: `within` sets it."""
    _told.append(variable)
    return variable


@contextlib.contextmanager
def within(variable: contextvars.ContextVar[Any], value: Any) -> Iterator[None]:
    """A value of a variable that `jax.jit` knows traces by."""
    token = variable.set(value)
    _tell_jit()
    try:
        yield
    finally:
        variable.reset(token)
        _tell_jit()


def _tell_jit() -> None:
    """Makes what is in force what `jax.jit` knows traces by. It stays so until the next time: tasks of a thread may
    leave their regions in any order."""
    if _key_of_jit is not None:
        values = {variable.name: variable.get(None) for variable in _told}
        _key_of_jit(tuple((name, value) for name, value in values.items() if value) or None).__enter__()


@contextlib.contextmanager
def cuda_target(name: str) -> Iterator[None]:
    """What is lowered for CUDA within is for this target ("sm_90a"), whatever GPU this machine has: for `jax.export` on
    machines without one. Raises ValueError for what is no target of a GPU."""
    if not is_gpu(checked_target(name)):
        raise ValueError(f"target {name!r} is a CPU, expected a GPU")
    with within(_cuda_target, name):
        yield


@contextlib.contextmanager
def shards(rows: str | Sequence[str] = (), cols: str | Sequence[str] = ()) -> Iterator[None]:
    """Within, and in `jax.shard_map`, calls are on parts of tensors: axes of the mesh that split their rows, and their
    columns. Parts follow one another along the first dimension of rows, and of columns.

        def step(x):  # a part of the rows
            with dither.jax.shards(rows="data"):
                return dither.quantize(x, "nvfp4")

        jax.shard_map(step, mesh=mesh, in_specs=P("data"), out_specs=...)

    Amaxes are those of the whole tensor then, columns are summed over all of its rows, and random bits are those of
    places in it. Without, each part is a tensor of its own. Calls raise ValueError for what cannot be split so.
    """
    given = [(axes,) if isinstance(axes, str) else tuple(axes) for axes in (rows, cols)]
    both = [axis for axis in given[0] if axis in given[1]]
    if both:
        raise ValueError(f"axis {both[0]!r} splits both rows and columns, expected one of the two")
    with split_as((given[0], given[1]) if any(given) else None):
        yield


def split_over() -> Axes | None:
    """Axes that split rows and columns here, by the innermost `shards`; None where parts are tensors of their own."""
    return _parts.get()


def split_as(axes: Axes | None) -> contextlib.AbstractContextManager[None]:
    """Within, `split_over` is this."""
    return within(_parts, axes)


def seen_in_dimensions(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function within which scales of what is quantized keep the dimensions of the tensor, and are no matrix of them:
    XLA splits any of these, where of joined ones it splits the first, and gathers the others."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        token = _dimensions.set(True)  # of one call: no trace that is kept depends on it
        try:
            return function(*args, **kwargs)
        finally:
            _dimensions.reset(token)

    return call


def keeps_dimensions() -> bool:
    """Whether scales keep the dimensions of the tensor here."""
    return _dimensions.get()


def target_of_cuda() -> str:
    asked = _cuda_target.get()
    if asked:
        return asked
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError:
        raise ValueError(
            "found no GPU to compile for, expected its target: with dither.jax.cuda_target('sm_90a'): ..."
        ) from None
    return get_device(f"cuda:{device.local_hardware_id}").target


def default_target() -> str:
    """That of the backend that JAX uses where nothing else is said: shapes and checks are the same for all."""
    return host_target() if jax.default_backend() == "cpu" else target_of_cuda()
