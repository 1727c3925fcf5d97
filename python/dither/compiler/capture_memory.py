"""What a kernel reads from outside, read again only where something has changed.

Reading takes milliseconds: every function that a kernel calls, and every name in each. A call that is new in its types
or constexprs has most often the functions and globals of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .captures import Captures, captures_of, leads_of, plain_constexprs

#: What is remembered of a kernel: one for each function that is passed as a constexpr, such as those of a library.
_REMEMBERED = 8


class CaptureMemory:
    """What was read for a kernel, for as long as the places that it was read from hold the same objects.

    Safe from many threads: each reads for itself, and the last one is remembered.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._known: tuple[Captures, ...] = ()

    def captures(self, constexprs: Mapping[str, Any] | None = None) -> Captures:
        """As `captures_of`."""
        plain = plain_constexprs(constexprs)
        leads = leads_of(plain.values())
        before = next((known for known in self._known if _are_same(known.leads, leads)), None)
        if before is not None and before.guards.hold():
            return before.of_others(plain)
        read = captures_of(self._kernel, plain)
        others = [known for known in self._known if known is not before]
        self._known = (*([read] if read.lasts else []), *others)[:_REMEMBERED]
        return read


def _are_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
