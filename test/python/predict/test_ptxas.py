"""Where the assembler and the disassembler come from, and what is read of what they say."""

import os
import types

import pytest
from dither import ptxas

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) .reqntid 64, 1, 1 {
  .reg .b64 %rd<6>; .reg .b32 %r<6>; .shared .align 4 .b8 buffer[256];
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r1;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  st.shared.u32 [%r4], %r2;
  st.global.u32 [%rd5], %r2;
  ret;
}
"""


def program(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_tools_of_a_toolkit(tmp_path, monkeypatch):
    """The disassembler beside the assembler that is asked for, before that of the path."""
    assembler, beside = program(tmp_path / "cuda" / "ptxas"), program(tmp_path / "cuda" / "nvdisasm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    program(tmp_path / "bin" / "nvdisasm")
    monkeypatch.setenv("DITHER_PTXAS", assembler)
    assert ptxas.find_tools("sm_90a") == (assembler, beside)
    (tmp_path / "cuda" / "nvdisasm").unlink()
    assert ptxas.find_tools("sm_90a") == (assembler, str(tmp_path / "bin" / "nvdisasm"))


def test_no_tools_where_one_is_asked_for_that_is_none(monkeypatch):
    monkeypatch.setenv("DITHER_PTXAS", "/nowhere/ptxas")
    assert ptxas.find_tools("sm_90a") is None


def test_a_kernel():
    tools = ptxas.find_tools("sm_80")
    if tools is None:
        pytest.skip("no ptxas or nvdisasm")
    resources, listing = ptxas.disassemble(tools, PTX, "sm_80")
    assert resources == {"copy": resources["copy"]}
    found = resources["copy"]
    assert 4 <= found.registers < 32 and (found.stack, found.spills, found.shared) == (0, 0, 256)
    assert ptxas.assemble(tools[0], PTX, "sm_80") == resources
    # The load's line of the PTX, which begins with an empty one.
    assert 'nv_debug_ptx_txt", line 10\n' in listing.partition("LDG")[0][-200:]
    with pytest.raises(ValueError, match=r"^ptxas: .*fatal"):
        ptxas.disassemble(tools, "not PTX", "sm_80")


def test_assemblers_that_are_too_old(tmp_path, monkeypatch):
    """PTX 9.1 needs that of CUDA 13.1; the one that is asked for is taken whatever it is."""
    assert ptxas.chip("sm_100a:ptx91") == ptxas.chip("sm_100a") == "sm_100a"
    found = {}
    for version in ("13.0", "13.1"):
        path = tmp_path / version / "ptxas"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\necho Cuda compilation tools, release {version}, V{version}.1\n")
        path.chmod(0o755)
        program(path.parent / "nvdisasm")
        found[version] = str(path)
    assert ptxas.takes(found["13.1"], "sm_100a:ptx91") and not ptxas.takes(found["13.0"], "sm_100a:ptx91")
    assert ptxas.takes(found["13.0"], "sm_100a") and not ptxas.takes(str(tmp_path / "none"), "sm_100a:ptx91")
    monkeypatch.setenv("PATH", str(tmp_path / "13.0") + os.pathsep + "/bin")
    (tmp_path / "backends" / "nvidia").mkdir(parents=True)
    wheel = program(tmp_path / "backends" / "nvidia" / "bin" / "ptxas-blackwell")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: types.SimpleNamespace(origin=f"{tmp_path}/triton.py"))
    assert (ptxas.find_tools("sm_100a:ptx91") or ("",))[0] == wheel
    assert (ptxas.find_tools("sm_100a") or ("",))[0] == found["13.0"]
    monkeypatch.setenv("DITHER_PTXAS", found["13.0"])
    assert (ptxas.find_tools("sm_100a:ptx91") or ("",))[0] == found["13.0"]
