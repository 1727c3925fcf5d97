"""Tables of what the model predicts of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from ..predict import Prediction
from .profile_table import short, table

TITLE = "predicted, in % of the speed of a copy of the same bytes (a model, not measured: docs/prediction.md)"
#: Limits that every kernel has; pipes come between them.
_FIRST, _LAST = ("bytes", "issue"), ("latency",)
LAUNCH = ["kernel", "gpu", "time", "copy", "blocks/SM", "by", "registers", "in flight", "needed", "waves", "tail"]
LAUNCH += ["counted"]


def render(rows: Sequence[tuple[str, Sequence[Prediction]]]) -> str:
    """Two tables for kernels by name: what each limit allows, and how the launch fills a GPU. Empty without a row."""
    found = [(name, one) for name, predictions in rows for one in predictions]
    if not found:
        return ""
    pipes = sorted({pipe for _, one in found for pipe in one.limits} - {*_FIRST, *_LAST})
    limits = [*_FIRST, *pipes, *_LAST]
    head = ["kernel", "gpu", "speed", "limited by", "steady", *limits]
    first = [limit_row(name, one, limits) for name, one in found]
    return "\n\n".join((TITLE, table(head, first), table(LAUNCH, [launch_row(name, one) for name, one in found])))


def limit_row(name: str, one: Prediction, limits: Sequence[str]) -> list[str]:
    """A launch in the order of `limits`; - where there is no such instruction."""
    parts = [percent(one.limits[limit]) if limit in one.limits else "-" for limit in limits]
    return [name, one.gpu, percent(one.speed), one.limited_by, percent(one.steady), *parts]


def launch_row(name: str, one: Prediction) -> list[str]:
    """A launch in the order of LAUNCH."""
    return [
        name,
        one.gpu,
        f"{one.seconds * 1e6:.1f}us",
        f"{one.copy_seconds * 1e6:.1f}us",
        str(one.occupancy.blocks),
        one.occupancy.limit,
        str(one.work.registers or "-"),
        short(one.in_flight) + "B",
        short(one.needed) + "B",
        f"{one.waves:.2f}",
        percent(one.tail),
        one.work.source,
    ]


def percent(part: float) -> str:
    """Such as 87%; limits that are far from mattering end at 999%."""
    return f"{min(100 * part, 999):.0f}%"
