"""The GPU kernels in Triton: what dither's generated code is compared with on the same target.

They compile without a GPU: `compile_kernel(KERNELS["nvfp4"], 90)` gives Triton's artifact with PTX and cubin. Formulas
are those of the CPU peers, so that TRITON_INTERPRET=1 runs them and the test compares the bits; conversions to E2M1 use
the instruction where `HARDWARE` says that the target has it and integer arithmetic elsewhere.

Matrices are row-major and contiguous; the row length K is a compile-time constant, the number of rows is not.
"""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from benchmarks.operators import EPS, ROUND_INTERMEDIATE

FMAX32: tl.constexpr = tl.constexpr(3.4028234663852886e38)


@triton.jit
def _bits(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def _float(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _e2m1_code(y):
    """E2M1 codes of fp32: adding 2^22 times the power of two under |y| rounds it to one mantissa bit."""
    a = tl.minimum(tl.abs(y), 6.0)
    power = _bits(tl.maximum(a, 1.0)) & 0x7F800000
    code = (_bits(_float(power) * 4194304.0 + a) & 0x3FFFFF) + (power >> 22) - 254
    return code | ((_bits(y) >> 28) & 8)


@triton.jit
def _pack_e2m1(y, HARDWARE: tl.constexpr):
    """Two codes a byte along the last dimension, whose length is even: the first in the low nibble."""
    shape: tl.constexpr = y.shape
    low, high = tl.split(tl.reshape(y, (shape[0], shape[1] // 2, 2)))
    if HARDWARE:
        packed = tl.inline_asm_elementwise(
            """{
            .reg .b8 b0, b1, b2, b3;
            cvt.rn.satfinite.e2m1x2.f32 b0, $5, $1;
            cvt.rn.satfinite.e2m1x2.f32 b1, $6, $2;
            cvt.rn.satfinite.e2m1x2.f32 b2, $7, $3;
            cvt.rn.satfinite.e2m1x2.f32 b3, $8, $4;
            mov.b32 $0, {b0, b1, b2, b3};
            }""",
            "=r,r,r,r,r,r,r,r,r",
            [low, high],
            dtype=tl.uint8,
            is_pure=True,
            pack=4,
        )
    else:
        packed = (_e2m1_code(low) | (_e2m1_code(high) << 4)).to(tl.uint8)
    return packed


@triton.jit
def _e8m0_rceil(a):
    bits = _bits(a)
    return tl.where(bits <= 0x400000, 0, (bits + 0x7FFFFF) >> 23)


@triton.jit
def _e8m0_inverse(e):
    return _float((254 - e) << 23)


@triton.jit
def _e4m3(y):
    return tl.clamp(y, -448.0, 448.0).to(tl.float8e4nv)


@triton.jit
def _scale(a, tensor_amax, FORMAT: tl.constexpr):
    """Scale codes as uint8 and fp32 multipliers of block maxima."""
    if FORMAT == "nvfp4":
        encode = tl.minimum(tl.div_rn(2688.0, tensor_amax), FMAX32)
        code = _e4m3(tl.minimum(a * (encode * 0.16666667163372040), 448.0))
        value = code.to(tl.float32) * tl.div_rn(1.0, encode)
        inverse = tl.minimum(tl.div_rn(1.0, value), FMAX32)
        scale = code.to(tl.uint8, bitcast=True)
    elif FORMAT == "mxfp8":
        e = _e8m0_rceil(a * 0.0022321429569274187)
        inverse, scale = _e8m0_inverse(e), e.to(tl.uint8)
    else:
        e = tl.maximum((_bits(a) >> 23) - 2, 0)
        inverse, scale = _e8m0_inverse(e), e.to(tl.uint8)
    return scale, inverse


@triton.jit
def _quantize_tile(x, tensor_amax, FORMAT: tl.constexpr, BLOCK: tl.constexpr, HARDWARE: tl.constexpr):
    """Rowwise codes and scales of a fp32 tile of ROWS x COLS."""
    ROWS: tl.constexpr = x.shape[0]
    COLS: tl.constexpr = x.shape[1]
    blocks = tl.reshape(x, (ROWS * COLS // BLOCK, BLOCK))
    scale, inverse = _scale(tl.max(tl.abs(blocks), 1), tensor_amax, FORMAT)
    y = blocks * inverse[:, None]
    if FORMAT == "mxfp8":
        codes = tl.reshape(_e4m3(y).to(tl.uint8, bitcast=True), (ROWS, COLS))
    else:
        codes = tl.reshape(_pack_e2m1(y, HARDWARE), (ROWS, COLS // 2))
    return codes, tl.reshape(scale, (ROWS, COLS // BLOCK))


@triton.jit
def _store(pointer, tile, row, col, M, STRIDE: tl.constexpr):
    """Stores a tile of codes at (row, col) of a matrix of M rows."""
    r = row + tl.arange(0, tile.shape[0])
    c = col + tl.arange(0, tile.shape[1])
    tl.store(pointer + r[:, None].to(tl.int64) * STRIDE + c[None, :], tile, mask=r[:, None] < M)


@triton.jit
def quantize(
    x,
    tensor_amax,
    q,
    scale,
    M,
    K: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """Rowwise quantize; grid (cdiv(M, ROWS), K / COLS)."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    r, c = row + tl.arange(0, ROWS), col + tl.arange(0, COLS)
    tile = tl.load(x + r[:, None].to(tl.int64) * K + c[None, :], mask=r[:, None] < M, other=0.0).to(tl.float32)
    G = tl.load(tensor_amax) if FORMAT == "nvfp4" else 0.0
    codes, s = _quantize_tile(tile, G, FORMAT, BLOCK, HARDWARE)
    PER_BYTE: tl.constexpr = 1 if FORMAT == "mxfp8" else 2
    _store(q, codes, row, col // PER_BYTE, M, K // PER_BYTE)
    _store(scale, s, row, col // BLOCK, M, K // BLOCK)


@triton.jit
def quantize_both(x, row_q, row_scale, col_q, col_scale, M, K: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """MXFP8 rowwise and columnwise from one load; ROWS and M are multiples of 32; grid (M / ROWS, K / COLS)."""
    row, col = tl.program_id(0) * ROWS, tl.program_id(1) * COLS
    r, c = row + tl.arange(0, ROWS), col + tl.arange(0, COLS)
    tile = tl.load(x + r[:, None].to(tl.int64) * K + c[None, :], mask=r[:, None] < M, other=0.0).to(tl.float32)
    codes, s = _quantize_tile(tile, 0.0, "mxfp8", 32, False)
    _store(row_q, codes, row, col, M, K)
    _store(row_scale, s, row, col // 32, M, K // 32)
    bands = tl.reshape(tile, (ROWS // 32, 32, COLS))
    s, inverse = _scale(tl.max(tl.abs(bands), 1), 0.0, "mxfp8")
    codes = _e4m3(bands * inverse[:, None, :]).to(tl.uint8, bitcast=True)
    _store(col_q, tl.reshape(codes, (ROWS, COLS)), row, col, M, K)
    _store(col_scale, s, row // 32, col, M // 32, K)


@triton.jit
def rms_norm(
    x,
    gamma,
    tensor_amax,
    q,
    scale,
    M,
    K: tl.constexpr,
    SPAN: tl.constexpr,
    FORMAT: tl.constexpr,
    BLOCK: tl.constexpr,
    EPSILON: tl.constexpr,
    ROUND: tl.constexpr,
    HARDWARE: tl.constexpr,
):
    """RMSNorm of one row, rounded to the type of x if ROUND, and rowwise quantize; SPAN is K rounded up to a power
    of two; grid (M,)."""
    row = tl.program_id(0)
    c = tl.arange(0, SPAN)
    wide = tl.load(x + row.to(tl.int64) * K + c, mask=c < K, other=0.0).to(tl.float32)
    mean = tl.sum(wide * wide, 0) * (1.0 / K)
    rs = tl.div_rn(1.0, tl.sqrt_rn(mean + EPSILON))
    y = tl.load(gamma + c, mask=c < K, other=0.0).to(tl.float32) * (rs * wide)
    if ROUND:
        y = y.to(x.dtype.element_ty).to(tl.float32)
    y = tl.reshape(y, (1, SPAN))
    G = tl.load(tensor_amax) if FORMAT == "nvfp4" else 0.0
    codes, s = _quantize_tile(y, G, FORMAT, BLOCK, HARDWARE)
    PER_BYTE: tl.constexpr = 1 if FORMAT == "mxfp8" else 2
    byte, block = tl.arange(0, SPAN // PER_BYTE), tl.arange(0, SPAN // BLOCK)
    start = row.to(tl.int64) * (K // PER_BYTE)
    tl.store(q + start + byte[None, :], codes, mask=byte[None, :] < K // PER_BYTE)
    start = row.to(tl.int64) * (K // BLOCK)
    tl.store(scale + start + block[None, :], s, mask=block[None, :] < K // BLOCK)


@dataclass(frozen=True)
class Kernel:
    """A kernel with the types of its pointers and its constants; `elements` are those a program quantizes."""

    name: str
    function: Any
    pointers: dict[str, str]
    constants: dict[str, Any]
    num_warps: int
    elements: int

    @property
    def format(self) -> str:
        return self.constants.get("FORMAT", "mxfp8")


def _rowwise(format: str, input: str, k: int) -> Kernel:
    block = 16 if format == "nvfp4" else 32
    pointers = {"x": f"*{input}", "tensor_amax": "*fp32", "q": "*u8", "scale": "*u8"}
    constants = {"K": k, "FORMAT": format, "BLOCK": block, "ROWS": 4, "COLS": 512, "HARDWARE": False}
    return Kernel(format, quantize, pointers, constants, 4, 4 * 512)


def _norm(format: str, input: str, k: int) -> Kernel:
    block = 16 if format == "nvfp4" else 32
    pointers = {"x": f"*{input}", "gamma": f"*{input}", "tensor_amax": "*fp32", "q": "*u8", "scale": "*u8"}
    span = triton.next_power_of_2(k)
    constants = {
        "K": k,
        "SPAN": span,
        "FORMAT": format,
        "BLOCK": block,
        "EPSILON": EPS,
        "HARDWARE": False,
        "ROUND": ROUND_INTERMEDIATE,
    }
    return Kernel(f"rms_norm_{format}", rms_norm, pointers, constants, 8, k)


def _both(input: str, k: int) -> Kernel:
    names = ("row_q", "row_scale", "col_q", "col_scale")
    pointers = {"x": f"*{input}"} | dict.fromkeys(names, "*u8")
    return Kernel("mxfp8_both", quantize_both, pointers, {"K": k, "ROWS": 32, "COLS": 128}, 4, 32 * 128)


def kernels(input: str = "bf16", k: int = 4096) -> dict[str, Kernel]:
    """All kernels for an input type (Triton's name) and a row length."""
    made = [_rowwise(format, input, k) for format in ("nvfp4", "mxfp8", "mxfp4")]
    made += [_both(input, k), _norm("mxfp8", input, k), _norm("nvfp4", input, k)]
    return {kernel.name: kernel for kernel in made}


def capability(target: str) -> int:
    """That of one of dither's targets: 100 of "sm_100a:ptx91"."""
    return int(target.partition(":")[0].strip("sm_af"))


def has_e2m1(capability: int) -> bool:
    """Whether the target converts to E2M1; Triton compiles for the architecture-specific variant."""
    return capability in (100, 101, 103, 110, 120, 121)


def compile_kernel(kernel: Kernel, capability: int, hardware: bool | None = None) -> Any:
    """Triton's compiled kernel for sm_<capability>: `.asm["ptx"]`, `.asm["cubin"]`, `.metadata`. Needs no GPU.

    Raises what Triton raises where it cannot, such as for E4M3 below sm_89.
    """
    constants = dict(kernel.constants)
    if "HARDWARE" in constants:
        constants["HARDWARE"] = has_e2m1(capability) if hardware is None else hardware
    signature = kernel.pointers | {"M": "i32"} | dict.fromkeys(constants, "constexpr")
    names = kernel.function.arg_names
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in kernel.pointers}
    source = triton.compiler.ASTSource(
        fn=kernel.function,
        signature={name: signature[name] for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=attributes,
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": kernel.num_warps})


def tuned(kernel: Kernel, num_warps: int | None = None, **constants: int) -> Kernel:
    """The kernel with other tile sizes."""
    merged = kernel.constants | constants
    elements = merged["ROWS"] * merged["COLS"] if "ROWS" in merged else kernel.elements
    return dataclasses.replace(kernel, constants=merged, elements=elements, num_warps=num_warps or kernel.num_warps)
