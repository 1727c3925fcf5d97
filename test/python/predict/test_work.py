"""What the model knows of a kernel: of copies that nobody waits for, all are one batch."""

import dither
import ml_dtypes
import numpy as np
import pytest
from dither import predict, profile


@pytest.mark.parametrize("assembled", [True, False], ids=["machine code", "ptx"])
def test_copies_are_one_batch(assembled, monkeypatch):
    """A row of 16,384 elements is asked for at once by the four warps of its block. Of what they ask for half is gamma,
    which L2 has: so 16 KB of memory."""
    if not assembled:
        monkeypatch.setattr("dither.ptxas.find_tools", lambda target: None)
    x, gamma = np.ones((4, 16384), ml_dtypes.bfloat16), np.ones(16384, ml_dtypes.bfloat16)
    with profile.record("sim:sm_90a") as runs:
        dither.rms_norm(x, gamma)
    assert "cp.async.cg.shared.global" in runs[0].ptx
    (one,) = profile.summarize(runs)
    work = predict.of_summary(one)
    if assembled and work.source != "sass":
        pytest.skip("no ptxas or nvdisasm")
    assert work.threads == 128
    assert work.batch == 16384
