"""What a benchmark of throughput found of one operator."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Row:
    """One line of the table; `seconds` holds all repetitions."""

    operator: str
    dtype: str
    rows: int
    cols: int
    bytes: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    differs: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def rate(self, name: str) -> float:
        """GB/s, NaN where there is no measurement."""
        return self.bytes / min(self.seconds[name]) / 1e9 if self.seconds.get(name) else math.nan
