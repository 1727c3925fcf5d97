"""Calls on tensors that lie in several processes, each of which has a part: what they give has the bits of one process.

A call is recorded (recording.py), which says what it launches and what parts exchange in between: maxima, and sums of
columns. Its programs run on the tensors here, and torch.distributed exchanges.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..arrays import FOREIGN
from ..devices import get_device
from ..programs import Place, Stages, map_leaves, staged
from ..recording import Collective, Recording, Shard
from ..types import int64
from .exchange import all_reduce_amax, gathered, group_of
from .fields import parts_of, tensors_of
from .rows import along, check_rows, concatenated, fields_of
from .sums import OrderedReduceScatter, all_reduce_sum, ordered_hook, ordered_sum, reduce_scatter_sum
from .tensor import QuantizedTensor

__all__ = [
    "OrderedReduceScatter",
    "all_gather",
    "all_reduce_amax",
    "all_reduce_sum",
    "ordered_hook",
    "ordered_sum",
    "reduce_scatter_sum",
    "sharded",
]

#: What recorded programs take buffers to be multiples of, in bytes.
_ALIGNED = 32


def sharded(fn: Callable[..., Any], rows: Any = None, cols: Any = None, check: bool = True) -> Callable[..., Any]:
    """An operator of dither on parts of tensors, one in each process of a group.

        q = dither.torch.distributed.sharded(dither.quantize, rows=group)(x, "nvfp4")

    Args:
        fn: an operator, or a function that calls one: it takes and returns torch's tensors.
        rows, cols: the groups of processes (or device meshes of one dimension) that split the rows, and the columns, in
            the order of ranks; None where they are whole. Parts follow one another along the first dimension of each,
            and are of one shape.
        check: whether processes compare what they call first: eight bytes of each.

    Amaxes are those of the whole tensor, columns are summed over all its rows in the order that one process has (pairs
    of neighbours of the parts, then pairs of these), and random bits are those of places in the whole: what is returned
    is a part of what one process returns, bit for bit. All processes make the same call. Raises ValueError for what
    cannot be split so, and, with `check`, in all processes where they disagree about shapes or options.
    """
    groups = {what: None if given is None else group_of(given) for what, given in (("rows", rows), ("cols", cols))}

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors: list[torch.Tensor] = []
        key = _key((args, kwargs), tensors)
        if not tensors:
            raise TypeError("found no tensors of torch among the arguments, expected one at least")
        over = {what: group for what, group in groups.items() if group is not None and dist.get_world_size(group) > 1}
        if check:
            for group in over.values():
                _check_same(getattr(fn, "__name__", "a function"), key, group, tensors[0].device)
        return _run(fn, key, args, kwargs, tensors, over)

    return call


def _run(fn: Any, key: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor], over: dict[str, Any]) -> Any:
    device = tensors[0].device
    where = get_device(str(device) if device.type == "cpu" else f"cuda:{device.index or 0}")
    parts = {what: dist.get_world_size(over[what]) if what in over else 1 for what in ("rows", "cols")}
    stages = _staged(fn, key, args, kwargs, tensors, parts, where.target)
    _check_splits(getattr(fn, "__name__", "a function"), stages, parts)
    known: dict[int, torch.Tensor] = dict(enumerate(map(_dense, tensors)))
    known[len(tensors)] = _origin(stages, over, parts, device)
    stream = 0 if device.type == "cpu" else torch.cuda.current_stream(device).cuda_stream
    for step in stages.steps:
        if isinstance(step, Collective):
            found = _exchanged(step, known[stages.index(step.source)], over)
            known[stages.index(step.target)] = found
            continue
        program, taken, stored = step
        outputs = [torch.empty(each.shape, dtype=_dtype(each.dtype), device=device) for each in program.outputs]
        workspace = torch.empty(program.workspace, dtype=torch.uint8, device=device) if program.workspace else None
        program.run([known[i] for i in taken], outputs, workspace, where, stream)
        known |= dict(zip(stored, outputs, strict=True))

    def tensor_of(leaf: Any) -> Any:
        if not isinstance(leaf, Place):
            return leaf
        return tensors[leaf.index] if leaf.kind == "inputs" else known[stages.outputs[leaf.index]]

    return map_leaves(tensor_of, stages.result)


#: What calls launch, as far as this many are kept.
_stages: dict[Any, Stages] = {}
_MOST_STAGES = 1024


def _staged(fn: Any, key: Any, args: Any, kwargs: Any, tensors: Any, parts: dict[str, int], target: str) -> Stages:
    """What a call launches on parts of these shapes."""
    known = (fn, key, parts["rows"], parts["cols"], target)
    if known not in _stages:
        if len(_stages) >= _MOST_STAGES:
            _stages.clear()
        with Recording(target) as recording:
            buffers = [_buffer(recording, tensor) for tensor in tensors]
            origin = _buffer(recording, torch.empty(4, dtype=torch.int64, device="meta"))
            recording.shard = Shard(parts["rows"], parts["cols"], origin.view(int64, "int64", (4,)))
            given = iter(buffers)

            def placed(leaf: Any) -> Any:
                return next(given) if isinstance(leaf, torch.Tensor) else leaf

            args, kwargs = map_leaves(placed, args), map_leaves(placed, kwargs)
            _stages[known] = staged(recording, [*buffers, origin], fn(*args, **kwargs))
    return _stages[known]


def _buffer(recording: Recording, tensor: torch.Tensor) -> Any:
    name = str(tensor.dtype).removeprefix("torch.")
    kind = FOREIGN.get(name)
    if kind is not None and kind.bits == 4:
        name, kind = "uint8", None
    return recording.empty(kind, tuple(tensor.shape), name)


def _check_splits(name: str, stages: Stages, parts: dict[str, int]) -> None:
    """Raises ValueError for a call that cannot be split into so many parts of this shape."""
    splitting = stages.splitting
    if splitting is None:
        raise ValueError(f"found a call of {name} on parts of tensors, expected one of an operator that can be split")
    counts = {"row0": parts["rows"], "col0": parts["cols"]}
    extents = {label: n * counts.get(label, 1) for label, n in splitting.extents.items()}
    whole = dataclasses.replace(splitting, extents=extents)
    for label, count in counts.items():
        if count > 1 and (label not in extents or whole.most(label) % count):
            what = "rows" if label == "row0" else "columns"
            unit = "whole" if label in whole.whole else f"in multiples of {whole.units[label[:3]]}"
            found = f"{splitting.extents.get(label, 0)} each"
            raise ValueError(f"{name}: the {what} are split over {count} processes, {found}, expected them {unit}")


def _origin(stages: Stages, over: dict[str, Any], parts: dict[str, int], device: Any) -> torch.Tensor:
    """The first row and column of the part, and the rows and columns of the whole."""
    rows, cols = stages.extents
    first = [dist.get_rank(over[what]) if what in over else 0 for what in ("rows", "cols")]
    return torch.tensor([first[0] * rows, first[1] * cols, parts["rows"] * rows, parts["cols"] * cols], device=device)


def _exchanged(step: Collective, x: torch.Tensor, over: dict[str, Any]) -> torch.Tensor:
    groups = [over[what] for what in step.over if what in over]
    if step.kind == "gather":
        (group,) = groups
        return gathered(x.reshape(-1), group).reshape(step.target.shape)
    for group in groups:
        all_reduce_amax(x, group)
    return x


def all_gather(q: Any, group: Any = None) -> Any:
    """The whole of a quantized tensor of which each process of a group has some rows, gathered as codes and scales.

    `q` is a QuantizedTensor, or what dither's operators give; so is the result. Parts are in the order of ranks, of one
    shape, and have one amax where the format has one for the tensor (`sharded`). Scales are in linear order, or along
    rows in tiles of whole rows. Raises ValueError for others, in all processes.
    """
    wrapped = isinstance(q, QuantizedTensor)
    part, group = (q.quantized if wrapped else q), group_of(group)
    check_rows(part, "argument 'q'")
    tensors = tensors_of(part)
    _check_same("all_gather", _key(part, []), group, next(iter(tensors.values())).device)
    shared = {
        f"_{way}_{name}"
        for way, half in parts_of(part).items()
        for name in fields_of(half)
        if along(half, name) is None
    }
    found: dict[str, Sequence[torch.Tensor]] = {}
    for name, tensor in tensors.items():
        raw = gathered(tensor.contiguous().reshape(-1).view(torch.uint8), group)
        found[name] = [row.view(tensor.dtype).reshape(tensor.shape) for row in raw]
        if name in shared and not (raw == raw[0]).all():
            what = name.removeprefix("_rowwise_").removeprefix("_columnwise_")
            raise ValueError(
                f"argument 'q' has another {what} in other processes, expected one: quantize parts by "
                "dither.torch.distributed.sharded"
            )
    whole = concatenated(part, found)
    return QuantizedTensor(whole) if wrapped else whole


def _check_same(name: str, key: Any, group: Any, device: Any) -> None:
    """Raises ValueError in all processes of a group where one calls something else."""
    digest = hashlib.sha256(repr(_comparable(key)).encode()).digest()
    mine = torch.tensor([int.from_bytes(digest[:8], "little", signed=True)], dtype=torch.int64, device=device)
    all_of = gathered(mine, group).flatten()
    if not (all_of == all_of[0]).all():
        others = [rank for rank, value in enumerate(all_of.tolist()) if value != all_of[0]]
        raise ValueError(
            f"{name}: processes {', '.join(map(str, others))} of the group have other shapes or options than process "
            f"0, expected one call on parts of one shape; this one has {_shapes(key)}"
        )


def _comparable(key: Any) -> Any:
    """A key without what has other names in each process."""
    if isinstance(key, tuple):
        return tuple(_comparable(each) for each in key)
    return key if isinstance(key, (str, int, float, type(None))) else type(key).__name__


def _shapes(key: Any) -> str:
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, tuple):
            if value and value[0] == "tensor":
                found.append(f"{value[2]} {value[1]}")
            else:
                for each in value:
                    look(each)

    look(key)
    return ", ".join(found)


def _key(value: Any, tensors: list[torch.Tensor]) -> Any:
    """What a call is known by: its tensors, which go to `tensors`, by shape and data type, everything else by value."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "tensor", tuple(value.shape), str(value.dtype)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, *(_key(each, tensors) for each in value)
    if isinstance(value, dict):
        return "dict", *((name, _key(each, tensors)) for name, each in value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.init]
        return type(value).__name__, *((name, _key(each, tensors)) for name, each in fields)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"found a {type(value).__name__} among the arguments, expected tensors and what can be hashed"
        ) from None
    return type(value).__name__, value


def _dense(x: torch.Tensor) -> torch.Tensor:
    """A tensor as programs take it: dense, and where wide accesses may be."""
    x = x.detach().contiguous()
    return x if x.data_ptr() % _ALIGNED == 0 or not x.numel() else x.clone()


def _dtype(name: str) -> torch.dtype:
    """The data type of an array that a call returns; what torch has no type for lies in uint8."""
    found: torch.dtype = getattr(torch, "uint8" if name.startswith("float6") else name)
    return found
