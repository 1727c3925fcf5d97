"""What the scales of a call depend on besides their blocks: an amax, or a scale in its place, given or computed."""

from __future__ import annotations

from typing import Any

from ..arrays import Array
from ..devices import Device
from ..types import float32
from .allocate import can_fill, empty_like
from .given import checked, factor, is_at, number_or_array, own, own_scale, scale_of_amax
from .outputs import Known, Plan, parts_of
from .request import Wanted


class ScaleSources:
    """Of the whole tensor ("amax"), or of its rows and columns ("row_amax", "col_amax"): amaxes, and tensor scales of
    formats that have them as encode or decode scales. Where a scale was given no amax is known.

    Attributes:
        encode_scale: what elements are multiplied by, where a format of one scale was given that.
    """

    def __init__(
        self, plan: Plan, x: Any, array: Array, where: Device, stream: int | None, launches: bool = False
    ) -> None:
        """`x`, described by `array`, is what is quantized. `launches` says that kernels run for it, on a GPU, of which
        one can copy an amax that lies there."""
        self._plan, self._of, self._where = plan, (x, array), (where, stream)
        self._copies = launches and plan.fmt.tensor_scale_as == "amax"
        self._given: Any = None
        self._need = plan.amaxes((array.shape[0], array.shape[1]))
        self._amaxes: dict[str, Any] = {}
        self._scales: dict[str, Any] = {}
        # The directions of an earlier result whose arrays are written, by what they have.
        self._parts: dict[str, Any] = {}
        self.encode_scale: Any = None

    def take(self, wanted: Wanted, flagged: bool = False) -> None:
        """Takes what the call gives. `flagged` says that an earlier result (`out`) stays as it is where a flag says
        so: then what its codes depend on is written past the flag alone (settle.py), and not in its place at once."""
        fmt = self._plan.fmt
        if wanted.out is not None and fmt.tensor_scale:
            parts = parts_of(wanted.out)
            first = -1 if "row_amax" in self._need else 0
            self._parts = {"amax": parts[first], "row_amax": parts[0], "col_amax": parts[-1]}
        for name in ("encode_scale", "decode_scale", "amax"):
            value = getattr(wanted, name)
            if value is None:
                continue
            if name != "amax" and not fmt.tensor_scale:
                self.encode_scale = factor(name, value, fmt, *self._of)
                self._need = {}
            elif self._need.pop("amax", None) != ():
                raise ValueError(f"argument '{name}' was given, expected none: {self._plan.no_amax}")
            elif name == "amax":
                self._take_amax(number_or_array(name, value) if wanted.found_amax else checked(name, value), flagged)
            else:
                place = None if flagged else self._place("amax", "tensor_scale")
                self._scales["amax"] = own_scale(name, value, *self._of, *self._where, place)
        if flagged:
            self._parts = {}

    def _take_amax(self, given: float | Array, flagged: bool) -> None:
        place = self._place("amax", "amax")
        if self._copies and not isinstance(given, float) and not (place is not None and is_at(given, place)):
            # A launch of its own would take as long as a tenth of a large tensor's. The flag is one of that launch.
            self._given, self._amaxes["amax"] = given, self._new(place)
        else:
            self._amaxes["amax"] = own(given, *self._of, *self._where, None if flagged else place)

    def _place(self, what: str, field: str) -> Any:
        """The array that an earlier result has of this; None where there is none that is written as a new one."""
        place = getattr(self._parts.get(what), field, None)
        return place if can_fill(place) else None

    def _new(self, place: Any, shape: tuple[int, ...] = ()) -> Any:
        return empty_like(*self._of, shape, float32) if place is None else place

    def copies(self) -> dict[str, Any]:
        """What the first launch writes of what was given."""
        return {} if self._given is None else {"own_amax": self._amaxes["amax"]}

    def missing(self) -> dict[str, Any]:
        """Amaxes that a pass has to find, uninitialised: they are to be zero, and then raised."""
        found = {what: self._new(self._place(what, "amax"), shape) for what, shape in self._need.items()}
        self._amaxes |= found
        return found

    def make_scales(self) -> None:
        """Makes tensor scales of the amaxes, where the format has such."""
        if self._plan.fmt.tensor_scale_as != "amax":
            for what, one in self._amaxes.items():
                place = self._place(what, "tensor_scale")
                self._scales[what] = scale_of_amax(one, self._plan.fmt, *self._of, *self._where, place)

    def of(self, which: str) -> Any:
        """What kernels are given for blocks along rows ("row") or columns ("col")."""
        if self._given is not None:
            return self._given
        stands = self._scales if self._plan.fmt.tensor_scale_as != "amax" else self._amaxes
        return stands.get(f"{which}_amax", stands.get("amax"))

    def known(self, which: str) -> Known:
        """What the result has of the tensor."""
        if not self._plan.fmt.tensor_scale:
            return Known(None, None, self.encode_scale is not None)
        amax, scale = (found.get(f"{which}_amax", found.get("amax")) for found in (self._amaxes, self._scales))
        return Known(amax, scale)
