"""dither's own operators, `dither.quantize` and `dither.rms_norm`; where a build has none, the tile kernels of
dither_kernels.py, compiled for the CPU.

This module is the only one of the benchmarks that knows how the operators are called.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from benchmarks import limit
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
    """data and scale of a ScaledTensor1x; those of both directions of a ScaledTensor2x."""
    if hasattr(result, "rowwise"):
        return [*_parts(result.rowwise), *_parts(result.columnwise)]
    return [result.data, result.scale]


def _tile_kernel(case: Case) -> Prepared:
    from benchmarks import dither_kernels

    op = case.operator
    short = op.format.removesuffix("_e4m3")
    name = {"quantize": short, "both": f"{short}_both", "rms_norm": f"rms_norm_{short}"}[op.kind]
    out = {name: limit.empty(shape) for name, shape in op.outputs(case.rows, case.cols).items()}
    arrays: dict[str, np.ndarray] = {"x": case.x}
    if op.kind == "both":
        arrays |= {"row_q": out["q"], "row_scale": out["scale"], "col_q": out["col_q"], "col_scale": out["col_scale"]}
    else:
        arrays |= {"q": out["q"], "scale": out["scale"]}
    if op.kind == "rms_norm":
        arrays["gamma"] = case.gamma
    if op.format == "nvfp4":
        arrays["tensor_amax"] = np.array(case.amax, np.float32)
    call = functools.partial(dither_kernels.run, name, arrays, case.cols)
    try:
        call()
    except dither_kernels.dither.CompileError as error:
        raise Unavailable(str(error).splitlines()[0]) from error
    return Prepared(call, lambda: out)


def prepare(case: Case, threads: int) -> Prepared:
    dither, op = _module(), case.operator
    name = "rms_norm" if op.kind == "rms_norm" else "quantize"
    function = getattr(dither, name, None)
    format = getattr(dither, FORMATS[op.format], None)
    if function is None or format is None:
        return _tile_kernel(case)
    accepted = inspect.signature(function).parameters
    options: dict[str, object] = {"layout": "both" if op.kind == "both" else "rowwise"}
    if op.format == "nvfp4":
        options["amax"] = np.float32(case.amax)
    if op.kind == "rms_norm":
        options |= {"eps": EPS, "round_intermediate": ROUND_INTERMEDIATE}
    options = {key: value for key, value in options.items() if key in accepted}
    arguments = (case.x, case.gamma, format) if op.kind == "rms_norm" else (case.x, format)
    results: list[Any] = []

    def call() -> None:
        # The outputs of the call before are written again, as those of every other implementation here are.
        reuse = {"out": results[0]} if results and "out" in accepted else {}
        results[:] = [function(*arguments, **options, **reuse)]

    def outputs() -> dict[str, np.ndarray]:
        arrays = [as_bytes(np.asarray(part)) for part in _parts(results[0])]
        shapes = op.outputs(case.rows, case.cols)
        # Scales are stored padded; what is compared is the part inside.
        return {name: a[: shapes[name][0], : shapes[name][1]] for name, a in zip(shapes, arrays, strict=True)}

    try:
        call()
    except (NotImplementedError, AttributeError) as error:
        raise Unavailable(f"dither.{name} does not do this yet ({error})") from error
    return Prepared(call, outputs)
