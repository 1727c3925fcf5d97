"""Products of quantized tensors: the values of dither.dequantize, multiplied in float32, and what CUDA gets instead."""

import dataclasses

import dither
import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax.grouped_matmul import _product_of_codes  # noqa: E402
from dither.jax.matmul import _fp8_product  # noqa: E402
from dither.jax.values import values  # noqa: E402
from jax_checks import numbers  # noqa: E402

SQUARE = dither.NVFP4.with_(block=(16, 16))
FORMATS = [
    "nvfp4",
    "mxfp6_e2m3",
    "mxfp8_e5m2",
    "mxint8",
    "fp8_tensor_e4m3",
    "fp8_128x128_e4m3",
    SQUARE,
    dither.NVFP4.with_(row_amax=True),
    dither.NVFP4.with_(order="div6_mul"),
    dither.NVFP4.with_(four_over_six="mae", largest_scale=256),
]
NO_CHECKS = [jax.export.DisabledSafetyCheck.custom_call("__op$block_scaled_dot")]


def both(x, fmt, **options):
    return dither.quantize(jnp.asarray(x), fmt, "both", **options)


def check_values(q):
    """Along rows and along columns."""
    found = jax.jit(lambda q: (values(q.rowwise), values(q.colwise)))(q)
    for mine, one in zip(found, (q.rowwise, q.colwise), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(dither.dequantize(one, dither.float32)).tobytes()


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_values_have_the_bits_of_dequantize(fmt):
    check_values(both(numbers(50, 70), fmt))


def test_values_of_other_ranks_orders_and_scales():
    for fmt in ("nvfp4", "mxfp8_e4m3"):
        check_values(both(numbers(96, 256), fmt, scale_layout="128x4"))
    for fmt in (SQUARE, "fp8_128x128_e4m3"):
        check_values(both(numbers(4, 16, 2, 64), fmt, flatten_axis=2, repeat_scales=True))
    check_values(both(numbers(32, 64), dither.NVFP4.with_(tensor_scale_as="encode"), encode_scale=0.37))


def test_values_of_every_scale_of_powers_of_two():
    """All of E8M0, by a tensor that is made and not quantized; NaN in its own bits, what is too small may be zero."""
    q = dither.quantize(jnp.ones((256, 32), jnp.float32), "mxfp8_e4m3")
    scales = jax.lax.bitcast_convert_type(jnp.arange(256, dtype=jnp.uint8)[:, None], jnp.float8_e8m0fnu)
    codes = jnp.ones((256, 32), jnp.float8_e4m3fn)
    found = np.asarray(values(dataclasses.replace(q, data=codes, scale_inv=scales)))[:, 0]
    want = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(found[1:255], want[1:255])
    assert found[0] in (0, want[0]) and np.isnan(found[255])


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3", "fp8_tensor_e4m3"])
def test_a_product_is_that_of_the_values(fmt):
    x, w = both(numbers(4, 16, 128), fmt), both(numbers(128, 96, seed=4), fmt)
    found = jax.jit(lambda x, w: dj.gemm(x, w, preferred_element_type=jnp.float32))(x.rowwise, w.colwise)
    of = [np.asarray(dither.dequantize(q, dither.float32), np.float64) for q in (x.rowwise, w.colwise)]
    want = of[0] @ of[1]
    np.testing.assert_allclose(found, want, rtol=0, atol=128 * 2**-24 * np.abs(of[0]).max() * np.abs(of[1]).max() * 8)
    assert dj.gemm(x.rowwise, w.colwise).dtype == jnp.bfloat16
    bias = jnp.asarray(numbers(96, seed=5))
    biased = dj.gemm(x.rowwise, w.colwise, bias=bias, preferred_element_type=jnp.float32)
    np.testing.assert_array_equal(np.asarray(biased), np.asarray(found) + np.asarray(bias, np.float32))


@pytest.mark.parametrize(
    ("shape", "other", "dims"),
    [
        ((24, 32), (24, 2, 64), ((0,), (0,))),
        ((4, 6, 32), (4, 6, 2, 8), ((0, 1), (0, 1))),
        ((8, 32), (8, 4), ((0,), (0,))),
    ],
    ids=str,
)
def test_products_of_bfloat16_in_float32(shape, other, dims):
    """Of arrays of any rank, as the gradient of a kernel in float32 with several output dimensions is."""
    x, dy = jnp.asarray(numbers(*shape)), jnp.asarray(numbers(*other, seed=4))
    assert x.dtype == dy.dtype == jnp.bfloat16
    want = np.tensordot(np.asarray(x, np.float64), np.asarray(dy, np.float64), dims)
    for gemm in (dj.gemm, jax.jit(dj.gemm, static_argnums=(2, 3, 4))):
        found = gemm(x, dy, dims, None, jnp.float32)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3", "fp8_1x128_e4m3"])
def test_no_rows(fmt):
    x, w = dither.quantize(jnp.ones((0, 64)), fmt), dither.quantize(jnp.ones((64, 96)), fmt, "colwise")
    for gemm in (dj.gemm, jax.jit(dj.gemm, static_argnums=2)):
        assert gemm(x, w, ((1,), (0,))).shape == (0, 96)
    if fmt in ("mxfp8_e4m3", "nvfp4"):
        block = 32 if fmt == "mxfp8_e4m3" else 16
        assert [t.shape for t in dj.to_jax_scaled_matmul(x)] == [(1, 0, 64), (1, 0, 64 // block)]


def test_transforms_cancel():
    x, g = numbers(64, 32, dtype=np.float32), numbers(64, 48, dtype=np.float32, seed=4)
    transform = dither.RandomHadamard(16, 0xD7E8)
    of = [both(t, "fp8_128x128_e4m3", transform=transform).colwise for t in (x, g)]
    found = np.asarray(dj.gemm(*of, contracting_dims=((0,), (0,))))
    np.testing.assert_allclose(found, x.T @ g, atol=0.05 * np.abs(x.T @ g).max())
    plain = both(g, "fp8_128x128_e4m3").colwise
    with pytest.raises(
        ValueError, match=r"lhs has the transform Transform\(size=16.*\) and rhs None, expected the same"
    ):
        dj.gemm(of[0], plain, contracting_dims=((0,), (0,)))
    with pytest.raises(ValueError, match="expected the same"):
        dj.gemm(of[0], jnp.asarray(g), contracting_dims=((0,), (0,)))


def test_to_jax_scaled_matmul():
    """Codes times their scales, as `jax.nn.scaled_matmul` says it, times the scales of tensors, are the values."""
    x = numbers(48, 128)
    for fmt in ("mxfp8_e4m3", "mxfp4", "nvfp4", SQUARE):
        q = both(x, fmt, scale_layout="128x4")
        for one in (q.rowwise, q.colwise):
            data, scales = dj.to_jax_scaled_matmul(one)
            rows, along = (128, 48) if one.is_colwise else (48, 128)
            block = one.format.block_cols
            assert data.shape == (1, rows, along) and scales.shape == (1, rows, -(-along // block))
            spread = jnp.repeat(scales.astype(jnp.float32), block, -1)[..., :along]
            found = data.astype(jnp.float32) * spread * dj.tensor_scale_of(one)
            want = np.asarray(dither.dequantize(one, dither.float32))
            np.testing.assert_allclose(found[0], want.T if one.is_colwise else want, rtol=1e-6)
    assert data.dtype == jnp.float4_e2m1fn
    with pytest.raises(ValueError, match="found fp8_tensor_e4m3, expected FP8 with E8M0 scales"):
        dj.to_jax_scaled_matmul(dither.quantize(jnp.asarray(x), "fp8_tensor_e4m3"))


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3", "fp8_tensor_e4m3"])
def test_products_of_codes_on_cuda(fmt):
    x, w = both(numbers(32, 64), fmt), both(numbers(64, 48, seed=4), fmt)
    exported = jax.export.export(jax.jit(dj.gemm), platforms=["cuda"], disabled_checks=NO_CHECKS)
    text = exported(x.rowwise, w.colwise).mlir_module()
    if fmt == "fp8_tensor_e4m3":
        assert "tensor<32x64xf8E4M3FN>, tensor<48x64xf8E4M3FN>) -> tensor<32x48xf32>" in text
        return
    assert text.count("custom_call @__op$block_scaled_dot") == 1
    # What instructions do not divide is a product of values.
    ragged = both(numbers(32, 72), fmt).rowwise, both(numbers(72, 48), fmt).colwise
    assert "block_scaled_dot" not in exported(*ragged).mlir_module()


def test_products_of_fp8_codes_have_the_dimensions_of_tensors():
    """The form of CUDA on the CPU, of codes that are stored transposed."""
    x, w = (
        both(numbers(2, 3, 64), "fp8_tensor_e4m3"),
        both(numbers(64, 4, 16, seed=4), "fp8_tensor_e4m3", flatten_axis=1),
    )
    for left in (x.rowwise, dither.quantize(jnp.asarray(numbers(2, 3, 64)), "fp8_tensor_e4m3", "colwise")):
        for right in (w.rowwise, w.colwise):
            found = _fp8_product(left, right, ((2,), (0,)))
            want = np.tensordot(np.asarray(values(left)), np.asarray(values(right)), 1)
            assert found.shape == want.shape == (2, 3, 4, 16)
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)


def test_grouped_products():
    sizes = jnp.asarray([32, 0, 64], jnp.int32)
    x, w, g = numbers(96, 64), numbers(3, 64, 32, seed=4), numbers(96, 32, seed=5)

    def grouped(x, layout, sizes=sizes):
        return dither.grouped_quantize(jnp.asarray(x), "mxfp8_e4m3", layout, group_sizes=sizes)

    of_w = jnp.asarray([64, 64, 64], jnp.int32)
    qx, qw, qg = grouped(x, "both"), grouped(w.reshape(-1, 32), "both", of_w), grouped(g, "both")
    parts = [[np.asarray(part.dequantize(dither.float32)) for part in t.split()] for t in (qx.rowwise, qw.colwise)]
    found = dj.grouped_gemm(qx.rowwise, qw.colwise, sizes, preferred_element_type=jnp.float32)
    want = np.concatenate([a @ b for a, b in zip(*parts, strict=True)])
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)
    back = dj.grouped_gemm(qg.rowwise, qw.rowwise, sizes, ((1,), (2,)), jnp.float32)
    parts = [[np.asarray(part.dequantize(dither.float32)) for part in t.split()] for t in (qg.rowwise, qw.rowwise)]
    np.testing.assert_allclose(
        back, np.concatenate([a @ b.T for a, b in zip(*parts, strict=True)]), rtol=1e-5, atol=1e-4
    )
    weights = dj.grouped_gemm(qx.colwise, qg.colwise, sizes, ((0,), (0,)), jnp.float32)
    parts = [[np.asarray(part.dequantize(dither.float32)) for part in t.split()] for t in (qx.colwise, qg.colwise)]
    np.testing.assert_allclose(weights, np.stack([a.T @ b for a, b in zip(*parts, strict=True)]), rtol=1e-5, atol=1e-4)
    with pytest.raises(ValueError, match="lhs is quantized along columns, expected along rows, which are summed"):
        dj.grouped_gemm(qx.colwise, qw.colwise, sizes)
    with pytest.raises(TypeError, match="argument 'lhs' has both directions, expected one"):
        dj.grouped_gemm(qx, qw.colwise, sizes)
    with pytest.raises(ValueError, match=r"contracting_dims is \(\(0,\), \(1,\)\), expected"):
        dj.grouped_gemm(qx.rowwise, qw.colwise, sizes, ((0,), (1,)))


def test_grouped_products_of_fp8_codes():
    """The form of CUDA on the CPU, and what is lowered for CUDA: ragged_dot of codes."""
    sizes = jnp.asarray([40, 0, 56], jnp.int32)
    x, w, g = numbers(96, 64), numbers(3, 64, 32, seed=4), numbers(96, 32, seed=5)
    w[1] *= 100

    def grouped(x, groups):
        return dither.grouped_quantize(jnp.asarray(x), "fp8_tensor_e4m3", "both", group_sizes=groups)

    qx, qw, qg = grouped(x, sizes), grouped(w.reshape(-1, 32), jnp.full(3, 64, jnp.int32)), grouped(g, sizes)
    for lhs, rhs, dims in (
        (qx.rowwise, qw.colwise, ((1,), (1,))),
        (qx.rowwise, qw.rowwise, ((1,), (1,))),
        (qg.rowwise, qw.rowwise, ((1,), (2,))),
        (qg.rowwise, qw.colwise, ((1,), (2,))),
        (qx.rowwise, qg.rowwise, ((0,), (0,))),
    ):
        found = _product_of_codes(lhs, rhs, dims, 3)(lhs, rhs, sizes)
        want = dj.grouped_gemm(lhs, rhs, sizes, dims, jnp.float32)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)
        exported = jax.export.export(
            jax.jit(lambda *given, dims=dims: dj.grouped_gemm(*given, dims)), platforms=["cuda"]
        )
        text = exported(lhs, rhs, sizes).mlir_module()
        # Codes go in, whatever XLA makes of them where a device has no such product.
        assert "chlo.ragged_dot" in text and "f8E4M3FN" in text and "dither_program" not in text
    # Of codes that are transposed group by group there is no array: values are multiplied.
    assert _product_of_codes(qx.colwise, qg.colwise, ((0,), (0,)), 3) is None
    assert _product_of_codes(grouped(numbers(96, 40), sizes).rowwise, qw.colwise, ((1,), (1,)), 3) is None


def test_mistakes():
    x, w = both(numbers(32, 64), "mxfp8_e4m3"), both(numbers(64, 48), "mxfp8_e4m3")

    def refused(kind, message, *args, **kwargs):
        with pytest.raises(kind, match=message):
            jax.eval_shape(lambda: dj.gemm(*args, **kwargs))

    refused(
        ValueError,
        r"rhs is quantized along rows, so blocks run along dimensions \(1,\) of \(64, 48\)",
        x.rowwise,
        w.rowwise,
    )
    refused(ValueError, r"contracting_dims are \(64,\) long of lhs and \(32,\) of rhs", x.rowwise, x.colwise)
    refused(
        ValueError,
        r"contracting_dims has 2 for lhs of shape \(32, 64\), expected -2 to 1",
        x.rowwise,
        w.colwise,
        ((2,), (0,)),
    )
    refused(ValueError, r"argument 'bias' has shape \(3,\)", x.rowwise, w.colwise, bias=jnp.ones(3))
    refused(TypeError, "argument 'lhs' is ScaledTensor2x, expected an array of JAX", x, w.colwise)
    e5m2 = [dither.quantize(jnp.ones((32, 32)), "mxfp8_e5m2", way) for way in ("rowwise", "colwise")]
    refused(ValueError, "lhs and rhs are float8_e5m2, expected float8_e4m3 for one of them", *e5m2)
