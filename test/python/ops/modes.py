"""Every scaling mode: formats and what may be asked of them besides, pairs of all choices, and a check of any case."""

import dataclasses
import itertools
import os

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
from dither.formats import FORMATS as NAMED
from ops import check, data
from ops.reference import check_part, hadamard, orders, tensor_scales
from simulated import TARGETS

F32 = np.float32
NVFP4, MXFP8 = dither.NVFP4, dither.MXFP8_E4M3
#: NVFP4 of one level.
ONE_LEVEL = NVFP4.with_(tensor_scale=False)
RULES = {
    "mae": NVFP4.with_(four_over_six="mae"),
    "mse": NVFP4.with_(four_over_six="mse"),
    "mae 256": NVFP4.with_(four_over_six="mae", largest_scale=256),
    "mse 256": NVFP4.with_(four_over_six="mse", largest_scale=256),
    "mae 16x16": NVFP4.with_(four_over_six="mae", largest_scale=256, block=(16, 16)),
    "mse 16x16": NVFP4.with_(four_over_six="mse", block=(16, 16)),
    "mae 4x8": NVFP4.with_(four_over_six="mae", block=(4, 8)),
    "mae one level": ONE_LEVEL.with_(four_over_six="mae"),
    "mae div6_div": NVFP4.with_(four_over_six="mae", order="div6_div"),
    "mse decode": NVFP4.with_(four_over_six="mse", tensor_scale_as="decode"),
    "mae mul_inv6 rows": NVFP4.with_(four_over_six="mae", order="mul_inv6", row_amax=True),
    "mul_inv6": NVFP4.with_(order="mul_inv6"),
    "div6_mul": NVFP4.with_(order="div6_mul"),
    "div6_div": NVFP4.with_(order="div6_div"),
    "256": NVFP4.with_(largest_scale=256),
    "encode": NVFP4.with_(tensor_scale_as="encode"),
    "encode div6_mul": NVFP4.with_(tensor_scale_as="encode", order="div6_mul"),
    "encode div6_div": NVFP4.with_(tensor_scale_as="encode", order="div6_div"),
    "decode": NVFP4.with_(tensor_scale_as="decode"),
    "decode div6_div": NVFP4.with_(tensor_scale_as="decode", order="div6_div"),
    "decode mul_inv6": NVFP4.with_(tensor_scale_as="decode", order="mul_inv6", largest_scale=256),
    "least": NVFP4.with_(least_scale=0.5),
    "least one level": ONE_LEVEL.with_(least_scale=0.25),
    "one level div6_mul": ONE_LEVEL.with_(order="div6_mul"),
    "one level div6_div": ONE_LEVEL.with_(order="div6_div"),
    "nan": NVFP4.with_(nan_scales=True),
    "nan div6_div 4x32": NVFP4.with_(nan_scales=True, order="div6_div", block=(4, 32)),
    "nan mae": NVFP4.with_(nan_scales=True, four_over_six="mae"),
    "nan mxfp8": MXFP8.with_(nan_scales=True),
    "nan mxfp8 32x32": MXFP8.with_(nan_scales=True, block=(32, 32)),
    "nan mxfp4": dither.MXFP4.with_(nan_scales=True),
    "nan fp8 blocks": dither.FP8_1X128_E4M3.with_(nan_scales=True),
    "nan fp8 blocks 128x128": dither.FP8_128X128_E4M3.with_(nan_scales=True, pow2_scales=False),
    "nan f32": dither.Format(element=dl.int8, scale=dl.float32, block=64, nan_scales=True),
    "inf": MXFP8.with_(inf_scale="FF"),
    "inf nan": dither.MXFP4.with_(scale_rounding="rceil", inf_scale="FF", nan_scales=True),
    "f32 div6_mul": dither.Format(element=dl.float8_e5m2, scale=dl.float32, block=32, order="div6_mul"),
    "f32 div6_div": dither.Format(element=dl.int8, scale=dl.float32, block=(2, 16), order="div6_div"),
    "f32 least": dither.Format(element=dl.float6_e3m2, scale=dl.float32, block=32, least_scale=1e-3),
}
#: Formats of blocks of several rows, and with an amax of each row.
SHAPES = {
    "nvfp4 16x16": NVFP4.with_(block=(16, 16)),
    "mxfp8 32x32": MXFP8.with_(block=(32, 32)),
    "nvfp4 rows": NVFP4.with_(row_amax=True),
    "fp8 1x128": dither.FP8_1X128_E5M2.with_(pow2_scales=False, epsilon=1e-12),
}
FORMATS = {**NAMED, **SHAPES, **RULES}
TRANSFORMS = {
    "none": None,
    "16": dither.RandomHadamard(),
    "32 both": dither.RandomHadamard(32, 0x12345678, rowwise=True),
    "64 rows": dither.RandomHadamard(64, 0x8000000080000001, rowwise=True, colwise=False),
    "128": dither.RandomHadamard(128, 0x12345678 << 70),
}
CPU = ("cpu",)
SEED = 0x123456789ABCDEF


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of quantize."""

    format: str
    layout: str
    scales: str
    dtype: str
    rounding: str
    transform: str
    repeat: bool
    device: str

    def __str__(self):
        return "-".join(map(str, dataclasses.astuple(self)))

    @property
    def exists(self):
        """Whether the format has the order of scales, and scales to repeat, and the layout a direction to transform."""
        fmt, spec = FORMATS[self.format], TRANSFORMS[self.transform]
        if spec is not None and not (
            (spec.rowwise and self.layout != "colwise") or (spec.colwise and self.layout != "rowwise")
        ):
            return False
        several = fmt.block_rows is not None and fmt.block_rows > 1
        return self.scales in orders(fmt) and (several or not self.repeat)


CHOICES = {
    "format": tuple(FORMATS),
    "layout": check.LAYOUTS,
    "scales": ("linear", "128x4", "8x4", "column_major", "packed"),
    "dtype": tuple(data.DTYPES),
    "rounding": ("nearest", "stochastic"),
    "transform": tuple(TRANSFORMS),
    "repeat": (False, True),
    "device": (*CPU, *TARGETS),
}


def product(choices):
    """All cases that there are."""
    return [case for case in (Case(*values) for values in itertools.product(*choices.values())) if case.exists]


def pairs(choices, apart=()):
    """Cases among which is every pair of two choices that a case can have, but of the two named `apart`; the same ones
    every time."""
    names = list(choices)
    places = [(i, j) for i, j in itertools.combinations(range(len(names)), 2) if {names[i], names[j]} != set(apart)]

    def pairs_of(values):
        return {(i, values[i], j, values[j]) for i, j in places}

    missing = set()
    rng = np.random.default_rng(0)
    for i, j in places:
        for a, b in itertools.product(choices[names[i]], choices[names[j]]):
            if any(Case(*v).exists for v in _with(choices, names, {i: a, j: b})):
                missing.add((i, a, j, b))
    cases = []
    while missing:
        # Of some cases that have the first pair that is missing, the one that has the most of the others.
        i, a, j, b = min(missing, key=str)
        best, most = None, -1
        for _ in range(60):
            values = [choices[name][rng.integers(len(choices[name]))] for name in names]
            values[i], values[j] = a, b
            if not Case(*values).exists:
                continue
            new = len(pairs_of(values) & missing)
            if new > most:
                best, most = values, new
        if best is None:
            best = next(v for v in _with(choices, names, {i: a, j: b}) if Case(*v).exists)
        cases.append(Case(*best))
        missing -= pairs_of(best)
    return cases


def _with(choices, names, fixed):
    """Values of cases with some that are fixed: of those that decide whether a case exists all, of others the first."""
    deciding = ("format", "layout", "scales", "transform", "repeat")
    each = [
        (fixed[i],) if i in fixed else choices[name] if name in deciding else choices[name][:1]
        for i, name in enumerate(names)
    ]
    return itertools.product(*each)


def cases():
    """What the tests run: every pair, or, with MATRIX_SHARE=i/n, every n-th case of the product from the i-th on.

    Pairs of a format and a device are left out: the support matrix has those of standard formats, and they are as many
    cases again. Of the product one case after the other has the next device.
    """
    share = os.environ.get("MATRIX_SHARE")
    if not share:
        return pairs(CHOICES, apart=("format", "device"))
    first, step = map(int, share.split("/"))
    devices = CHOICES["device"]
    every = enumerate(product({**CHOICES, "device": CPU}))
    # 2654435769 spreads neighbours, which differ in few choices, over the shares and devices.
    spread = sorted(every, key=lambda numbered: numbered[0] * 2654435769 % 2**32)
    chosen = [case for _, case in spread][first::step]
    return [dataclasses.replace(case, device=devices[i % len(devices)]) for i, case in enumerate(chosen)]


def stands_for(part, x, fmt):
    """What stands for the tensor scale, checked against what it is computed from."""
    if not fmt.tensor_scale:
        assert part.amax is None and part.tensor_scale is None
        return None
    if fmt.row_amax:
        g = oracle.amax(x, axis=0 if part.is_colwise else 1)[:, None]
        check.same_bits(part.amax, g.T if part.is_colwise else g)
        return g
    g = oracle.amax(x)
    check.same_bits(np.asarray(part.amax), g)
    if fmt.tensor_scale_as == "amax":
        assert part.tensor_scale is None
        return g
    encode, _, decode = tensor_scales(g, fmt.with_(tensor_scale_as="amax"), F32(6 * fmt.largest_scale))
    scale = encode if fmt.tensor_scale_as == "encode" else decode
    check.same_bits(np.asarray(part.tensor_scale), scale)
    return scale


def check_mode(x, fmt, layout, scales="linear", device="cpu", seed=None, transform=None, repeat=False):
    """Quantizes `x`, and compares all there is of the result with the reference."""
    random = {} if seed is None else {"rounding": "stochastic", "seed": seed}
    result = dither.quantize(x, fmt, layout, scales, device=device, transform=transform, repeat_scales=repeat, **random)
    wide = np.asarray(x).astype(F32)
    of_f32 = fmt.pow2_scales or isinstance(fmt.block, str) or np.asarray(x).dtype == F32
    most = np.finfo(F32).max if of_f32 else F32(ml_dtypes.finfo(x.dtype).max)
    for part in check.parts(result):
        of = wide
        if transform is not None and transform.of(part.is_colwise) is not None:
            axis = 0 if part.is_colwise else 1
            of = hadamard(wide, transform.size, transform.sign_mask, str(np.asarray(x).dtype), axis)
        check_part(part, of, fmt, scales, stands_for(part, of, fmt), device, most=most, seed=seed)
    return result


def check_case(case):
    """A case, on numbers of all sizes and, where they are not added up, infinities and NaN."""
    spec = TRANSFORMS[case.transform]
    shape = (70, 200) if spec is None else (spec.size * -(-48 // spec.size), spec.size * -(-96 // spec.size))
    x = numbers(*shape, case.dtype)
    if spec is None:
        x = special(x)
    device = case.device if case.device == "cpu" else f"sim:{case.device}"
    seed = SEED if case.rounding == "stochastic" else None
    check_mode(x, FORMATS[case.format], case.layout, case.scales, device, seed, spec, case.repeat)


def numbers(rows, cols, dtype="float32"):
    """Numbers, blocks of very different sizes, of zeros, of an infinity, of NaN, and halves of codes."""
    x = np.array(data.normal(rows, cols, "float32"))
    x *= np.exp2(np.arange(rows) % 23 - 11)[:, None].astype(F32)
    x[:, : cols // 4] *= np.exp2(-(np.arange(cols // 4) // 16 % 9)).astype(F32)
    x[1::5, 1:40] = 0
    x[2::7, ::3] = np.round(x[2::7, ::3] * 4) / 4
    return data.aligned(x.astype(data.DTYPES[dtype]))


def special(x):
    """The same with a few infinities and NaN."""
    x = np.array(x)
    x[3, 5] = np.nan
    x[7, 50:53] = -np.nan
    x[-1, -1] = np.nan
    x[12, 20] = -np.inf
    x[12, 21] = np.nan
    return data.aligned(x)
