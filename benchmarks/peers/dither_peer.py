"""dither's own operators, `dither.quantize` and `dither.rms_norm`.

This module is the only one of the benchmarks that knows how the operators are called.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.operators import EPS, ROUND_INTERMEDIATE, Case
from benchmarks.peers import Prepared, Unavailable, as_bytes

NAME = "dither"

FORMATS = {"nvfp4": "NVFP4", "mxfp8_e4m3": "MXFP8_E4M3", "mxfp4": "MXFP4"}


def _module():
    try:
        import dither
    except ImportError as error:
        raise Unavailable(f"dither cannot be imported ({error})") from error
    if dither.__file__ is None:  # a folder of that name, such as one that is being built
        raise Unavailable("dither cannot be imported (it is not built)")
    return dither


def version() -> str:
    try:
        return f"dither {getattr(_module(), '__version__', '')}"
    except Unavailable as reason:
        return str(reason)


def _parts(result: Any) -> list[Any]:
    """Codes and scales of a ScaledTensor1x; those of both directions of a ScaledTensor2x."""
    if hasattr(result, "rowwise"):
        return [*_parts(result.rowwise), *_parts(result.colwise)]
    return [result.data, result.scale_inv]


def prepare(case: Case, threads: int) -> Prepared:
    dither, op = _module(), case.operator
    importlib.import_module("dither._dither").set_num_threads(threads)
    name = "rms_norm" if op.kind == "rms_norm" else "quantize"
    function = getattr(dither, name, None)
    format = getattr(dither, FORMATS[op.format], None)
    if function is None or format is None:
        raise Unavailable(f"dither has no {name if function is None else FORMATS[op.format]}")
    options: dict[str, Any] = {"format": format, "layout": "both" if op.kind == "both" else "rowwise"}
    if op.format == "nvfp4":
        options["amax"] = np.array(case.amax, np.float32)
    arguments: tuple[Any, ...] = (case.x,)
    if op.kind == "rms_norm":
        arguments, options["eps"] = (case.x, case.gamma), EPS
        options["round_intermediate"] = ROUND_INTERMEDIATE
    results: list[Any] = []

    def call() -> None:
        # The outputs of the call before are written again, as those of every other implementation here are.
        result = function(*arguments, **options, out=results[0] if results else None)
        results[:] = [result.out if op.kind == "rms_norm" else result]

    def outputs() -> dict[str, np.ndarray]:
        arrays = [as_bytes(np.asarray(part)) for part in _parts(results[0])]
        return dict(zip(op.outputs(case.rows, case.cols), arrays, strict=True))

    try:
        call()
    except (NotImplementedError, AttributeError) as error:
        raise Unavailable(f"dither.{name} does not do this yet ({error})") from error
    return Prepared(call, outputs)
