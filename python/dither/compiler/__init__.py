"""From a Python function over tiles to a module of quant IR."""

from .captures import Captures, captures_of
from .lowering import lower
from .source import FunctionSource, read_source, remember_file, unwrap

__all__ = ["Captures", "FunctionSource", "captures_of", "lower", "read_source", "remember_file", "unwrap"]
