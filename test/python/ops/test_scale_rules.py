"""How scales are made: four over six, what stands for the tensor scale, bounds, infinities and NaN. What else may be
asked of such formats is in test_modes.py."""

import dither
import pytest
from ops import check, data, modes
from ops.modes import RULES


@pytest.mark.sample("values")
@pytest.mark.parametrize("dtype", data.DTYPES)
@pytest.mark.parametrize("name", RULES)
def test_rule(name, dtype):
    modes.check_mode(modes.special(modes.numbers(70, 200, dtype)), RULES[name], "both")
    modes.check_mode(data.adversarial(70, 200, dtype), RULES[name], "both")


@dither.fuse
def double(t):
    return t * 2.0


@pytest.mark.parametrize("name", RULES)
def test_fused(name):
    """The bits of the two steps one after the other."""
    x = modes.numbers(70, 200, "bfloat16")
    fused = double(x, format=RULES[name], layout="both")
    steps = dither.quantize(double(x), RULES[name], "both")
    for one, other in zip(check.parts(fused), check.parts(steps), strict=True):
        check.same_bits(one.data, other.data)
        check.same_bits(one.scale_inv, other.scale_inv)
