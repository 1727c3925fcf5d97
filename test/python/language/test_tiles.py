"""Shapes, reductions, block scaling, casts, norms."""

import dither
import dither.language as dl
import pytest
from dither import ScalarType, TensorType

F32 = TensorType(dl.float32, (8, 64))
BF16 = TensorType(dl.bfloat16, (8, 64))
I32 = TensorType(dl.int32, (64,))
ROW = TensorType(dl.float32, (64,))
CELL = TensorType(dl.float32, ())
FP4 = TensorType(dl.float4_e2m1, (None, 64))
FLOAT = ScalarType(dl.float32)


def transposed(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<4x8xf32>
    %0 = quant.transpose %t : tensor<4x8xf32> -> tensor<8x4xf32>
    quant.store %0, %x[%c0, %c0] : tensor<8x4xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (4, 8))
    dl.store(x, (0, 0), t.T)


def reshaped(x, y):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0] : memref<64xf32> -> tensor<64xf32>
    %0 = quant.reshape %t : tensor<64xf32> -> tensor<1x64xf32>
    quant.store %0, %y[%c0, %c0] : tensor<1x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    %1 = quant.reshape %t : tensor<64xf32> -> tensor<1x64xf32>
    quant.store %1, %y[%c0, %c0] : tensor<1x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    %2 = quant.load %y[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<8x1xf32>
    %3 = quant.reshape %2 : tensor<8x1xf32> -> tensor<8xf32>
    quant.store %3, %x[%c0] : tensor<8xf32>, memref<64xf32>
    """
    t = dl.load(x, (0,), (64,))
    dl.store(y, (0, 0), dl.reshape(t, (1, 64)))
    dl.store(y, (0, 0), t[None, :])
    dl.store(x, 0, dl.reshape(dl.load(y, (0, 0), (8, 1)), 8))


def broadcast(x, h, s):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<1x64xf32>
    %1 = quant.broadcast %0 : tensor<1x64xf32> -> tensor<8x64xf32>
    quant.store %1, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    %2 = quant.load %h[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x1xbf16>
    %3 = arith.extf %2 : tensor<8x1xbf16> to tensor<8x1xf32>
    %4 = quant.broadcast %3 : tensor<8x1xf32> -> tensor<8x64xf32>
    %5 = arith.truncf %4 : tensor<8x64xf32> to tensor<8x64xbf16>
    quant.store %5, %h[%c0, %c0] : tensor<8x64xbf16>, memref<8x64xbf16, strided<[?, 1]>>
    %6 = quant.broadcast %s : f32 -> tensor<8x64xf32>
    quant.store %6, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    %7 = quant.load %x[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<8x64xf32>
    quant.store %7, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), dl.broadcast_to(dl.load(x, (0, 0), (1, 64)), (8, 64)))
    dl.store(h, (0, 0), dl.broadcast_to(dl.load(h, (0, 0), (8, 1)), (8, 64)))
    dl.store(x, (0, 0), dl.broadcast_to(s, (8, 64)))
    dl.store(x, (0, 0), dl.broadcast_to(dl.load(x, (0, 0), (8, 64)), (8, 64)))


def made_of_numbers(x, y, s):
    """
    %0 = quant.iota dim 0 : tensor<64xi32>
    %c0 = arith.constant 0 : index
    quant.store %0, %y[%c0] : tensor<64xi32>, memref<64xi32>
    %cst = arith.constant dense<3> : tensor<64xi32>
    quant.store %cst, %y[%c0] : tensor<64xi32>, memref<64xi32>
    %1 = quant.broadcast %s : f32 -> tensor<8x64xf32>
    quant.store %1, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    %cst_0 = arith.constant dense<9.99999974E-6> : tensor<8x64xf32>
    quant.store %cst_0, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    dl.store(y, 0, dl.arange(64))
    dl.store(y, 0, dl.full(64, 3, dl.int32))
    dl.store(x, (0, 0), dl.full((8, 64), s))
    dl.store(x, (0, 0), dl.full((8, 64), 1e-5))


def reductions(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<8x64xf32>
    %0 = quant.reduce sum %t axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
    %1 = quant.reduce max %t axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
    %a = arith.addf %0, %1 : tensor<8x1xf32>
    %2 = quant.reduce min %a axis 0 : tensor<8x1xf32> -> tensor<1x1xf32>
    %3 = quant.reduce amax %t axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
    %4 = quant.broadcast %2 : tensor<1x1xf32> -> tensor<1x64xf32>
    %b = arith.mulf %4, %3 : tensor<1x64xf32>
    quant.store %b, %x[%c0, %c0] : tensor<1x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 64))
    a = dl.sum(t, 1) + dl.max(t, axis=-1)
    b = dl.min(a, 0) * dl.amax(t, -2)
    dl.store(x, (0, 0), b)


def reduction_widens(x, y):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %y[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x64xbf16>
    %1 = arith.extf %0 : tensor<8x64xbf16> to tensor<8x64xf32>
    %2 = quant.reduce amax %1 axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
    quant.store %2, %x[%c0, %c0] : tensor<8x1xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), dl.amax(dl.load(y, (0, 0), (8, 64)), 1))


def reduction_of_vector(x):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0] : memref<64xf32> -> tensor<64xf32>
    %1 = quant.reduce sum %0 axis 0 : tensor<64xf32> -> tensor<1xf32>
    quant.store %1, %x[%c0] : tensor<1xf32>, memref<64xf32>
    """
    dl.store(x, 0, dl.sum(dl.load(x, 0, 64), 0))


def attributes(x, y):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x64xbf16>
    %t_0 = arith.extf %t : tensor<8x64xbf16> to tensor<8x64xf32>
    %cst = arith.constant dense<7.200000e+01> : tensor<8x64xf32>
    %0 = arith.mulf %t_0, %cst : tensor<8x64xf32>
    quant.store %0, %y[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 64))
    rows, columns = t.shape
    if t.dtype == dl.bfloat16 and x.dtype == t.dtype and t.ndim == x.ndim == 2 and len(t) == 8:
        t = t.to(y.dtype)
    dl.store(y, (0, 0), t * (rows + columns))


def nvfp4(x, q, s, g):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x64xbf16>
    %amax = quant.load %g[] : memref<f32> -> tensor<f32>
    %scale = quant.block_scale %t, %amax axis 1 format <nvfp4> : tensor<8x64xbf16>, tensor<f32> -> tensor<8x4xf8E4M3FN>
    %codes = quant.cast_fp4 %t, %scale, %amax axis 1 format <nvfp4> : tensor<8x64xbf16>, tensor<8x4xf8E4M3FN>, tensor<f32> -> tensor<8x64xf4E2M1FN>
    quant.store %codes, %q[%c0, %c0] : tensor<8x64xf4E2M1FN>, memref<?x64xf4E2M1FN, strided<[?, 1]>>
    %0 = quant.dequantize %codes, %scale, %amax axis 1 format <nvfp4> : tensor<8x64xf4E2M1FN>, tensor<8x4xf8E4M3FN>, tensor<f32> -> tensor<8x64xf32>
    %1 = arith.truncf %0 : tensor<8x64xf32> to tensor<8x64xbf16>
    quant.store %1, %x[%c0, %c0] : tensor<8x64xbf16>, memref<8x64xbf16, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 64))
    amax = dl.load(g)
    scale = dl.block_scale(t, dither.NVFP4, amax=amax)
    codes = dl.cast(t, scale, "nvfp4", amax=amax)
    dl.store(q, (0, 0), codes)
    dl.store(x, (0, 0), dl.dequantize(codes, scale, dither.NVFP4, 1, amax).to(dl.bfloat16))


def amax_forms(x, s, y):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x64xbf16>
    %cst = arith.constant dense<3.000000e+00> : tensor<f32>
    %0 = quant.block_scale %t, %cst axis 1 format <nvfp4> : tensor<8x64xbf16>, tensor<f32> -> tensor<8x4xf8E4M3FN>
    %1 = quant.broadcast %s : f32 -> tensor<f32>
    %2 = quant.block_scale %t, %1 axis 1 format <nvfp4> : tensor<8x64xbf16>, tensor<f32> -> tensor<8x4xf8E4M3FN>
    %3 = quant.load %y[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<1x1xf32>
    %4 = quant.reshape %3 : tensor<1x1xf32> -> tensor<f32>
    %5 = quant.block_scale %t, %4 axis 1 format <nvfp4> : tensor<8x64xbf16>, tensor<f32> -> tensor<8x4xf8E4M3FN>
    """
    t = dl.load(x, (0, 0), (8, 64))
    dl.block_scale(t, "nvfp4", amax=3.0)
    dl.block_scale(t, "nvfp4", amax=s)
    dl.block_scale(t, "nvfp4", amax=dl.load(y, (0, 0), (1, 1)))


def columnwise(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x64xf32, strided<[?, 1]>> -> tensor<64x8xf32>
    %scale = quant.block_scale %t axis 0 format <mxfp8_e5m2, scale_rounding = even> : tensor<64x8xf32> -> tensor<2x8xf8E8M0FNU>
    %0 = quant.cast_fp8 %t, %scale axis 0 format <mxfp8_e5m2, scale_rounding = even> : tensor<64x8xf32>, tensor<2x8xf8E8M0FNU> -> tensor<64x8xf8E5M2>
    %1 = quant.dequantize %0, %scale axis 0 format <mxfp8_e5m2, scale_rounding = even> : tensor<64x8xf8E5M2>, tensor<2x8xf8E8M0FNU> -> tensor<64x8xf32>
    quant.store %1, %x[%c0, %c0] : tensor<64x8xf32>, memref<8x64xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (64, 8))
    fmt = dither.MXFP8_E5M2.with_(scale_rounding="even")
    scale = dl.block_scale(t, fmt, axis=0)
    dl.store(x, (0, 0), dl.dequantize(dl.cast(t, scale, fmt, axis=0), scale, fmt, axis=0))


def norm(x, g):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0, %c0] : memref<8x64xbf16, strided<[?, 1]>> -> tensor<8x64xbf16>
    %1 = quant.load %g[%c0] : memref<64xf32> -> tensor<64xf32>
    %result, %rsigma = quant.rms_norm %0, %1 {eps = 9.99999997E-7 : f32} : tensor<8x64xbf16>, tensor<64xf32> -> tensor<8x64xf32>, tensor<8x1xf32>
    %2 = quant.load %g[%c0] : memref<64xf32> -> tensor<64xf32>
    %result_0, %rsigma_1 = quant.rms_norm %result, %2 {eps = 1.000000e+00 : f32, zero_centered_gamma} : tensor<8x64xf32>, tensor<64xf32> -> tensor<8x64xf32>, tensor<8x1xf32>
    %3 = quant.broadcast %rsigma : tensor<8x1xf32> -> tensor<8x64xf32>
    %4 = arith.mulf %result_0, %3 : tensor<8x64xf32>
    %5 = quant.broadcast %rsigma_1 : tensor<8x1xf32> -> tensor<8x64xf32>
    %6 = arith.addf %4, %5 : tensor<8x64xf32>
    %7 = arith.truncf %6 : tensor<8x64xf32> to tensor<8x64xbf16>
    quant.store %7, %x[%c0, %c0] : tensor<8x64xbf16>, memref<8x64xbf16, strided<[?, 1]>>
    """
    y, rsigma = dl.rms_norm(dl.load(x, (0, 0), (8, 64)), dl.load(g, 0, 64), eps=1e-6)
    z = dl.rms_norm(y, dl.load(g, 0, 64), 1, zero_centered_gamma=True)
    dl.store(x, (0, 0), (z[0] * rsigma + z[1]).to(dl.bfloat16))


CASES = [
    (transposed, {"x": F32}),
    (reshaped, {"x": ROW, "y": F32}),
    (broadcast, {"x": F32, "h": BF16, "s": FLOAT}),
    (made_of_numbers, {"x": F32, "y": I32, "s": FLOAT}),
    (reductions, {"x": F32}),
    (reduction_widens, {"x": F32, "y": BF16}),
    (reduction_of_vector, {"x": ROW}),
    (attributes, {"x": BF16, "y": F32}),
    (nvfp4, {"x": BF16, "q": FP4, "s": FLOAT, "g": CELL}),
    (amax_forms, {"x": BF16, "s": FLOAT, "y": F32}),
    (columnwise, {"x": F32}),
    (norm, {"x": BF16, "g": ROW}),
]


@pytest.mark.parametrize(("kernel", "args"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_ir(check, kernel, args):
    check(kernel, args)
