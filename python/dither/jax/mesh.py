"""Axes of meshes by what they split, and arrays that are split as the names of their dimensions say."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
from jax._src.mesh import thread_resources
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from ..data_classes import dataclass
from ..ops import ScaledTensor1x, ScaledTensor2x
from ..ops.tensor_methods import TensorMethods
from .settings import told_to_jit, within
from .tensors import GroupedNoScaleTensor, NoScaleTensor

#: Names of dimensions that every `MeshResource` gives axes to.
BATCH_AXES = "dither_batch"
SEQLEN_AXES = "dither_seqlen"
SEQLEN_TP_AXES = "dither_seqlen_tp"
SEQLEN_CP_AXES = "dither_seqlen_cp"
HEAD_AXES = "dither_head"
HIDDEN_AXES = "dither_hidden"
HIDDEN_TP_AXES = "dither_hidden_tp"
JOINED_AXES = "dither_joined"
W_NO_SHARD_AXES = "dither_w_no_shard"
W_FSDP_AXES = "dither_w_fsdp"
W_TP_AXES = "dither_w_tp"
W_JOINED_AXES = "dither_w_joined"


@dataclass(frozen=True)
class MeshResource:
    """Names of axes of a mesh, None where it has none.

    Attributes:
        dp_resource: of data parallelism, which splits the batch.
        tp_resource: of tensor parallelism, which splits hidden dimensions.
        tpsp_resource: the same, where sequences are split along it, too, between the products.
        fsdp_resource: what splits the batch and the parameters.
        pp_resource: of pipelines. cp_resource: of context parallelism. ep_resource: of experts.
    """

    dp_resource: str | None = None
    tp_resource: str | None = None
    tpsp_resource: str | None = None
    fsdp_resource: str | None = None
    pp_resource: str | None = None
    cp_resource: str | None = None
    ep_resource: str | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{field.name} is {value!r}, expected the name of an axis of a mesh or None")

    def axes(self) -> tuple[str, ...]:
        """Every axis but that of pipelines, once."""
        names = [getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "pp_resource"]
        return tuple(dict.fromkeys(name for name in names if name is not None))


_resource = told_to_jit(contextvars.ContextVar("dither_mesh_resource", default=None))
#: Pairs of a name and axes.
_rules = told_to_jit(contextvars.ContextVar("dither_axis_rules", default=()))


@contextlib.contextmanager
def global_shard_guard(resource: MeshResource, rules: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Says what axes the mesh has, for calls within. `rules` gives names of dimensions axes of the mesh (a name, some
    names or None), besides the names of this module. It holds in this context (`contextvars`) alone."""
    if not isinstance(resource, MeshResource):
        raise TypeError(f"argument 'resource' is {type(resource).__name__}, expected a dither.jax.MeshResource")
    named = {
        name: axes if axes is None or isinstance(axes, str) else tuple(axes) for name, axes in (rules or {}).items()
    }
    with within(_resource, resource), within(_rules, tuple({**dict(_rules.get()), **named}.items())):
        yield


def global_mesh_resource() -> MeshResource:
    """That of the innermost `global_shard_guard`; one without axes where there is none."""
    return _resource.get() or MeshResource()


def get_sharding_map_logic_axis_to_mesh_axis() -> dict[str, Any]:
    """Axes of the mesh by names of dimensions."""
    r = global_mesh_resource()
    tp = tuple(name for name in (r.tp_resource, r.tpsp_resource) if name is not None)
    batch = tuple(name for name in (r.fsdp_resource, r.dp_resource) if name is not None)
    return {
        BATCH_AXES: batch,
        SEQLEN_AXES: None,
        SEQLEN_TP_AXES: r.tpsp_resource,
        SEQLEN_CP_AXES: r.cp_resource,
        HEAD_AXES: tp,
        HIDDEN_AXES: None,
        HIDDEN_TP_AXES: tp,
        JOINED_AXES: None,
        W_NO_SHARD_AXES: None,
        W_FSDP_AXES: r.fsdp_resource,
        W_TP_AXES: tp,
        W_JOINED_AXES: None,
        **dict(_rules.get()),
    }


def with_sharding_constraint_by_logical_axes(x: Any, logical_axis_names: Sequence[str | None] | None) -> Any:
    """`x`, an array or a quantized tensor, split over the mesh as the names of its dimensions say.

    Names are those of `global_shard_guard`, and stand for the dimensions of the tensor in its own order: they are
    turned for transposed codes. None is a dimension that is whole. Of block scales the matrix is split like a matrix
    of codes. Without names or without a mesh (`jax.set_mesh`, `with mesh:`) it is `x` itself. Raises ValueError for a
    name that means nothing or another number of names than dimensions, NotImplementedError for grouped tensors.
    """
    if not logical_axis_names:
        return x
    names = tuple(logical_axis_names)
    if isinstance(x, ScaledTensor2x):
        rowwise = with_sharding_constraint_by_logical_axes(x.rowwise, names)
        if x.colwise.shape != x.rowwise.shape:  # of a transform that has put rows of zeros after those of the tensor
            return ScaledTensor2x(rowwise, x.colwise)
        return ScaledTensor2x(rowwise, with_sharding_constraint_by_logical_axes(x.colwise, names))
    if isinstance(x, NoScaleTensor):
        return dataclasses.replace(x, data=_constrained(x.data, _spec(names, len(x.data.shape))))
    if isinstance(x, (TensorMethods, GroupedNoScaleTensor)) and not isinstance(x, ScaledTensor1x):
        raise NotImplementedError(f"argument 'x' is a {type(x).__name__}, expected no grouped tensor")
    if not isinstance(x, ScaledTensor1x):
        return _constrained(x, _spec(names, len(x.shape)))
    spec = _spec(names, len(x.shape))
    axis = x.flatten_axis % len(x.shape)
    if x.is_transposed:
        spec, axis = spec[axis:] + spec[:axis], len(spec) - axis
    data = x.data
    if len(data.shape) == len(spec):
        data = _constrained(data, spec)
    scales = x.scale_inv
    if len(spec) == 2 and not isinstance(x.format.block, str):
        scales = _constrained(scales, spec)
    return dataclasses.replace(x, data=data, scale_inv=scales)


def _spec(names: tuple[str | None, ...], rank: int) -> tuple[Any, ...]:
    if len(names) != rank:
        raise ValueError(f"found {len(names)} names of dimensions, {names}, expected {rank}")
    known = get_sharding_map_logic_axis_to_mesh_axis()
    unknown = [name for name in names if name is not None and name not in known]
    if unknown:
        raise ValueError(f"found the name {unknown[0]!r} of a dimension, expected one of {', '.join(known)}")
    return tuple(None if name is None else known[name] for name in names)


def _constrained(x: Any, spec: tuple[Any, ...]) -> Any:
    mesh: Any = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        mesh = thread_resources.env.physical_mesh  # of `with mesh:`, the older way
    if mesh.empty:
        return x
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    free = {name for name, kind in kinds.items() if kind is not AxisType.Manual}
    entries = []
    for entry in spec:
        names = (entry,) if isinstance(entry, str) else tuple(entry or ())
        entries.append(tuple(name for name in names if name in free) or None)
    if not free:
        return x
    sharding = NamedSharding(mesh, PartitionSpec(*entries))
    if all(kinds[name] is AxisType.Explicit for name in free):
        return jax.sharding.reshard(x, sharding)
    return jax.lax.with_sharding_constraint(x, sharding)


def manual_axes(names: Sequence[str | None]) -> tuple[str, ...]:
    """Those of these axes that split what a function of `jax.shard_map` sees."""
    mesh = jax.sharding.get_abstract_mesh()
    manual = () if mesh.empty else mesh.manual_axes
    return tuple(dict.fromkeys(name for name in names if name is not None and name in manual))
