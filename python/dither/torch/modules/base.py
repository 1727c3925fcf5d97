"""What all modules have: quantizers of the recipe that they run under, and the state of delayed scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.utils.checkpoint

from ...data_classes import dataclass
from ...recipe import Recipe
from ..autocast import Region, backward_pass, current, current_init
from ..delayed import Columns, DelayedQuantizer, history_of
from ..dtypes import check_dtype
from ..quantizer import Quantizer
from ..quantizers import Float8CurrentScalingQuantizer
from ..roles import DelayedScalingRequest, QuantizerRole, factory_of, is_backward, made
from ..storage import QuantizedStorage
from .products import Slots
from .traced import TracedModule

_STATE = "_extra_state"
_DIRECTIONS = ("forward", "backward")


#: A tensor of a module: its type, and how many roles of this type come before.
_Slot = tuple[str, int]


@dataclass
class _Made:
    """The quantizers of a module under one recipe."""

    key: tuple[Any, ...]
    quantizers: list[Quantizer]
    columns: dict[str, Columns]
    #: What the columns of each direction are of.
    slots: dict[str, list[_Slot]]
    #: Whether the last pass outside of a backward pass recorded amaxes.
    recorded: bool = False


class QuantizedModule(TracedModule):
    """A module with linear layers whose operands are quantized.

    Attributes:
        name: of the instance, which quantizer factories are told.
        output_quantizer_role, grad_input_quantizer_role: what its output, or the gradient of its input, is to the next
            module; None to leave it in high precision. With a role it has the values of what that role's quantizer
            makes of it.
        fuse_wgrad_accumulation: whether gradients of weights are added to their `main_grad` in float32.
    """

    module_type = "linear"

    def __init__(self, name: str | None = None, fuse_wgrad_accumulation: bool = False) -> None:
        super().__init__()
        self.name = name or ""
        self.output_quantizer_role: QuantizerRole | None = None
        self.grad_input_quantizer_role: QuantizerRole | None = None
        self.fuse_wgrad_accumulation = fuse_wgrad_accumulation
        self._made: _Made | None = None
        #: A state that waits for a recipe with delayed scaling, and what it is of where it was the module's own.
        self._loaded: dict[str, dict[str, torch.Tensor]] = {}
        self._slots: dict[str, list[_Slot]] = {}
        #: Weights that are kept over microbatches, and the versions that they are of, as torch counts them.
        self._weights: dict[str, QuantizedStorage] = {}
        self._versions: dict[str, int | None] = {}
        #: The region of the last pass outside of a backward pass.
        self._ran: Region | None = None

    def layer_names(self) -> Sequence[str]:
        """Names of the linear layers inside, as quantizer factories are told."""
        return (self.name,)

    def roles(self) -> list[QuantizerRole]:
        """Roles of the tensors that are quantized: input, weight and grad_output of each layer, then those of the
        output and of the gradient of the input where they are set."""
        kinds = ("input", "weight", "grad_output")
        found = [QuantizerRole(self.module_type, kind, name) for name in self.layer_names() for kind in kinds]
        return found + [r for r in (self.output_quantizer_role, self.grad_input_quantizer_role) if r is not None]

    def options(self) -> tuple[Any, ...]:
        """As of TracedModule."""
        roles = tuple([(role.module_type, role.tensor_type, role.name) for role in self.roles()])
        return roles, self.name, self.training

    def keeps_state(self, rest: Sequence[Any]) -> bool:
        """As of TracedModule: gradients that are added to main_grad, and weights that are kept over microbatches."""
        return self.fuse_wgrad_accumulation or any(flag is not None for flag in rest[-2:])

    def region(self) -> Region | None:
        """The region to run under: None where nothing is quantized, or recorded.

        What a backward pass computes again has the region of the last pass before it, unless it opens one itself: those
        that are open around a backward pass are not of what is computed again.
        """
        region, task = current(), backward_pass()
        if task is None:
            self._ran = region
        elif region is None or region.backward_pass != task:
            region = self._ran
        return region if region is not None and (region.enabled or region.calibrating) else None

    def quantizers(self, region: Region, device: torch.device) -> list[Quantizer]:
        """A quantizer for each role, kept as long as the recipe is the same."""
        roles = self.roles()
        key = (region.recipe, device, region.group, tuple((r.module_type, r.tensor_type, r.name) for r in roles))
        if self._made is None or self._made.key != key:
            self._made = self._make(region.recipe, roles, device, region.group, key)
        again = backward_pass() is not None
        records = self._records(self._made, again)
        found = []
        for q in self._made.quantizers:
            if isinstance(q, DelayedQuantizer):
                q = q.copy()
                q.records, q.again = records, again
            found.append(q)
        if records and again:
            for columns in self._made.columns.values():
                columns.history.update_after_backward()
        elif records and "forward" in self._made.columns:
            history = self._made.columns["forward"].history
            region.histories[id(history)] = history
        return found

    def _records(self, made: _Made, again: bool) -> bool:
        """Whether a pass records amaxes: one that trains, once.

        What a backward pass computes again was recorded by the first pass, unless gradients were off there: reentrant
        checkpoints differentiate the second pass alone, and others throw its graph away.
        """
        trains = self.training and torch.is_grad_enabled()
        if not again:
            made.recorded = trains
        elif made.recorded or _is_thrown_away():
            return False
        return trains

    def slots(self, region: Region, device: torch.device) -> tuple[list[Slots], Quantizer | None, Quantizer | None]:
        """The quantizers of each linear layer inside, of the output, and of the gradient of the input."""
        found = iter(self.quantizers(region, device))
        override, fused = region.recipe.backward_override, self.fuse_wgrad_accumulation
        layers = [
            Slots(next(found), next(found), next(found), override=override, main_grad=fused) for _ in self.layer_names()
        ]
        output = None if self.output_quantizer_role is None else next(found)
        return layers, output, None if self.grad_input_quantizer_role is None else next(found)

    def _make(
        self, recipe: Recipe, roles: Sequence[QuantizerRole], device: torch.device, group: Any, key: tuple[Any, ...]
    ) -> _Made:
        factory = factory_of(recipe)
        found = [made(factory, role) for role in roles]
        columns: dict[str, Columns] = {}
        quantizers: list[Quantizer] = []
        state, slots_before = self._state() or self._loaded, self._slots_of_state()
        kinds = [role.tensor_type for role in roles]
        slots: dict[str, list[_Slot]] = {}
        for direction in _DIRECTIONS:
            requests = {
                i: x
                for i, (x, role) in enumerate(zip(found, roles, strict=True))
                if isinstance(x, DelayedScalingRequest) and is_backward(role) == (direction == "backward")
            }
            of_direction = list(requests.values())
            if any(x != of_direction[0] for x in of_direction):
                raise ValueError(f"the quantizer factory gives {direction} requests that differ, expected equal ones")
            if of_direction:
                request = of_direction[0]
                element = request.fp8_format.bwd if direction == "backward" else request.fp8_format.fwd
                columns[direction] = Columns(history_of(request.recipe, element, device, group), len(of_direction))
                slots[direction] = [(kinds[i], kinds[:i].count(kinds[i])) for i in requests]
                if direction in state:
                    given = _of_slots(state[direction], slots_before.get(direction), slots[direction])
                    columns[direction].load(**given)
        taken = dict.fromkeys(_DIRECTIONS, 0)
        for x, role in zip(found, roles, strict=True):
            direction = _DIRECTIONS[is_backward(role)]
            if isinstance(x, DelayedScalingRequest):
                quantizers.append(DelayedQuantizer(columns[direction], taken[direction]))
                taken[direction] += 1
            else:
                quantizers.append(x.for_products(device))
        # A recipe without delayed scaling in between leaves the state as it is.
        self._loaded, self._slots = ({}, {}) if columns else (state, slots_before)
        self._weights = {}
        return _Made(key, quantizers, columns, slots)

    def weight_names(self) -> Sequence[str]:
        """The parameters that are the weights of the linear layers, in their order."""
        return ("weight",)

    def quantize_parameters(self) -> None:
        """Has weights quantized alone, inside of `quantized_model_init`."""
        if current_init() is None:
            return
        for name, layer in zip(self.weight_names(), self.layer_names(), strict=True):
            role = QuantizerRole(self.module_type, "weight", layer)
            self.register_parameter(name, quantized_parameter(getattr(self, name).detach(), role))

    # Weights that are quantized once for several microbatches.

    def quantized_weight(
        self, name: str, weight: torch.Tensor, slots: Slots, is_first_microbatch: bool | None, skip: torch.Tensor | None
    ) -> Any:
        """The weight to be multiplied: the parameter, or where it is cached over microbatches its storage, which is
        overwritten for the first one, unless the flag `skip` is not zero.

        Where the weight is as it was a backward pass may be to come that saved the storage, as of a layer that is
        applied twice: then another one is kept."""
        if is_first_microbatch is None or is_quantized(weight):
            return weight
        cached = self._weights.get(name)
        if not is_first_microbatch:
            if cached is None:
                raise RuntimeError("is_first_microbatch is False, expected a first one before it under this recipe")
            return cached
        with torch.no_grad():
            version = None if weight.is_inference() else weight._version
            again = skip is None and version == self._versions.get(name)
            self._versions[name] = version
            if cached is None or cached.shape != weight.shape or cached.device != weight.device or again:
                self._weights[name] = _of_its_own(slots.quantize_weight(weight, columns=True))
            else:
                slots.weight.update_quantized(weight, cached, noop_flag=skip)
        return self._weights[name]

    # The state of delayed scaling is part of checkpoints.

    def _state(self) -> dict[str, dict[str, torch.Tensor]]:
        columns = {} if self._made is None else self._made.columns
        return {direction: one.state() for direction, one in columns.items()}

    def _slots_of_state(self) -> dict[str, list[_Slot]]:
        """What the state is of; nothing of one from a checkpoint, which has to fit."""
        return self._made.slots if self._made is not None and self._made.slots else self._slots

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        state = self._state() or self._loaded
        if state:
            destination[prefix + _STATE] = state

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        state = state_dict.get(prefix + _STATE)
        super()._load_from_state_dict(state_dict, prefix, *args)
        unexpected = args[3]
        if prefix + _STATE in unexpected:
            unexpected.remove(prefix + _STATE)
        self._weights = {}
        # Weights without a state are those of before the first step.
        whole = any(prefix + name in state_dict for name in self._parameters)
        if state is None and not whole:
            return
        state = {} if state is None else state
        if not isinstance(state, dict) or not state.keys() <= set(_DIRECTIONS):
            raise ValueError(
                f"found {prefix + _STATE} of {type(state).__name__}, expected the state of delayed scaling"
            )
        if self._made is not None and self._made.columns:
            for direction, columns in self._made.columns.items():
                if direction in state:
                    columns.load(**state[direction])
                elif whole:
                    columns.reset()
        else:
            self._loaded, self._slots = state, {}

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles have the state of delayed scaling, and make quantizers of their own."""
        state = {"_loaded": self._state() or self._loaded, "_slots": self._slots_of_state()}
        return {**self.__dict__, **state, "_made": None, "_weights": {}, "_ran": None}


def _of_slots(
    state: dict[str, torch.Tensor], before: list[_Slot] | None, slots: list[_Slot]
) -> dict[str, torch.Tensor]:
    """The state of these slots, of one of others: what was none of them begins anew."""
    if before is None or before == slots:
        return state
    places = [before.index(slot) if slot in before else len(before) for slot in slots]
    scale, history = state["scale"], state["amax_history"]
    return {
        "scale": torch.cat([scale, scale.new_ones(1)])[places],
        "amax_history": torch.cat([history, history.new_zeros(len(history), 1)], 1)[:, places],
    }


def _is_thrown_away() -> bool:
    """Whether torch.utils.checkpoint computes again for the tensors that are saved, and not for the graph."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    # torch has no public name for it.
    name = getattr(getattr(torch.utils.checkpoint, "_recomputation_hook", None), "__name__", None)
    return hooks is not None and name is not None and hooks[0].__qualname__.startswith(name)


def _of_its_own(storage: QuantizedStorage) -> QuantizedStorage:
    """A storage none of whose tensors is the one that was quantized, as those of IdentityQuantizer are."""
    row, col = storage.rowwise, storage.colwise
    if isinstance(row, torch.Tensor):
        storage.rowwise = row.clone()
    if isinstance(col, torch.Tensor):
        storage.colwise = storage.rowwise if col is row else col.clone()
    return storage


def is_quantized(weight: torch.Tensor) -> bool:
    """Whether a parameter is quantized itself."""
    return getattr(weight, "quantized", None) is not None


def quantized_parameter(weight: torch.Tensor, role: QuantizerRole) -> torch.nn.Parameter:
    """A parameter of these values: quantized as weights of the recipe are, inside of `quantized_model_init`, in both
    directions. Raises TypeError where the recipe has several formats for weights."""
    said = current_init()
    if said is None:
        return torch.nn.Parameter(weight)
    recipe, preserve = said
    q = made(factory_of(recipe), role)
    if isinstance(q, DelayedScalingRequest):
        # There are no earlier amaxes: the scale is that of the first values.
        q = Float8CurrentScalingQuantizer(q.fp8_format.fwd)
    q = q.copy()
    q.set_usage(rowwise=True, columnwise=True)
    q.internal = True
    found = torch.nn.Parameter(q.quantize(weight).as_tensor())
    if preserve:
        kept = [weight.detach().cpu()]
        found.get_high_precision_init_val = lambda: kept[0] if kept else None  # type: ignore[attr-defined]
        found.clear_high_precision_init_val = kept.clear  # type: ignore[attr-defined]
    return found


def activation_dtype(x: torch.Tensor) -> torch.dtype:
    """The data type to compute in: that of torch.autocast, or that of `x`."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def check_input(module: torch.nn.Module, x: Any, features: int) -> None:
    """Raises TypeError or ValueError for what no layer of so many inputs takes, and for a layer whose parameters have
    another data type since it was made, as by `double()`."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected a tensor")
    if x.device.type == "meta":
        raise TypeError("argument 'x': found a tensor on device 'meta', expected one on a CPU or CUDA device")
    if x.dim() < 1 or x.shape[-1] != features:
        raise ValueError(f"argument 'x' has shape {tuple(x.shape)}, expected (.., {features})")
    check_dtype(x.dtype, "argument 'x'")
    for name, parameter in module._parameters.items():
        if parameter is not None:
            check_dtype(parameter.dtype, f"parameter '{name}'")


def parameter_options(device: Any, *dtypes: torch.dtype | None) -> dict[str, Any]:
    """What parameters are made with: the device, and the first data type that is given."""
    dtype = next((dtype for dtype in dtypes if dtype is not None), None)
    if dtype is not None:
        check_dtype(dtype, "argument 'dtype'")
    return {"device": device, "dtype": dtype}


def shaped(y: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A result in another shape, and no view of it, which FSDP2 warns of: nothing else has it."""
    found: torch.Tensor = torch.ops.aten._unsafe_view(y, shape)
    return found
