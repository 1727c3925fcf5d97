"""Reading of disassembly: the path that is counted, and what ptxas says of a kernel."""

from __future__ import annotations

import pytest

from benchmarks import sass
from benchmarks.peers import Unavailable

# A fast copy at 50 to 80 with one wide store, and a slow one with two narrow stores, one of them under a branch.
LISTING = """
        /*0000*/                   S2R R0, SR_TID.X ;          /* 0x0 */
        /*0010*/              @!P1 EXIT ;
        /*0020*/                   ISETP.GE.AND P0, PT, R0, c[0x0][0x210], PT ;
        /*0030*/               @P0 BRA 0x90 ;
        /*0040*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0050*/                   FMUL R4, R4, R5 ;
        /*0060*/              @!P2 STG.E.64 desc[UR4][R2.64], R4 ;
        /*0070*/                   EXIT ;
        /*0080*/                   NOP ;
        /*0090*/                   LDG.E.U8 R4, desc[UR4][R2.64] ;
        /*00a0*/                   STG.E desc[UR4][R2.64], R4 ;
        /*00b0*/               @P1 BRA 0x90 ;
        /*00c0*/               @P3 BRA 0xe0 ;
        /*00d0*/                   STG.E desc[UR4][R2.64], R4 ;
        /*00e0*/                   EXIT ;
        /*00f0*/                   BRA 0xf0;
"""


def test_hot_path() -> None:
    code = sass.parse(LISTING)
    assert [i.opcode for i in code][:3] == ["S2R", "EXIT", "ISETP.GE.AND"]
    assert code[1].predicate == "!P1" and code[3].target == 0x90
    path, loops = sass.hot_path(code)
    assert [i.address for i in path] == [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70]
    assert loops == 1
    assert [i.width for i in path if i.width] == [128, 64]
    assert sass.parse(LISTING)[8].base == "NOP"


def test_wider_total_wins_over_a_short_path() -> None:
    path, _ = sass.hot_path(sass.parse(LISTING.replace("STG.E.64", "STG.E.U8")))
    assert [i.address for i in path][-5:] == [0xA0, 0xB0, 0xC0, 0xD0, 0xE0]


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) .reqntid 64, 1, 1 {
  .reg .b64 %rd<6>; .reg .b32 %r<6>; .shared .align 4 .b8 buffer[256];
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];
  st.global.v4.u32 [%rd5], {%r2, %r3, %r4, %r5};
  ret;
}
"""


def test_analyze() -> None:
    try:
        report = sass.analyze("copy", PTX, "sm_80", 256)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert report.threads == 64 and report.registers > 0 and report.spills == 0
    assert report.accesses == {"LDG.128": 1, "STG.128": 1}
    assert report.path == report.instructions > 4
    assert report.per_element == report.path / 4
    assert report.loops == 0


def test_full_name() -> None:
    assert [sass.full_name(t) for t in ("sm_80", "sm_89", "sm_90", "sm_100a")] == [
        "sm_80",
        "sm_89",
        "sm_90a",
        "sm_100a",
    ]


@pytest.mark.parametrize(
    ("kernel", "target", "most"),
    [
        ("nvfp4", "sm_80", 14.5),
        ("nvfp4", "sm_90a", 12.0),
        ("nvfp4", "sm_100a", 6.45),
        ("mxfp8", "sm_80", 12.2),
        ("mxfp8", "sm_90a", 5.0),
        ("mxfp8", "sm_100a", 3.4),
        ("mxfp8_both", "sm_80", 23.8),
        ("mxfp8_both", "sm_90a", 10.1),
        ("mxfp8_both", "sm_100a", 8.65),
        ("mxfp8_both", "sm_100a:ptx91", 7.5),
        ("mxfp4", "sm_90a", 10.1),
        ("mxfp4", "sm_100a", 3.6),
        ("rms_norm_mxfp8", "sm_90a", 11.9),
        ("rms_norm_nvfp4", "sm_90a", 19.05),
        ("rms_norm_nvfp4", "sm_100a", 11.45),
    ],
)
def test_instructions_for_an_element(kernel: str, target: str, most: float) -> None:
    """No more than was reached once, and a twentieth; two registers in memory at most, for a block more."""
    try:
        ptx, elements, _ = sass.dither_ptx(kernel, target)
        report = sass.analyze(kernel, ptx, target, elements)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert report.per_element <= most
    assert report.spills <= 16
