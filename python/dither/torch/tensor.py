"""Quantized tensors as tensors of torch."""

from __future__ import annotations

import copy
import dataclasses
import re
from typing import Any

import torch

from ..arrays import FOREIGN
from ..ops import (
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    ScaledTensor1x,
    ScaledTensor2x,
    grouped_quantize,
    quantize,
)
from ..types import dtype_from_mlir, float4_e2m1
from .columns import columns_of
from .dtypes import check_dtype, dither_dtype, torch_dtype
from .fields import (
    Description,
    Quantized,
    description_of,
    joined,
    map_tensors,
    parts_of,
    quantized_of,
    tensors_of,
    ways_of,
)
from .values import is_traced, traced_values, traced_write, values, write

_KINDS = (ScaledTensor1x, ScaledTensor2x, GroupedScaledTensor1x, GroupedScaledTensor2x)


class QuantizedTensor(torch.Tensor):
    """A tensor in a format of dither that torch takes for one in high precision.

    It has codes along rows, along columns, or both, of any format, or of groups of rows. Its shape, data type and
    device are those of its values. What torch computes of it, it computes of the values; what changes it in place
    dequantizes, computes and quantizes into the same memory, with new scales. It may be a Parameter, be saved, and
    be sharded by FSDP2. docs/torch-tensors.md has the rest.

        w = QuantizedTensor.of(torch.randn(512, 256), "mxfp8_e4m3", "both")
        layer.weight = torch.nn.Parameter(w)

    Attributes:
        description: all but its tensors, in plain values (fields.py).
    """

    #: Never set: torch swaps tensors of classes with the same slots alone (`torch.utils.swap_tensors`), so that a plain
    #: one does not take the place of this one in silence.
    __slots__ = ("_quantized_alone",)

    description: Description
    #: Whether it is some rows of a tensor whose scales depend on all of them, which it shares.
    is_part: bool
    #: Processes whose tensors are the other rows of one tensor: amaxes are those of all.
    amax_group: Any

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(
        cls: type[QuantizedTensor],
        quantized: Quantized,
        *,
        shape: tuple[int, ...] | None = None,
        requires_grad: bool = False,
        is_part: bool = False,
        amax_group: Any = None,
    ) -> QuantizedTensor:
        if not isinstance(quantized, _KINDS):
            names = ", ".join(kind.__name__ for kind in _KINDS)
            raise TypeError(f"argument 'quantized' is {type(quantized).__name__}, expected one of {names}")
        tensors = tensors_of(quantized)
        for name, value in tensors.items():
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"argument 'quantized' has {name[1:]} of {type(value).__name__}, expected torch's")
        some = next(iter(parts_of(quantized).values()))
        made = _wrapper(
            cls, some.shape if shape is None else shape, torch_dtype(some.dtype), some.data.device, requires_grad
        )
        made.description = description_of(quantized)
        made.is_part, made.amax_group = is_part, amax_group
        made.__dict__.update(tensors)
        return made

    @classmethod
    def of(cls, x: torch.Tensor, format: Any, layout: str = "rowwise", **options: Any) -> QuantizedTensor:
        """`dither.quantize(x, format, layout, **options)` as a tensor. It has no gradient, whatever `x` has; groups of
        rows are those of `group_sizes`, `group_starts` or `group_ends`, as of `dither.grouped_quantize`."""
        grouped = any(name.startswith("group_") for name in options)
        return cls((grouped_quantize if grouped else quantize)(x.detach(), format, layout, **options))

    # -- what it holds -----------------------------------------------------------------------

    @property
    def quantized(self) -> Any:
        """What dither's operators take: a ScaledTensor1x or ScaledTensor2x of the same memory, or those of groups."""
        return quantized_of(self.description, self.__dict__)

    @property
    def format(self) -> Any:
        """The format."""
        return next(iter(parts_of(self.quantized).values())).format

    def get_usages(self) -> dict[str, bool]:
        """Which directions there are: {"rowwise": .., "columnwise": ..}."""
        ways = ways_of(self.description)
        return {name: name in ways for name in ("rowwise", "columnwise")}

    def codes(self, columnwise: bool = False) -> torch.Tensor:
        """The codes of one direction in the data type that torch has for them, as a view: FP4 as float4_e2m1fn_x2."""
        part = self._part(columnwise)
        return part.data.view(torch.float4_e2m1fn_x2) if part.format.element is float4_e2m1 else part.data

    def scales(self, columnwise: bool = False) -> torch.Tensor:
        """The scales of one direction: float8_e8m0fnu, float8_e4m3fn, float32, or int32 in the order "packed"."""
        return self._part(columnwise).scale_inv

    def split_into_quantized_tensors(self) -> list[QuantizedTensor]:
        """Each group as a tensor, of the same memory. Waits for the device, which knows where they are."""
        q = self.quantized
        if not isinstance(q, (GroupedScaledTensor1x, GroupedScaledTensor2x)):
            raise TypeError("the tensor has no groups: split(rows) takes it apart")
        return [QuantizedTensor(part) for part in q.split()]

    # -- values ------------------------------------------------------------------------------

    def dequantize(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The values, of `dtype`, by default that of the tensor: of the codes along rows, or along columns where those
        are all; what was transformed is transformed back. The gradient is that of the identity."""
        values: torch.Tensor = _Dequantize.apply(self, dtype or self.dtype)
        return values

    def float(self) -> torch.Tensor:
        """The values in float32."""
        return self.dequantize(torch.float32)

    def half(self) -> torch.Tensor:
        """The values in float16."""
        return self.dequantize(torch.float16)

    def bfloat16(self) -> torch.Tensor:
        """The values in bfloat16."""
        return self.dequantize(torch.bfloat16)

    def quantize_(self, src: torch.Tensor, *, skip: Any = None, **options: Any) -> QuantizedTensor:
        """Quantizes `src`, of the same shape, into the memory of this tensor, and returns it.

        `skip` is a flag as of `dither.quantize`; `rounding`, `seed`, `offset`, `amax`, `encode_scale` and the other
        options are too. Raises RuntimeError for a part of a tensor whose scales depend on all of it, and for a leaf
        that requires a gradient, outside `torch.no_grad()`.
        """
        check_written(self, "quantize_")
        write_values(self, values_of(src), skip=skip, **options)
        torch.autograd.graph.increment_version(self)
        return self

    @property
    def data(self) -> QuantizedTensor:
        """As of torch's tensors: the same memory, without a gradient."""
        return torch._C.TensorBase.data.__get__(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        # What `module.to(device, dtype)` does, too: values that stay keep their codes.
        check_dtype(value.dtype, "what is set as the data of a quantized tensor")
        if isinstance(value, QuantizedTensor):
            self._hold(value.quantized)
            self.is_part = value.is_part
        else:
            if value.device != self.device:
                self._hold(map_tensors(self.quantized, lambda t: t.to(value.device)))
            if not torch.equal(value, values_of(self, value.dtype)):
                write_values(self, value)
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]
        kind = dither_dtype(value.dtype)
        parts = {way: dataclasses.replace(part, dtype=kind) for way, part in parts_of(self.quantized).items()}
        self.description = description_of(joined(parts))

    def __setitem__(self, key: Any, value: Any) -> None:
        values = self.dequantize()
        values[key] = value
        self.copy_(values)

    def make_like(self, *, requires_grad: bool = False) -> QuantizedTensor:
        """Another tensor of the same memory."""
        return self._like(self.quantized, self.shape, requires_grad=requires_grad)

    def update_usage(
        self, rowwise_usage: bool | None = None, columnwise_usage: bool | None = None, *, requantize: bool = False
    ) -> None:
        """Drops a direction (False), or sees to it that there is one (True).

        Codes along columns are made of those along rows where that is exact: FP8 and INT8 of a whole tensor, and square
        blocks; with `requantize` those of other formats, too, of the values along rows. Raises RuntimeError where a
        direction cannot be made, or none would be left.
        """
        parts = parts_of(self.quantized)
        if columnwise_usage and "columnwise" not in parts:
            if self.description[0] == "groups":
                raise RuntimeError(
                    "codes along columns are asked of groups along rows: quantize them in both directions"
                )
            columns: Any = columns_of(parts["rowwise"], requantize)
            # Codes and scales are written apart.
            own = {name: getattr(columns, name).clone() for name in ("data", "scale_inv")}
            parts["columnwise"] = dataclasses.replace(columns, **own)
        if rowwise_usage and "rowwise" not in parts:
            raise RuntimeError("codes along rows are asked of a tensor that has those along columns alone")
        for way, usage in (("rowwise", rowwise_usage), ("columnwise", columnwise_usage)):
            if usage is False:
                parts.pop(way, None)
        if not parts:
            raise RuntimeError("both directions are to be dropped, expected one of them to stay")
        self._hold(joined(parts))

    # -- torch's protocols -------------------------------------------------------------------

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return list(self._tensors()), (self.description, tuple(self.shape), self.is_part, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], context: Any, size: Any, stride: Any) -> QuantizedTensor:
        description, shape, is_part, requires_grad = context
        return rebuilt(description, inner, tuple(size) if size is not None else shape, is_part, requires_grad)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        from .dispatch import dispatch

        return dispatch(func, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        names, context = self.__tensor_flatten__()
        saved = {name: _as_bytes(self.__dict__[name]) for name in names}
        return restore, (context, saved, getattr(self, "_is_param", False))

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantizedTensor:
        if id(self) in memo:
            found: QuantizedTensor = memo[id(self)]
            return found
        if not self.is_leaf:
            raise RuntimeError("found a tensor with a graph behind it, expected a leaf to be copied: detach() it")
        made = self._like(map_tensors(self.quantized, torch.clone), self.shape, requires_grad=self.requires_grad)
        if getattr(self, "_is_param", False):
            made._is_param = True
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = made
        return made

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise BufferError(
            "a QuantizedTensor is no memory of its values: export dequantize(), or the bytes of its codes and scales, "
            "codes().view(torch.uint8)"
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        ways = " and ".join("rows" if way == "rowwise" else "columns" for way in ways_of(self.description))
        grouped = f", {self.quantized.groups} groups" if self.description[0] == "groups" else ""
        where = "" if self.device.type == "cpu" else f", device='{self.device}'"
        grad = ", requires_grad=True" if self.requires_grad else ""
        if self.device.type == "meta" or is_traced(*self._tensors().values()):
            numbers = "..."
        else:
            with torch.no_grad():
                numbers = re.sub(r"(,\s+\w+=[^=]+)*\)$", "", repr(self.dequantize())).removeprefix("tensor(")
        head = (
            f"QuantizedTensor({self.format.name} along {ways}{grouped}, shape={tuple(self.shape)}, dtype={self.dtype}"
        )
        return f"{head}{where}{grad}, {numbers})"

    # -- inside ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {name: x for name, x in self.__dict__.items() if name.startswith(("_rowwise_", "_columnwise_"))}

    def _part(self, columnwise: bool) -> Any:
        way = "columnwise" if columnwise else "rowwise"
        parts = parts_of(self.quantized)
        if way not in parts:
            raise RuntimeError(f"the tensor has no codes along {'columns' if columnwise else 'rows'}")
        return parts[way]

    def _like(self, quantized: Any, shape: Any, **options: Any) -> QuantizedTensor:
        given = {"is_part": self.is_part, "amax_group": self.amax_group, **options}
        return QuantizedTensor(quantized, shape=tuple(shape), **given)

    def _hold(self, quantized: Any) -> None:
        """Has other codes and scales from now on."""
        for name in self.__tensor_flatten__()[0]:
            del self.__dict__[name]
        self.description = description_of(quantized)
        self.__dict__.update(tensors_of(quantized))

    def fsdp_pre_all_gather(self, mesh: Any, outer_size: Any, outer_stride: Any, module: Any, mp_policy: Any) -> Any:
        """FSDP2's hook: what of a shard is gathered, in low precision (fsdp.py)."""
        from .fsdp import pre_all_gather

        return pre_all_gather(self, mesh, outer_size)

    def fsdp_post_all_gather(self, gathered: Any, metadata: Any, param_dtype: Any, *, out: Any = None) -> Any:
        """FSDP2's hook: the tensor of what was gathered (fsdp.py)."""
        from .fsdp import post_all_gather

        return post_all_gather(gathered, metadata, out)


class _Dequantize(torch.autograd.Function):
    """Values, with the gradient of the identity."""

    @staticmethod
    def forward(ctx: Any, x: QuantizedTensor, dtype: torch.dtype) -> torch.Tensor:
        ctx.dtype = x.dtype
        return values_of(x, dtype)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad.to(ctx.dtype), None


def values_of(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The values of a tensor, without its gradient."""
    if not isinstance(x, QuantizedTensor):
        return x.detach() if dtype is None else x.detach().to(dtype)
    tensors = x._tensors()
    if is_traced(*tensors.values()):
        return traced_values(x.description, tensors, x.shape, dtype or x.dtype)
    return values(x.quantized, dtype or x.dtype).reshape(x.shape)


def check_written(x: QuantizedTensor, what: str) -> None:
    """Raises RuntimeError for a tensor that `what` may not write: whose scales others share, or a leaf that requires
    a gradient."""
    if x.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(f"{what} writes a tensor that requires a gradient: call it under torch.no_grad()")
    _check_whole(x)


def _check_whole(x: QuantizedTensor) -> None:
    if x.is_part:
        raise RuntimeError(
            f"a part of a tensor in {x.format.name} is written, whose scales depend on all of it: "
            "write the whole tensor, or clone() the part"
        )


def write_values(x: QuantizedTensor, given: torch.Tensor, skip: Any = None, **options: Any) -> None:
    """Quantizes values into the memory of `x`. Raises RuntimeError where others share scales that would change."""
    _check_whole(x)
    tensors = x._tensors()
    some = next(iter(ways_of(x.description).values()))
    given = given.to(x.dtype).expand(x.shape).reshape(some["shape"]).contiguous()
    if is_traced(*tensors.values()):
        traced_write(x.description, tensors, given)
    else:
        write(x.quantized, given, x.amax_group, skip, **options)


def rebuilt(
    description: Description, tensors: dict[str, torch.Tensor], shape: Any, is_part: bool, requires_grad: bool
) -> QuantizedTensor:
    """A tensor of what `__tensor_flatten__` gives. It takes any tensors, fake ones among them."""
    dtype = torch_dtype(dtype_from_mlir(next(iter(ways_of(description).values()))["dtype"]))
    some = next(iter(tensors.values()))
    made = _wrapper(QuantizedTensor, shape, dtype, some.device, requires_grad)
    made.description, made.is_part, made.amax_group = description, is_part, None
    made.__dict__.update(tensors)
    return made


def restore(context: Any, saved: dict[str, Any], is_param: bool) -> QuantizedTensor:
    """A tensor that was pickled: who loads what is not trusted has this one function to allow."""
    description, shape, is_part, requires_grad = context
    made = rebuilt(
        description, {name: _from_bytes(*value) for name, value in saved.items()}, shape, is_part, requires_grad
    )
    made.quantized  # noqa: B018 - raises where the description is not of a quantized tensor
    if is_param:
        made._is_param = True
    return made


def _wrapper(cls: Any, shape: Any, dtype: torch.dtype, device: Any, requires_grad: bool) -> QuantizedTensor:
    made: QuantizedTensor = torch.Tensor._make_wrapper_subclass(
        cls, torch.Size(shape), dtype=dtype, device=device, requires_grad=requires_grad
    )
    return made


def _as_bytes(x: torch.Tensor) -> tuple[torch.Tensor, str]:
    """A tensor for pickle, which fails on those of narrow types, and its data type."""
    name = str(x.dtype).removeprefix("torch.")
    return (x.contiguous().view(torch.uint8) if x.element_size() == 1 else x.contiguous()), name


def _from_bytes(x: torch.Tensor, dtype: str) -> torch.Tensor:
    if dtype != "uint8" and dtype not in FOREIGN:
        raise ValueError(f"found a saved tensor of {dtype!r}, expected a data type of codes and scales")
    return x.view(getattr(torch, dtype))


torch.serialization.add_safe_globals([restore])
