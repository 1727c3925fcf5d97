"""The versions of JAX that this package is for."""

from __future__ import annotations

import re

#: The first and the last minor version. The handlers of XLA are compiled against the headers of one of them; their
#: interface is the same in all, and XLA checks its version when they are registered.
OLDEST, NEWEST = (0, 10), (0, 11)


def check(version: str) -> None:
    """Raises ImportError for a version of JAX that `dither.jax` was not made for: it uses names of JAX that are not
    public, for what lowers by the number of devices."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or not OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        promised = " to ".join(dict.fromkeys(".".join(map(str, each)) for each in (OLDEST, NEWEST)))
        raise ImportError(f"found JAX {version}, expected {promised}: dither.jax is made for these")
