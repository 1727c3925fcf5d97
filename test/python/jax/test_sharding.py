"""Calls on arrays that are split over 8 devices: the bits of one, and what is exchanged."""

import warnings

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import AxisType  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax_checks import numbers, same_bits  # noqa: E402
from jax_mesh import JOINED, MESH, collectives, put  # noqa: E402

X = numbers(256, 512)


def quantize(name, **options):
    return lambda x: dither.quantize(x, name, **options)


#: A call, how its argument is split, how its results are, and what devices exchange.
CASES = {
    "mxfp8": (quantize("mxfp8_e4m3", layout="both"), ("data", "model"), [("data", "model")] * 4, {}),
    "mxfp4": (quantize("mxfp4"), ("data", "model"), [("data", "model")] * 2, {}),
    "nvfp4": (
        quantize("nvfp4", layout="both"),
        ("data", "model"),
        [("data", "model")] * 2 + [()] + [("model", "data")] * 2 + [()],
        {"all-reduce": 1},
    ),
    "stochastic": (
        quantize("nvfp4", layout="both", rounding="stochastic", seed=5),
        ("data", "model"),
        [("data", "model")] * 2 + [()] + [("model", "data")] * 2 + [()],
        {"all-reduce": 1},
    ),
    "stochastic_mx": (
        quantize("mxfp8_e4m3", layout="both", rounding="stochastic", seed=5, offset=2),
        ("data", "model"),
        [("data", "model")] * 4,
        {},
    ),
    "transform": (
        quantize("nvfp4", layout="both", transform=dither.RandomHadamard(16, 0x8001)),
        ("data", "model"),
        [("data", "model")] * 2 + [()] + [("model", "data")] * 2 + [()],
        {"all-reduce": 1},
    ),
    "current": (
        quantize("fp8_tensor_e4m3", layout="both"),
        ("data", "model"),
        [("data", "model"), (), ("model", "data"), ()],
        {"all-reduce": 1},
    ),
    "delayed": (quantize("fp8_tensor_e4m3", encode_scale=2.0), ("data", "model"), [("data", "model"), ()], {}),
    "blocks": (quantize("fp8_128x128_e4m3"), ("model", "data"), [("model", "data")] * 2, {}),
    "rows": (quantize("int8_row"), ("data",), [("data",)] * 2, {}),
    "rows_and_columns": (
        quantize("int8_row", layout="both"),
        ("data", "model"),
        [("data", "model"), ("data",), ("model", "data"), ("model",)],
        {"all-reduce": 2},
    ),
    "parts_of_rows": (
        quantize("fp8_row_e4m3", rounding="stochastic", seed=5),
        (None, "model"),
        [(None, "model"), ()],
        {"all-reduce": 1},
    ),
    "128x4": (quantize("mxfp8_e4m3", scale_layout="128x4"), ("model",), [("model",)] * 2, {}),
    "gelu": (dither.gelu, ("data", "model"), [("data", "model")], {}),
    "gelu_amax": (
        lambda x: dither.gelu(x, return_amax=True),
        ("data", "model"),
        [("data", "model"), ()],
        {"all-reduce": 1},
    ),
    "amax": (dither.amax, (("data", "model"),), [()], {"all-reduce": 1}),
    "layer_norm": (lambda x: dither.layer_norm(x, X[0], X[1]), ("data",), [("data",)] * 3, {}),
    "rms_norm": (
        lambda x: dither.rms_norm(x, X[0], format="nvfp4"),
        ("data",),
        [("data",)] * 2 + [()] + [("data",)] + [()],
        {"all-reduce": 1},
    ),
    "softmax": (dither.softmax, ("data",), [("data",)], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_one_device(name):
    call, spec, results, exchanged = CASES[name]
    x = put(X, *spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jax.jit(call)(x)
        same_bits(found, call(X))
        same_bits(call(x), call(X))
        assert collectives(call, x) == exchanged
    assert [tuple(leaf.sharding.spec) for leaf in jax.tree.leaves(found)] == results


def test_several_operands_are_split_alike():
    gate, up = put(X, "data", "model"), put(numbers(256, 512, seed=4), "data", "model")

    def call(gate, up):
        return dither.swiglu(gate, up, format="mxfp8_e4m3", layout="both")

    same_bits(jax.jit(call)(gate, up), call(np.asarray(gate), np.asarray(up)))
    assert collectives(call, gate, up) == {}


@pytest.mark.parametrize("m", [256, 240])
def test_sums_of_columns_are_those_of_the_parts_in_order(m):
    x = X[:m]
    split = put(x, "data", "model")

    def call(x):
        return dither.quantize_dbias(x, format="fp8_tensor_e4m3", encode_scale=1.0, grad_dtype=dither.float32)

    found = jax.jit(call)(split)
    assert tuple(found.dbias.sharding.spec) == ("model",)
    parts = [dither.quantize_dbias(part, grad_dtype=dither.float32).dbias for part in np.split(x, 4)]
    want = (parts[0] + parts[1]) + (parts[2] + parts[3])
    assert np.asarray(found.dbias).tobytes() == want.tobytes()
    assert collectives(call, split) == {"all-gather": 1}


def test_gradients_of_norms():
    x, gamma, dz = put(X, "data"), jnp.asarray(X[0]), put(numbers(256, 512, seed=5), "data")

    def loss(norm, x, gamma, dz):
        return (norm(x, gamma).out.astype(jnp.float32) * dz).sum()

    def gradient(x, gamma, dz):
        return jax.grad(loss, argnums=(1, 2))(dither.rms_norm, x, gamma, dz)

    dx, dgamma = jax.jit(gradient)(x, gamma, dz)
    assert tuple(dx.sharding.spec) == ("data",)
    want = gradient(jnp.asarray(X), gamma, jnp.asarray(np.asarray(dz)))
    same_bits((dx, dgamma), want)


def test_tensors_of_other_ranks():
    x = X.reshape(8, 32, 512)
    for call, spec in (
        (dither.gelu, ("data", "model")),
        (lambda x: dither.layer_norm(x, X[0], X[1]), ("data", "model")),
        (quantize("mxfp8_e4m3", layout="both"), ("data", None, "model")),
        (lambda x: dither.quantize(x, "nvfp4").data, ("data", "model")),
        (quantize("nvfp4", layout="both", rounding="stochastic", seed=1), ("data",)),
    ):
        split = put(x, *spec)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", JOINED)
            found = jax.jit(call)(split)
        same_bits(found, call(x))
        assert "all-gather" not in collectives(call, split)
    # Blocks along both end with the rows of each part, as sequences that are split have them.
    sequences = numbers(4, 64, 512)
    both = quantize("mxfp8_e4m3", layout="both")
    split = put(sequences, "data", "model")
    same_bits(jax.jit(both)(split), both(sequences))
    data = lambda x: jax.tree.leaves(both(x))[0]  # noqa: E731
    assert collectives(data, split) == {} and tuple(jax.jit(data)(split).sharding.spec) == ("data", "model")
    # Scales that are there once for each column, or row.
    wide = numbers(8, 128, 512)
    for name, layout in (("fp8_128x128_e4m3", "colwise"), (dither.NVFP4.with_(block=(16, 16)), "both")):
        call = quantize(name, layout=layout, repeat_scales=True)
        same_bits(jax.jit(call)(put(wide, "data", None, "model")), call(wide))
    flat = lambda x: dither.quantize(x, "mxfp8_e4m3", flatten_axis=1)  # noqa: E731
    same_bits(jax.jit(flat)(put(x, "data", "model")), flat(x))
    assert collectives(flat, put(x, "data", "model")) == {}


def test_what_is_gathered_is_said():
    def warned(message, call, x, *spec):
        split = put(x, *spec)
        with pytest.warns(UserWarning, match=message):
            found = jax.jit(call)(split)
        same_bits(found, call(x))

    norm = lambda x: dither.rms_norm(x, X[0, : x.shape[-1]])[:2]  # noqa: E731
    warned(
        r"rms_norm: dimension 1 of argument 'x' is split over 2 devices \(model\), expected it whole",
        norm,
        X,
        None,
        "model",
    )
    narrow = X[:, :64]
    message = (
        r"quantize: dimension 1 of argument 'x' is split over 4 devices \(data\), expected a number of parts that "
    )
    warned(message + "divides 2", quantize("mxfp8_e4m3"), narrow, None, "data")
    deep = numbers(4, 256, 128)
    message = r"quantize: a result of shape \(1024, 4\) joins .* is split over 4 devices \(data\): it is gathered"
    warned(message, quantize("mxfp8_e4m3"), deep, None, "data")
    offsets = lambda x: dither.unpad_scales(x, (200, 512), dither.float8_e4m3)  # noqa: E731
    warned("unpad_scales: dimension 0 of argument 'scales' is split over 4", offsets, X.astype(np.uint8), "data")


def test_under_vmap_and_scan():
    xs = numbers(3, 256, 512)
    split = put(xs, None, "data", "model")
    found = jax.jit(jax.vmap(quantize("mxfp8_e4m3")))(split)
    for i, x in enumerate(xs):
        same_bits(jax.tree.map(lambda leaf, i=i: leaf[i], found), dither.quantize(x, "mxfp8_e4m3"))


def test_explicit_meshes():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        x = put(X, "data", "model", mesh=mesh)
        same_bits(jax.jit(quantize("nvfp4", layout="both"))(x), dither.quantize(X, "nvfp4", layout="both"))


def leaves_of(call):
    return lambda *args: tuple(jax.tree.leaves(call(*args)))


@pytest.mark.parametrize(
    "name", ["mxfp8", "nvfp4", "stochastic", "transform", "current", "rows_and_columns", "gelu_amax", "amax"]
)
def test_parts_in_shard_map(name):
    call, spec, results, exchanged = CASES[name]
    rows, cols = (*spec, None)[:2]

    def part(x):
        with dj.shards(rows=rows, cols=cols or ()):
            return leaves_of(call)(x)

    mapped = jax.shard_map(part, mesh=MESH, in_specs=P(*spec), out_specs=tuple(P(*result) for result in results))
    same_bits(jax.jit(mapped)(jnp.asarray(X)), leaves_of(call)(X))
    assert collectives(mapped, put(X, *spec)) == exchanged


def test_without_shards_each_part_is_a_tensor():
    call = leaves_of(quantize("fp8_tensor_e4m3"))
    mapped = jax.shard_map(
        lambda x: tuple(leaf if leaf.ndim == 2 and leaf.size > 1 else leaf.reshape(1) for leaf in call(x)),
        mesh=MESH,
        in_specs=P("data"),
        out_specs=P("data"),
        check_vma=False,
    )
    data, scales = jax.jit(mapped)(jnp.asarray(X))
    for i, part in enumerate(np.split(X, 4)):
        want = dither.quantize(part, "fp8_tensor_e4m3")
        assert np.asarray(data[i * 64 : (i + 1) * 64]).tobytes() == want.data.tobytes()
        assert np.asarray(scales[i]).tobytes() == want.scale_inv.tobytes()


def test_gradients_of_parts():
    dz = numbers(256, 512, seed=5)

    def part(x, gamma, dz):
        with dj.shards(rows="data"):
            _, back = jax.vjp(lambda x, gamma: dither.rms_norm(x, gamma).out, x, gamma)
        return back(dz)

    mapped = jax.shard_map(
        part, mesh=MESH, in_specs=(P("data"), P(), P("data")), out_specs=(P("data"), P()), check_vma=False
    )
    _, back = jax.vjp(lambda x, gamma: dither.rms_norm(x, gamma).out, jnp.asarray(X), jnp.asarray(X[0]))
    same_bits(jax.jit(mapped)(X, X[0], dz), back(jnp.asarray(dz)))


def test_mistakes_of_shards():
    def fails(match, call, x=X, error=ValueError, **over):
        def part(x):
            with dj.shards(**over):
                return leaves_of(call)(x)

        specs = P(over.get("rows"), over.get("cols"))
        with pytest.raises(error, match=match):
            jax.shard_map(part, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)(x)

    norm = lambda x: dither.rms_norm(x, x[0])[:2]  # noqa: E731
    fails(
        r"rms_norm: the columns are split over 2 devices \(model\), 256 each, expected them whole", norm, cols="model"
    )
    fails(
        r"quantize: the columns are split over 2 devices \(model\), 16 each, expected them in multiples of 32",
        quantize("mxfp8_e4m3"),
        X[:, :32],
        cols="model",
    )
    two = lambda x: dj.call(lambda x: (dither.gelu(x), dither.silu(x)), x)  # noqa: E731
    unpad = lambda x: dither.unpad_scales(x, (60, 512), dither.float8_e4m3)  # noqa: E731
    told = r"unpad_scales: the rows are split over 4 devices \(data\), 60 each, expected them whole"
    fails(told, unpad, X.astype(np.uint8), rows="data")
    fails("found a call of <lambda> on parts of tensors", two, rows="data")
    with pytest.raises(NameError, match="unbound axis name: batch"), dj.shards(rows="batch"):
        dither.quantize(jnp.asarray(X), "mxfp8_e4m3")
    with pytest.raises(ValueError, match="axis 'data' splits both rows and columns"), dj.shards("data", "data"):
        pass
