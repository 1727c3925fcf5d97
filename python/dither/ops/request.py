"""What a call asks of an operator besides its operands."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..devices import Device
from ..formats import Format, get_format
from ..types import DType
from . import outputs
from .allocate import float_type
from .grouping import Groups
from .hadamard import check_transform
from .peers import with_numerics
from .rounding import Random, random_of

#: Options of a format, and what they are where nothing is said.
_OF_FORMATS: dict[str, Any] = {
    "layout": "rowwise",
    "scale_layout": "linear",
    "amax": None,
    "out": None,
    "rounding": "nearest",
    "encode_scale": None,
    "decode_scale": None,
    "record_amax": None,
    "repeat_scales": False,
    "transform": None,
    "numerics": None,
}


@dataclasses.dataclass(slots=True, kw_only=True)
class Wanted:
    """What a call asks for; `plan` is None for plain output."""

    plan: outputs.Plan | None = None
    dtype: DType | None = None
    amax: Any = None
    return_amax: bool = False
    round_intermediate: bool = True
    device: str | Device | None = None
    stream: int | None = None
    out: Any = None
    random: Random | None = None
    encode_scale: Any = None
    decode_scale: Any = None
    record_amax: Any = None
    skip: Any = None
    flatten_axis: Any = -1
    grad_dtype: DType | None = None
    groups: Groups | None = None
    interleave: Any = None
    #: Periodic operands that batches share: tables of the last dimensions of rows.
    shared: frozenset[str] = frozenset()
    #: Of a part of a tensor that is split along a dimension which is not the first of rows, or columns: rows, and
    #: columns, that follow each other in the whole. Tiles go by these. Zero where all do.
    together: tuple[int, int] = (0, 0)
    #: Whether a pass over the same tensors came before.
    again: bool = False
    #: Whether that pass found `amax`, which may be infinite, where one that a caller gives may not.
    found_amax: bool = False
    #: Whether there is no output, but what is saved, and the amax.
    only_saved: bool = False
    #: What is saved besides, to be written, by name.
    saved: dict[str, Any] = dataclasses.field(default_factory=dict)


def wanted_of(
    format: Any,
    *,
    seed: Any,
    offset: Any,
    device: Any,
    stream: Any,
    flatten_axis: Any,
    dtype: Any = None,
    return_amax: Any = False,
    round_intermediate: Any = None,
    skip: Any = None,
    groups: Any = None,
    **of_format: Any,
) -> Wanted:
    """The options of a call, checked: `of_format` has those of `_OF_FORMATS`, which a call without a format must leave
    as they are. Raises TypeError or ValueError, which name the option."""
    if dtype is not None:
        dtype = float_type(dtype)
    check_flag("return_amax", return_amax)
    if groups is not None and not isinstance(groups, Groups):
        raise TypeError(f"argument 'groups' is {type(groups).__name__}, expected a dither.Groups")
    random = random_of(of_format["rounding"], seed, offset)
    if round_intermediate is None:
        # Unless it is scaled by what earlier steps have found, as Transformer Engine's fused operators do.
        round_intermediate = of_format["encode_scale"] is None
    check_flag("round_intermediate", round_intermediate)
    plan = None
    if format is None:
        for name, absent in _OF_FORMATS.items():
            value = of_format[name]
            if name != "out" and value is not absent and not (isinstance(value, str) and value == absent):
                raise ValueError(f"argument '{name}' was given without a format, expected one, or none of the two")
    else:
        plan = outputs.plan(
            _format(format, of_format),
            of_format["layout"],
            of_format["scale_layout"],
            random is not None,
            of_format["repeat_scales"],
            check_transform(of_format["transform"]),
        )
    if skip is not None and of_format["out"] is None:
        raise ValueError("argument 'skip' was given, expected 'out' with it, which is left as it is")
    return Wanted(
        plan=plan,
        dtype=dtype,
        return_amax=return_amax,
        round_intermediate=round_intermediate,
        device=device,
        stream=stream,
        random=random,
        flatten_axis=flatten_axis,
        skip=skip,
        groups=groups,
        amax=of_format["amax"],
        out=of_format["out"],
        encode_scale=of_format["encode_scale"],
        decode_scale=of_format["decode_scale"],
        record_amax=of_format["record_amax"],
    )


def _format(format: Any, of_format: dict[str, Any]) -> Format:
    """The format of a call: with the numerics that it names, and with the tensor scale that it gives."""
    fmt = with_numerics(get_format(format), of_format["numerics"])
    given = [kind for kind in ("encode", "decode") if of_format[f"{kind}_scale"] is not None]
    if len(given) > 1:
        raise ValueError("argument 'encode_scale' was given beside 'decode_scale', expected one of the two")
    if given and of_format["amax"] is not None:
        raise ValueError(f"argument 'amax' was given beside '{given[0]}_scale', expected one of the two")
    if not given or not fmt.tensor_scale:
        return fmt
    if fmt.tensor_scale_as not in ("amax", given[0]):
        raise ValueError(
            f"argument '{given[0]}_scale' was given for {fmt.name} with tensor_scale_as={fmt.tensor_scale_as!r}, "
            f"expected {fmt.tensor_scale_as}_scale"
        )
    if fmt.row_amax:
        raise ValueError(
            f"argument '{given[0]}_scale' was given for {fmt.name} with row_amax, expected none: scales depend on the "
            "amax of each row"
        )
    return fmt.with_(tensor_scale_as=given[0])


def check_flag(name: str, value: Any) -> None:
    """Raises TypeError for what is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, expected True or False")
