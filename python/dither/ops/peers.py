"""The numerics of other libraries, as options of formats; docs/peers.md says what is equal to the bit."""

from __future__ import annotations

from typing import Any

from .. import types
from ..errors import suggest
from ..formats import Format


def with_numerics(fmt: Format, name: Any) -> Format:
    """A format as another library has it: "te" (Transformer Engine), "torchao", "nvfuser", "jax" (the quantizers of
    Transformer Engine for JAX) or "ocp" (OCP MX 1.0); None leaves it as it is.

    What the library does not say anything about stays. Raises TypeError or ValueError for other names, and for formats
    that it does not have.
    """
    if name is None:
        return fmt
    if not isinstance(name, str):
        raise TypeError(f"numerics is {name!r}, expected one of {', '.join(_CHANGES)}")
    if name not in _CHANGES:
        raise ValueError(f"numerics is {name!r}, expected one of {', '.join(_CHANGES)}{suggest(name, _CHANGES)}")
    changes = _CHANGES[name].get(_kind(fmt))
    if changes is None:
        raise ValueError(f"numerics is {name!r}, which has no {fmt.name}: {_HAS[name]}")
    return fmt.with_(**changes)


def _kind(fmt: Format) -> str:
    """What the rules of a library depend on."""
    if fmt.scale is types.e8m0:
        if fmt.element in (types.float8_e4m3, types.float8_e5m2):
            return "mxfp8"
        return "mxint8" if fmt.element is types.int8 else "mx"
    if fmt.element is types.float4_e2m1 and fmt.scale is types.float8_e4m3:
        return "nvfp4" if fmt.tensor_scale else "one level"
    if fmt.scale is types.float32 and fmt.element in (types.float8_e4m3, types.float8_e5m2):
        return f"fp8 {fmt.block}" if isinstance(fmt.block, str) else "fp8 blocks"
    return ""


_TE_FP8 = {"order": "encode_first", "epsilon": 0.0}
_TORCHAO_FP8 = {"order": "encode_first", "epsilon": 1e-12, "pow2_scales": False}
_CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "te": {
        "nvfp4": {"order": "te", "tensor_scale_as": "amax", "least_scale": 0.0, "nan_scales": False},
        "mxfp8": {"scale_rounding": "rceil", "inf_scale": "FE", "nan_scales": False},
        "fp8 tensor": {**_TE_FP8, "pow2_scales": False},
        "fp8 blocks": {**_TE_FP8, "pow2_scales": True, "nan_scales": False},
    },
    "torchao": {
        "nvfp4": {"order": "div6_div", "tensor_scale_as": "decode", "nan_scales": True},
        "one level": {"order": "div6_div", "nan_scales": True},
        "mx": {"scale_rounding": "floor", "inf_scale": "FE", "nan_scales": True},
        "mxfp8": {"scale_rounding": "floor", "inf_scale": "FE", "nan_scales": True},
        "fp8 tensor": _TORCHAO_FP8,
        "fp8 row": _TORCHAO_FP8,
    },
    "nvfuser": {
        "nvfp4": {"order": "div6_mul", "tensor_scale_as": "encode", "least_scale": 0.0, "nan_scales": False},
        "one level": {"order": "div6_mul", "least_scale": 0.0, "nan_scales": False},
        "mxfp8": {"scale_rounding": "rceil", "inf_scale": "FE", "nan_scales": False},
    },
    "jax": {
        "nvfp4": {"order": "div6_mul", "tensor_scale_as": "amax", "least_scale": 0.0, "nan_scales": True},
        "mxfp8": {"scale_rounding": "rceil", "inf_scale": "FF", "nan_scales": False},
        "fp8 tensor": {**_TE_FP8, "pow2_scales": False},
    },
    "ocp": {
        "mx": {"scale_rounding": "floor", "inf_scale": "FE", "nan_scales": False},
        "mxfp8": {"scale_rounding": "floor", "inf_scale": "FE", "nan_scales": False},
        "mxint8": {"scale_rounding": "floor", "inf_scale": "FE", "nan_scales": False},
    },
}
#: What each has, for messages.
_HAS = {
    "te": "Transformer Engine has NVFP4, MXFP8 and FP8 with float32 scales",
    "torchao": "torchao has NVFP4 of one and two levels, MXFP8, MXFP6, MXFP4, and FP8 of tensors and rows",
    "nvfuser": "nvFuser has NVFP4 of one and two levels, and MXFP8",
    "jax": "Transformer Engine for JAX has NVFP4, MXFP8, and FP8 of tensors",
    "ocp": "OCP MX 1.0 has MXFP8, MXFP6, MXFP4 and MXINT8",
}
