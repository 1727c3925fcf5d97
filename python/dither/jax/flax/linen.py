"""Linen modules, by the names and fields that users of Transformer Engine know.

Names of dimensions of parameters (`kernel_axes`, `scale_axes`, ..) are for flax (`nn.with_logical_partitioning`), and
those of inputs (`input_axes`, `dot_input_axes`, ..) for `with_sharding_constraint_by_logical_axes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jax.ad_checkpoint import checkpoint_name

from ..activations import ActivationParams, activation
from ..layers import dense, layernorm_dense, layernorm_mlp
from ..mesh import with_sharding_constraint_by_logical_axes
from ..norms import canonicalize_norm_type, layernorm
from .state import quantizers_of

Axes = tuple[str | None, ...]
Initializer = Callable[..., Any]
_ZEROS = nn.initializers.zeros


class _Layer(nn.Module):
    """What modules have in common."""

    def _param(self, name: str, init: Initializer, shape: Sequence[int], axes: Sequence[str | None], dtype: Any) -> Any:
        """A parameter, with names of its dimensions where it has some."""
        return self.param(name, nn.with_logical_partitioning(init, tuple(axes)) if axes else init, tuple(shape), dtype)

    def _norm_params(self, norm_type: str, shape: Sequence[int], of: Any) -> tuple[Any, Any]:
        """`scale`, and `ln_bias` or None of rmsnorm."""
        init = of["scale_init"] or (_ZEROS if of["zero_centered_gamma"] else nn.initializers.ones)
        scale = self._param("scale", init, shape, of["scale_axes"], of["dtype"])
        if canonicalize_norm_type(norm_type) == "rmsnorm":
            return scale, None
        return scale, self._param("ln_bias", of["bias_init"], shape, of["bias_axes"], of["dtype"])


def _kernel_init() -> Initializer:
    return nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")


def _tuple(x: Any) -> tuple[int, ...]:
    return (x,) if isinstance(x, int) else tuple(x)


class LayerNorm(_Layer):
    """`dither.jax.layernorm`: LayerNorm, or RMSNorm where `layernorm_type` is "rmsnorm".

    Parameters `scale` and `ln_bias` have data type `dtype`.
    `transpose_batch_sequence` says whether sequences are the first dimension; both are rows here.
    """

    epsilon: float = 1e-6
    layernorm_type: str = "layernorm"
    zero_centered_gamma: bool = False
    scale_init: Initializer | None = None
    scale_axes: Axes = ("embed",)
    bias_init: Initializer = _ZEROS
    bias_axes: Axes = ("embed",)
    dtype: Any = jnp.float32
    transpose_batch_sequence: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """The norm of `x` (.., K) over its last dimension, in its data type."""
        gamma, beta = self._norm_params(self.layernorm_type, x.shape[-1:], vars(self))
        return layernorm(x, gamma, beta, self.layernorm_type, self.zero_centered_gamma, self.epsilon)


class DenseGeneral(_Layer):
    """`dither.jax.dense` of the dimensions `axis` of its input and a parameter `kernel` (.., *features), plus `bias`.

    Parameters have data type `dtype`, and the output that of the input.
    """

    features: Sequence[int] | int
    kernel_init: Initializer | None = None
    kernel_axes: Axes = ()
    use_bias: bool = False
    bias_init: Initializer = _ZEROS
    bias_axes: Axes = ()
    axis: Sequence[int] | int = -1
    dtype: Any = jnp.float32
    input_axes: Axes = ()
    transpose_batch_sequence: bool = False
    quantization_checkpoint_name: str | None = None

    @nn.compact
    def __call__(self, inputs: Any) -> Any:
        """The product, (.., *features)."""
        axis, features = _tuple(self.axis), _tuple(self.features)
        x = jnp.moveaxis(jnp.asarray(inputs), axis, range(-len(axis), 0))
        shape = (*x.shape[x.ndim - len(axis) :], *features)
        kernel = self._param("kernel", self.kernel_init or _kernel_init(), shape, self.kernel_axes, self.dtype)
        bias = self._param("bias", self.bias_init, features, self.bias_axes, self.dtype) if self.use_bias else None
        return dense(
            x,
            kernel,
            bias,
            contracting_dims=(range(-len(axis), 0), range(len(axis))),
            input_axes=self.input_axes or None,
            quantizer_set=quantizers_of(self, checkpoint_name=self.quantization_checkpoint_name),
        )


class Dense(DenseGeneral):
    """`DenseGeneral` of one dimension, with a bias, as flax.linen.Dense has it."""

    use_bias: bool = True


class LayerNormDenseGeneral(_Layer):
    """`dither.jax.layernorm_dense`: a norm and `DenseGeneral` of the last dimension, fused where the norm itself is not
    asked for.

    Fields are those of `LayerNorm` and `DenseGeneral`. Without `enable_layernorm` it is a dense layer alone.
    `depth_scaling` divides the output.
    """

    features: Sequence[int] | int
    enable_layernorm: bool = True
    layernorm_type: str = "layernorm"
    epsilon: float = 1e-6
    zero_centered_gamma: bool = False
    scale_init: Initializer | None = None
    scale_axes: Axes = ("embed",)
    ln_bias_init: Initializer = _ZEROS
    ln_bias_axes: Axes = ("embed",)
    kernel_init: Initializer | None = None
    kernel_axes: Axes = ()
    use_bias: bool = False
    bias_init: Initializer = _ZEROS
    bias_axes: Axes = ()
    return_layernorm_output: bool = True
    axis: int = -1
    dtype: Any = jnp.float32
    transpose_batch_sequence: bool = False
    layernorm_input_axes: Axes | None = None
    dot_input_axes: Axes | None = None
    depth_scaling: float | None = None
    quantization_checkpoint_name: str | None = None

    @nn.compact
    def __call__(self, inputs: Any) -> tuple[Any, Any]:
        """The product, and the norm, or None where `return_layernorm_output` is False."""
        if self.axis not in (-1, inputs.ndim - 1):
            raise ValueError(f"axis is {self.axis}, expected -1, the last dimension")
        features, x = _tuple(self.features), jnp.asarray(inputs)
        normed = None
        gamma = beta = None
        if self.enable_layernorm:
            fields = {**vars(self), "bias_init": self.ln_bias_init, "bias_axes": self.ln_bias_axes}
            gamma, beta = self._norm_params(self.layernorm_type, x.shape[-1:], fields)
        of = (x.shape[-1], *features)
        kernel = self._param("kernel", self.kernel_init or _kernel_init(), of, self.kernel_axes, self.dtype)
        bias = self._param("bias", self.bias_init, features, self.bias_axes, self.dtype) if self.use_bias else None
        quantizers = quantizers_of(self, checkpoint_name=self.quantization_checkpoint_name)
        options: dict[str, Any] = {"quantizer_set": quantizers}
        if self.enable_layernorm and not self.return_layernorm_output:
            options |= {"layernorm_input_axes": self.layernorm_input_axes, "dot_input_axes": self.dot_input_axes}
            options |= {"zero_centered_gamma": self.zero_centered_gamma, "epsilon": self.epsilon}
            y = layernorm_dense(x, kernel, gamma, beta, bias, self.layernorm_type, **options)
        else:
            if self.enable_layernorm:
                x = with_sharding_constraint_by_logical_axes(x, self.layernorm_input_axes)
                x = layernorm(x, gamma, beta, self.layernorm_type, self.zero_centered_gamma, self.epsilon)
            normed = x if self.return_layernorm_output else None
            y = dense(x, kernel, bias, input_axes=self.dot_input_axes, **options)
        return (y if self.depth_scaling is None else y / self.depth_scaling), normed


class LayerNormMLP(_Layer):
    """`dither.jax.layernorm_mlp`: a norm, a product with `wi_kernel`, an activation and a product with `wo_kernel`.

    It is fused where the norm itself is not asked for, and nothing is dropped between the two. Fields are those of
    `LayerNormDenseGeneral`, with `_1` and `_2` of the two products.
    """

    intermediate_dim: int = 2048
    enable_layernorm: bool = True
    layernorm_type: str = "layernorm"
    epsilon: float = 1e-6
    zero_centered_gamma: bool = False
    scale_init: Initializer | None = None
    scale_axes: Axes = ("embed",)
    ln_bias_init: Initializer = _ZEROS
    ln_bias_axes: Axes = ("embed",)
    kernel_init: Initializer | None = None
    kernel_axes_1: Axes = ("embed", "act", "mlp")
    kernel_axes_2: Axes = ("mlp", "embed")
    use_bias: bool = False
    bias_init: Initializer = _ZEROS
    bias_axes_1: Axes = ("act", "mlp")
    bias_axes_2: Axes = ("embed",)
    return_layernorm_output: bool = True
    activations: Sequence[str] = ("gelu",)
    activation_params: ActivationParams | None = None
    intermediate_dropout_rng_name: str = "dropout"
    intermediate_dropout_rate: float = 0.1
    intermediate_hidden_dropout_dims: Sequence[int] = ()
    axis: int = -1
    dtype: Any = jnp.float32
    transpose_batch_sequence: bool = False
    layernorm_input_axes: Axes | None = None
    dot_1_input_axes: Axes | None = None
    dot_2_input_axes: Axes | None = None
    ffn1_ckpt_name: str = "ffn1"
    ffn2_ckpt_name: str = "ffn2"
    quantization_checkpoint_name: str | None = None

    @nn.compact
    def __call__(self, inputs: Any, deterministic: bool = False) -> tuple[Any, Any]:
        """The output, of the shape of the input, and the norm, or None where `return_layernorm_output` is False.
        `deterministic` drops nothing."""
        if self.axis not in (-1, inputs.ndim - 1):
            raise ValueError(f"axis is {self.axis}, expected -1, the last dimension")
        x, names = jnp.asarray(inputs), tuple(self.activations)
        width, hidden = x.shape[-1], self.intermediate_dim
        gamma = beta = None
        if self.enable_layernorm:
            fields = {**vars(self), "bias_init": self.ln_bias_init, "bias_axes": self.ln_bias_axes}
            gamma, beta = self._norm_params(self.layernorm_type, (width,), fields)
        init = self.kernel_init or _kernel_init()
        first = self._param("wi_kernel", init, (width, len(names), hidden), self.kernel_axes_1, self.dtype)
        second = self._param("wo_kernel", init, (hidden, width), self.kernel_axes_2, self.dtype)
        bias_1 = bias_2 = None
        if self.use_bias:
            bias_1 = self._param("wi_bias", self.bias_init, (len(names), hidden), self.bias_axes_1, self.dtype)
            bias_2 = self._param("wo_bias", self.bias_init, (width,), self.bias_axes_2, self.dtype)
        sets = tuple(quantizers_of(self, postfix, self.quantization_checkpoint_name) for postfix in ("_1", "_2"))
        dropping = not deterministic and self.intermediate_dropout_rate > 0
        if self.enable_layernorm and not self.return_layernorm_output and not dropping:
            y = layernorm_mlp(
                x,
                gamma,
                beta,
                (first, second),
                (bias_1, bias_2),
                self.layernorm_type,
                self.zero_centered_gamma,
                self.epsilon,
                norm_input_axes=self.layernorm_input_axes,
                dot_1_input_axes=self.dot_1_input_axes,
                dot_2_input_axes=self.dot_2_input_axes,
                ffn1_ckpt_name=self.ffn1_ckpt_name,
                ffn2_ckpt_name=self.ffn2_ckpt_name,
                activation_type=names,
                activation_params=self.activation_params,
                quantizer_sets=(sets[0], sets[1]),
            )
            return y, None
        if self.enable_layernorm:
            x = with_sharding_constraint_by_logical_axes(x, self.layernorm_input_axes)
            x = layernorm(x, gamma, beta, self.layernorm_type, self.zero_centered_gamma, self.epsilon)
        normed = x if self.return_layernorm_output else None
        y = dense(x, first, bias_1, input_axes=self.dot_1_input_axes, quantizer_set=sets[0])
        y = activation(checkpoint_name(y, self.ffn1_ckpt_name), names, None, self.activation_params)
        dropout = nn.Dropout(
            self.intermediate_dropout_rate,
            tuple(self.intermediate_hidden_dropout_dims),
            rng_collection=self.intermediate_dropout_rng_name,
        )
        y = dropout(y, deterministic=deterministic)
        y = dense(y, second, bias_2, input_axes=self.dot_2_input_axes, quantizer_set=sets[1])
        return checkpoint_name(y, self.ffn2_ckpt_name), normed
