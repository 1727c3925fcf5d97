"""Activations as operators."""

from __future__ import annotations

from typing import Any

import dither.language as dl

from .fuse import fuse


@fuse
def swiglu(gate: Any, up: Any) -> Any:
    """gate * sigmoid(gate) * up, in float32: `gate` and `up` (M, N). Options and results are those of `dither.fuse`."""
    return gate * dl.sigmoid(gate) * up
