"""Products of quantized matrices against float64, and as torch's scaled products take them."""

import dither
import pytest
import torch
from dither.recipe import MMParams
from dither.torch.matmul import GEMMType, custom_gemm, multiply, qgemm
from dither.torch.quantizers import IdentityQuantizer, MXFP8Quantizer, NVFP4Quantizer
from dither.torch.scaled_mm import as_torch_scaled_mm_args, scaled_mm
from dither.torch.storage import QuantizedStorage
from dither.torch.tensor import QuantizedTensor
from torch.nn import functional

M, N, K = 96, 64, 160
KINDS = {"fprop": ("x", "w"), "dgrad": ("dy", "w"), "wgrad": ("dy", "x")}


def tensors(dtype=torch.bfloat16):
    g = torch.Generator().manual_seed(5)
    shapes = {"x": (M, K), "w": (N, K), "dy": (M, N)}
    return {name: torch.randn(*shape, generator=g).to(dtype) for name, shape in shapes.items()}


def exact(kind, a, b):
    """The product in float64, and a bound on how far one in float32 is from it, whatever its order."""
    a, b = a.double(), b.double()
    a, b = (a.t() if kind == "wgrad" else a), (b.t() if kind == "fprop" else b)
    return a @ b, (a.abs() @ b.abs()) * (a.shape[1] + 2) * 2**-24


def near(got, kind, a, b, scale=1.0, plus=0.0):
    expected, bound = exact(kind, a, b)
    assert ((got.double() - (expected * scale + plus)).abs() <= bound * abs(scale) + abs(plus) * 2**-23).all()


def values(s, way, undo=False):
    part = getattr(s, way)
    return part.dequantize(dither.float32, undo_transform=undo and part.transform is not None)


WAYS = {"fprop": ("rowwise", "rowwise"), "dgrad": ("rowwise", "colwise"), "wgrad": ("colwise", "colwise")}
QUANTIZERS = [MXFP8Quantizer("e4m3"), NVFP4Quantizer(), NVFP4Quantizer(with_rht=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=["mxfp8", "nvfp4", "rht"])
def test_products(kind, quantizer):
    t = tensors()
    a, b = (quantizer(t[name]) for name in KINDS[kind])
    # What was transformed in one operand alone is transformed back: of dgrad, in w.
    x, w = values(a, WAYS[kind][0]), values(b, WAYS[kind][1], undo=kind == "dgrad")
    g = GEMMType(kind)
    got = multiply(g, a, b, out_dtype=torch.float32)
    near(got, kind, x, w)
    assert torch.equal(qgemm(a, b, MMParams(), torch.float32, gemm_type=g), got)
    assert torch.equal(multiply(g, a, b), got.bfloat16())
    # A bias, then what is there, are added in float32; then it is rounded.
    bias, there = torch.randn(got.shape[1]), torch.randn(got.shape).bfloat16()
    summed = (got + bias) + there.float()
    out = there.clone()
    assert multiply(g, a, b, bias=bias, out=out, accumulate=True) is out and torch.equal(out, summed.bfloat16())
    assert torch.equal(multiply(g, a, b, bias=bias, out=out), (got + bias).bfloat16())


def test_transforms_cancel():
    """Gradients of weights are the same to the rounding of codes, and exactly where nothing is rounded."""
    t = tensors(torch.float32)
    a, b = (NVFP4Quantizer(with_rht=True)(t[name]) for name in ("dy", "x"))
    cancelled = multiply(GEMMType.WGRAD, a, b, out_dtype=torch.float32)
    undone = values(a, "colwise", undo=True).t() @ values(b, "colwise", undo=True)
    assert (cancelled - undone).abs().max() < 1e-4 * undone.abs().max()


def test_high_precision_and_ranks():
    t = tensors()
    x = t["x"].reshape(4, 24, K)
    w = MXFP8Quantizer("e4m3")(t["w"])
    got = multiply(GEMMType.FPROP, x, w, out_dtype=torch.float32)
    assert got.shape == (4, 24, N)
    near(got.reshape(M, N), "fprop", t["x"], values(w, "rowwise"))
    same = multiply(GEMMType.FPROP, IdentityQuantizer()(x), w, out_dtype=torch.float32)
    assert torch.equal(same, got)
    dw = multiply(GEMMType.WGRAD, t["dy"].reshape(4, 24, N), MXFP8Quantizer("e4m3")(x), out_dtype=torch.float32)
    assert dw.shape == (N, K)


@pytest.mark.parametrize("kind", KINDS)
def test_quantized_tensors(kind):
    """Are what they hold: in the direction that a product sums over."""
    g, t = GEMMType(kind), tensors()
    a, b = (QuantizedTensor.of(t[name], "nvfp4", "both") for name in KINDS[kind])
    parts = [QuantizedStorage.of(x.quantized) for x in (a, b)]
    expected = multiply(g, *parts)
    for left, right in ((a, b), (parts[0], b), (a, parts[1])):
        assert torch.equal(multiply(g, left, right), expected) and torch.equal(
            qgemm(left, right, gemm_type=g), expected
        )
    layout = {"fprop": "TN", "dgrad": "NN", "wgrad": "NT"}[kind]
    assert torch.equal(custom_gemm(b, a, layout=layout)[0], expected)
    other = QuantizedTensor.of(t[KINDS[kind][1]], "nvfp4", "rowwise" if kind != "fprop" else "colwise")
    with pytest.raises(ValueError, match=f"argument 'b' is quantized {'row' if kind != 'fprop' else 'column'}wise"):
        multiply(g, a, other)
    w = torch.nn.Parameter(QuantizedTensor.of(t["w"], "nvfp4", "both"))
    multiply("fprop", t["x"], w).sum().backward()
    assert w.grad.shape == w.shape
    # Groups have no direction of a whole tensor: their values are taken.
    groups = QuantizedTensor.of(t["x"], "mxfp8_e4m3", group_sizes=[M // 2] * 2)
    assert torch.equal(multiply("fprop", groups, t["w"]), multiply("fprop", groups.dequantize(), t["w"]))


def test_no_rows():
    x, w = MXFP8Quantizer("e4m3")(torch.ones(0, K)), MXFP8Quantizer("e4m3")(torch.ones(N, K))
    assert multiply(GEMMType.FPROP, x, w, bias=torch.ones(N)).shape == (0, N)
    dy = MXFP8Quantizer("e4m3")(torch.ones(0, N))
    assert torch.equal(multiply(GEMMType.WGRAD, dy, x), torch.zeros(N, K))


def test_products_ask_for_full_precision():
    t = tensors(torch.float32)
    expected = multiply(GEMMType.FPROP, t["x"], t["w"])
    torch.set_float32_matmul_precision("medium")
    try:
        assert torch.equal(multiply(GEMMType.FPROP, t["x"], t["w"]), expected)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(multiply(GEMMType.FPROP, t["x"], t["w"]), expected)


def test_codes_and_scales():
    """As Transformer Engine hands them over: codes (M, K) and (N, K) of FP8, or those of storages."""
    t = tensors()
    for fmt in ("fp8_tensor_e4m3", "fp8_row_e4m3"):
        a, b = (dither.quantize(t[name], fmt) for name in ("x", "w"))
        got = qgemm(a.data, b.data, None, torch.float32, a.scale_inv, b.scale_inv, bias=torch.ones(N))
        near(got, "fprop", a.dequantize(dither.float32), b.dequantize(dither.float32), plus=1.0)
    q = NVFP4Quantizer()
    a, b = q(t["dy"]), q(t["x"])
    got = qgemm(a.data_t, b.data_t, None, torch.float32, a.scale_t, b.scale_t, None, None, False, GEMMType.WGRAD, a, b)
    assert torch.equal(got, multiply(GEMMType.WGRAD, a, b, out_dtype=torch.float32))
    hook, *rest = custom_gemm(b, a, None, torch.float32, layout="NT", grad=True)
    assert torch.equal(hook, got) and rest == [None, None, None]
    again = custom_gemm(b, a, None, torch.float32, layout="NT", out=got.clone(), accumulate=True)[0]
    assert torch.equal(again, got + got)


ADAPTED = [
    ("fp8_tensor_e4m3", "fp8_tensor_e5m2", "linear", "linear"),
    ("fp8_row_e4m3", "fp8_row_e4m3", "linear", "linear"),
    ("fp8_1x128_e4m3", "fp8_1x128_e4m3", "column_major", "column_major"),
    ("fp8_1x128_e4m3", "fp8_128x128_e4m3", "column_major", "linear"),
    ("mxfp8_e4m3", "mxfp8_e5m2", "128x4", "128x4"),
    ("nvfp4", "nvfp4", "128x4", "128x4"),
    (dither.NVFP4.with_(tensor_scale=False), dither.NVFP4.with_(tensor_scale=False), "128x4", "128x4"),
]


def on_meta(args):
    return args._replace(mat=args.mat.to("meta"), scale=[scale.to("meta") for scale in args.scale])


@pytest.mark.parametrize(("left", "right", "order_a", "order_b"), ADAPTED, ids=lambda x: getattr(x, "name", x))
def test_what_torch_takes(left, right, order_a, order_b):
    """torch's own checks of matrices, scales, their shapes, strides, types and orders, which it makes on `meta`."""
    x, w = torch.randn(256, 384).bfloat16(), torch.randn(128, 384).bfloat16()
    a = as_torch_scaled_mm_args(dither.quantize(x, left, scale_layout=order_a), "a")
    b = as_torch_scaled_mm_args(dither.quantize(w, right, scale_layout=order_b), "b")
    a, b = on_meta(a), on_meta(b)

    def product(a, b):
        args = (a.mat, b.mat, a.scale, a.recipe, b.scale, b.recipe, a.swizzle, b.swizzle)
        return functional.scaled_mm(*args, output_dtype=torch.bfloat16)

    assert product(a, b).shape == (256, 128)
    wrong = torch.empty(3, dtype=a.scale[0].dtype, device="meta")
    with pytest.raises((RuntimeError, ValueError)):
        product(a._replace(scale=[wrong, *a.scale[1:]]), b)


@pytest.mark.parametrize("fmt", ["fp8_tensor_e4m3", "fp8_row_e4m3"])
def test_torchs_product_on_the_cpu(fmt):
    t = tensors()
    a, b = (dither.quantize(t[name], fmt) for name in ("x", "w"))
    left, right = a.dequantize(dither.float32), b.dequantize(dither.float32)
    near(scaled_mm(a, b, out_dtype=torch.float32, native=True), "fprop", left, right)
    near(scaled_mm(a, b, out_dtype=torch.float32, alpha=0.5, native=True), "fprop", left, right, scale=0.5)
    # By default it is the one that is defined.
    parts = QuantizedStorage.of(a), QuantizedStorage.of(b)
    assert torch.equal(scaled_mm(a, b), multiply(GEMMType.FPROP, *parts))


def test_scaled_mm():
    t = tensors()
    a, b = (dither.quantize(t[name], "mxfp8_e4m3", layout="both", scale_layout="128x4") for name in ("x", "w"))
    left, right = a.dequantize(dither.float32), b.dequantize(dither.float32)
    bias = torch.randn(N)
    plain = scaled_mm(a, b, out_dtype=torch.float32)
    near(plain, "fprop", left, right)
    out = torch.ones(M, N)
    assert scaled_mm(a, b, bias=bias, alpha=2.0, out=out, accumulate=True) is out
    assert torch.equal(out, (plain * 2.0 + bias) + 1.0)
    # The gradient of a weight: both along columns.
    dy = dither.quantize(t["dy"], "mxfp8_e4m3", layout="colwise")
    got = scaled_mm(dy, a.colwise, out_dtype=torch.float32)
    near(got, "wgrad", dy.dequantize(dither.float32), a.colwise.dequantize(dither.float32))


def test_conversions_are_asked_for():
    t = tensors()
    linear = dither.quantize(t["x"], "mxfp8_e4m3", layout="both")
    swizzled = dither.quantize(t["x"], "mxfp8_e4m3", layout="both", scale_layout="128x4")
    with pytest.raises(ValueError, match="scales are in the order linear, expected scale_layout='128x4'"):
        as_torch_scaled_mm_args(linear.rowwise, "a")
    got = as_torch_scaled_mm_args(linear.rowwise, "a", convert=True)
    assert torch.equal(got.scale[0].view(torch.uint8), swizzled.rowwise.scale_inv.view(torch.uint8))
    with pytest.raises(ValueError, match="lie by rows, expected convert=True to transpose them"):
        as_torch_scaled_mm_args(swizzled.colwise, "a")
    got = as_torch_scaled_mm_args(linear.colwise, "a", convert=True)
    assert torch.equal(got.mat.view(torch.uint8), linear.colwise.data.view(torch.uint8).t())
    assert torch.equal(got.scale[0].view(torch.uint8), swizzled.colwise.scale_inv.view(torch.uint8))
    q = dither.quantize(t["x"], dither.NVFP4, scale_layout="128x4")
    assert as_torch_scaled_mm_args(q, "b").mat.dtype is torch.float4_e2m1fn_x2
    assert torch.equal(as_torch_scaled_mm_args(q, "b").scale[1], (q.amax * (1 / torch.tensor(2688.0))).reshape(1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q, t: multiply(GEMMType.WGRAD, q(t["dy"]), q(t["w"])), "WGRAD of (96, 64) and (64, 160) sums over"),
        (lambda q, t: multiply(GEMMType.DGRAD, q(t["dy"]), q.rows(t["w"])), "argument 'b' is quantized rowwise, expec"),
        (lambda q, t: multiply(GEMMType.FPROP, q(t["x"]), 3), "argument 'b' is int, expected a QuantizedStorage"),
        (lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], accumulate=True), "accumulate is True, expected 'out'"),
        (lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], bias=torch.ones(3)), "argument 'bias' has shape (3,)"),
        (lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], out=torch.ones(3)), "argument 'out' has shape (3,)"),
        (
            lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], out_dtype=torch.float32, out=torch.ones(M, N).half()),
            "argument 'out' has data type torch.float16, expected torch.float32",
        ),
        (lambda q, t: multiply("foo", t["x"], t["w"]), "kind is 'foo', expected FPROP, DGRAD or WGRAD"),
        (
            lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], out_dtype=torch.int32),
            "argument 'out_dtype' has data type torch.int32, expected float32, bfloat16 or float16",
        ),
        (
            lambda q, t: multiply(GEMMType.FPROP, t["x"], t["w"], out=torch.ones(M, N, dtype=torch.int32)),
            "argument 'out' has data type torch.int32",
        ),
        (
            lambda q, t: qgemm(q(t["x"]).data, q(t["w"]).data, None, torch.int8, torch.ones(1), torch.ones(1)),
            "argument 'out_dtype' has data type torch.int8",
        ),
        (lambda q, t: qgemm(q(t["x"]), q(t["w"]), gemm_type="prop"), "gemm_type is 'prop', expected FPROP"),
        (lambda q, t: qgemm(q(t["x"]).data, q(t["w"]).data), "argument 'qx' has codes without scales, expected sx"),
        (lambda q, t: qgemm(t["x"], t["w"]), "argument 'qx' has data type torch.bfloat16, expected FP8"),
        (lambda q, t: custom_gemm(t["w"], q(t["x"])), "argument 'A' is Tensor, expected a QuantizedStorage"),
        (lambda q, t: custom_gemm(q(t["w"]), q(t["x"]), layout="TT"), "layout is 'TT', expected TN, NN or NT"),
        (lambda q, t: custom_gemm(q(t["w"]), q(t["x"]), gelu=True), "gelu was asked for, expected none"),
        (lambda q, t: as_torch_scaled_mm_args(q(t["w"]).rowwise, "c"), "side is 'c', expected 'a' or 'b'"),
        (lambda q, t: as_torch_scaled_mm_args(dither.quantize(t["w"], "mxint8"), "a"), "torch has no product of"),
        (
            lambda q, t: as_torch_scaled_mm_args(dither.quantize(t["w"], "fp8_128x128_e4m3"), "a"),
            "blocks of 128 x 128 are for side 'b'",
        ),
    ],
)
def test_what_is_refused(call, message):
    class Both(MXFP8Quantizer):
        def rows(self, x):
            return MXFP8Quantizer("e4m3", columnwise=False)(x)

    with pytest.raises((TypeError, ValueError)) as error:
        call(Both("e4m3"), tensors())
    assert message in str(error.value)
