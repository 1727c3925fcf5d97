"""Quantizers of JAX: bits of `dither.quantize`, and state that flows through jit and grad."""

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import QuantizeLayout, QuantizerFactory, ScalingMode  # noqa: E402
from jax_checks import numbers, same  # noqa: E402

E4M3, E5M2 = jnp.float8_e4m3fn, jnp.float8_e5m2
STATE = np.array([7, 1, 5, 0], np.uint32)
RANDOM = {"rounding": "stochastic", "seed": 7 + (1 << 32), "offset": 5}
#: A quantizer, and what `dither.quantize` is told.
CASES = {
    "current": (dj.CurrentScaleQuantizer(E5M2), {"format": "fp8_tensor_e5m2"}),
    "current_pow2": (
        dj.CurrentScaleQuantizer(format=dither.FP8_TENSOR_E4M3.with_(pow2_scales=True, epsilon=1e-3)),
        {"format": dither.FP8_TENSOR_E4M3.with_(pow2_scales=True, epsilon=1e-3)},
    ),
    "delayed": (dj.DelayedScaleQuantizer(scale=jnp.full(1, 3.0)), {"format": "fp8_tensor_e4m3", "encode_scale": 3.0}),
    "mxfp8": (dj.BlockScaleQuantizer(E4M3), {"format": "mxfp8_e4m3"}),
    "mxfp8_swizzled": (
        dj.BlockScaleQuantizer(E4M3, scale_layout="128x4"),
        {"format": "mxfp8_e4m3", "scale_layout": "128x4"},
    ),
    "mxfp4": (dj.BlockScaleQuantizer(scaling_mode=ScalingMode.MXFP4_1D_SCALING), {"format": "mxfp4"}),
    "fp8_128": (dj.BlockScaleQuantizer(scaling_mode=ScalingMode.FP8_2D_BLOCK_SCALING), {"format": "fp8_128x128_e4m3"}),
    "nvfp4": (dj.NVFP4Quantizer(), {"format": "nvfp4"}),
    "nvfp4_2d": (
        dj.NVFP4Quantizer(scaling_mode=ScalingMode.NVFP4_2D_SCALING),
        {"format": dither.NVFP4.with_(block=(16, 16)), "repeat_scales": True},
    ),
    "nvfp4_all": (
        dj.NVFP4Quantizer(use_rht=True, sign_mask=0x8001, stochastic_rounding_rng_state=jnp.asarray(STATE)),
        {"format": "nvfp4", "transform": dither.RandomHadamard(16, 0x8001), **RANDOM},
    ),
    "nvfp4_devices": (
        dj.NVFP4Quantizer(stochastic_rounding_rng_state=jnp.stack([jnp.asarray(STATE)] * 3)),
        {"format": "nvfp4", **RANDOM},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_of_quantize(name):
    quantizer, options = CASES[name]
    x = numbers(64, 256)

    @jax.jit
    def call(quantizer, x):
        return quantizer.quantize(x, dq_dtype=jnp.float32)

    found = call(quantizer, jnp.asarray(x))
    same(found, dither.quantize(x, layout="both", **options))
    assert found.rowwise.dq_dtype == found.dequantize().dtype == jnp.float32
    assert found.rowwise.scaling_mode is quantizer.scaling_mode


def test_directions_of_a_call():
    x = numbers(64, 96)
    quantizer = dj.NVFP4Quantizer(use_rht=True)
    transform = dither.RandomHadamard(16)
    col = quantizer.quantize(jnp.asarray(x), is_rowwise=False)
    same(col, dither.quantize(x, "nvfp4", "colwise", transform=transform))
    row = quantizer.quantize(jnp.asarray(x), is_colwise=False)
    same(row, dither.quantize(x, "nvfp4", "rowwise"))
    with pytest.raises(ValueError, match="is_rowwise and is_colwise are False, expected one of them to be True"):
        quantizer.quantize(jnp.asarray(x), False, False)
    assert dj.NVFP4Quantizer(q_layout=QuantizeLayout.COLWISE).get_data_layout() == "T"
    assert quantizer.get_data_layout() == "NT" and quantizer.get_scale_dtype() == E4M3
    assert quantizer.get_scale_shapes((64, 96), is_padded=False) == ((64, 6), (96, 4))


def test_an_amax_that_is_known_is_taken():
    x = numbers(64, 96)
    with_amax = dj.NoScaleTensor(jnp.asarray(x), jnp.full(1, 100.0))
    for quantizer, name in ((dj.NVFP4Quantizer(), "nvfp4"), (dj.CurrentScaleQuantizer(), "fp8_tensor_e4m3")):
        same(quantizer.quantize(with_amax), dither.quantize(x, name, "both", amax=100.0))
    # Along columns the amax is that of what was transformed.
    found = dj.NVFP4Quantizer(use_rht=True).quantize(with_amax)
    same(found.colwise, dither.quantize(x, "nvfp4", "colwise", transform=dither.RandomHadamard(16)))
    same(found.rowwise, dither.quantize(x, "nvfp4", amax=100.0))
    same(dj.BlockScaleQuantizer().quantize(with_amax), dither.quantize(x, "mxfp8_e4m3", "both"))


def test_keys_are_states():
    x, key = jnp.asarray(numbers(64, 96)), jax.random.key(3)
    found = jax.jit(lambda q, x: q.quantize(x))(dj.NVFP4Quantizer(stochastic_rounding_rng_state=key), x)
    same(found, dither.quantize(x, "nvfp4", "both", rounding="stochastic", seed=key))


class Oracle:
    """Delayed scaling of one tensor in NumPy, as Transformer Engine has it."""

    def __init__(self, length, largest, margin, most_recent):
        self.scale, self.history = np.float32(1), np.zeros(length, np.float32)
        self.largest, self.most_recent = np.float32(largest * 2.0**-margin), most_recent

    def step(self, amax):
        self.history[0] = amax
        peak = self.history[0] if self.most_recent else np.fmax.reduce(self.history)
        if np.isfinite(peak) and peak > 0:
            with np.errstate(over="ignore"):
                self.scale = np.minimum(self.largest / peak, np.finfo(np.float32).max)
        self.history = np.roll(self.history, -1)
        self.history[0] = 0


@pytest.mark.parametrize(
    ("length", "algorithm", "margin", "dtype"),
    [
        (1, "max", 0, E4M3),
        (4, "max", 0, E4M3),
        (3, "most_recent", 0, E5M2),
        (1024, "max", 2, E4M3),
        (5, "max", -1, E5M2),
    ],
)
def test_delayed_state_over_steps(length, algorithm, margin, dtype):
    x = numbers(32, 64)
    oracle = Oracle(length, 448.0 if dtype is E4M3 else 57344.0, margin, algorithm == "most_recent")
    quantizer = dj.DelayedScaleQuantizer(
        dtype, margin=margin, amax_compute_algo=algorithm, amax_history=jnp.zeros(length, jnp.float32)
    )

    @jax.jit
    def step(quantizer, x):
        return quantizer.quantize(x), quantizer

    name = f"fp8_tensor_{'e4m3' if dtype is E4M3 else 'e5m2'}"
    # Growth, decay, zero, a NaN, an infinity, and what makes the scale overflow.
    for factor in (1.0, 30.0, 0.5, 0.0, np.nan, 1e-3, np.inf, 2e-38, 2e-38, 2e-38, 2e-38, 2e-38, 1.0):
        y = (x.astype(np.float32) * np.float32(factor)).astype(x.dtype)
        found, quantizer = step(quantizer, jnp.asarray(y))
        same(found, dither.quantize(y, name, "both", encode_scale=float(oracle.scale)))
        oracle.step(np.fmax.reduce(np.abs(y.astype(np.float32)), axis=None, initial=0))
        same(quantizer.scale, oracle.scale.reshape(1))
        same(quantizer.amax_history, oracle.history)


def test_functional_core_has_the_bits_of_update_scale():
    rng = np.random.default_rng(0)
    amaxes = (2.0 ** rng.uniform(-140, 127, (12, 3))).astype(np.float32)
    amaxes[3] = [0, np.nan, np.inf]
    state = dj.initial_state(4, 3)
    theirs = dither.DelayedScaling("float8_e4m3", history=4, margin=1, tensors=3)
    for amax in amaxes:
        before = state
        state = jax.jit(lambda s, a: dj.delayed_update(s, a, q_dtype=E4M3, margin=1))(state, jnp.asarray(amax))
        theirs.update(amax)
        same(state, (theirs.scale, theirs.amax_history))
    assert before.scale is not state.scale
    step = jax.jit(lambda s, a: dj.delayed_update(s, a, q_dtype=E4M3))
    assert step.lower(state, jnp.ones(3)).as_text().count("custom_call") == 1
    with pytest.raises(ValueError, match=r"argument 'amax' has shape \(2,\), expected \(3,\): 'amax_history' has"):
        dj.delayed_update(state, jnp.ones(2), q_dtype=E4M3)
    with pytest.raises(ValueError, match=r"margin is 0.5, expected a whole number"):
        dj.delayed_update(state, jnp.ones(3), q_dtype=E4M3, margin=0.5)


def test_state_leaves_a_gradient():
    """A layer that quantizes its operands, whose gradient for its quantizers is their new state."""
    sets = QuantizerFactory.create_set(fp8_recipe=dither.recipe.DelayedScaling(amax_history_len=3))

    @jax.custom_vjp
    def dense(x, kernel, quantizers):
        return forward(x, kernel, quantizers)[0]

    def forward(x, kernel, quantizers):
        x, kernel = quantizers.x.quantize(x), quantizers.kernel.quantize(kernel)
        return x.dequantize() @ kernel.dequantize(), (x.colwise, kernel.colwise, quantizers)

    def backward(kept, grad):
        x, kernel, quantizers = kept
        grad = quantizers.dgrad.quantize(grad)
        dx, dkernel = grad.dequantize() @ kernel.dequantize().T, x.dequantize().T @ grad.dequantize()
        return dx, dkernel, dj.as_cotangent(quantizers)

    dense.defvjp(forward, backward)
    rng = np.random.default_rng(1)
    xs, kernel = rng.standard_normal((5, 32, 64), np.float32), rng.standard_normal((64, 32), np.float32)
    oracles = {name: Oracle(3, 57344.0 if name == "dgrad" else 448.0, 0, False) for name in ("x", "kernel", "dgrad")}

    @jax.jit
    def step(sets, x):
        loss = lambda k, s: (dense(x, k, s) ** 2).sum()  # noqa: E731
        return jax.grad(loss, argnums=(0, 1))(jnp.asarray(kernel), sets)

    for x in xs:
        rounded = [
            dither.quantize(one, "fp8_tensor_e4m3", encode_scale=float(oracles[name].scale)).dequantize()
            for name, one in (("x", x), ("kernel", kernel))
        ]
        grad = 2 * np.asarray(jnp.asarray(rounded[0]) @ jnp.asarray(rounded[1]))
        _, sets = step(sets, jnp.asarray(x))
        for name, one in (("x", x), ("kernel", kernel), ("dgrad", grad)):
            oracles[name].step(np.abs(one).max())
            found = getattr(sets, name)
            same(found.amax_history, oracles[name].history)
            same(found.scale, oracles[name].scale.reshape(1))


GROUPED = (
    ScalingMode.MXFP8_1D_SCALING,
    ScalingMode.CURRENT_TENSOR_SCALING,
    ScalingMode.NVFP4_1D_SCALING,
    ScalingMode.FP8_1D_BLOCK_SCALING,
)


@pytest.mark.parametrize("mode", GROUPED, ids=lambda mode: mode.name)
def test_groups(mode):
    x, sizes = numbers(96, 128), np.array([40, 0, 56], np.int32)
    quantizer = QuantizerFactory.create(scaling_mode=mode, n_groups=3)
    found = jax.jit(lambda q, x, s: dj.grouped_quantize(x, q, s))(quantizer, jnp.asarray(x), jnp.asarray(sizes))
    want = dither.grouped_quantize(x, mode.format(), "both", group_sizes=sizes)
    same(found.split(), want.split())
    stack = jnp.asarray(x).reshape(3, 32, 128)
    want = dither.grouped_quantize(x.reshape(3, 32, 128), mode.format(), "both")
    same(dj.grouped_quantize(stack, quantizer).split(), want.split())


def test_groups_have_states_of_their_own():
    x, sizes = numbers(96, 128), jnp.array([40, 0, 56], jnp.int32)
    scales = [2.0, 3.0, 5.0]
    quantizers = tuple(dj.DelayedScaleQuantizer(scale=jnp.full(1, s), amax_history=jnp.zeros(2)) for s in scales)
    mode = ScalingMode.DELAYED_TENSOR_SCALING
    quantizer = dj.GroupedQuantizer(scaling_mode=mode, n_groups=3, quantizers=quantizers)
    found, after = jax.jit(lambda q, x: (q.quantize(x, group_sizes=sizes), q))(quantizer, jnp.asarray(x))
    assert found.rowwise.scaling_mode is mode
    for g, (rows, scale) in enumerate(zip((x[:40], x[40:40], x[40:]), scales, strict=True)):
        oracle = Oracle(2, 448.0, 0, False)
        oracle.scale = np.float32(scale)
        oracle.step(np.abs(rows.astype(np.float32)).max(initial=0))
        same(after.quantizers[g].scale, oracle.scale.reshape(1))
        same(after.quantizers[g].amax_history, oracle.history)
        want = dither.quantize(rows, "fp8_tensor_e4m3", "both", encode_scale=scale)
        same(found.rowwise.group(g).data, want.rowwise.data)


def test_factory():
    assert QuantizerFactory.create() is None
    two = QuantizerFactory.create(2, ScalingMode.MXFP8_1D_SCALING, E5M2, QuantizeLayout.ROWWISE, checkpoint_name="a")
    assert len(two) == 2 and two[0].q_dtype == E5M2 and two[0].checkpoint_name == "a"
    assert two[0].q_layout is QuantizeLayout.ROWWISE and two[0].format is dither.MXFP8_E5M2
    delayed = QuantizerFactory.create(scaling_mode=ScalingMode.DELAYED_TENSOR_SCALING, margin=2)
    assert delayed.margin == 2 and delayed.amax_history.shape == (1024,) and delayed.scale.shape == (1,)
    with pytest.raises(
        TypeError, match=r"found margins=, expected q_dtype, .*: MXFP8_1D_SCALING has a BlockScaleQuantizer"
    ):
        QuantizerFactory.create(scaling_mode=ScalingMode.MXFP8_1D_SCALING, margins=1)
    with pytest.warns(UserWarning, match="found several grouped quantizers, expected one for all groups"):
        QuantizerFactory.create(2, ScalingMode.MXFP8_1D_SCALING, n_groups=2)


def test_sets():
    mode = ScalingMode.MXFP8_1D_SCALING
    made = QuantizerFactory.create_set(2, mode, E4M3, E5M2)
    assert len(made) == 2 and (made[0].x.q_dtype, made[0].dgrad.q_dtype) == (E4M3, E5M2)
    assert all(one.q_layout.is_rowwise_colwise for one in (made[0].x, made[0].kernel, made[0].dgrad))
    rows = QuantizerFactory.create_set(scaling_mode=mode, is_2x2x=False)
    assert rows.x.q_layout.is_rowwise_only and rows.kernel.q_layout.is_colwise_only
    tensors = QuantizerFactory.create_set(scaling_mode=ScalingMode.CURRENT_TENSOR_SCALING, is_2x2x=False)
    assert tensors.kernel.q_layout.is_rowwise_only
    empty = QuantizerFactory.create_set()
    assert jax.tree.leaves(empty) == [] and empty.x is empty.kernel is empty.dgrad is None
    assert dj.noop_quantizer_set.x is None
    meta = dj.QuantizeMetaSet(x=dj.QuantizeMeta(amax_history=jnp.zeros(7)))
    delayed = QuantizerFactory.create_set(scaling_mode=ScalingMode.DELAYED_TENSOR_SCALING, quantize_meta_set=meta)
    assert delayed.x.amax_history.shape == (7,) and delayed.kernel.amax_history.shape == (1024,)
    with pytest.raises(ValueError, match="found a in both, expected names that differ"):
        dj.QuantizeMeta.merge(dj.QuantizeMeta(a=1), dj.QuantizeMeta(a=2, b=3))
    with pytest.raises(ValueError, match="scaling_mode was given beside fp8_recipe, expected one of the two"):
        QuantizerFactory.create_set(scaling_mode=mode, fp8_recipe=dither.recipe.MXFP8BlockScaling())
    with pytest.raises(ValueError, match="fwd_dtype was given without scaling_mode, expected both or none of the two"):
        QuantizerFactory.create_set(fwd_dtype=E4M3)


def test_mistakes():
    x = jnp.ones((64, 64))

    def fails(match, make, error=ValueError):
        with pytest.raises(error, match=match):
            make()

    fails("expected MXFP8_1D_SCALING, MXFP8_2D", lambda: dj.BlockScaleQuantizer(scaling_mode=ScalingMode.NO_SCALING))
    fails("q_dtype is float4_e2m1 for CURRENT", lambda: dj.CurrentScaleQuantizer(jnp.float4_e2m1fn))
    fails("data_layout is 'TN', expected 'NT' for NVFP4_1D_SCALING", lambda: dj.NVFP4Quantizer(data_layout="TN"))
    fails("expected a variant of dither.MXFP8_E4M3", lambda: dj.BlockScaleQuantizer(format=dither.NVFP4))
    fails(
        "use_rht is True for NVFP4_2D_SCALING",
        lambda: dj.NVFP4Quantizer(None, ScalingMode.NVFP4_2D_SCALING, use_rht=True),
    )
    fails(
        r"stochastic_rounding_rng_state has shape \(3,\), expected \(4,\) or \(devices, 4\)",
        lambda: dj.NVFP4Quantizer(stochastic_rounding_rng_state=jnp.zeros(3, jnp.uint32)),
    )
    fails(
        "stochastic_rounding_rng_state has data type int32, expected uint32",
        lambda: dj.NVFP4Quantizer(stochastic_rounding_rng_state=jnp.zeros(4, jnp.int32)),
        TypeError,
    )
    fails("amax_history is float32 of shape", lambda: dj.DelayedScaleQuantizer(amax_history=jnp.zeros((2, 2))))
    fails("amax_history is float32 of shape", lambda: dj.DelayedScaleQuantizer(amax_history=jnp.zeros(0)))
    fails("margin is 0.5, expected a whole number", lambda: dj.DelayedScaleQuantizer(margin=0.5))
    fails("'oldest' is not a valid AmaxComputeAlgo", lambda: dj.DelayedScaleQuantizer(amax_compute_algo="oldest"))
    grouped = dj.GroupedQuantizer(n_groups=2)
    fails("found 3 groups, expected 2, as the quantizer has", lambda: grouped.quantize(x, group_sizes=jnp.ones(3, int)))
    fails("flatten_axis is 1 for shape", lambda: grouped.quantize(jnp.ones((2, 2, 2)), flatten_axis=1))
    fails("found 1 quantizers, expected 2", lambda: dj.GroupedQuantizer(n_groups=2, quantizers=(dj.NVFP4Quantizer(),)))
    fails("expected a GroupedQuantizer", lambda: dj.grouped_quantize(x, dj.NVFP4Quantizer()), TypeError)
    fails("argument 'x' has data type", lambda: jax.jit(dj.NVFP4Quantizer().quantize)(jnp.ones((4, 4), int)), TypeError)


def test_what_is_no_quantizer_or_mode():
    x = jnp.asarray(numbers(64, 128))
    expected = "argument 'quantizer' is str, expected a dither.jax.Quantizer or None"
    for call in (
        lambda: dj.quantize(x, "nvfp4"),
        lambda: dj.quantize_dbias(x, "nvfp4"),
        lambda: dj.act_lu(x[:, None], ("gelu",), "nvfp4"),
        lambda: dj.rmsnorm_fwd(x, x[0], False, 1e-6, "nvfp4"),
    ):
        with pytest.raises(TypeError, match=expected):
            call()
    for mode in ("mx", 3):
        with pytest.raises(TypeError, match=f"scaling_mode is {mode!r}, expected a ScalingMode"):
            dj.QuantizerFactory.create_set(scaling_mode=mode)
