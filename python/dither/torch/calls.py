"""Calls of dither's operators in torch, where torch differentiates, transforms or traces them.

A call becomes one operator of torch.library (operators.py), whatever it launches, with its tensors and a text that says
the rest (spelling.py). What it returns, and in which shapes, is known from a sketch: the operator on arrays without
data, whose extents may be symbols.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from .. import torch_tensors
from ..arrays import FOREIGN, Array, Buffer
from ..data_classes import dataclass
from ..devices import host_target
from ..frameworks import is_sketching, named_in_graphs, sketching
from ..ops.derivatives import rule_of
from ..programs import Place
from ..recording import Recording, Sketch
from .pytrees import tensors_of
from .spelling import Arguments, read, spell
from .user import Operator

#: Parameters whose tensors calls write, of all operators and of one.
_WRITES = ("out", "record_amax")
_WRITES_OF = {"update_scale": ("scale", "amax_history")}


@dataclass(frozen=True)
class Outline:
    """What a call returns: a tree with a `Place` for each tensor, and the shapes, data types and strides (None of what
    is dense) of those that it allocates."""

    leaves: tuple[Any, ...]
    tree: Any
    outputs: tuple[tuple[tuple[Any, ...], torch.dtype, tuple[Any, ...] | None], ...]

    def places(self, fields: Sequence[str]) -> list[int]:
        """Which of the outputs some fields of the result are; "out" may be all of it."""
        result = pytree.tree_unflatten(self.leaves, self.tree)
        chosen = [getattr(result, field, result) for field in fields]
        return [leaf.index for leaf in pytree.tree_leaves(chosen) if isinstance(leaf, Place)]

    def filled(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """What the call returns, with these tensors; None for those that are not there."""
        places = {"inputs": inputs, "outputs": outputs}
        leaves = [places[leaf.kind][leaf.index] if isinstance(leaf, Place) else leaf for leaf in self.leaves]
        return pytree.tree_unflatten(leaves, self.tree)


@dataclass(frozen=True)
class Call:
    """A call that was spelled, with places for its tensors and numbers."""

    operator: Any
    arguments: Arguments

    def run(self, tensors: Sequence[Any], numbers: Sequence[Any], written: Sequence[Any] = ()) -> list[torch.Tensor]:
        """Runs it, and returns what it allocated of what it returns, in order."""
        args, kwargs = self.arguments(tensors, numbers, written)
        with torch.no_grad():
            result = plain(self.operator)(*args, **kwargs)
        known = {tensor.untyped_storage()._cdata for tensor in (*tensors, *written)}
        made = []
        for tensor in tensors_of(result):
            memory = tensor.untyped_storage()._cdata
            if memory not in known:
                known.add(memory)
                made.append(tensor)
        return made

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - calls are few, and last
    def names(self, count: int, numbers: int = 0) -> tuple[str, ...]:
        """The parameters that so many tensors are given for; "" for those that are in other arguments."""
        holes = [object() for _ in range(count)]
        args, kwargs = self.arguments(holes, [0] * numbers, ())
        given = {**dict(zip(_parameters(self.operator), args, strict=False)), **kwargs}
        return tuple(next((name for name, value in given.items() if value is hole), "") for hole in holes)

    def outline(self, tensors: Sequence[Any], numbers: Sequence[Any], written: Sequence[Any] = ()) -> Outline:
        """What it returns of tensors of these shapes and data types. Raises what the operator raises."""
        types = tuple((tuple(tensor.shape), tensor.dtype) for tensor in (*tensors, *written))
        try:
            return _known_outline(self, types, len(tensors), tuple(numbers))
        except _Unhashable:
            return self._outline(types, len(tensors), numbers)

    def _outline(self, types: Sequence[tuple[tuple[Any, ...], torch.dtype]], read: int, numbers: Any) -> Outline:
        if isinstance(self.operator, Operator):
            return self._outline_of_users(types, read, numbers)
        with Sketch(host_target()) as sketch:
            buffers = [_buffer_of(sketch, *each) for each in types]
            args, kwargs = self.arguments(buffers[:read], numbers, buffers[read:])
            result = plain(self.operator)(*args, **kwargs)

        def described(leaf: Any) -> tuple[int, Any] | None:
            array = leaf.array if isinstance(leaf, Buffer) else leaf
            if not isinstance(array, Array):
                return None
            return Recording.place(array.pointer)[0], (array.shape, _dtype_of(array), None)

        return _outline_of(result, described, {i: i for i in range(len(types))})

    def _outline_of_users(self, types: Any, read: int, numbers: Any) -> Outline:
        """Of a function that may call torch: on tensors without data, apart from what traces."""
        with _disable_current_modes(), sketching():
            tensors = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in types]
            args, kwargs = self.arguments(tensors[:read], numbers, tensors[read:])
            result = self.operator.fake(*args, **kwargs)

        def described(leaf: Any) -> tuple[int, Any] | None:
            if not isinstance(leaf, torch.Tensor):
                return None
            return leaf.untyped_storage()._cdata, (tuple(leaf.shape), leaf.dtype, tuple(leaf.stride()))

        known = {tensor.untyped_storage()._cdata: i for i, tensor in enumerate(tensors)}
        return _outline_of(result, described, known)


def _outline_of(result: Any, described: Callable[[Any], tuple[int, Any] | None], known: dict[int, int]) -> Outline:
    """The outline of a result. `described` says of a leaf which memory it has, and what it is; None of what is no
    tensor. `known` are the inputs by their memory."""
    made: dict[int, Any] = {}

    def place_of(leaf: Any) -> Any:
        found = described(leaf)
        if found is None:
            return leaf
        memory, about = found
        if memory in known:
            return Place("inputs", known[memory])
        made.setdefault(memory, about)
        return Place("outputs", list(made).index(memory))

    leaves, tree = pytree.tree_flatten(result)
    return Outline(tuple(map(place_of, leaves)), tree, tuple(made.values()))


class _Unhashable(TypeError):
    """Extents are symbols."""


def _known_outline(call: Call, types: Any, read: int, numbers: tuple[Any, ...]) -> Outline:
    try:
        hash((types, numbers))
    except TypeError:
        raise _Unhashable from None
    return _outlines(call, types, read, numbers)


@functools.lru_cache(maxsize=4096)
def _outlines(call: Call, types: Any, read: int, numbers: tuple[Any, ...]) -> Outline:
    return call._outline(types, read, numbers)


@functools.lru_cache(maxsize=4096)
def call_of(text: str) -> Call:
    """The call that was spelled so. Raises ValueError where its operator is not known here."""
    name, arguments = read(text)
    return Call(named_in_graphs(name), arguments)


def plain(operator: Any) -> Callable[..., Any]:
    """An operator without what leads to this package."""
    if inspect.isfunction(operator):
        on_memory: Callable[..., Any] = operator.on_memory  # type: ignore[attr-defined]
        return on_memory
    method: Any = type(operator).__call__
    return functools.partial(method.__wrapped__.on_memory, operator)


def call(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """`operator(*args, **kwargs)` on tensors that need a gradient, are transformed or are traced.

    Raises what the operator raises; TypeError where a tensor needs a gradient that the call has not.
    """
    from .operators import Differentiable, in_place, overload

    name = operator.graph_name
    writes = operator.writes if isinstance(operator, Operator) else _WRITES_OF.get(name, _WRITES)
    try:
        spelled = spell(name, args, kwargs, _parameters(operator), writes)
    except TypeError:
        # Beside arrays of other libraries nothing has a gradient: that is what is wrong of such calls.
        for what, value in (*zip(_parameters(operator), args, strict=False), *kwargs.items()):
            if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
                raise _dropped(what, operator) from None
        raise
    for what, tensor in zip(spelled.written_names, spelled.written, strict=True):
        torch_tensors.check_writable(what, tensor)
    for what, tensor in zip(spelled.names, spelled.tensors, strict=True):
        _check_traceable(what, tensor)
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
            raise TypeError(
                f"argument '{what}' has a tangent, expected none: operators have no forward-mode derivative"
            )
    wanting: list[str] = []
    if torch.is_grad_enabled():
        wanting = [n for n, t in zip(spelled.names, spelled.tensors, strict=True) if t.requires_grad]
        if wanting and (spelled.written or rule_of(operator, args, kwargs) is None):
            raise _dropped(wanting[0], operator)
    found = call_of(spelled.text)
    outline = found.outline(spelled.tensors, spelled.numbers, spelled.written)
    if spelled.written:
        count = len(outline.outputs)
        results = in_place(count)(spelled.tensors, spelled.written, spelled.numbers, spelled.text)
        made = [results] if count == 1 else results or []
    elif wanting:
        made = Differentiable.apply(name, spelled.text, tuple(spelled.numbers), *spelled.tensors)
    else:
        made = overload(name)(spelled.tensors, spelled.numbers, spelled.text)
    return outline.filled([*spelled.tensors, *spelled.written], made)


def _dropped(name: str, operator: Any) -> TypeError:
    return TypeError(
        f"argument '{name}' requires a gradient, which {operator.__name__} with these arguments has not: "
        f"pass {name}.detach(), call it under torch.no_grad(), or give it the gradient of the identity "
        "with dither.torch.straight_through"
    )


def _check_traceable(name: str, tensor: torch.Tensor) -> None:
    """Raises TypeError for tensors that stand for others, but for those that torch itself traces with."""
    if isinstance(tensor, (FakeTensor, FunctionalTensor)) or (is_sketching() and tensor.device.type == "meta"):
        return
    try:
        torch_tensors.check(tensor)
    except TypeError as error:
        raise TypeError(f"argument '{name}': {error}") from None


@functools.lru_cache(maxsize=1024)
def _parameters(operator: Any) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(name for name, p in inspect.signature(operator).parameters.items() if p.kind in kinds)


def _buffer_of(sketch: Sketch, shape: tuple[Any, ...], dtype: torch.dtype) -> Buffer:
    name = str(dtype).removeprefix("torch.")
    known = FOREIGN.get(name)
    if known is not None and known.bits == 4:
        known, name = None, "uint8"
    return sketch.empty(known, shape, name)


def _dtype_of(array: Array) -> torch.dtype:
    """torch's data type of an array that a call returns. What torch has no type for lies in uint8."""
    found: torch.dtype = torch.uint8 if array.storage.startswith("float6") else getattr(torch, array.storage)
    return found
