"""Rules of Shardy for calls of one's own: XLA splits codes and scales with the tensor, at the ends of blocks."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from dither.jax import QuantizeLayout, ScalingMode  # noqa: E402
from jax.experimental.custom_partitioning import (  # noqa: E402
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from jax_mesh import MESH, put  # noqa: E402

BOTH = QuantizeLayout.ROWWISE_COLWISE
SPECS = ("rowwise_out_spec", "rowwise_scale_spec", "colwise_out_spec", "colwise_scale_spec")
#: A mode, a shape with its flatten_axis, how it is split, and how codes and scales of both directions are.
CASES = {
    "mxfp8": (ScalingMode.MXFP8_1D_SCALING, (256, 512), -1, ("data", "model"), [("data", "model")] * 4),
    "nvfp4": (
        ScalingMode.NVFP4_1D_SCALING,
        (8, 2, 256),
        1,
        ("data", None, "model"),
        [("data", None, "model")] * 2 + [(None, "model", "data"), (None, "model")],
    ),
    "nvfp4_2d": (
        ScalingMode.NVFP4_2D_SCALING,
        (256, 512),
        1,
        ("data", "model"),
        [("data", "model")] * 2 + [("model", "data")] * 2,
    ),
    "tensor": (
        ScalingMode.CURRENT_TENSOR_SCALING,
        (256, 512),
        1,
        ("data", "model"),
        [("data", "model"), (), ("model", "data"), ()],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_xla_splits_by_them(name):
    mode, shape, axis, spec, expected = CASES[name]
    rules = mode.get_shardy_sharding_rules(shape, "q", axis, BOTH, True)
    turned = shape[axis:] + shape[:axis] if mode.is_colwise_transposed else shape
    row, col = mode.get_scale_shape_2x(shape, False, axis, True)
    shapes = (shape, row, turned, col)

    def fake(x):
        return tuple(jnp.full(one, x.ravel()[0]) for one in shapes)

    own = custom_partitioning(fake)
    seen = []

    def partition(mesh, args, results):
        seen.append([result.sharding for result in results])
        return mesh, lambda x: tuple(
            jnp.zeros(r.sharding.shard_shape(r.shape), x.dtype) for r in results
        ), tuple(r.sharding for r in results), tuple(a.sharding for a in args)  # fmt: skip

    rule = SdyShardingRule(
        (rules.mapping("input_spec"),), tuple(rules.mapping(one) for one in SPECS), **rules.factor_sizes
    )
    own.def_partition(partition=partition, sharding_rule=rule)
    found = jax.jit(own)(put(np.ones(shape, np.float32), *spec))
    assert len(seen) == 1 and [one.shape for one in found] == list(shapes)
    assert [tuple(one.sharding.spec) for one in found] == expected
    assert all(one.sharding.mesh == MESH for one in found)


def test_what_has_no_factors_of_blocks():
    mode = ScalingMode.MXFP8_1D_SCALING
    rules = mode.get_shardy_sharding_rules((64, 32), "q", q_layout=QuantizeLayout.ROWWISE)
    assert rules.input_spec == rules.rowwise_out_spec == ("q_0", "q_1") and rules.factor_sizes == {}
    assert rules.rowwise_rule == ("q_0", "q_1_scales") and rules.colwise_rule == ("q_colwise_scale",)
    square = ScalingMode.FP8_2D_BLOCK_SCALING.get_shardy_sharding_rules((256, 512), "q", q_layout=BOTH)
    blocks = [CompoundFactor(f"q_{k}_blocks", f"q_{k}_block") for k in range(2)]
    assert [str(one) for one in square.input_spec] == [str(one) for one in blocks]
    assert square.rowwise_scale_spec == ("q_0_blocks", "q_1_blocks") == square.colwise_scale_spec[::-1]
    assert square.factor_sizes == {"q_0_block": 128, "q_1_block": 128}
    none = ScalingMode.NO_SCALING.get_shardy_sharding_rules((4, 4), "q")
    assert none.rowwise_scale_spec == ("q_rowwise_scale",)
    with pytest.raises(ValueError, match="flatten_axis is 2 for shape"):
        mode.get_shardy_sharding_rules((64, 32), "q", 2)
