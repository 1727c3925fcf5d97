"""Listings of nvdisasm: instructions, the lines that they come from, and how often they run."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import ptxas
from dither.predict import of_summary
from dither.predict.sass import blocks, executed, parse

# A loop at .L_x_1, a division whose slow path is a function that ptxas adds, and padding.
LISTING = """
	//## File ".nv_debug_ptx_txt", line 10
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/              @P1 BRA `(.L_x_0) ;
.L_x_1:
	//## File ".nv_debug_ptx_txt", line 20
        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
	//## File ".nv_debug_ptx_txt", line 10
        /*0030*/                   IADD3 R8, R0, 0x1, RZ ;
	//## File ".nv_debug_ptx_txt", line 20
        /*0040*/                   FADD R9, R4, R5 ;
        /*0050*/               @P2 BRA `(.L_x_1) ;
	//## File ".nv_debug_ptx_txt", line 30
        /*0060*/                   MUFU.RCP R3, R9 ;
        /*0070*/               @P0 BRA `(.L_x_2) ;
        /*0080*/                   MOV R9, 0x90 ;
        /*0090*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath) ;
        /*00a0*/                   BRA `(.L_x_3) ;
.L_x_2:
        /*00b0*/                   FFMA R3, R3, R9, -1 ;
.L_x_3:
        /*00c0*/                   EXIT ;
.L_x_0:
	//## File ".nv_debug_ptx_txt", line 40
        /*00d0*/                   STG.E desc[UR4][R2.64], R3 ;
        /*00e0*/                   EXIT ;
$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath:
	//## File ".nv_debug_ptx_txt", line 30
        /*00f0*/                   SHF.L.U32 R9, R3, 0x1, RZ ;
        /*0100*/                   RET.REL.NODEC R2 `(kernel) ;
.L_x_9:
        /*0110*/                   BRA `(.L_x_9);
        /*0120*/                   NOP;
"""


def test_parse():
    code = parse(LISTING)
    assert [i.line for i in code][:4] == [10, 10, 20, 10]
    assert [i.target for i in code if i.base == "BRA"] == [0xD0, 0x20, 0xB0, 0xC0, 0x110]
    assert [i.address for i in code if i.helper] == [0xF0, 0x100, 0x110, 0x120]
    assert code[2].width == 128
    assert [block[0].address for block in blocks(code)][:4] == [0, 0x20, 0x60, 0x80]


def test_executed():
    """Line 20 four times: what was moved into the loop runs as often as the loop; the slow path and line 40 never."""
    found = {i.address: often for i, often in executed(parse(LISTING), {10: 1, 20: 4, 30: 1})}
    loop, once = dict.fromkeys((0x20, 0x30, 0x40, 0x50), 4), dict.fromkeys((0, 0x10, 0x60, 0x70, 0xB0, 0xC0), 1)
    assert found == loop | once


def test_loops_that_are_left_by_a_call():
    """As ptxas leaves them for sm_80: a call to a place of the kernel is a branch."""
    listing = LISTING.replace("@P2 BRA `(.L_x_1)", "@P2 CALL.REL.NOINC `(.L_x_0)", 1)
    found = {i.address: often for i, often in executed(parse(listing), {10: 1, 20: 4, 30: 1, 40: 1})}
    assert [found.get(at, 0) for at in (0x00, 0x20, 0x50, 0x60, 0xD0)] == [1, 4, 4, 1, 1]


# A loop of four copies, and one of what is left.
UNROLLED = """
	//## File ".nv_debug_ptx_txt", line 10
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
	//## File ".nv_debug_ptx_txt", line 20
        /*0010*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R5, desc[UR4][R2.64+0x80] ;
        /*0030*/                   LDG.E R6, desc[UR4][R2.64+0x100] ;
        /*0040*/                   LDG.E R7, desc[UR4][R2.64+0x180] ;
	//## File ".nv_debug_ptx_txt", line 21
        /*0050*/                   FADD R9, R9, R4 ;
        /*0060*/                   FADD R9, R9, R5 ;
        /*0070*/                   FADD R9, R9, R6 ;
        /*0080*/                   FADD R9, R9, R7 ;
	//## File ".nv_debug_ptx_txt", line 22
        /*0090*/                   ISETP.NE.AND P0, PT, R0, R1, PT ;
        /*00a0*/               @P0 BRA `(.L_x_1) ;
.L_x_2:
	//## File ".nv_debug_ptx_txt", line 20
        /*00b0*/                   LDG.E R4, desc[UR4][R2.64] ;
	//## File ".nv_debug_ptx_txt", line 21
        /*00c0*/                   FADD R9, R9, R4 ;
        /*00d0*/                   FADD.FTZ R9, R9, R4 ;
        /*00e0*/               @P0 BRA `(.L_x_2) ;
	//## File ".nv_debug_ptx_txt", line 30
        /*00f0*/                   STG.E desc[UR4][R2.64], R9 ;
        /*0100*/                   EXIT ;
"""


@pytest.mark.parametrize(("times", "four", "rest"), [(14, 3, 2), (16, 4, 0), (3, 0, 3)])
def test_unrolled_loops(times, four, rest):
    """Copies of a line share its times: as often as four fit, and the rest one by one."""
    lines = {10: 1, 20: times, 21: times, 22: times, 30: 1}
    found = {i.address: often for i, often in executed(parse(UNROLLED), lines)}
    assert [found.get(at, 0) for at in (0x00, 0x10, 0x50, 0xB0, 0xC0, 0xF0)] == [1, four, four, rest, rest, 1]


# Two iterations of a loop whose body has a branch; line 22 is a few instructions of two blocks of one path.
BRANCHES = """
	//## File ".nv_debug_ptx_txt", line 20
        /*0000*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0010*/              @P0 BRA `(.L_x_1) ;
	//## File ".nv_debug_ptx_txt", line 21
        /*0020*/                   FADD R9, R9, R4 ;
.L_x_1:
	//## File ".nv_debug_ptx_txt", line 20
        /*0030*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0040*/              @P1 BRA `(.L_x_2) ;
	//## File ".nv_debug_ptx_txt", line 21
        /*0050*/                   FADD R9, R9, R4 ;
.L_x_2:
	//## File ".nv_debug_ptx_txt", line 22
        /*0060*/                   MUFU.RCP R3, R9 ;
        /*0070*/              @P2 BRA `(.L_x_3) ;
	//## File ".nv_debug_ptx_txt", line 22
        /*0080*/                   FFMA R3, R3, R9, -1 ;
.L_x_3:
	//## File ".nv_debug_ptx_txt", line 30
        /*0090*/                   STG.E desc[UR4][R2.64], R3 ;
        /*00a0*/                   EXIT ;
"""


def test_copies_in_blocks_of_their_own():
    """Each runs as often as its part of the line's times; each part of line 22 as often as the line."""
    found = {i.address: often for i, often in executed(parse(BRANCHES), {20: 2, 21: 1, 22: 1, 30: 1})}
    assert [found[at] for at in (0x00, 0x20, 0x30, 0x50, 0x60, 0x80, 0x90)] == [1, 0.5, 1, 0.5, 1, 1, 1]


@dither.jit
def rows(x, gamma, y, N: dl.constexpr, COLS: dl.constexpr):
    i = dl.program_id(0)
    g = dl.load(gamma, (0,), (COLS,)).to(dl.float32)
    for k in range(N):
        t = dl.load(x, (i * N + k, 0), (1, COLS)).to(dl.float32)
        dl.store(y, (i * N + k, 0), dl.exp(t * g).to(dl.bfloat16))


@pytest.fixture(scope="module")
def summary():
    """16 blocks that each read 24 rows, one after the other."""
    x, gamma = np.ones((16 * 24, 1024), np.float32), np.ones(1024, np.float32)
    y = np.zeros(x.shape, ml_dtypes.bfloat16)
    with dither.profile.record("sim:sm_90a") as runs:
        rows[16](x, gamma, y, N=24, COLS=1024, num_warps=4)
    return dither.profile.summarize(runs)[0]


@pytest.mark.parametrize("source", ["sass", "ptx"])
def test_work(summary, source, monkeypatch):
    """Bytes are exact, however the instructions are counted; gamma is in L2 for all blocks but one."""
    if source == "ptx":
        monkeypatch.setattr(ptxas, "find_tools", lambda target: None)
    elif ptxas.find_tools("sm_90a") is None:
        pytest.skip("no ptxas or nvdisasm")
    found = of_summary(summary)
    assert (found.source, found.blocks, found.threads) == (source, 16, 128)
    assert (found.loaded, found.stored) == (24 * 4096, 24 * 2048)
    assert found.minimum == 24 * 6144
    assert (found.registers > 16) == (source == "sass")
    assert found.shared == 0 and found.barriers == 0
    # Each row is waited for; its elements take a product, and of exp at least eight instructions each.
    assert 24 <= found.waits <= 2 * 24 + 2
    assert 0 < found.memory_waits <= found.waits
    elements = 24 * 1024 / 32
    assert 9 * elements < found.instructions < 60 * elements
    assert sum(n for pipe, n in found.pipes.items() if pipe != "lsu") <= found.instructions
    # Each round asks for the row of the next, the last one for its own again.
    assert found.fetched == 23
    asked = 25 * 4096
    assert found.pipes["lsu"] == (asked + found.stored + asked * gamma_reads(summary)) / 128
    assert found.on_grid(100).blocks == 100


def gamma_reads(summary):
    """How often a block reads gamma, in rows of x."""
    read = {t.name: t.loaded for t in summary.traffic}
    return read["gamma"] / read["x"]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("operator", ["gelu", "dsilu"])
def test_loads_are_waited_for_together(operator, target):
    """However much is computed of them (lib/Target/LoadsAtOnce.cpp), with the registers that five blocks leave."""
    if ptxas.find_tools(target) is None:
        pytest.skip("no ptxas or nvdisasm")
    inputs = [np.ones((64, 1024), ml_dtypes.bfloat16) for _ in range(2 if operator == "dsilu" else 1)]
    with dither.profile.record(f"sim:{target}") as runs:
        getattr(dither, operator)(*inputs, format="fp8_tensor_e4m3", layout="both", amax=np.float32(1))
    found = of_summary(dither.profile.summarize(runs)[0])
    assert found.memory_waits == 1
    assert found.registers <= 51
    assert found.spills <= 48


def test_parameters_are_asked_for_a_stage_ahead():
    """A LayerNorm on a GPU with fast memory waits for its row, and twice for gamma and beta, of which registers do not
    hold all beside it (lib/Target/LoadsInStages.cpp); it waited for these four times."""
    target = "sm_100a"
    if ptxas.find_tools(target) is None:
        pytest.skip("no ptxas or nvdisasm")
    x, gamma = np.ones((64, 4096), ml_dtypes.bfloat16), np.ones(4096, ml_dtypes.bfloat16)
    with dither.profile.record(f"sim:{target}") as runs:
        dither.layer_norm(x, gamma, gamma, format="mxfp8_e4m3")
    found = of_summary(dither.profile.summarize(runs)[0])
    assert found.memory_waits == 1
    assert found.waits <= 3
    assert found.registers <= 96 and found.spills <= 48
