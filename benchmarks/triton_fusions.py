"""Fused operators in Triton, by the names of `counted_fusions.FUSIONS`: what dither's operators are compared with.

Scales lie in the linear order, which takes fewer instructions than the order of tensor cores. What needs blocks along
columns as well has tiles of 32 rows, which no program has registers for where rows are whole.
"""

from __future__ import annotations

from typing import Any

from benchmarks import triton_rows as whole
from benchmarks import triton_tiles as tiles
from benchmarks.operators import EPS as EPS
from benchmarks.triton_kernels import Kernel

#: Kernels of tiles, which have columns as well where the call asks for both, and of whole rows.
TILES = (
    tiles.quantize,
    tiles.quantize_dbias,
    tiles.gelu,
    tiles.silu,
    tiles.dgelu,
    tiles.dbias_dgelu,
    tiles.swiglu,
    tiles.dswiglu,
    tiles.add_dropout,
)
ROWS = (whole.softmax, whole.rms_norm, whole.layer_norm, whole.add_rms_norm, whole.rms_norm_backward, whole.rope)
KERNELS = {function.fn.__name__: function for function in (*TILES, *ROWS)}
#: What pointers are of, where not of bf16.
POINTERS = {
    **dict.fromkeys(("tensor_amax", "sums", "mean", "rsigma", "dgamma", "cos", "sin"), "*fp32"),
    **{f"{half}{name}": "*u8" for half in ("", "up_") for name in ("q", "scale", "col_q", "col_scale")},
}


def kernel(operator: str, format: str, both: bool = False, k: int = 4096) -> Kernel | None:
    """The kernel of an operator for rows of bf16; None where there is none."""
    function = KERNELS.get(operator)
    if function is None or (both and function in ROWS):
        return None
    names = function.arg_names
    pointers = {name: POINTERS.get(name, "*bf16") for name in names[: names.index("M")]}
    constants: dict[str, Any] = {"K": k, "FORMAT": format, "BLOCK": 16 if format == "nvfp4" else 32, "HARDWARE": False}
    if function in TILES:
        rows, cols = (32, 128) if both or "sums" in pointers else (4, 512)
        return Kernel(
            operator, function, pointers, constants | {"ROWS": rows, "COLS": cols, "BOTH": both}, 4, rows * cols
        )
    rows = 16 if function is whole.rms_norm_backward else 1
    constants |= {"ROWS": rows} if rows > 1 else {}
    return Kernel(operator, function, pointers, constants, 4 if function is whole.rope else 8, rows * k)


def grid(kernel: Kernel, rows: int) -> tuple[int, int, int]:
    """Programs that cover so many rows."""
    c = kernel.constants
    return rows // c.get("ROWS", 1), c["K"] // c.get("COLS", c["K"]), 1


def shapes(kernel: Kernel, rows: int) -> dict[str, tuple[int, ...]]:
    """Of what each pointer is of, for so many rows, a multiple of those of a tile; one element of what is not used."""
    c = kernel.constants
    k, block, both = c["K"], c["BLOCK"], c.get("BOTH", False)
    packed = 2 if c["FORMAT"] == "nvfp4" else 1
    known: dict[str, tuple[int, ...]] = {"tensor_amax": (1,), "gamma": (k,), "mean": (rows,), "rsigma": (rows,)}
    known |= {"cos": (rows, 64), "sin": (rows, 64)} | dict.fromkeys(("sums", "dgamma"), (grid(kernel, rows)[0], k))
    for half in ("", "up_"):
        known |= {f"{half}q": (rows, k // packed), f"{half}scale": (rows, k // block)}
        known[f"{half}col_q"] = (k, rows // 2) if packed == 2 else (rows, k)
        known[f"{half}col_scale"] = (k, rows // block) if packed == 2 else (rows // block, k)
    return {name: known.get(name, (rows, k)) if both or "col_" not in name else (1,) for name in kernel.pointers}
