"""What the model knows of a kernel: of copies that nobody waits for, all are one batch."""

import dither
import ml_dtypes
import numpy as np
import pytest
from dither import predict, profile
from dither.predict import work


@pytest.mark.parametrize("assembled", [True, False], ids=["machine code", "ptx"])
def test_copies_are_one_batch(assembled, monkeypatch):
    """A row of 16,384 elements is asked for at once by the four warps of its block: 32 KB of memory, and one wait.
    Gamma, which L2 has, is waited for in each of four rounds. The first asks before its barrier, and the others are
    asked for by the round before."""
    if not assembled:
        monkeypatch.setattr("dither.ptxas.find_tools", lambda target: None)
    x, gamma = np.ones((4, 16384), ml_dtypes.bfloat16), np.ones(16384, ml_dtypes.bfloat16)
    with profile.record("sim:sm_90a") as runs:
        dither.rms_norm(x, gamma)
    assert "cp.async.cg.shared.global" in runs[0].ptx
    (one,) = profile.summarize(runs)
    found = predict.of_summary(one)
    if assembled and found.source != "sass":
        pytest.skip("no ptxas or nvdisasm")
    assert found.threads == 128
    assert found.batch == 32768
    assert (found.waits, found.memory_waits, found.fetched, found.fetched_memory) == (5, 1, 3, 0)
    assert 0 < found.ahead < 100


def test_shared_memory_that_is_asked_for_at_launch():
    """A row of 32,768 elements takes 64 KB, which code does not declare: three blocks of an H200 have room."""
    x, gamma = np.ones((2, 32768), ml_dtypes.bfloat16), np.ones(32768, ml_dtypes.bfloat16)
    with profile.record("sim:sm_90a") as runs:
        dither.rms_norm(x, gamma)
    (one,) = profile.summarize(runs)
    found = predict.of_summary(one)
    assert ".extern .shared" in one.ptx
    assert 65536 < found.shared == one.shared <= 66560
    assert predict.occupancy(found, predict.find("H200").sm).fits["shared memory"] == 3


def ops(*each):
    """Operations at places 1, 2, ..: (times, bytes loaded, registers written, registers read, back)."""
    for place, (times, load, written, read, back) in enumerate(each, 1):
        yield work._Op(times, None, load, frozenset(written), frozenset(read), place, back)


def test_loads_of_the_next_round():
    """A loop of places 3 to 6 with four rounds: what place 5 loads is read at place 3, three operations later."""
    before, batches = work._batches(
        ops(
            (1, 0, "", "", None),
            (1, 16, "a", "", None),
            (4, 0, "", "a", None),
            (4, 0, "", "", None),
            (4, 16, "a", "", None),
            (4, 0, "", "", 3),
        )
    )
    assert before == 1
    assert batches == [work._Batch(16, 1), work._Batch(16, 3, 2)]


def test_loads_of_this_round():
    """The same loop where the load comes first: a warp stops in each round, and nothing is left for the next one."""
    _, batches = work._batches(
        ops((1, 0, "", "", None), (4, 16, "a", "", None), (4, 0, "", "a", None), (4, 0, "", "", 2))
    )
    assert batches == [work._Batch(16, 4)]


def test_which_batches_memory_answers():
    """Those whose bytes are what memory gave, if any are."""
    row, gamma = work._Batch(256, 1), work._Batch(64, 4)
    one = work._Batch(32, 1)
    assert work._of_memory([row, gamma, one], 256) == (1, 0, 256)
    assert work._of_memory([gamma, one], 288) == (5, 0, 64)
    assert work._of_memory([work._Batch(64, 3, 20), gamma], 192) == (3, 3, 64)
    # A part of each: 128 of 512 bytes.
    assert work._of_memory([row, gamma], 128) == (1.25, 0, 64)
    assert work._of_memory([], 128) == (0, 0, 0)


def test_memory_of_a_thread():
    """A warp moves 128 bytes of it in a wavefront: a register of each lane."""
    listing = """
	//## File ".nv_debug_ptx_txt", line 10
        /*0000*/                   STL.128 [R1], R4 ;
        /*0010*/                   STL [R1+0x10], R8 ;
        /*0020*/                   LDL.64 R4, [R1] ;
        /*0030*/                   LDS.128 R4, [R2] ;
"""
    assert [op.spilled for op in work._of_sass(listing, {10: 1})] == [4, 1, 2, 0]
