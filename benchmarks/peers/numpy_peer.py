"""NumPy with ml_dtypes: one array operation after the other, in one thread.

Same bits for finite input. A NaN is lost to E2M1 (ml_dtypes gives -0, not +6) and wins an amax. RMSNorm sums in NumPy's
order, so that rsigma, and a code here and there, differ in the last place.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from benchmarks.operators import EPS, ROUND_INTERMEDIATE, Case
from benchmarks.peers import Prepared, as_bytes

NAME = "NumPy"
F32 = np.float32
FMAX32 = np.finfo(F32).max


def version() -> str:
    return f"NumPy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"


def e8m0_rceil(a: np.ndarray) -> np.ndarray:
    """Round up to a power of two; the codes of E8M0."""
    bits = a.view(np.uint32)
    return np.where(bits <= 0x400000, 0, (bits + np.uint32(0x7FFFFF)) >> 23).astype(np.uint8)


def e8m0_inverse(e: np.ndarray) -> np.ndarray:
    return ((np.uint32(254) - e) << 23).astype(np.uint32).view(F32)


def e2m1(y: np.ndarray) -> np.ndarray:
    """Codes of y, two to a byte."""
    codes = y.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4


def e4m3(y: np.ndarray) -> np.ndarray:
    return np.clip(y, F32(-448), F32(448)).astype(ml_dtypes.float8_e4m3fn)


def nvfp4(x: np.ndarray, amax: float) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = x.shape
    blocks = x.astype(F32).reshape(rows, cols // 16, 16)
    encode = min(F32(2688) / F32(amax), FMAX32)
    mult = encode * (F32(1) / F32(6))
    scale = e4m3(np.abs(blocks).max(axis=2) * mult)
    with np.errstate(divide="ignore"):
        inverse = np.minimum(F32(1) / (scale.astype(F32) * (F32(1) / encode)), FMAX32)
    return e2m1(blocks * inverse[:, :, None]).reshape(rows, -1), scale


def mxfp8(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = x.shape
    blocks = x.astype(F32).reshape(rows, cols // 32, 32)
    scale = e8m0_rceil(np.abs(blocks).max(axis=2) * (F32(1) / F32(448)))
    return e4m3(blocks * e8m0_inverse(scale)[:, :, None]).reshape(rows, -1), scale


def mxfp4(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = x.shape
    blocks = x.astype(F32).reshape(rows, cols // 32, 32)
    field = np.abs(blocks).max(axis=2).view(np.uint32) >> 23
    scale = (np.maximum(field, 2) - 2).astype(np.uint8)
    return e2m1(blocks * e8m0_inverse(scale)[:, :, None]).reshape(rows, -1), scale


def mxfp8_columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, cols = x.shape
    blocks = x.astype(F32).reshape(rows // 32, 32, cols)
    scale = e8m0_rceil(np.abs(blocks).max(axis=1) * (F32(1) / F32(448)))
    return e4m3(blocks * e8m0_inverse(scale)[:, None, :]).reshape(rows, cols), scale


def rms_norm(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    wide = x.astype(F32)
    mean = np.mean(wide * wide, axis=1, keepdims=True)
    y = gamma.astype(F32) * (F32(1) / np.sqrt(mean + F32(EPS)) * wide)
    return y.astype(x.dtype) if ROUND_INTERMEDIATE else y


QUANTIZE = {
    "nvfp4": nvfp4,
    "mxfp8_e4m3": lambda x, amax: mxfp8(x),
    "mxfp4": lambda x, amax: mxfp4(x),
}


def prepare(case: Case, threads: int) -> Prepared:
    op = case.operator
    results: list[np.ndarray] = []

    def call() -> None:
        if op.kind == "both":
            results[:] = [*mxfp8(case.x), *mxfp8_columns(case.x)]
        else:
            x = rms_norm(case.x, case.gamma) if op.kind == "rms_norm" else case.x
            results[:] = QUANTIZE[op.format](x, case.amax)

    def outputs() -> dict[str, np.ndarray]:
        return dict(zip(("q", "scale", "col_q", "col_scale"), map(as_bytes, results), strict=False))

    return Prepared(call, outputs)
