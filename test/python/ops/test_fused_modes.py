"""Fused operators in scaling modes: each gives the codes that `dither.quantize` gives of its plain output.

Cases are those of test_modes.py, which compares `quantize` with the reference, with one operator after the other: some
of the pairs of choices in `make test`, the full product with `make matrix`.
"""

import os

import dither
import numpy as np
import pytest
from ops import check, data, modes


def _rope(x, **options):
    tables = data.normal(len(x), x.shape[1] // 4, seed=2)
    return dither.rope(x, np.cos(tables), np.sin(tables), **options)


def _rms_norm_backward(x, **options):
    column, gamma = data.normal(1, len(x), seed=3)[0], data.normal(1, x.shape[1], seed=4)[0]
    return dither.rms_norm_backward(x, x, column, gamma, **options)


OPERATORS = {
    "silu": dither.silu,
    "dbias_dgelu": lambda x, **options: dither.dbias_dgelu(x, x, **options),
    "swiglu": lambda x, **options: dither.swiglu(x, x, **options),
    "dswiglu": lambda x, **options: dither.dswiglu(x, x, x, **options),
    "rms_norm": lambda x, **options: dither.rms_norm(x, np.full(x.shape[1], 1.5, np.float32), **options),
    "add_layer_norm": lambda x, **options: dither.add_layer_norm(
        x, x, *np.ones((2, x.shape[1]), np.float32), **options
    ),
    "rms_norm_backward": _rms_norm_backward,
    "softmax": dither.softmax,
    "rope": _rope,
    "add_dropout": lambda x, **options: dither.add_dropout(x, x, dropout_seed=5, **options),
}
#: In `make test`, every so many of the pairs.
EACH = 1 if os.environ.get("MATRIX_SHARE") else 20


def _cases():
    names = list(OPERATORS)
    return [(names[i % len(names)], case) for i, case in enumerate(modes.cases()[::EACH])]


def _output(result):
    """The output of an operator, which may have given more."""
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize(("name", "case"), _cases(), ids=str)
def test_case(name, case):
    spec = modes.TRANSFORMS[case.transform]
    shape = (70, 200) if spec is None else (spec.size, spec.size * -(-96 // spec.size))
    x = modes.numbers(*shape, case.dtype)
    where = {} if case.device == "cpu" else {"device": f"sim:{case.device}"}
    options = {"layout": case.layout, "scale_layout": case.scales, "transform": spec, "repeat_scales": case.repeat}
    if case.rounding == "stochastic":
        options |= {"rounding": "stochastic", "seed": modes.SEED}
    fmt = modes.FORMATS[case.format]
    plain = np.asarray(_output(OPERATORS[name](x, **where)))
    wanted = dither.quantize(plain, fmt, **options)
    found = _output(OPERATORS[name](x, format=fmt, **options, **where))
    for one, want in zip(check.parts(found), check.parts(wanted), strict=True):
        check.same_bits(one.data, want.data, "data")
        check.same_bits(one.scale_inv, want.scale_inv, "scales")
        for what in ("amax", "tensor_scale"):
            if getattr(want, what) is not None:
                check.same_values(getattr(one, what), getattr(want, what), what)
