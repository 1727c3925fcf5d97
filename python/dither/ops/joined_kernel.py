"""The kernel of two passes over rows in one launch: programs of the second follow those of the first, and wait for
what these find, while caches still have the rows.
"""

from __future__ import annotations

import dither.language as dl

from ..language._fuse import first_part
from .fused_kernel import fused_kernel


def joined_kernel(
    operands,
    saved,
    second,
    first_constants: dl.constexpr,
    second_constants: dl.constexpr,
    NOTHING: dl.constexpr,
    FIRST: dl.constexpr,
    SECOND: dl.constexpr,
    EACH: dl.constexpr,
    AHEAD: dl.constexpr,
):
    """Both passes of bands of rows, one band after the other along the second dimension of the grid: along the first,
    EACH programs of the first pass, and then those of the second pass across the columns of the band that is AHEAD
    bands before.

    `operands` and `saved` are those of the first pass, which has no other arguments: NOTHING has None for each.
    `second` has the arguments of `fused_kernel` in its order, the constants apart; FIRST and SECOND are its constexprs.
    What is saved holds NaN before (`first_part`).
    """
    place, step = dl.program_id(0), dl.program_id(1)
    finds = place < EACH
    # The first bands have none before, and the last programs no band of their own.
    if (finds & (step < dl.num_programs(1) - AHEAD)) | ((place >= EACH) & (step >= AHEAD)):
        if first_part(finds):
            fused_kernel(operands, saved, *NOTHING, (step * EACH + place, 0), first_constants, *FIRST)
        else:
            program = (dl.maximum(step - AHEAD, 0), dl.maximum(place - EACH, 0))
            fused_kernel(*second, program, second_constants, *SECOND)
