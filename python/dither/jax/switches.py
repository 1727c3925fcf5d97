"""Custom calls, switched off and on by name: what is off runs on the host, with the same bits."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax
import numpy

from .. import ops
from ..errors import suggest
from ..programs import Place, Program
from .arrays import dtype_of

if TYPE_CHECKING:
    from .calls import Call

_GATED = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")
_PLAIN = ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")
_GRADIENTS = tuple(f"d{name}" for name in (*_PLAIN, *_GATED))
#: What Transformer Engine calls its primitives.
_THEIRS = {
    "QuantizePrimitive": ("quantize", "delayed_quantize"),
    "DBiasQuantizePrimitive": ("quantize_dbias",),
    "GroupedQuantizePrimitive": ("grouped_quantize",),
    "AmaxCalculationPrimitive": ("amax",),
    "ActLuPrimitive": (*_PLAIN, *_GATED),
    "DActLuDBiasQuantizePrimitive": (*_GRADIENTS, *(f"dbias_{name}" for name in _GRADIENTS if name != "dsigmoid")),
    "NormFwdPrimitive": ("rms_norm", "layer_norm"),
    "NormBwdPrimitive": ("rms_norm_backward", "layer_norm_backward"),
}

_lock = threading.Lock()
_disabled: frozenset[str] = frozenset()


def primitive_names() -> list[str]:
    """Names that `manage_primitives` takes: operators of dither, and primitives of Transformer Engine."""
    operators = {name for name in ops.__all__ if callable(getattr(ops, name)) and name[0].islower()}
    return sorted(operators | {"delayed_quantize"}) + sorted(_THEIRS)


def manage_primitives(
    enable_names: Iterable[str] | None = None,
    disable_names: Iterable[str] | None = None,
    disable_all_first: bool = False,
) -> None:
    """Switches custom calls off and on, in this process, for what JAX traces from then on.

    A call that is off is a callback to the host, which runs the operator there on the CPU (`jax.pure_callback`), with
    the same bits: to tell whether a device is at fault. It waits for the device, gathers what is split, and cannot be
    exported. What was traced before stays as it was: `jax.clear_caches()` has it traced again.

    Args:
        enable_names, disable_names: of operators of dither ("quantize", "rms_norm", "dswiglu"), or of primitives of
            Transformer Engine ("NormFwdPrimitive"); enabling is the last word.
        disable_all_first: whether all are switched off before.

    Raises ValueError for other names.
    """
    global _disabled
    enabled, disabled = (_operators(names or ()) for names in (enable_names, disable_names))
    with _lock:
        before = _operators(primitive_names()) if disable_all_first else _disabled
        _disabled = frozenset((before | disabled) - enabled)


def _operators(names: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    known = primitive_names()
    for name in (names,) if isinstance(names, str) else names:
        if name not in known:
            raise ValueError(f"found {name!r}, expected the name of an operator or a primitive{suggest(name, known)}")
        found.update(_THEIRS.get(name, (name,)))
    return frozenset(found)


def is_disabled(fn: Any) -> bool:
    """Whether calls of an operator are off."""
    return bool(_disabled) and getattr(fn, "__name__", "") in _disabled


def run_on_host(call: Call, program: Program, arrays: Any) -> Any:
    """What a program allocates, made by the operator on the host."""
    shapes = [jax.ShapeDtypeStruct(one.shape, dtype_of(one.dtype)) for one in program.outputs]
    # JAX makes int32 of what is int64 in a callback: it goes as two words each.
    wide = [one.dtype.name == "int64" for one in shapes]
    sent = [jax.ShapeDtypeStruct((*s.shape, 2), "uint32") if w else s for s, w in zip(shapes, wide, strict=True)]

    def run(*given: Any) -> Any:
        # In a context without settings of tracing, such as parts of arrays.
        made = contextvars.Context().run(call.on_numpy, [numpy.asarray(one) for one in given])
        found = [numpy.zeros(one.shape, one.dtype) for one in sent]
        for place, leaf in zip(jax.tree.leaves(program.result), jax.tree.leaves(made), strict=True):
            if isinstance(place, Place) and place.kind == "outputs":
                to = sent[place.index]
                found[place.index] = numpy.ascontiguousarray(leaf).view(to.dtype).reshape(to.shape)
        return found

    made = jax.pure_callback(run, sent, *arrays, vmap_method="sequential")
    with jax.enable_x64(True):
        pairs = zip(made, wide, strict=True)
        return [jax.lax.bitcast_convert_type(one, "int64") if w else one for one, w in pairs]
