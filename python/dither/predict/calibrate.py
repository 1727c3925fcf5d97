"""The assumptions of a GPU's table from measured times: a fit of the model to them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..data_classes import dataclass
from .gpus import Gpu, find
from .model import duration
from .work import Work, of_json

#: Fields of Gpu that are fitted, and the most that each may become; the others stay what they are assumed to be.
FITTED = {"copy_share": 1.0, "latency": 3000.0, "start": 3000.0, "launch": 20000.0, "ipc": 1.0, "efficiency": 1.0}
#: How much an assumption counts beside the measurements, which decide where they say anything.
_PRIOR = 0.02
#: Of the steps in which derivatives are taken, and of the longest one that is gone, in logarithms.
_DIFFERENCE, _LONGEST = 0.04, 0.4
_ROUNDS = 12
#: Sums of squares, for each row, that are as good as none, and the part by which a step must better one.
_NOTHING, _BETTER = 1e-6, 1e-3


@dataclass(frozen=True)
class Fit:
    """A fitted table.

    Attributes:
        gpu: with the fitted fields.
        error: root of the mean square of log(predicted / measured) after the fit, which is about the relative error;
            `before` is that of the assumptions.
        residuals: predicted / measured by name of the row.
    """

    gpu: Gpu
    error: float
    before: float
    residuals: dict[str, float]


@dataclass(frozen=True)
class Measured:
    """Launches one after the other, and the seconds that they took."""

    name: str
    launches: tuple[Work, ...]
    seconds: float


def calibrate(found: Mapping[str, Any]) -> Fit:
    """The fit to what `tools/gpu_check` wrote: its "predict" has "gpu", "sms" and "rows", each of these with "name",
    "launches" (`work.to_json`) and "measured" in seconds. Raises ValueError where that is not so."""
    part = found.get("predict")
    if not isinstance(part, Mapping) or not {"gpu", "sms", "rows"} <= set(part):
        raise ValueError("found no 'predict' with 'gpu', 'sms' and 'rows', expected a file of tools/gpu_check")
    rows = [
        Measured(row["name"], tuple(of_json(one) for one in row["launches"]), row["measured"])
        for row in part["rows"]
        if row.get("measured")
    ]
    if len(rows) < len(FITTED):
        raise ValueError(f"found {len(rows)} measured rows, expected at least {len(FITTED)}: as many as are fitted")
    return fit(rows, dataclasses.replace(find(part["gpu"]), sms=part["sms"]))


def fit(rows: Sequence[Measured], gpu: Gpu) -> Fit:
    """Least squares of the logarithms, from the values of `gpu`: Levenberg and Marquardt's steps with differences for
    derivatives (Marquardt, J. SIAM 11, 1963)."""
    import numpy as np

    start = np.log([getattr(gpu, name) for name in FITTED])
    ends = np.log(list(FITTED.values()))

    def residuals(values: Any) -> Any:
        one = with_values(gpu, values)
        logs = [math.log(seconds(row, one) / row.seconds) for row in rows]
        return np.array([*logs, *(_PRIOR * (values - start))])

    at: Any = start.copy()
    found = first = residuals(at)
    damping = 1e-2
    for _ in range(_ROUNDS):
        columns = []
        for i in range(len(at)):
            step = np.zeros(len(at))
            step[i] = -_DIFFERENCE if at[i] + _DIFFERENCE > ends[i] else _DIFFERENCE
            columns.append((residuals(at + step) - found) / step[i])
        jacobian = np.array(columns).T
        square = jacobian.T @ jacobian
        improved = False
        for _ in range(4):
            change = np.linalg.solve(square + damping * np.diag(np.diag(square)), -jacobian.T @ found)
            there = np.minimum(at + np.clip(change, -_LONGEST, _LONGEST), ends)
            trial = residuals(there)
            if trial @ trial < found @ found:
                improved = found @ found - trial @ trial > max(_BETTER * (found @ found), _NOTHING * len(rows))
                at, found, damping = there, trial, damping / 4
                break
            damping *= 4
        if not improved:
            break
    names = [row.name for row in rows]
    size = len(rows)
    ratios = dict(zip(names, map(float, np.exp(found[:size])), strict=True))
    return Fit(with_values(gpu, at), _rms(found[:size]), _rms(first[:size]), ratios)


def seconds(row: Measured, gpu: Gpu) -> float:
    """That are predicted for all launches of a row."""
    return sum(duration(work, gpu) for work in row.launches)


def with_values(gpu: Gpu, logarithms: Any) -> Gpu:
    """A GPU with the fitted fields, in their order."""
    fields: dict[str, Any] = {name: math.exp(v) for name, v in zip(FITTED, logarithms, strict=True)}
    return dataclasses.replace(gpu, **fields)


def _rms(values: Any) -> float:
    return math.sqrt(float(values @ values) / len(values))
