"""Pairs of all choices that scaling modes have, on the CPU and all simulated targets; the full product with
`make matrix`."""

import pytest
from ops import check, data, modes


@pytest.mark.parametrize("case", modes.cases(), ids=str)
def test_case(case):
    modes.check_case(case)


def test_pairs_are_all_there():
    """Of choices that exclude each other none, of all others each pair."""
    choices = {
        "format": ("nvfp4", "mxfp8 32x32", "fp8_tensor_e4m3"),
        "layout": check.LAYOUTS,
        "scales": ("linear", "packed"),
        "dtype": tuple(data.DTYPES),
        "rounding": ("nearest", "stochastic"),
        "transform": ("none", "16"),
        "repeat": (False, True),
        "device": ("cpu", "sm_80"),
    }
    found, there_are = modes.pairs(choices), modes.product(choices)
    for one in choices:
        for other in choices:
            have, exist = ({(getattr(c, one), getattr(c, other)) for c in among} for among in (found, there_are))
            assert have == exist
    assert len(found) < len(there_are) / 10
