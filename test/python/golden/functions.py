"""Kernels with one function of the language each."""

import dither
import dither.language as dl

BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "fma", "where", "less", "equal")
INTEGER = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "maximum", "minimum", "less")
REDUCTIONS = ("sum", "max", "min", "amax")


def negative(t):
    return -t


def fifth_power(t):
    return t**5


UNARY = {
    "neg": negative,
    "abs": dl.abs,
    "exp": dl.exp,
    "exp2": dl.exp2,
    "log": dl.log,
    "log2": dl.log2,
    "tanh": dl.tanh,
    "sigmoid": dl.sigmoid,
    "erf": dl.erf,
    "sin": dl.sin,
    "cos": dl.cos,
    "sqrt": dl.sqrt,
    "rsqrt": dl.rsqrt,
    "floor": dl.floor,
    "ceil": dl.ceil,
    "rint": dl.rint,
    "power": fifth_power,
}


@dither.jit
def unary(x, y, F: dl.constexpr, SHAPE: dl.constexpr):
    dl.store(y, (0, 0), F(dl.load(x, (0, 0), SHAPE)).to(dl.float32))


@dither.jit
def binary(a, b, y, F: dl.constexpr, SHAPE: dl.constexpr):
    s = dl.load(a, (0, 0), SHAPE)
    t = dl.load(b, (0, 0), SHAPE)
    if F == "add":
        r = s + t
    elif F == "sub":
        r = s - t
    elif F == "mul":
        r = s * t
    elif F == "div":
        r = s / t
    elif F == "floordiv":
        r = s // t
    elif F == "mod":
        r = s % t
    elif F == "and":
        r = s & t
    elif F == "or":
        r = s | t
    elif F == "xor":
        r = s ^ t
    elif F == "maximum":
        r = dl.maximum(s, t)
    elif F == "minimum":
        r = dl.minimum(s, t)
    elif F == "fma":
        r = dl.fma(s, t, s)
    elif F == "where":
        r = dl.where(s > t, s, t)
    elif F == "less":
        r = s < t
    else:
        r = s == t
    dl.store(y, (0, 0), r.to(y.dtype))


@dither.jit
def convert(x, y, TO: dl.constexpr, ROUNDING: dl.constexpr, SHAPE: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), SHAPE).to(TO, rounding=ROUNDING))


@dither.jit
def reduction(x, y, F: dl.constexpr, AXIS: dl.constexpr, SHAPE: dl.constexpr):
    t = dl.load(x, (0, 0), SHAPE)
    if F == "sum":
        r = dl.sum(t, AXIS)
    elif F == "max":
        r = dl.max(t, AXIS)
    elif F == "min":
        r = dl.min(t, AXIS)
    else:
        r = dl.amax(t, AXIS)
    dl.store(y, (0, 0), r.to(dl.float32))


@dither.jit
def blocks(x, q, s, y, amax, FMT: dl.constexpr, AXIS: dl.constexpr, SHAPE: dl.constexpr):
    t = dl.load(x, (0, 0), SHAPE)
    g = dl.load(amax) if amax is not None else None
    scale = dl.block_scale(t, FMT, axis=AXIS, amax=g)
    codes = dl.cast(t, scale, FMT, axis=AXIS, amax=g)
    dl.store(q, (0, 0), codes)
    dl.store(s, (0, 0), scale)
    dl.store(y, (0, 0), dl.dequantize(codes, scale, FMT, axis=AXIS, amax=g))


@dither.jit
def norm(x, gamma, y, rsigma, ZERO_CENTERED: dl.constexpr, SHAPE: dl.constexpr):
    t = dl.load(x, (0, 0), SHAPE)
    w = dl.load(gamma, (0,), (SHAPE[1],))
    r, rs = dl.rms_norm(t, w, 1e-5, zero_centered_gamma=ZERO_CENTERED)
    dl.store(y, (0, 0), r)
    dl.store(rsigma, (0, 0), rs)


@dither.jit
def most(x, y, SHAPE: dl.constexpr):
    i = dl.program_id(0)
    t = dl.abs(dl.load(x, (i * SHAPE[0], 0), SHAPE))
    dl.atomic_max(y, (0, 0), dl.amax(t, axis=0))


@dither.jit
def moved(x, y, z, SHAPE: dl.constexpr):
    t = dl.load(x, (0, 0), SHAPE)
    n = dl.arange(SHAPE[1])
    dl.store(y, (0, 0), (t + n[None, :].to(dl.float32)).T)
    dl.store(z, (0, 0), dl.broadcast_to(dl.reshape(dl.max(t, 1), (1, SHAPE[0])), (2, SHAPE[0])))
