"""Weights in high precision, whose shards FSDP2 quantizes and gathers as codes."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map_only

from .. import ops
from ..recipe import Recipe
from . import fsdp
from .modules.base import QuantizedModule, is_quantized
from .quantizer import Quantizer
from .roles import DelayedScalingRequest, factory_of, made
from .tensor import QuantizedTensor

aten = torch.ops.aten


class MasterWeight(torch.Tensor):
    """A weight in high precision that FSDP2 gathers in the format of a quantizer.

    Torch computes with the weight itself: optimizers see high precision, and what they write rounds nothing. Only what
    `torch.distributed.fsdp.fully_shard` gathers for a forward or backward pass is quantized, before it is sent: modules
    then multiply a QuantizedTensor with the bits of the whole weight quantized in one process.

    Attributes:
        weight: the tensor.
        quantizer: of one format; both directions are gathered.
    """

    weight: torch.Tensor
    quantizer: Quantizer

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: type[MasterWeight], weight: torch.Tensor, quantizer: Quantizer) -> MasterWeight:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            weight.size(),
            strides=weight.stride(),
            storage_offset=weight.storage_offset(),
            dtype=weight.dtype,
            device=weight.device,
        )
        made.weight, made.quantizer = weight.detach(), quantizer
        return made

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["weight"], self.quantizer

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], quantizer: Any, size: Any, stride: Any) -> MasterWeight:
        return MasterWeight(inner["weight"], quantizer)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        some = next(x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, MasterWeight))
        plain_args, plain_kwargs = tree_map_only(MasterWeight, lambda x: x.weight, (args, kwargs or {}))
        found = func(*plain_args, **plain_kwargs)
        if func in _KEEPS:
            found = tree_map_only(torch.Tensor, lambda x: MasterWeight(x, some.quantizer), found)
        return return_and_correct_aliasing(func, args, kwargs or {}, found)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Checkpoints have the weight as any other.
        return self.weight.__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = MasterWeight(self.weight.clone(), self.quantizer.copy())
        if getattr(self, "_is_param", False):
            return memo.setdefault(id(self), torch.nn.Parameter(found, self.requires_grad))
        return memo.setdefault(id(self), found)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"MasterWeight({self.weight!r}, {self.quantizer!r})"

    def fsdp_pre_all_gather(self, mesh: Any, outer_size: Any, outer_stride: Any, module: Any, mp_policy: Any) -> Any:
        """FSDP2's hook: the shard, quantized as a part of the whole weight, as bytes of codes and scales."""
        from .distributed import sharded

        quantize = sharded(ops.quantize, rows=mesh.get_group())
        part = quantize(self.weight, **self.quantizer.options(self.weight))
        return fsdp.pre_all_gather(QuantizedTensor(part), mesh, outer_size)

    def fsdp_post_all_gather(self, gathered: Any, metadata: Any, param_dtype: Any, *, out: Any = None) -> Any:
        """FSDP2's hook: the QuantizedTensor of what was gathered."""
        return fsdp.post_all_gather(gathered, metadata, out)


#: Operations whose results are such weights, too: those that move them, and take them apart.
_KEEPS = {
    aten.detach.default,
    aten.clone.default,
    aten.empty_like.default,
    aten.new_zeros.default,
    aten.new_empty.default,
    aten.slice.Tensor,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.chunk.default,
    aten.view.default,
    aten.as_strided.default,
    aten._to_copy.default,
    aten._pin_memory.default,
}


def gather_quantized(model: torch.nn.Module, recipe: Recipe) -> torch.nn.Module:
    """Has FSDP2 gather the weights of a model's linear layers as `recipe` quantizes weights, in place.

        model = dither.torch.gather_quantized(GPT(), dither.recipe.MXFP8BlockScaling())
        for block in model.blocks:
            torch.distributed.fsdp.fully_shard(block)
        torch.distributed.fsdp.fully_shard(model)

    Weights stay in high precision in optimizers and checkpoints. What is gathered, in both
    directions, has the bits of one process; the rows of a shard are whole blocks, or an error says so.
    Layers are those of `dither.torch`, and run under a recipe that quantizes weights alike. Returns the model.

    Raises TypeError for weights that are quantized, and for recipes whose weights are not of one format or have state;
    ValueError where the model has no such layer.
    """
    found = 0
    for layer in model.modules():
        if not isinstance(layer, QuantizedModule):
            continue
        roles = [role for role in layer.roles() if role.tensor_type == "weight"]
        for name, role in zip(layer.weight_names(), roles, strict=True):
            weight = getattr(layer, name)
            quantizer = made(factory_of(recipe), role)
            if isinstance(quantizer, DelayedScalingRequest) or quantizer._is_own:
                raise TypeError(f"weights of {recipe!r} have state, or no format, expected one format of their values")
            if is_quantized(weight) or isinstance(weight, MasterWeight):
                raise TypeError(f"found {name} of type {type(weight).__name__}, expected one in high precision")
            quantizer = quantizer.copy()
            quantizer.set_usage(rowwise=True, columnwise=True)
            master = torch.nn.Parameter(MasterWeight(weight, quantizer), weight.requires_grad)
            layer.register_parameter(name, master)
            found += 1
    if not found:
        raise ValueError("the model has no linear layer of dither.torch, expected one: dither.torch.convert makes them")
    return model
