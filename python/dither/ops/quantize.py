"""dither.quantize."""

from __future__ import annotations

from typing import Any

from ..devices import Device
from ..formats import Format, get_format
from ..frameworks import replayable
from .hadamard import RandomHadamard
from .operator import Operator, run
from .outputs import Plan
from .producer import Producer
from .request import Wanted, wanted_of
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x


def _identity(x: Any) -> Any:
    return x


QUANTIZE = Operator(Producer("quantize", _identity, {"x": "tile"}))


@replayable
def quantize(
    x: Any,
    format: Format | str,
    layout: str = "rowwise",
    scale_layout: str = "linear",
    amax: Any = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: ScaledTensor1x | ScaledTensor2x | None = None,
    rounding: str = "nearest",
    seed: Any = None,
    offset: Any = 0,
    encode_scale: Any = None,
    decode_scale: Any = None,
    record_amax: Any = None,
    repeat_scales: bool = False,
    transform: RandomHadamard | None = None,
    flatten_axis: int = -1,
    numerics: str | None = None,
    skip: Any = None,
) -> Any:
    """`x` in a block-scaled format. The result has no gradient: a tensor of torch that requires one raises TypeError.

    Args:
        x: float32, bfloat16 or float16 of any rank: NumPy, torch, or anything with DLPack or the CUDA array interface.
        format: a format of `dither.formats` or its name.
        layout: blocks along rows ("rowwise"), along columns ("colwise"), or "both" from one read of `x`.
        scale_layout: order of the scales: "linear", or one that a consumer takes, padded with zeros: "128x4",
            "8x4", "column_major" or "packed", as in `dither.swizzle_scales`.
        amax: largest magnitude of `x` (float32, one element), for formats with a tensor scale or one block; computed if
            None. It is copied: the result has one of its own.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.
        out: a result of an earlier call of the same kind, to be overwritten; in memory of its own.
        rounding: "nearest" (ties to even), or "stochastic": away from zero with the probability of how far an element
            is past the value below it, by random bits that depend on `seed`, `offset`, output and place alone.
        seed, offset: of stochastic rounding: integers of 64 bits, or int64 arrays of one element where x is. Calls with
            one seed and one offset round alike.
        encode_scale: what elements are multiplied by, for FP8 of a whole tensor (delayed scaling): a number above zero,
            or a float32 array of one element where `x` is. The scale is one over it. For formats with a tensor scale
            it is that scale, in place of `amax`.
        decode_scale: one over the tensor scale, for formats that have one, in place of `amax`. The result has the
            scale that was given as `tensor_scale`, and is of a format that says so (`Format.tensor_scale_as`).
        record_amax: a float32 array of one element, which is raised to the largest magnitude of `x`, in the same pass.
        repeat_scales: whether scales of blocks of several rows are stored once for each row, as tensor cores take them.
        transform: a Hadamard transform of what is quantized (`dither.RandomHadamard`); None for none.
        flatten_axis: dimensions of `x` from this one on are columns, those before it rows; by default the last one.
            Blocks, codes and scales are those of this matrix.
        numerics: a library whose choices the format takes where it leaves them open: "te", "torchao", "nvfuser",
            "jax" or "ocp" (docs/peers.md says what is equal to the bit).
        skip: a flag, True or an array of one element (float32, int32 or int64) where `x` is, that is not zero: then
            `out` is left as it is. What lies on a GPU is read by the kernels, so that a graph of launches can have it.

    Returns a ScaledTensor1x, or a ScaledTensor2x for "both".
    """
    wanted = wanted_to_quantize(
        format=format,
        layout=layout,
        scale_layout=scale_layout,
        amax=amax,
        device=device,
        stream=stream,
        out=out,
        rounding=rounding,
        seed=seed,
        offset=offset,
        encode_scale=encode_scale,
        decode_scale=decode_scale,
        record_amax=record_amax,
        repeat_scales=repeat_scales,
        transform=transform,
        flatten_axis=flatten_axis,
        numerics=numerics,
        skip=skip,
    )
    return run(QUANTIZE, {"x": x}, {}, wanted).out


def wanted_to_quantize(*, format: Any, **options: Any) -> Wanted:
    """What a call of `quantize` asks for."""
    wanted = wanted_of(get_format(format), **options)
    assert wanted.plan is not None
    wanted.round_intermediate = rounds_first(wanted.plan)
    return wanted


def rounds_first(p: Plan) -> bool:
    """Whether a tensor is rounded before it is quantized. It is as it was in memory: there is nothing to round, but
    formats ask for the type, and transforms round."""
    asks = p.fmt.order == "encode_first" and not (p.fmt.pow2_scales or isinstance(p.fmt.block, str))
    return asks or p.transform is not None
