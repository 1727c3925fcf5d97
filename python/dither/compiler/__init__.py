"""From a Python function over tiles to a module of quant IR."""

from typing import TYPE_CHECKING, Any

from .capture_memory import CaptureMemory
from .captures import Captures, captures_of
from .source import FunctionSource, read_source, remember_file, unwrap

if TYPE_CHECKING:
    from .lowering import lower

__all__ = [
    "CaptureMemory",
    "Captures",
    "FunctionSource",
    "captures_of",
    "lower",
    "read_source",
    "remember_file",
    "unwrap",
]


def __getattr__(name: str) -> Any:
    # Half of the package, which launches of compiled code do not need.
    if name != "lower":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .lowering import lower

    return lower
