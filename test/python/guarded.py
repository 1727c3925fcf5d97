"""Outputs among guard bytes: what writes beyond them is seen."""

import numpy as np
from ops.data import empty

GUARD = 0xA5


class Guarded:
    """An array inside of a larger one full of a pattern: rows and, where they may be strided, columns around it."""

    def __init__(self, like, strided):
        like = np.asarray(like)
        rows, columns = like.shape
        size = like.dtype.itemsize
        sides = 64 if strided else 0
        self.memory = empty((rows + 4, columns * size + 2 * sides), np.uint8)
        self.memory[:] = GUARD
        self.inside = (slice(2, 2 + rows), slice(sides, sides + columns * size))
        self.array = self.memory[self.inside].view(like.dtype)

    def intact(self):
        rest = self.memory.copy()
        rest[self.inside] = GUARD
        return bool((rest == GUARD).all())
