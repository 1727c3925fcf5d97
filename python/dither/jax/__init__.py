"""dither in JAX: operators on JAX's arrays, under `jax.jit` and the other transformations.

Every operator of `dither` takes JAX's arrays and gives JAX's arrays; importing `dither` needs no JAX, and calls with
JAX's arrays import this package. Quantizers, recipes and functions that take them have the names that users of
Transformer Engine know. docs/jax.md has the rest.
"""

import jax as _jax

from . import versions as _versions

# Before anything that uses JAX's names.
_versions.check(_jax.__version__)

from ..ops import (  # noqa: E402
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    ScaledTensor1x,
    ScaledTensor2x,
)
from .activations import (  # noqa: E402
    ActivationParams,
    ClampedSwigluParams,
    act_lu,
    activation,
    dact_lu,
    quantize_dact_dbias,
)
from .arrays import dtype_of_kind as dtype_of_kind  # noqa: E402
from .calls import call  # noqa: E402
from .calls import register_handlers as _register_handlers  # noqa: E402
from .delayed import DelayedState, initial_state  # noqa: E402
from .delayed import update as delayed_update  # noqa: E402
from .factory import ScaledTensorFactory  # noqa: E402
from .functions import (  # noqa: E402
    as_cotangent,
    calculate_amax,
    calculate_post_rht_amax,
    dequantize,
    grouped_dbias,
    grouped_quantize,
    quantize,
    quantize_dbias,
)
from .grouped import GroupedQuantizer  # noqa: E402
from .grouped_matmul import grouped_gemm  # noqa: E402
from .layers import dense, grouped_dense, layernorm_dense, layernorm_mlp  # noqa: E402
from .matmul import gemm, tensor_scale_of, to_jax_scaled_matmul  # noqa: E402
from .mesh import (  # noqa: E402
    BATCH_AXES,
    HEAD_AXES,
    HIDDEN_AXES,
    HIDDEN_TP_AXES,
    JOINED_AXES,
    SEQLEN_AXES,
    SEQLEN_CP_AXES,
    SEQLEN_TP_AXES,
    W_FSDP_AXES,
    W_JOINED_AXES,
    W_NO_SHARD_AXES,
    W_TP_AXES,
    MeshResource,
    global_mesh_resource,
    global_shard_guard,
    with_sharding_constraint_by_logical_axes,
)
from .modes import AmaxScope, QuantizeLayout, ScalingMode, TensorSource, TensorUsage, mode_of  # noqa: E402
from .norms import (  # noqa: E402
    layernorm,
    layernorm_bwd,
    layernorm_fwd,
    normalization_bwd,
    normalization_fwd,
    rmsnorm_bwd,
    rmsnorm_fwd,
)
from .quantizer_sets import (  # noqa: E402
    QuantizeMeta,
    QuantizeMetaSet,
    QuantizerFactory,
    QuantizerSet,
    noop_quantizer_set,
)
from .quantizers import (  # noqa: E402
    AmaxComputeAlgo,
    BlockScaleQuantizer,
    CurrentScaleQuantizer,
    DelayedScaleQuantizer,
    NVFP4Quantizer,
    Quantizer,
)
from .recipes import (  # noqa: E402
    QuantizeConfig,
    autocast,
    fp8_autocast,
    get_global_quantize_recipe,
    get_quantization_recipe,
    get_quantize_config,
    get_supported_quantization_recipes,
    get_supported_scaling_modes,
    is_quantize_recipe_supported,
    is_scaling_mode_supported,
)
from .scale_padding import apply_padding_to_scale_inv, remove_padding_from_scale_inv  # noqa: E402
from .settings import cuda_target, shards  # noqa: E402
from .shardy_rules import QuantizeShardyRules  # noqa: E402
from .straight_through import straight_through  # noqa: E402
from .switches import manage_primitives, primitive_names  # noqa: E402
from .tensors import GroupedNoScaleTensor, NoScaleTensor, checkpoint, get_tensor  # noqa: E402
from .tensors import register as _register_tensors  # noqa: E402

_register_tensors()
_register_handlers()

__all__ = [
    "BATCH_AXES",
    "HEAD_AXES",
    "HIDDEN_AXES",
    "HIDDEN_TP_AXES",
    "JOINED_AXES",
    "SEQLEN_AXES",
    "SEQLEN_CP_AXES",
    "SEQLEN_TP_AXES",
    "W_FSDP_AXES",
    "W_JOINED_AXES",
    "W_NO_SHARD_AXES",
    "W_TP_AXES",
    "ActivationParams",
    "AmaxComputeAlgo",
    "AmaxScope",
    "BlockScaleQuantizer",
    "ClampedSwigluParams",
    "CurrentScaleQuantizer",
    "DelayedScaleQuantizer",
    "DelayedState",
    "GroupedNoScaleTensor",
    "GroupedQuantizer",
    "GroupedScaledTensor1x",
    "GroupedScaledTensor2x",
    "MeshResource",
    "NVFP4Quantizer",
    "NoScaleTensor",
    "QuantizeConfig",
    "QuantizeLayout",
    "QuantizeMeta",
    "QuantizeMetaSet",
    "QuantizeShardyRules",
    "Quantizer",
    "QuantizerFactory",
    "QuantizerSet",
    "ScaledTensor1x",
    "ScaledTensor2x",
    "ScaledTensorFactory",
    "ScalingMode",
    "TensorSource",
    "TensorUsage",
    "act_lu",
    "activation",
    "apply_padding_to_scale_inv",
    "as_cotangent",
    "autocast",
    "calculate_amax",
    "calculate_post_rht_amax",
    "call",
    "checkpoint",
    "cuda_target",
    "dact_lu",
    "delayed_update",
    "dense",
    "dequantize",
    "fp8_autocast",
    "gemm",
    "get_global_quantize_recipe",
    "get_quantization_recipe",
    "get_quantize_config",
    "get_supported_quantization_recipes",
    "get_supported_scaling_modes",
    "get_tensor",
    "global_mesh_resource",
    "global_shard_guard",
    "grouped_dbias",
    "grouped_dense",
    "grouped_gemm",
    "grouped_quantize",
    "initial_state",
    "is_quantize_recipe_supported",
    "is_scaling_mode_supported",
    "layernorm",
    "layernorm_bwd",
    "layernorm_dense",
    "layernorm_fwd",
    "layernorm_mlp",
    "manage_primitives",
    "mode_of",
    "noop_quantizer_set",
    "normalization_bwd",
    "normalization_fwd",
    "primitive_names",
    "quantize",
    "quantize_dact_dbias",
    "quantize_dbias",
    "remove_padding_from_scale_inv",
    "rmsnorm_bwd",
    "rmsnorm_fwd",
    "shards",
    "straight_through",
    "tensor_scale_of",
    "to_jax_scaled_matmul",
    "with_sharding_constraint_by_logical_axes",
]
