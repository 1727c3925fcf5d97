"""Calls on arrays that lie on several devices: each has the call on its part, and exchanges what depends on others.

Where a mesh splits what an operator takes by rows or columns, and blocks stay whole, every device quantizes its part:
nothing is gathered. Amaxes are those of the whole tensor, sums of columns are added in the order of the parts, and
random bits are those of places in the whole, so that codes, scales and amaxes have the bits of one device.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax._src.sharding_impls import parse_flatten_op_sharding
from jax.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from jax.sharding import NamedSharding, PartitionSpec

from ..programs import Stages
from ..recording import Collective, Splitting

if TYPE_CHECKING:
    from .calls import Call

#: Axes of a mesh by the dimension that they split, as `Splitting` names it.
Axes = Mapping[str, tuple[str, ...]]


def partitioned(call: Call, program: Any, whole: Callable[..., Any]) -> Callable[..., Any]:
    """`whole`, a call on whole arrays, for XLA to partition; `program` is what it launches."""
    splitting: Splitting | None = program.splitting
    inputs, outputs = len(program.inputs), len(program.outputs)

    def partition(mesh: Any, args: Any, results: Any) -> Any:
        axes = _axes(call, splitting, mesh, [_spec(arg.sharding, mesh) for arg in args])
        if splitting and not call.keeps_dimensions:
            _say_joined(call, splitting, mesh, axes, {inputs + i: out.shape for i, out in enumerate(program.outputs)})

        def sharding(i: int, rank: int) -> NamedSharding:
            labels = splitting.labels[i] if splitting else (None,) * rank
            return NamedSharding(mesh, PartitionSpec(*(axes.get(label or "") or None for label in labels)))

        given = tuple(sharding(i, len(arg.shape)) for i, arg in enumerate(args))
        made = tuple(sharding(inputs + i, len(result.shape)) for i, result in enumerate(results))

        def part(*arrays: Any) -> Any:
            if not axes:
                return tuple(whole(*arrays))
            return run_part(call, axes, {axis: mesh.shape[axis] for axis in mesh.axis_names}, arrays)

        return mesh, part, made, given

    function = custom_partitioning(lambda *arrays: tuple(whole(*arrays)))
    shapes = [tensor.shape for tensor in (*program.inputs, *program.outputs)]
    if splitting:
        shapes = [splitting.shapes[i] for i in range(len(shapes))]
    rule = _rule(splitting, shapes, inputs, outputs)
    function.def_partition(partition=partition, sharding_rule=rule, decode_shardings=False)
    return function


def _rule(splitting: Splitting | None, shapes: Sequence[tuple[int, ...]], inputs: int, outputs: int) -> SdyShardingRule:
    """What XLA propagates: dimensions that are split alike have a factor of so many parts at most, times the rest."""
    sizes: dict[str, int] = {}
    mappings = []
    for i, shape in enumerate(shapes):
        factors: list[Any] = []
        for k, extent in enumerate(shape):
            label = splitting.labels[i][k] if splitting else None
            parts = splitting.most(label) if splitting and label else 1
            own = f"x{i}d{k}"
            if label is None or parts == 1:
                factors.append(own)
            elif extent == parts:
                factors.append(label)
            else:
                factors.append(CompoundFactor(label, own))
                sizes |= {label: parts, own: extent // parts}
        mappings.append(ArrayMapping(*factors))
    alone = {factor for mapping in mappings for factor in mapping if isinstance(factor, str)}
    known = {name: size for name, size in sizes.items() if name not in alone}
    return SdyShardingRule(tuple(mappings[:inputs]), tuple(mappings[inputs:]), **known)  # type: ignore[arg-type]


def _spec(sharding: Any, mesh: Any) -> Any:
    """The axes of a mesh for each dimension of an array; None where it is split over parts of an axis."""
    try:
        return parse_flatten_op_sharding(sharding._to_xla_hlo_sharding(0), mesh)[0]
    except ValueError:
        return None


def _axes(call: Call, splitting: Splitting | None, mesh: Any, specs: Sequence[Any]) -> Axes:
    """How a call is split whose arrays are: the first one that splits a dimension decides. What must be whole is
    gathered, with a warning."""
    found: dict[str, tuple[str, ...]] = {}

    def gathered(what: str, expected: str) -> None:
        name = getattr(call.fn, "__name__", "a function")
        warnings.warn(f"{name}: {what}, expected {expected}: it is gathered", stacklevel=3)

    for i, spec in enumerate(specs):
        argument = f"argument '{call.names[i]}'"
        if spec is None:
            gathered(f"{argument} is split over a part of an axis of the mesh", "whole axes, or less of them")
            continue
        for k, entry in enumerate(spec):
            axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            axes = tuple(axis for axis in axes if mesh.shape[axis] > 1)
            label = splitting.labels[i][k] if splitting else None
            if not axes or label in found:
                continue
            parts = math.prod(mesh.shape[axis] for axis in axes)
            taken = {axis for others in found.values() for axis in others}
            most = splitting.most(label) if splitting and label else 1
            if label is None or most % parts or taken & set(axes):
                what = f"dimension {k} of {argument} is split over {parts} devices ({', '.join(axes)})"
                gathered(what, "it whole" if most == 1 else f"a number of parts that divides {most}")
                continue
            found[label] = axes
    return found


def _say_joined(
    call: Call, splitting: Splitting, mesh: Any, axes: Axes, outputs: Mapping[int, tuple[int, ...]]
) -> None:
    """Warns of `outputs` that are matrices of joined dimensions where one that is not the first is split."""
    for i, shape in outputs.items():
        labels = splitting.labels[i]
        if len(labels) <= len(shape):
            continue
        for label in (one for one in labels if one is not None and one in axes):
            before = [f"{label[:3]}{k}" for k in range(int(label[3:]))]
            if math.prod(splitting.extents[one] for one in before) == 1:
                continue
            name, over = getattr(call.fn, "__name__", "a function"), ", ".join(axes[label])
            parts = math.prod(mesh.shape[axis] for axis in axes[label])
            warnings.warn(
                f"{name}: a result of shape {tuple(shape)} joins the dimensions {splitting.shapes[i]}, and one that is "
                f"not the first is split over {parts} devices ({over}): it is gathered where it is used",
                stacklevel=3,
            )


def checked_axes(
    call: Call, splitting: Splitting | None, rows: tuple[str, ...], cols: tuple[str, ...], sizes: Mapping[str, int]
) -> Axes:
    """The axes of a call on parts of this shape. Raises ValueError for what cannot be split so."""
    name = getattr(call.fn, "__name__", "a function")
    if splitting is None:
        raise ValueError(f"found a call of {name} on parts of tensors, expected one of an operator that can be split")
    axes = {label: names for label, names in (("row0", rows), ("col0", cols)) if names}
    extents = {label: n * math.prod(sizes[a] for a in axes.get(label, ())) for label, n in splitting.extents.items()}
    whole = dataclasses.replace(splitting, extents=extents)
    for label, names in axes.items():
        parts = math.prod(sizes[axis] for axis in names)
        if whole.most(label) % parts:
            what = "rows" if label == "row0" else "columns"
            unit = "whole" if label in whole.whole else f"in multiples of {whole.units[label[:3]]}"
            raise ValueError(
                f"{name}: the {what} are split over {parts} devices ({', '.join(names)}), {splitting.extents[label]} "
                f"each, expected them {unit}"
            )
    return axes


def run_part(call: Call, axes: Axes, sizes: Mapping[str, int], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """A call on parts of arrays, where axes of a mesh of these sizes have names: what it gives is parts, too."""
    over = {
        "rows": tuple(axis for label in sorted(axes) if label.startswith("row") for axis in axes[label]),
        "cols": tuple(axis for label in sorted(axes) if label.startswith("col") for axis in axes[label]),
    }
    parts = {what: math.prod(sizes[axis] for axis in names) for what, names in over.items()}
    arrays = [jnp.asarray(array) for array in arrays]  # int64 of NumPy may be int32 here
    types = tuple((tuple(array.shape), str(array.dtype)) for array in arrays)
    later = [label for label in sorted(axes) if not label.endswith("0")]
    rows, cols = (tuple(int(label[3:]) for label in later if label.startswith(what)) for what in ("row", "col"))
    inner = rows, cols
    split = call.split(types, parts["rows"], parts["cols"], inner)
    stages = call.stages(split)
    known: dict[int, Any] = dict(enumerate(arrays))
    known[len(arrays)] = _origin(stages, axes, sizes, inner)
    for at, step in enumerate(stages.steps):
        if isinstance(step, Collective):
            names = tuple(axis for what in step.over for axis in over[what])
            known[stages.index(step.target)] = _exchanged(step.kind, known[stages.index(step.source)], names)
        else:
            _, taken, stored = step
            made = call.run_stage(split._replace(stage=at), [known[i] for i in taken])
            known |= dict(zip(stored, made, strict=True))
    return tuple(known[i].reshape(shape) for i, shape in zip(stages.outputs, stages.shapes, strict=True))


def _exchanged(kind: str, x: Any, axes: tuple[str, ...]) -> Any:
    if kind == "gather":
        return jax.lax.all_gather(x.reshape(-1), axes)
    # As integers: NaN are larger than all else, as in kernels.
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    return jax.lax.bitcast_convert_type(jax.lax.pmax(bits, axes), x.dtype)


def _origin(
    stages: Stages, axes: Axes, sizes: Mapping[str, int], inner: tuple[tuple[int, ...], tuple[int, ...]]
) -> Any:
    """Where the part is (`Shard.origin`): words of 32 bits, the low ones first."""

    def count(label: str) -> int:
        return math.prod(sizes[axis] for axis in axes.get(label, ()))

    def index(label: str) -> Any:
        names = axes.get(label, ())
        return jax.lax.axis_index(names).astype(jnp.uint32) if names else jnp.uint32(0)

    def extent(label: str, of_whole: bool) -> int:
        """Elements of this dimension and those after it."""
        assert stages.splitting is not None
        own = [one for one in stages.splitting.extents if one[:3] == label[:3] and one >= label]
        return math.prod(stages.splitting.extents[one] * (count(one) if of_whole else 1) for one in own)

    firsts, totals, apart = [], [], []
    for what, own, dims in zip(("row", "col"), stages.extents, inner, strict=True):
        levels = [(label, extent(label, False), extent(label, True)) for label in (f"{what}{dim}" for dim in dims)]
        of_whole = own if not levels else own // levels[0][1] * levels[0][2]
        firsts.append(index(f"{what}0") * jnp.uint32(of_whole))
        totals.append(jnp.uint32(of_whole * count(f"{what}0")))
        # Those of the next level, or one element, are as far apart as in the whole.
        for (label, together, whole), (_, next_own, next_whole) in itertools.pairwise([*levels, ("", 1, 1)]):
            begin = index(label) * jnp.uint32(together // next_own * next_whole)
            apart += [jnp.uint32(together), jnp.uint32(whole), begin]
    words: list[Any] = []
    for word in (*firsts, *totals, *apart):
        words += [word, jnp.uint32(0)]
    return jnp.stack(words)
