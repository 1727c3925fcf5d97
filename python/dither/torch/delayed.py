"""Delayed scaling of the tensors of a model: scales and histories of all of them, updated in one launch.

The tensors of one recipe, direction and device have columns of one history (L, T), so that a step ends with one
`dither.update_scale` of all. A module holds `Columns` of it.
"""

from __future__ import annotations

import contextvars
import weakref
from typing import Any

import torch

from ..ops import amax as amax_of
from ..ops import update_scale
from ..recipe import DelayedScaling
from ..types import DType
from .exchange import reduce_amax
from .quantizer import checked
from .quantizers import Float8Quantizer

_HISTORIES: contextvars.ContextVar[Any] = contextvars.ContextVar("dither_histories")


class History:
    """Scales (T,) and the amaxes of L steps (L, T) of tensors that are updated together.

    Attributes:
        scale, amax_history: as of `dither.update_scale`, with columns that no tensor has, or has no longer.
        recipe: the DelayedScaling of all tensors.
        element: their element type.
        group: processes whose amaxes are theirs, too, or None.
    """

    def __init__(self, recipe: DelayedScaling, element: DType, device: torch.device, group: Any = None) -> None:
        self.recipe, self.element, self.group = recipe, element, group
        self.scale = torch.ones(0, device=device)
        self.amax_history = torch.zeros(recipe.amax_history_len, 0, device=device)
        self._free: list[int] = []
        self._given_back: list[int] = []
        self._graph_task = -1

    def take(self, count: int) -> list[int]:
        """Columns for so many tensors, as if they were new."""
        back, self._given_back = self._given_back, []
        self.scale[back] = 1.0
        self.amax_history[:, back] = 0.0
        self._free = sorted([*self._free, *back])
        if count > len(self._free):
            have = self.scale.numel()
            more = max(count - len(self._free), have, 8)
            self.scale = torch.cat([self.scale, self.scale.new_ones(more)])
            self.amax_history = torch.cat(
                [self.amax_history, self.amax_history.new_zeros(self.recipe.amax_history_len, more)], 1
            ).contiguous()
            self._free += range(have, have + more)
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def give(self, columns: list[int]) -> None:
        """Takes columns back. It writes no tensor: what had them may go at any time, while torch traces, too."""
        self._given_back += columns

    @torch.no_grad()
    def forget(self) -> None:
        """Drops the amaxes of a step that ended by an error."""
        self.amax_history[0] = 0.0

    @torch.no_grad()
    def update(self) -> None:
        """Ends a step. Tensors whose amax of this step is 0, such as those of modules that did not run, keep what they
        have."""
        recipe = self.recipe
        if recipe.reduce_amax:
            reduce_amax(self.amax_history[0], self.group)
        if callable(recipe.amax_compute_algo) or recipe.scaling_factor_compute_algo is not None:
            self._update_by_functions()
            return
        update_scale(
            self.scale,
            self.amax_history,
            format=self.element,
            margin=recipe.margin,
            algorithm=str(recipe.amax_compute_algo),
            skip_zero=True,
        )

    def _update_by_functions(self) -> None:
        """As `update_scale`, with the functions of the recipe in place of its rules."""
        recipe, history, scale = self.recipe, self.amax_history, self.scale
        algo = recipe.amax_compute_algo
        if callable(algo):
            amax = algo(history)
        else:
            amax = history.amax(0) if algo == "max" else history[0].clone()
        if not isinstance(amax, torch.Tensor) or amax.shape != scale.shape:
            found = tuple(amax.shape) if isinstance(amax, torch.Tensor) else type(amax).__name__
            raise ValueError(f"amax_compute_algo gives {found}, expected a tensor of shape {tuple(scale.shape)}")
        largest = torch.full_like(scale, {"float8_e4m3": 448.0, "float8_e5m2": 57344.0}[self.element.name])
        if recipe.scaling_factor_compute_algo is not None:
            new = recipe.scaling_factor_compute_algo(amax, scale, largest, recipe)
            if not isinstance(new, torch.Tensor) or new.shape != scale.shape:
                found = tuple(new.shape) if isinstance(new, torch.Tensor) else type(new).__name__
                expected = f"expected a tensor of shape {tuple(scale.shape)}"
                raise ValueError(f"scaling_factor_compute_algo gives {found}, {expected}")
        else:
            new = (largest * 2.0**-recipe.margin).div(amax).clamp_max(torch.finfo(torch.float32).max)
            new = torch.where((amax > 0) & amax.isfinite(), new, scale)
        ran = history[0] > 0
        rolled = history.roll(-1, 0)
        rolled[0] = 0.0
        history.copy_(torch.where(ran, rolled, history))
        scale.copy_(torch.where(ran, new, scale))

    def update_after_backward(self) -> None:
        """Ends a step when the backward pass that this is called in has ended, once."""
        task = torch._C._current_graph_task_id()
        if task != self._graph_task:
            self._graph_task = task
            torch.autograd.Variable._execution_engine.queue_callback(self.update)


class Columns:
    """The columns of a history that a module has: one for each of its tensors."""

    def __init__(self, history: History, count: int) -> None:
        self.history = history
        self.places = history.take(count)
        gone: Any = weakref.finalize(self, history.give, self.places)
        gone.atexit = False

    def load(self, scale: torch.Tensor, amax_history: torch.Tensor) -> None:
        """Has these scales (count,) and amaxes (L, count), the newest of them where its history has another length.
        Raises ValueError for other shapes."""
        count = len(self.places)
        if scale.shape != (count,) or amax_history.dim() != 2 or amax_history.shape[1] != count:
            found = f"scales {tuple(scale.shape)} and amaxes {tuple(amax_history.shape)}"
            raise ValueError(f"found the state of delayed scaling with {found}, expected ({count},) and (.., {count})")
        self.history.scale[self.places] = scale.to(self.history.scale)
        length = self.history.recipe.amax_history_len
        self.history.amax_history[:, self.places] = _of_length(amax_history.to(self.history.scale), length)

    def reset(self) -> None:
        """Has the scales and amaxes of before the first step."""
        self.history.scale[self.places] = 1.0
        self.history.amax_history[:, self.places] = 0.0

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of the scales (count,) and amaxes (L, count)."""
        return {
            "scale": self.history.scale[self.places].clone(),
            "amax_history": self.history.amax_history[:, self.places].clone(),
        }


def _of_length(amax_history: torch.Tensor, length: int) -> torch.Tensor:
    """The newest amaxes of a history, with zeros for steps that it does not go back to. Its first row is the step that
    has not ended; the last one is the newest of those that have."""
    now, ended = amax_history[:1], amax_history[1:]
    kept = ended[max(len(ended) - (length - 1), 0) :]
    return torch.cat([now, now.new_zeros(length - 1 - len(kept), now.shape[1]), kept])


class DelayedQuantizer(Float8Quantizer):
    """The quantizer of one of a module's tensors, whose scale and amax are those of a history.

    With `records` False amaxes are not recorded, as where nothing is trained. `again` says that it is of a pass inside
    of a backward pass, which sees to the update of its scale; backward passes nested in that one do not.
    """

    again = False

    def __init__(self, columns: Columns, index: int, *, records: bool = True) -> None:
        history, self._columns, self._index, self.records = columns.history, columns, index, records
        one = history.scale[:1]
        super().__init__(one, one, history.element)
        del self.__dict__["scale"], self.__dict__["amax"]

    @property
    def history(self) -> History:
        """Where its scale and amaxes are."""
        return self._columns.history

    @property
    def _place(self) -> int:
        return self._columns.places[self._index]

    def __getattr__(self, name: str) -> Any:
        if name not in ("scale", "amax"):
            raise AttributeError(name)
        history, place = self.__dict__["_columns"].history, self._place
        return (history.scale if name == "scale" else history.amax_history[0])[place : place + 1]

    def options(self, like: torch.Tensor) -> dict[str, Any]:
        """As of Float8Quantizer."""
        found = super().options(like)
        if not self.records:
            del found["record_amax"]
        return found

    def calibrate(self, tensor: torch.Tensor) -> None:
        """Raises the amax of this step by that of a tensor, where amaxes are recorded."""
        if not self.records:
            return
        place = self._place
        row = self._columns.history.amax_history[0]
        row[place] = torch.maximum(row[place], amax_of(checked(tensor)).reshape(()))

    def _owns_tensors(self) -> bool:
        return True


def history_of(recipe: DelayedScaling, element: DType, device: torch.device, group: Any = None) -> History:
    """The history of the tensors of this recipe, element type, device and group in this context (`contextvars`): two
    threads that train two models have one each."""
    try:
        histories = _HISTORIES.get()
    except LookupError:
        histories = weakref.WeakValueDictionary()
        _HISTORIES.set(histories)
    key = (recipe, element, device, id(group) if group is not None else None)
    found = histories.get(key)
    if found is None:
        found = histories[key] = History(recipe, element, device, group)
    return found
