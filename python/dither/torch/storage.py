"""Quantized tensors as modules keep them: codes along rows, along columns, or both, and what made them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch

from ..data_classes import dataclass
from ..formats import Format
from ..ops import ScaledTensor1x, ScaledTensor2x, dequantize
from ..ops.tiles import round_up
from .columns import columns_of
from .dtypes import check_dtype, dither_dtype, torch_dtype
from .fields import LABELS

#: One direction of a quantized tensor: codes and scales, or high precision where it is not quantized.
Part = ScaledTensor1x | torch.Tensor
#: The tensors of each direction, in the order in which they are saved.
_FIELDS = ("data", "scale_inv", "amax", "tensor_scale")


class QuantizedStorage:
    """A tensor quantized along rows, along columns, or both, in formats that may differ.

    It is no `torch.Tensor` and takes no part in autograd. Values are read by `dequantize`, and multiplied by
    `dither.torch.qgemm`.

    Attributes:
        rowwise, colwise: a ScaledTensor1x each, a torch tensor where a direction is kept in high precision, or None
            where there is none.
        quantizer: what made it, or None.
        shape: that of the tensor.
        dtype: its data type before quantization, of torch.
        device: where it is.
    """

    #: Whether products of it are the quantizer's own, as Transformer Engine asks.
    custom = True

    def __init__(
        self,
        rowwise: Part | None,
        colwise: Part | None,
        quantizer: Any = None,
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        some = rowwise if rowwise is not None else colwise
        if some is None:
            raise ValueError("rowwise and colwise are None, expected one of them")
        for name, part in (("rowwise", rowwise), ("colwise", colwise)):
            if part is not None and not isinstance(part, (ScaledTensor1x, torch.Tensor)):
                raise TypeError(f"argument '{name}' is {type(part).__name__}, expected a ScaledTensor1x or a tensor")
            if isinstance(part, ScaledTensor1x) and part.is_colwise != (name == "colwise"):
                raise ValueError(f"argument '{name}' is quantized along the other direction")
            if part is not None and tuple(part.shape) != tuple(some.shape) and not _follow_zeros(part, some):
                raise ValueError(f"argument '{name}' has shape {tuple(part.shape)}, expected {tuple(some.shape)}")
        self.rowwise, self.colwise = rowwise, colwise
        self.quantizer = quantizer
        self.shape = torch.Size(some.shape)
        self.dtype = dtype or torch_dtype(some.dtype)
        self.device = _array(some).device

    @classmethod
    def of(cls, x: ScaledTensor1x | ScaledTensor2x, quantizer: Any = None) -> QuantizedStorage:
        """The storage of what an operator of dither returned, of torch's tensors."""
        if isinstance(x, ScaledTensor2x):
            return cls(x.rowwise, x.colwise, quantizer)
        if not isinstance(x, ScaledTensor1x):
            raise TypeError(f"argument 'x' is {type(x).__name__}, expected a ScaledTensor1x or ScaledTensor2x")
        return cls(None, x, quantizer) if x.is_colwise else cls(x, None, quantizer)

    # What Transformer Engine's storages call their tensors.

    @property
    def data(self) -> torch.Tensor | None:
        """Codes along rows; the tensor where it is in high precision."""
        return _part(self.rowwise, "data")

    @property
    def data_t(self) -> torch.Tensor | None:
        """Codes along columns, transposed where the format stores them so."""
        return _part(self.colwise, "data")

    @property
    def scale(self) -> torch.Tensor | None:
        """What codes along rows are multiplied by."""
        return _part(self.rowwise, "scale_inv")

    @property
    def scale_t(self) -> torch.Tensor | None:
        """What codes along columns are multiplied by."""
        return _part(self.colwise, "scale_inv")

    @property
    def global_amax_row(self) -> torch.Tensor | None:
        """The amax along rows, in formats with a tensor scale."""
        return _part(self.rowwise, "amax")

    @property
    def global_amax_col(self) -> torch.Tensor | None:
        """The amax along columns, in formats with a tensor scale."""
        return _part(self.colwise, "amax")

    _data, _data_t, _scale_inv = data, data_t, scale

    @property
    def format(self) -> Format | None:
        """The format along rows, or along columns where that is all there is; None in high precision."""
        some = self.rowwise if self.rowwise is not None else self.colwise
        return some.format if isinstance(some, ScaledTensor1x) else None

    @property
    def _quantizer(self) -> Any:
        return self.quantizer

    @property
    def original_shape(self) -> torch.Size:
        """That of the tensor."""
        return self.shape

    def size(self, dim: int | None = None) -> Any:
        """As of a tensor of torch."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The rank."""
        return len(self.shape)

    def numel(self) -> int:
        """How many elements the tensor has."""
        return self.shape.numel()

    @property
    def nbytes(self) -> int:
        """Bytes of all codes, scales and amaxes."""
        return sum(x.nbytes for x in self._tensors() if x is not None)

    def get_usages(self) -> dict[str, bool]:
        """Which directions there are: {"rowwise": .., "columnwise": ..}."""
        return {"rowwise": self.rowwise is not None, "columnwise": self.colwise is not None}

    def dequantize(self, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The values along rows, or along columns where those are all; of `dtype`, by default that before. What was
        transformed along columns is transformed back."""
        dtype = dtype or self.dtype
        some = self.rowwise if self.rowwise is not None else self.colwise
        if some is None:
            raise RuntimeError("the storage has no tensors: they were saved, or dropped")
        return values(some, dtype, undo_transform=True)

    def as_tensor(self) -> Any:
        """The storage as a QuantizedTensor of the same memory and data type, which torch takes for a tensor; the values
        where it is in high precision.

        Raises TypeError where it is not of one format, or has a data type that these have not.
        """
        from .tensor import QuantizedTensor

        parts = [part for part in (self.rowwise, self.colwise) if part is not None]
        if parts and all(isinstance(part, torch.Tensor) for part in parts):
            return self.dequantize()
        scaled = [part for part in parts if isinstance(part, ScaledTensor1x) and part.format == self.format]
        if len(scaled) != len(parts):
            raise TypeError("the directions have formats of their own, expected one for a QuantizedTensor")
        check_dtype(self.dtype, "the storage")
        scaled = [dataclasses.replace(part, dtype=dither_dtype(self.dtype)) for part in scaled]
        return QuantizedTensor(scaled[0] if len(scaled) == 1 else ScaledTensor2x(*scaled))

    def update_usage(
        self, rowwise_usage: bool | None = None, columnwise_usage: bool | None = None, *, requantize: bool = False
    ) -> None:
        """Drops a direction (False), or sees to it that there is one (True).

        Codes along columns are made of those along rows where that is exact: FP8 and INT8 of a whole tensor, and square
        blocks. With `requantize` those of other formats are made, too, of the values along rows (`dither.requantize`):
        they are not those of the tensor. Raises RuntimeError where a direction cannot be made.
        """
        if columnwise_usage and self.colwise is None:
            self.colwise = columns_of(self.rowwise, requantize)
        if rowwise_usage and self.rowwise is None:
            raise RuntimeError("codes along rows are asked of a tensor that has those along columns alone")
        keep_row = self.rowwise is not None and rowwise_usage is not False
        if not keep_row and (self.colwise is None or columnwise_usage is False):
            raise RuntimeError("both directions are to be dropped, expected one of them to stay")
        if rowwise_usage is False:
            self.rowwise = None
        if columnwise_usage is False:
            self.colwise = None

    def quantize_(self, src: torch.Tensor, *, noop_flag: torch.Tensor | None = None) -> QuantizedStorage:
        """Quantizes `src` into this storage, unless the flag is not zero; returns it."""
        if self.quantizer is None:
            raise RuntimeError("the storage has no quantizer: it was not made by one")
        self.quantizer.update_quantized(src, self, noop_flag=noop_flag)
        return self

    def update_quantizer(self, quantizer: Any) -> None:
        """Has another quantizer for what is quantized into this storage from now on."""
        self.quantizer = quantizer

    def detach(self) -> QuantizedStorage:
        """Another storage of the same tensors."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def copy_from_storage(self, src: QuantizedStorage) -> None:
        """Copies the codes and scales of a storage of the same kind."""
        if not isinstance(src, QuantizedStorage):
            raise TypeError(f"argument 'src' is {type(src).__name__}, expected a QuantizedStorage")
        for name in ("rowwise", "colwise"):
            mine, other = getattr(self, name), getattr(src, name)
            if _skeleton(mine) != _skeleton(other):
                raise ValueError(f"argument 'src' has {name} {other!r}, expected as of the storage: {mine!r}")
        for mine, other in zip(self._tensors(), src._tensors(), strict=True):
            if mine is not None and other is not None:
                mine.copy_(other)

    def get_metadata(self) -> dict[str, Any]:
        """All that makes a storage like this one: `QuantizedStorage(**storage.get_metadata())`."""
        return {"rowwise": self.rowwise, "colwise": self.colwise, "quantizer": self.quantizer, "dtype": self.dtype}

    # Autograd saves tensors alone.

    def _tensors(self) -> list[torch.Tensor | None]:
        """data, data_t, scale, scale_t, and in formats with a tensor scale amax and amax_t, or what stands for them."""
        scaled = [part if isinstance(part, ScaledTensor1x) else None for part in (self.rowwise, self.colwise)]
        found = [_part(part, name) for name in ("data", "scale_inv") for part in (self.rowwise, self.colwise)]
        if any(part is not None and part.format.tensor_scale for part in scaled):
            found += [_part(part, _scale_of_tensor(part)) for part in scaled]
        return found

    def prepare_for_saving(self) -> tuple[list[torch.Tensor | None], QuantizedStorage]:
        """The tensors (entries may be None), which this storage no longer has then, and the storage: autograd saves the
        tensors, and `restore_from_saved` puts them back."""
        tensors = self._tensors()
        self.rowwise, self.colwise = _without_tensors(self.rowwise), _without_tensors(self.colwise)
        return tensors, self

    def restore_from_saved(self, tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Takes the tensors of this storage from the front of a list, and returns the rest."""
        parts = [self.rowwise, self.colwise]
        scaled = [part for part in parts if isinstance(part, ScaledTensor1x)]
        count = 6 if any(part.format.tensor_scale for part in scaled) else 4
        if len(tensors) < count:
            raise ValueError(f"found {len(tensors)} tensors, expected {count} of this storage")
        mine, rest = tensors[:count], list(tensors[count:])
        self.rowwise, self.colwise = (_with_tensors(part, mine[i::2]) for i, part in enumerate(parts))
        return rest

    def __repr__(self) -> str:
        ways = ", ".join(f"{name}={part}" for name, part in (("rowwise", self.rowwise), ("colwise", self.colwise)))
        return f"QuantizedStorage({ways}, shape={tuple(self.shape)}, dtype={self.dtype})"


def prepare_for_saving(*objects: Any) -> tuple[list[torch.Tensor | None], list[Any]]:
    """The tensors of storages and tensors, for `ctx.save_for_backward`, and what `restore_from_saved` needs of each.

    Plain tensors and None pass through. A storage that is used afterwards, too, is to be given as `storage.detach()`.
    """
    tensors: list[torch.Tensor | None] = []
    kept: list[Any] = []
    for x in objects:
        if x is None or isinstance(x, torch.Tensor):
            tensors.append(x)
            kept.append(None)
        elif isinstance(x, QuantizedStorage):
            found, storage = x.prepare_for_saving()
            tensors += found
            kept.append(storage)
        else:
            raise TypeError(f"found {type(x).__name__} to be saved, expected a tensor, a QuantizedStorage or None")
    return tensors, kept


def restore_from_saved(objects: Sequence[Any], tensors: Sequence[torch.Tensor | None]) -> list[Any]:
    """The inverse of `prepare_for_saving`: the objects, in their order, with their tensors."""
    found: list[Any] = []
    rest = list(tensors)
    for x in objects:
        if x is None:
            if not rest:
                raise ValueError("found fewer tensors than were saved")
            found.append(rest.pop(0))
        else:
            rest = x.restore_from_saved(rest)
            found.append(x)
    if rest:
        raise ValueError(f"found {len(rest)} tensors more than were saved")
    return found


def restore_from_func_ctx(ctx: Any) -> list[Any]:
    """What `save_for_func_ctx` saved in the context of an autograd function; again, where torch keeps the graph
    (`retain_graph=True`)."""
    # The context keeps storages without tensors, so that these go when torch lets go of them.
    objects = [x if x is None else x.detach() for x in ctx.saved_objects]
    return restore_from_saved(objects, ctx.saved_tensors)


def save_for_func_ctx(ctx: Any, *objects: Any) -> None:
    """Saves tensors and storages in the context of an autograd function."""
    tensors, ctx.saved_objects = prepare_for_saving(*objects)
    ctx.save_for_backward(*tensors)


def values(part: Part, dtype: torch.dtype, undo_transform: bool = False) -> torch.Tensor:
    """The values of one direction, in the shape of the tensor."""
    if isinstance(part, torch.Tensor):
        return part.to(dtype)
    undo = undo_transform and part.transform is not None
    return dequantize(part, dither_dtype(dtype), undo_transform=undo)


def _array(part: Part) -> torch.Tensor:
    return part if isinstance(part, torch.Tensor) else part.data


def _part(part: Part | None, name: str) -> torch.Tensor | None:
    if isinstance(part, torch.Tensor):
        return part if name == "data" else None
    return None if part is None else getattr(part, name)


def _scale_of_tensor(part: ScaledTensor1x | None) -> str:
    return "amax" if part is None or part.format.tensor_scale_as == "amax" else "tensor_scale"


def _without_tensors(part: Part | None) -> Any:
    """What is left of a direction when its tensors are gone; a data type and shape stand for high precision."""
    if isinstance(part, torch.Tensor):
        return _HighPrecision(part.dtype, part.shape)
    absent: dict[str, Any] = dict.fromkeys(_FIELDS)
    return part and dataclasses.replace(part, **absent)


def _with_tensors(part: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(part, _HighPrecision):
        return tensors[0]
    if part is None:
        return None
    named = {"data": tensors[0], "scale_inv": tensors[1]}
    if len(tensors) > 2:
        named[_scale_of_tensor(part)] = tensors[2]
    return dataclasses.replace(part, **named)


@dataclass(frozen=True)
class _HighPrecision:
    """A direction in high precision, without its tensor."""

    dtype: torch.dtype
    shape: torch.Size


def _skeleton(part: Part | None) -> Any:
    """A direction without its tensors, to be compared."""
    if part is None or isinstance(part, torch.Tensor):
        return _without_tensors(part)
    skipped = (*_FIELDS, *LABELS)
    fields = (field.name for field in dataclasses.fields(part) if field.name not in skipped)
    return tuple(getattr(part, name) for name in fields)


def _follow_zeros(part: Part, some: Part) -> bool:
    """Whether `part` is what a transform makes of `some`, with rows of zeros up to whole runs."""
    if not isinstance(part, ScaledTensor1x) or not isinstance(some, ScaledTensor1x) or part.transform is None:
        return False
    axis = some.flatten_axis % len(some.shape)
    rows = round_up(math.prod(some.shape[:axis]), part.transform.size)
    return tuple(part.shape) == (rows, *some.shape[axis:])
