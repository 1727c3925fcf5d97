"""Groups that are alike, as calls on parts of their rows know them: by the rows of each, and not by their number."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from ..ops import Groups
from .arrays import is_array


def with_heights(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Arguments of a call in which groups that were given by their number say their rows, if these are so many."""
    leaves = jax.tree.leaves((args, kwargs))
    height = next((leaf.shape[0] for leaf in leaves if is_array(leaf) and len(leaf.shape) == 2), 0)

    def with_height(x: Any) -> Any:
        if not isinstance(x, Groups) or x.count is None:
            return x
        rows = height if x.rows is None else x.rows.shape[0]
        if not rows or rows % x.count:
            return x
        return dataclasses.replace(x, count=None, height=rows // x.count)

    found: tuple[Any, Any] = jax.tree.map(with_height, (args, kwargs), is_leaf=lambda x: isinstance(x, Groups))
    return found
