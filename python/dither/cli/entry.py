"""Reading an entry of the cache for people: `dither.cache.load` has no use for one that it cannot name."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

from ..cache import _DIGEST, _MAGIC
from .failure import Failure


def read_entry(path: pathlib.Path) -> dict[str, Any]:
    """The header of an entry with its "code". Raises Failure for a file that is damaged or is not one."""
    data = path.read_bytes()
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    head, _, code = body.partition(b"\n")
    try:
        entry = json.loads(head)
        if entry["magic"] != _MAGIC:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{path} is not a compiled kernel: expected a header of '{_MAGIC}'") from None
    if hashlib.sha256(body).digest() != digest:
        raise Failure(f"{path} is damaged: found another checksum than it was written with")
    return {**entry, "code": code}
