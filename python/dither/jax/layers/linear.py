"""What layers have in common: a product of an input and a kernel, and its gradients, of quantized tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from ...ops import ScaledTensor1x
from ..functions import quantize, quantize_dbias
from ..matmul import gemm
from ..mesh import with_sharding_constraint_by_logical_axes
from ..modes import AmaxScope, TensorUsage
from ..quantizer_sets import QuantizerSet

#: Names of the dimensions of an array, for `with_sharding_constraint_by_logical_axes`; None for nothing.
Names = tuple[str | None, ...] | None


class Kept(NamedTuple):
    """What the gradients of a product are of: its operands, quantized in the directions that these want."""

    x: Any
    kernel: Any
    #: For its data type; None where there is none.
    bias: Any


def as_names(names: Sequence[str | None] | None) -> Names:
    """Names of dimensions that can be hashed."""
    return None if names is None else tuple(names)


def arrays(*given: Any) -> tuple[Any, ...]:
    """NumPy's arrays as those of JAX; None stays."""
    return tuple(None if x is None else jnp.asarray(x) for x in given)


def quantizer_for(quantizer: Any, usage: TensorUsage, training: bool) -> Any:
    """A quantizer of an operand: in both directions where gradients will want the other, and else in the one that the
    product takes."""
    if quantizer is None or training:
        return quantizer
    return dataclasses.replace(quantizer, q_layout=quantizer.scaling_mode.get_quantize_layout(usage))


def quantized(
    x: Any, quantizer: Any, usage: TensorUsage, training: bool, flatten_axis: int, scope: AmaxScope, names: Names
) -> Any:
    """An operand of a product, quantized, and split over the mesh as the names of its dimensions say."""
    found = quantize(x, quantizer_for(quantizer, usage, training), flatten_axis, scope)
    return with_sharding_constraint_by_logical_axes(found, names)


def quantized_kernel(kernel: Any, quantizer: Any, training: bool, contracted: int, names: Names) -> Any:
    """A kernel whose first `contracted` dimensions are summed over, quantized."""
    return quantized(kernel, quantizer, TensorUsage.RHS, training, contracted, AmaxScope.FSDP, names)


def product(x: Any, kernel: Any, bias: Any, contracted: int, dtype: Any) -> Any:
    """x, over its last `contracted` dimensions, times the kernel, over its first ones, plus the bias."""
    dims = tuple(range(x.ndim - contracted, x.ndim)), tuple(range(contracted))
    return gemm(x.get_tensor(TensorUsage.LHS), kernel.get_tensor(TensorUsage.RHS), dims, bias, dtype)


def kept(x: Any, kernel: Any, bias: Any, quantizers: Any) -> Kept:
    """What the gradients of `product` want, under the names of the quantizers for policies of `jax.checkpoint`."""
    return Kept(
        x.get_tensor(TensorUsage.LHS_TRANS).checkpoint(quantizers.x),
        kernel.get_tensor(TensorUsage.RHS_TRANS).checkpoint(quantizers.kernel),
        bias,
    )


def quantized_gradient(grad: Any, kept: Kept, quantizer: Any, contracted: int) -> tuple[Any, Any]:
    """The gradient of `product`, quantized, and that of its bias, or None."""
    columns = len(kept.kernel.shape) - contracted
    tensor, dbias = quantize_dbias(
        grad, quantizer, is_dbias=kept.bias is not None, flatten_axis=-columns, amax_scope=AmaxScope.TPSP
    )
    return tensor, None if dbias is None else dbias.astype(kept.bias.dtype)


def gradients(grad: Any, kept: Kept, contracted: int, dtypes: tuple[Any, Any]) -> tuple[Any, Any]:
    """The gradients of x and of the kernel, in these data types, of the quantized one of their product."""
    rank = len(kept.kernel.shape)
    rows = grad.ndim - (rank - contracted)
    columns = tuple(range(rows, grad.ndim)), tuple(range(contracted, rank))
    dx = gemm(grad.get_tensor(TensorUsage.LHS), kept.kernel, columns, preferred_element_type=dtypes[0])
    down = grad.get_tensor(TensorUsage.RHS)
    leading = _rows(kept.x, rows), _rows(down, rows)
    dkernel = gemm(kept.x, down, leading, preferred_element_type=dtypes[1])
    return dx, dkernel


def _rows(x: Any, rows: int) -> tuple[int, ...]:
    """The dimensions along rows of an operand: one, where a transform has put rows of zeros after them."""
    quantized = isinstance(x, ScaledTensor1x)
    return tuple(range(x.flatten_axis % len(x.shape) if quantized else rows))


def like(x: Any) -> Any:
    """An array without elements, to know a data type by in what gradients are of."""
    return jnp.zeros((0,), x.dtype)


def check_operands(x: Any, kernel: Any, bias: Any, contracting_dims: Any = ((-1,), (0,))) -> int:
    """How many dimensions are summed over. Raises TypeError or ValueError for what no layer takes."""
    for name, one in (("x", x), ("kernel", kernel)):
        if not hasattr(one, "shape") or not jnp.issubdtype(one.dtype, jnp.floating):
            found = getattr(one, "dtype", type(one).__name__)
            raise TypeError(f"argument '{name}' is {found}, expected an array of float32, bfloat16 or float16")
    own = [_counted("x", x, contracting_dims[0]), _counted("kernel", kernel, contracting_dims[1])]
    count = len(own[1])
    last, first = tuple(range(x.ndim - len(own[0]), x.ndim)), tuple(range(count))
    if own != [last, first] or not 0 < count < kernel.ndim or not 0 < len(own[0]) < x.ndim:
        raise ValueError(
            f"contracting_dims is {contracting_dims} for x of shape {x.shape} and kernel of {kernel.shape}, expected "
            "the last dimensions of x and the first of kernel, and others beside them: transpose the array first"
        )
    extents = tuple(x.shape[d] for d in own[0]), tuple(kernel.shape[d] for d in own[1])
    if extents[0] != extents[1]:
        raise ValueError(f"x has {extents[0]} to sum over and kernel {extents[1]}, expected the same")
    check_bias(bias, kernel.shape[count:])
    return count


def check_norm(x: Any, gamma: Any, beta: Any, norm_type: str) -> None:
    """Raises ValueError for parameters that a norm of `x` does not have."""
    wanted = {"gamma": gamma} if norm_type == "rmsnorm" else {"gamma": gamma, "beta": beta}
    if norm_type == "rmsnorm" and beta is not None:
        raise ValueError("argument 'beta' was given, expected None of rmsnorm")
    for name, one in wanted.items():
        if one is None or jnp.shape(one) != x.shape[-1:]:
            found = "None" if one is None else f"of shape {jnp.shape(one)}"
            raise ValueError(f"argument '{name}' is {found}, expected shape {x.shape[-1:]}, the last dimension of x")


def check_quantizers(quantizers: Any, name: str = "quantizer_set") -> None:
    """Raises TypeError for what is no QuantizerSet."""
    if not isinstance(quantizers, QuantizerSet):
        raise TypeError(f"argument '{name}' is {type(quantizers).__name__}, expected a dither.jax.QuantizerSet")


def check_bias(bias: Any, expected: Sequence[int], name: str = "bias") -> None:
    """Raises ValueError for a bias of another shape than the columns that it is added to."""
    if bias is not None and tuple(jnp.shape(bias)) != tuple(expected):
        raise ValueError(f"argument '{name}' has shape {jnp.shape(bias)}, expected {tuple(expected)}")


def _counted(name: str, x: Any, dims: Sequence[int]) -> tuple[int, ...]:
    for d in dims:
        if not -x.ndim <= d < x.ndim:
            raise ValueError(
                f"contracting_dims has {d} for {name} of shape {x.shape}, expected {-x.ndim} to {x.ndim - 1}"
            )
    return tuple(d % x.ndim for d in dims)
