"""Layers: products of quantized tensors with their gradients, by quantizers."""

from .dense import dense
from .grouped_dense import grouped_dense
from .layernorm_dense import layernorm_dense
from .layernorm_mlp import layernorm_mlp

__all__ = ["dense", "grouped_dense", "layernorm_dense", "layernorm_mlp"]
