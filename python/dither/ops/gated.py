"""Gated activations and their gradients as operators: what one tensor, the gate, lets through of another, `up`.

Calls take gate and up as two tensors (M, N), or as one of (M, 2N) that has them side by side, or, with `interleave`,
some columns of each by turns. A factor of each row (M,) is the weight of a router; `bias_gate` and `bias_up` (N,) are
added first. Gradients of gate and up are (M, 2N), side by side or by turns. Others give those of the biases, too
(`dbias_..`: dbias_gate and dbias_up, (N,), sums of columns before they are rounded), or that of the factor
(`dfactor_..`: dfactor, (M,) float32). Options and results are those of `dither.fuse`.
"""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from . import activation_tiles as tiles
from .fuse import Fused

_gated = functools.partial(Fused, gated=("gate", "up"))
_dgated = functools.partial(_gated, halves=True)
_dbias = functools.partial(
    _dgated,
    saves={"dbias_gate": "column_sum", "dbias_up": "column_sum"},
    like={"dbias_gate": "grad", "dbias_up": "grad"},
)
_dfactor = functools.partial(_dgated, whole_rows=True, saves={"dfactor": "column"}, needed=("factor",))


@_gated
def glu(gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None) -> Any:
    """sigmoid(gate) up."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(dl.sigmoid(gate) * up, factor)


@_dgated
def dglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `glu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(dl.sigmoid(gate), tiles.dsigmoid(gate), g, up)


@_dbias
def dbias_dglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dglu`, and the sum of each of its columns."""
    left, right = dglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dglu`, and the gradient of the factor."""
    y = glu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def geglu(gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None) -> Any:
    """gelu(gate) up, of the form with tanh."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.gelu(gate, "tanh") * up, factor)


@_dgated
def dgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `geglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(tiles.gelu(gate, "tanh"), tiles.dgelu(gate, "tanh"), g, up)


@_dbias
def dbias_dgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dgeglu`, and the sum of each of its columns."""
    left, right = dgeglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dgeglu`, and the gradient of the factor."""
    y = geglu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dgeglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def swiglu(
    gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """gate sigmoid(gate) up."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.silu(gate) * up, factor)


@_dgated
def dswiglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `swiglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(tiles.silu(gate), tiles.dsilu(gate), g, up)


@_dbias
def dbias_dswiglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dswiglu`, and the sum of each of its columns."""
    left, right = dswiglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dswiglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dswiglu`, and the gradient of the factor."""
    y = swiglu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dswiglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def qgeglu(
    gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """qgelu(gate) up."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.qgelu(gate, 1.702) * up, factor)


@_dgated
def dqgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `qgeglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(tiles.qgelu(gate, 1.702), tiles.dqgelu(gate, 1.702), g, up)


@_dbias
def dbias_dqgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dqgeglu`, and the sum of each of its columns."""
    left, right = dqgeglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dqgeglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dqgeglu`, and the gradient of the factor."""
    y = qgeglu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dqgeglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def reglu(gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None) -> Any:
    """relu(gate) up."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.relu(gate) * up, factor)


@_dgated
def dreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `reglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(tiles.relu(gate), tiles.drelu(gate), g, up)


@_dbias
def dbias_dreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dreglu`, and the sum of each of its columns."""
    left, right = dreglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dreglu`, and the gradient of the factor."""
    y = reglu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dreglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def sreglu(
    gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """srelu(gate) up."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.srelu(gate) * up, factor)


@_dgated
def dsreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """Gradients of gate and up through `sreglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.of_both(tiles.srelu(gate), tiles.dsrelu(gate), g, up)


@_dbias
def dbias_dsreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dsreglu`, and the sum of each of its columns."""
    left, right = dsreglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dsreglu(
    grad: Any, gate: Any, up: Any = None, factor: dl.column = None, bias_gate: dl.row = None, bias_up: dl.row = None
) -> Any:
    """`dsreglu`, and the gradient of the factor."""
    y = sreglu(gate, up, None, bias_gate=bias_gate, bias_up=bias_up)
    return dsreglu(grad, gate, up, factor, bias_gate=bias_gate, bias_up=bias_up), dl.sum(grad * y, axis=1)


@_gated
def clamped_swiglu(
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """c sigmoid(alpha c) (u + glu_linear_offset): c is gate, at most `limit`; u is `up`, within -limit and limit."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.clamped_silu(gate, limit, alpha) * (tiles.clamped(up, limit) + glu_linear_offset), factor)


@_dgated
def dclamped_swiglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """Gradients of gate and up through `clamped_swiglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.clamped_gate(gate, up, g, limit, alpha, glu_linear_offset)


@_dbias
def dbias_dclamped_swiglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """`dclamped_swiglu`, and the sum of each of its columns."""
    left, right = dclamped_swiglu(
        grad, gate, up, factor, limit, alpha, glu_linear_offset, bias_gate=bias_gate, bias_up=bias_up
    )
    return (left, right), left, right


@_dfactor
def dfactor_dclamped_swiglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """`dclamped_swiglu`, and the gradient of the factor."""
    y = clamped_swiglu(gate, up, None, limit, alpha, glu_linear_offset, bias_gate=bias_gate, bias_up=bias_up)
    return dclamped_swiglu(
        grad, gate, up, factor, limit, alpha, glu_linear_offset, bias_gate=bias_gate, bias_up=bias_up
    ), dl.sum(grad * y, axis=1)


@_gated
def situglu(
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    beta1: dl.constexpr = 4.0,
    beta2: dl.constexpr = 25.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """beta1 tanh(gate / beta1) sigmoid(gate) beta2 tanh(up / beta2)."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    return tiles.times(tiles.situ(gate, beta1) * dl.sigmoid(gate) * tiles.situ(up, beta2), factor)


@_dgated
def dsituglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    beta1: dl.constexpr = 4.0,
    beta2: dl.constexpr = 25.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """Gradients of gate and up through `situglu`, `grad` (M, N) that of its output."""
    gate, up = tiles.with_bias(gate, bias_gate), tiles.with_bias(up, bias_up)
    g = tiles.times(grad, factor)
    return tiles.situ_gate(gate, up, g, beta1, beta2)


@_dbias
def dbias_dsituglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    beta1: dl.constexpr = 4.0,
    beta2: dl.constexpr = 25.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """`dsituglu`, and the sum of each of its columns."""
    left, right = dsituglu(grad, gate, up, factor, beta1, beta2, bias_gate=bias_gate, bias_up=bias_up)
    return (left, right), left, right


@_dfactor
def dfactor_dsituglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    beta1: dl.constexpr = 4.0,
    beta2: dl.constexpr = 25.0,
    bias_gate: dl.row = None,
    bias_up: dl.row = None,
) -> Any:
    """`dsituglu`, and the gradient of the factor."""
    y = situglu(gate, up, None, beta1, beta2, bias_gate=bias_gate, bias_up=bias_up)
    return dsituglu(grad, gate, up, factor, beta1, beta2, bias_gate=bias_gate, bias_up=bias_up), dl.sum(
        grad * y, axis=1
    )
