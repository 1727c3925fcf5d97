"""What is measured: operators, their inputs, and the bytes that each must move."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import ml_dtypes
import numpy as np

from benchmarks import limit

BF16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
DTYPES = {"bf16": BF16, "f32": F32}

# Whether RMSNorm rounds its result to the type of its input before it is quantized, as an unfused norm would:
# everywhere here as in dither.rms_norm, which does by default.
ROUND_INTERMEDIATE = True
EPS = 1e-5


@dataclass(frozen=True)
class Operator:
    """`kind` is quantize, both (rowwise and columnwise) or rms_norm (followed by rowwise quantize)."""

    name: str
    kind: str
    format: str

    def outputs(self, rows: int, cols: int) -> dict[str, tuple[int, ...]]:
        """Shapes in bytes; two E2M1 codes share one."""
        data = (rows, cols if self.format == "mxfp8_e4m3" else cols // 2)
        result: dict[str, tuple[int, ...]] = {"q": data, "scale": (rows, cols // limit.BLOCK[self.format])}
        if self.kind == "both":
            result |= {"col_q": data, "col_scale": (rows // limit.BLOCK[self.format], cols)}
        return result


OPERATORS = (
    Operator("quantize NVFP4", "quantize", "nvfp4"),
    Operator("quantize MXFP8", "quantize", "mxfp8_e4m3"),
    Operator("quantize MXFP4", "quantize", "mxfp4"),
    Operator("quantize MXFP8 row+col", "both", "mxfp8_e4m3"),
    Operator("RMSNorm + MXFP8", "rms_norm", "mxfp8_e4m3"),
    Operator("RMSNorm + NVFP4", "rms_norm", "nvfp4"),
)


@dataclass
class Case:
    """An operator on one input. The data is normal, with rows of different magnitude."""

    operator: Operator
    dtype: str
    rows: int
    cols: int
    x: np.ndarray = field(repr=False)
    gamma: np.ndarray = field(repr=False)
    amax: float

    @property
    def bytes(self) -> int:
        """Each input byte read once, each output byte written once; gamma and the tensor's amax are not counted."""
        outputs = self.operator.outputs(self.rows, self.cols)
        return self.x.nbytes + sum(int(np.prod(shape)) for shape in outputs.values())

    @cached_property
    def expected(self) -> dict[str, np.ndarray]:
        """The outputs, by the hand-written kernels, whose bits are tested against the reference."""
        out = {name: limit.empty(shape) for name, shape in self.operator.outputs(self.rows, self.cols).items()}
        run_limit(self, out, threads=2)
        return out


def run_limit(case: Case, out: dict[str, np.ndarray], threads: int) -> None:
    """The hand-written kernel of a case."""
    library, op = limit.load(), case.operator
    if op.kind == "both":
        library.quantize_both(case.x, out["q"], out["scale"], out["col_q"], out["col_scale"], threads)
    elif op.kind == "rms_norm":
        library.rms_norm(
            case.x,
            case.gamma,
            op.format,
            EPS,
            case.amax,
            out["q"],
            out["scale"],
            None,
            ROUND_INTERMEDIATE,
            threads,
        )
    else:
        library.quantize(case.x, op.format, case.amax, out["q"], out["scale"], threads)


def matrix(dtype: str, size: int, cols: int, seed: int = 0) -> np.ndarray:
    """About `size` bytes: rows of normal values whose magnitudes differ; rows are a multiple of 128."""
    rows = max(128, size // (cols * DTYPES[dtype].itemsize) // 128 * 128)
    rng = np.random.default_rng(seed)
    x = limit.empty((rows, cols), DTYPES[dtype])
    for start in range(0, rows, 128):  # in slabs: no fp32 copy of the whole
        slab = rng.standard_normal((128, cols), np.float32) * np.exp(rng.standard_normal((128, 1), np.float32))
        x[start : start + 128] = slab.astype(DTYPES[dtype])
    return x


def cases(dtype: str, size: int, cols: int, names: list[str] | None = None) -> list[Case]:
    """One case for each operator whose name contains one of `names`; all share one input."""
    x = matrix(dtype, size, cols)
    gamma = np.random.default_rng(1).uniform(0.5, 1.5, cols).astype(DTYPES[dtype])
    amax = max(float(np.abs(x[i : i + 1024].astype(np.float32)).max()) for i in range(0, len(x), 1024))
    return [
        # 6 is about the largest element of a normalized row
        Case(op, dtype, x.shape[0], x.shape[1], x, gamma, 6.0 if op.kind == "rms_norm" else amax)
        for op in OPERATORS
        if names is None or any(name.lower() in op.name.lower() for name in names)
    ]
