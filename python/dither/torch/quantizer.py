"""Quantizers: what quantizes the tensors of one slot of a module, in any format of dither."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch

from .. import ops
from ..formats import Format, get_format
from ..ops import RandomHadamard, ScaledTensor1x, ScaledTensor2x
from ..ops.flatten import flattened
from ..ops.hadamard import check_transform
from ..ops.orders import ORDERS
from ..ops.scaled_tensor import scale_storage
from ..ops.tiles import round_up
from ..types import e8m0, float4_e2m1, float8_e4m3
from .dtypes import dither_dtype, torch_dtype
from .exchange import reduce_amax
from .scaled_args import has_products
from .storage import Part, QuantizedStorage
from .tensor import QuantizedTensor, check_written
from .values import depends_on_all

#: Names of the buffers of a storage by direction, as `inner_tensor_specs` gives them.
_NAMES = {False: ("data", "scale", "amax"), True: ("data_t", "scale_t", "amax_t")}


class Quantizer:
    """Quantizes tensors in one format: `dither.quantize` with what it is told besides, as modules ask for it.

    A quantizer without tensors of its own is equal to another that says the same, and has its hash.

    Args:
        format: a format of dither, or its name.
        rowwise, columnwise: which directions it makes; `set_usage` changes them.
        transform: a Hadamard transform of what is quantized (`dither.RandomHadamard`), or None.
        stochastic: whether codes are rounded at random. Each call draws a seed from torch's generator of the device, so
            that what restores its state (a checkpoint, `torch.utils.checkpoint`) has the same codes.
        optimize_for_gemm: whether scales are in the order that tensor cores take.
        with_amax_reduction, amax_reduction_group: whether the amax of a tensor is that of all processes of the group.
            The group is no part of a pickle.

    A class of one's own overrides `quantize_impl`; all the rest follows from it.
    """

    #: Whether products of what it makes are its own (`qgemm`), as Transformer Engine asks.
    custom = True

    def __init__(
        self,
        format: Format | str,
        *,
        rowwise: bool = True,
        columnwise: bool = True,
        transform: RandomHadamard | None = None,
        stochastic: bool = False,
        optimize_for_gemm: bool = False,
        with_amax_reduction: bool = False,
        amax_reduction_group: Any = None,
    ) -> None:
        self.format = get_format(format)
        self.transform = check_transform(transform)
        self.stochastic = stochastic
        self.rowwise_usage, self.columnwise_usage = rowwise, columnwise
        self.optimize_for_gemm = optimize_for_gemm
        self.internal = True
        self.with_amax_reduction = with_amax_reduction
        self.amax_reduction_group = amax_reduction_group
        if with_amax_reduction and transform is not None:
            raise ValueError(
                "with_amax_reduction is for tensors that are not transformed: transforms have an amax each"
            )

    # What is quantized.

    def quantize(
        self,
        tensor: torch.Tensor,
        *,
        out: QuantizedStorage | QuantizedTensor | None = None,
        dtype: torch.dtype | None = None,
    ) -> Any:
        """The tensor in the directions that are asked for, or in those of `out`, which is overwritten.

        A QuantizedStorage; a QuantizedTensor, which torch takes for a tensor, where `internal` is False.

        Args:
            tensor: float32, bfloat16 or float16 of rank 2 or more; dimensions before the last one are rows.
            out: an earlier result.
            dtype: the data type that a new result has by default; that of the tensor if None. `out` keeps its own.
        """
        x = checked(tensor)
        if out is not None:
            return self.update_quantized(x, out)
        result = self.quantize_impl(x)
        if dtype is not None:
            result.dtype = dtype
        return result if self.internal else result.as_tensor()

    def __call__(self, tensor: torch.Tensor, **options: Any) -> Any:
        """As `quantize`."""
        return self.quantize(tensor, **options)

    def quantize_impl(self, tensor: torch.Tensor) -> QuantizedStorage:
        """A new storage of the directions that are asked for: what classes of one's own override."""
        return self._store(ops.quantize(tensor, **self.options(tensor)))

    def update_quantized(
        self,
        src: torch.Tensor,
        dst: QuantizedStorage | QuantizedTensor,
        *,
        noop_flag: torch.Tensor | None = None,
    ) -> Any:
        """Overwrites `dst`, in its directions, and returns it. It is left as it is where the flag, one element on the
        device of `src`, is not zero.

        `dst` is a QuantizedStorage, or a QuantizedTensor, of which `quantize_` says what cannot be written.
        """
        src = checked(src, "src")
        if isinstance(dst, QuantizedTensor):
            check_written(dst, "update_quantized")
            if dst.amax_group is not None and depends_on_all(dst.quantized):
                raise RuntimeError(
                    "argument 'dst' has rows of a tensor that other processes have parts of, whose scales depend on "
                    "all of it: write it with quantize_, in all processes"
                )
            self.update_quantized(src, QuantizedStorage.of(dst.quantized), noop_flag=noop_flag)
            torch.autograd.graph.increment_version(dst)
            return dst
        if not isinstance(dst, QuantizedStorage):
            raise TypeError(f"argument 'dst' is {type(dst).__name__}, expected a QuantizedStorage or QuantizedTensor")
        if self._is_own:
            new = self._with_usage(dst).quantize_impl(src)
            _copy_unless(noop_flag, new, dst)
            return dst
        out = scaled(dst, self.format)
        ops.quantize(src, **self._with_usage(dst).options(src), out=out, skip=noop_flag)
        return dst

    def multi_quantize(self, tensors: Sequence[torch.Tensor]) -> list[QuantizedStorage]:
        """Each of several tensors, in few launches where nothing but the tensors tells their scales and codes."""
        options = self.options(tensors[0]) if tensors and not self._is_own else {"seed": None}
        if not self.internal or options.keys() & {"seed", "encode_scale", "amax"}:
            return [self.quantize(x) for x in tensors]
        return [self._store(q) for q in ops.quantize_many([checked(x) for x in tensors], **options)]

    def quantize_dbias(self, tensor: torch.Tensor) -> tuple[QuantizedStorage, torch.Tensor]:
        """A gradient, and the sum of its rows, in its data type, from one read: that of a bias."""
        x = checked(tensor)
        result = self.apply(ops.quantize_dbias, x)
        return result.out, result.dbias

    def bgrad_quantize(self, tensor: torch.Tensor) -> tuple[torch.Tensor, QuantizedStorage]:
        """`quantize_dbias`, the sum first."""
        quantized, dbias = self.quantize_dbias(tensor)
        return dbias, quantized

    def apply(self, operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An operator of dither, such as `dither.rms_norm`, whose output is quantized in the same pass.

        Its result, with a QuantizedStorage in place of the output. Quantizers that are not of one format quantize the
        plain output.
        """
        if self._is_own:
            result = operator(*args, **kwargs)
            made: Any = self.quantize(result[0] if hasattr(result, "_fields") else result)
        else:
            result = operator(*args, **kwargs, **self.options(args[0]))
            made = self._store(result[0] if hasattr(result, "_fields") else result)
        return result._replace(**{result._fields[0]: made}) if hasattr(result, "_fields") else made

    def options(self, like: torch.Tensor) -> dict[str, Any]:
        """What operators of dither are told, to quantize as this does, where `like` is."""
        usage = (self.rowwise_usage, self.columnwise_usage)
        if usage == (False, False):
            raise ValueError("neither rowwise nor columnwise is asked for, expected one of them: set_usage")
        order, repeat = gemm_order(self.format) if self.optimize_for_gemm else ("linear", False)
        found: dict[str, Any] = {
            "format": self.format,
            "layout": {(True, True): "both", (True, False): "rowwise", (False, True): "colwise"}[usage],
            "scale_layout": order,
            "repeat_scales": repeat,
            "transform": self._transform,
        }
        if self.stochastic:
            seed = torch.randint(2**62, (1,), dtype=torch.int64, device=like.device)
            found |= {"rounding": "stochastic", "seed": seed}
        if self.with_amax_reduction:
            found["amax"] = reduce_amax(ops.amax(like), self.amax_reduction_group)
        return found

    @property
    def _transform(self) -> RandomHadamard | None:
        """The transform, where a direction that is asked for is transformed."""
        t = self.transform
        return t if t and ((t.rowwise and self.rowwise_usage) or (t.colwise and self.columnwise_usage)) else None

    @property
    def _is_own(self) -> bool:
        """Whether a class has its own way to quantize, which operators know nothing of."""
        return type(self).quantize_impl is not Quantizer.quantize_impl

    def _store(self, result: ScaledTensor1x | ScaledTensor2x) -> QuantizedStorage:
        return QuantizedStorage.of(result, self)

    def _with_usage(self, dst: QuantizedStorage) -> Self:
        """This quantizer, in the directions of a storage."""
        usages = dst.get_usages()
        if usages == self.get_usages():
            return self
        same = self.copy()
        same.set_usage(**usages)
        return same

    # What is asked of it.

    def dequantize(self, tensor: QuantizedStorage, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The values of what a quantizer made."""
        return tensor.dequantize(dtype)

    def calibrate(self, tensor: torch.Tensor) -> None:
        """Records what scales are made of, without quantizing: nothing, where they come from each tensor itself."""

    def set_usage(self, rowwise: bool | None = None, columnwise: bool | None = None) -> None:
        """Which directions it makes; None leaves one as it is."""
        if rowwise is not None:
            self.rowwise_usage = rowwise
        if columnwise is not None:
            self.columnwise_usage = columnwise

    def get_usages(self) -> dict[str, bool]:
        """Which directions it makes: {"rowwise": .., "columnwise": ..}."""
        return {"rowwise": self.rowwise_usage, "columnwise": self.columnwise_usage}

    def copy(self) -> Self:
        """Another quantizer that says the same, of the same tensors."""
        return copy.copy(self)

    def for_products(self, device: torch.device) -> Quantizer:
        """This quantizer, or where a device multiplies codes one like it, with scales in the order of products."""
        if self.optimize_for_gemm or gemm_order(self.format) == ("linear", False):
            return self
        if not has_products(self.format, device):
            return self
        same = self.copy()
        same.optimize_for_gemm = True
        return same

    def make_empty(
        self,
        shape: Sequence[int],
        *,
        dtype: torch.dtype = torch.float32,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """What `quantize` gives of this shape, that nothing was written to; on the meta device, too. A QuantizedTensor
        may require a gradient."""
        tensors = self.alloc_tensors(shape, device)
        parts: list[Part | None] = []
        for colwise, name in ((False, "rowwise"), (True, "columnwise")):
            if not self.get_usages()[name]:
                parts.append(None)
                continue
            data, scale, amax = (tensors.get(one) for one in _NAMES[colwise])
            skeleton = self._skeleton(tuple(shape), dtype, colwise)
            of_tensor = {"amax" if self.format.tensor_scale_as == "amax" else "tensor_scale": amax}
            parts.append(dataclasses.replace(skeleton, data=data, scale_inv=scale, **of_tensor))  # type: ignore[arg-type]
        return self._made_empty(QuantizedStorage(parts[0], parts[1], self, dtype=dtype), requires_grad)

    def _made_empty(self, storage: QuantizedStorage, requires_grad: bool) -> Any:
        if not self.internal:
            return storage.as_tensor().requires_grad_(requires_grad)
        if requires_grad:
            raise ValueError("requires_grad is True, expected False: a storage takes no part in autograd")
        return storage

    def inner_tensor_specs(self, shape: Sequence[int]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Shape and data type of each tensor of a storage, by name, in the directions that are asked for."""
        fmt, extents = self.format, tuple(shape)
        if len(extents) < 2:
            raise ValueError(f"found shape {extents}, expected rank 2 or more")
        m, n = torch.Size(extents[:-1]).numel(), extents[-1]
        specs: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
        for colwise, name in ((False, "rowwise"), (True, "columnwise")):
            if not self.get_usages()[name]:
                continue
            data, scale, amax = _NAMES[colwise]
            like = self._skeleton(extents, torch.float32, colwise)
            flat = flattened(like.shape, like.flatten_axis)
            kind = torch.uint8 if fmt.element is float4_e2m1 else _codes(fmt)
            specs[data] = (flat.stored(like.is_transposed, fmt.element.bits), kind)
            matrix, dtype = scale_storage(flat.matrix, fmt, colwise, like.scale_layout, like.repeated)
            specs[scale] = (matrix, torch_dtype(dtype))
            if fmt.tensor_scale:
                specs[amax] = (((1, n) if colwise else (m, 1)) if fmt.row_amax else (), torch.float32)
        return specs

    def alloc_tensors(self, shape: Sequence[int], device: Any = None) -> dict[str, torch.Tensor]:
        """The tensors of `inner_tensor_specs`, uninitialised."""
        specs = self.inner_tensor_specs(shape)
        return {name: torch.empty(extents, dtype=dtype, device=device) for name, (extents, dtype) in specs.items()}

    def _skeleton(self, shape: tuple[int, ...], dtype: torch.dtype, colwise: bool) -> ScaledTensor1x:
        order, repeat = gemm_order(self.format) if self.optimize_for_gemm else ("linear", False)
        t = self.transform
        known = None if t is None or not (t.colwise if colwise else t.rowwise) else t.of(colwise)
        axis = -1 if len(shape) == 2 else len(shape) - 1
        rows = math.prod(shape[:-1])
        if known is not None and colwise and rows % known.size:
            # Rows of zeros follow, which are of no dimension.
            shape, axis = (round_up(rows, known.size), shape[-1]), 1 if len(shape) > 2 else -1
        rest = (repeat, known, axis)
        return ScaledTensor1x(
            None, None, None, self.format, shape, dither_dtype(dtype), colwise, ORDERS[order].layout, *rest
        )

    def is_quantizable(self, inp: torch.Tensor) -> bool:
        """Whether a tensor of this shape and type can be quantized: any with rows, of a float type. What is transformed
        has to be whole transforms long."""
        if inp.dim() < 2 or inp.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return False
        t = self._transform
        if t is None:
            return True
        rows, cols = inp.numel() // max(inp.shape[-1], 1), inp.shape[-1]
        return not ((t.colwise and rows % t.size) or (t.rowwise and cols % t.size))

    def supports_only_rowwise_all_gather(self) -> bool:
        """Whether codes along rows are enough to be gathered: those along columns are made of them."""
        fmt = self.format
        return self.transform is None and (fmt.block == "tensor" or fmt.block_rows == fmt.block_cols)

    def is_requantization_safe(self) -> bool:
        """Whether codes along columns can be made of those along rows without a second rounding."""
        return self.supports_only_rowwise_all_gather()

    @property
    def is_data_t_transposed_in_memory(self) -> bool:
        """Whether codes along columns are stored transposed."""
        return self.format.transposed

    @property
    def supports_dequantize(self) -> bool:
        """Whether `dequantize` gives values: yes."""
        return True

    def qgemm(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """`dither.torch.qgemm`."""
        from .matmul import qgemm

        return qgemm(*args, **kwargs)

    # Quantizers as values.

    def _owns_tensors(self) -> bool:
        return any(isinstance(value, torch.Tensor) for value in self.__dict__.values())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        if self._owns_tensors():
            return self is other
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return id(self) if self._owns_tensors() else hash((type(self), *sorted(self.__dict__.items(), key=str)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "amax_reduction_group": None}

    def __repr__(self) -> str:
        ways = [name for name, used in self.get_usages().items() if used]
        return f"{type(self).__name__}({self.format!r}, {' and '.join(ways) or 'no direction'})"


def checked(tensor: Any, name: str = "tensor") -> torch.Tensor:
    """A tensor that can be quantized, without its gradient; raises TypeError or ValueError."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"argument '{name}' is {type(tensor).__name__}, expected a tensor")
    if tensor.dim() < 2:
        raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}, expected rank 2 or more")
    return tensor.detach()


def scaled(storage: QuantizedStorage, fmt: Format) -> ScaledTensor1x | ScaledTensor2x:
    """A storage as operators take it, for `out=`."""
    parts = [part for part in (storage.rowwise, storage.colwise) if part is not None]
    for part in parts:
        if not isinstance(part, ScaledTensor1x) or part.format != fmt:
            found = part.format.name if isinstance(part, ScaledTensor1x) else "in high precision"
            raise ValueError(f"argument 'dst' is {found}, expected {fmt.name}")
    if not parts:
        raise ValueError("argument 'dst' has no tensors: they were saved, or dropped")
    return ScaledTensor2x(*parts) if len(parts) == 2 else parts[0]  # type: ignore[arg-type,return-value]


def gemm_order(fmt: Format) -> tuple[str, bool]:
    """The order of scales that products on tensor cores take, and whether those of square blocks are repeated."""
    if fmt.scale in (e8m0, float8_e4m3):
        return "128x4", fmt.block_rows not in (1, None)
    return ("column_major", False) if fmt.block_rows == 1 and fmt.block_cols else ("linear", False)


def _codes(fmt: Format) -> torch.dtype:
    try:
        return torch_dtype(fmt.element)
    except TypeError:
        return torch.int8 if fmt.element.name == "int8" else torch.uint8


def _copy_unless(flag: torch.Tensor | None, new: QuantizedStorage, old: QuantizedStorage) -> None:
    """Copies a storage to another of its kind, unless the flag is not zero."""
    if flag is None:
        old.copy_from_storage(new)
        return
    kept = old.detach()
    for name in ("data", "data_t", "scale", "scale_t", "global_amax_row", "global_amax_col"):
        mine, other = getattr(kept, name), getattr(new, name)
        if mine is not None:
            if mine.element_size() == 1:
                mine, other = mine.view(torch.uint8), other.view(torch.uint8)
            mine.copy_(torch.where(flag.reshape(()) != 0, mine, other))
