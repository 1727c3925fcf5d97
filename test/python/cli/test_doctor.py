"""`dither doctor`."""

import re
import stat

import dither as package


def rows(out):
    """The report as {name: text}; of a repeated name, the last."""
    return {line[:12].strip(): line[13:] for line in out.split("\n\n")[0].splitlines()}


def test_report(process, cache_dir):
    result = process("doctor")
    assert (result.code, result.err) == (0, "")
    found = rows(result.out)
    assert found["dither"].startswith(f"{package.__version__}, ")
    assert re.fullmatch(r"22\.\d+\.\d+", found["LLVM"])
    assert "_dither" in found["compiler"]
    assert "clang version 22" in found["built with"] or "GCC" in found["built with"]
    assert re.match(r"host(:avx512fp16|:avx512vbmi|:avx512|:avx2)?, \d+ threads", found["host target"])
    assert found["targets"].split() == package.targets()
    assert found["device"].startswith("cpu: ") or found["device"].startswith("cuda:")
    assert found["cache"].startswith(f"{cache_dir}: 0 kernels, 0.0 of 1074 MB")


def test_every_variable_is_explained(process):
    from dither import _dither

    out = process("doctor").out
    for row in _dither.environment():
        assert re.search(rf"^{row['name']} +=", out, re.MULTILINE)
        assert row["help"] in out


def test_says_why_there_is_no_gpu(process, tmp_path):
    result = process("doctor", DITHER_LIBCUDA=str(tmp_path / "nothing.so"))
    assert result.code == 0
    assert "no GPU: " in result.out
    assert "nothing.so" in result.out


def test_says_what_is_set(process):
    out = process("doctor", DITHER_NUM_THREADS="1").out
    assert re.search(r"^DITHER_NUM_THREADS +=\s1 \(set; the default is 0\)$", out, re.MULTILINE)
    assert ", 1 threads" in rows(out)["host target"]


def test_malformed_and_unknown_variables(process):
    result = process("doctor", DITHER_CACHE="sometimes", DITHER_CASHE="on")
    assert result.code == 1
    assert "error: DITHER_CACHE is 'sometimes': expected on, off or readonly" in result.out
    assert "error: unknown variable DITHER_CASHE" in result.out
    assert rows(result.out)["cache"].startswith("unknown: DITHER_CACHE is 'sometimes'")


def test_ptxas_is_looked_for(process, tmp_path):
    fake = tmp_path / "ptxas"
    fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V12.9.1'\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    assert rows(process("doctor", DITHER_PTXAS=str(fake)).out)["ptxas"] == f"{fake} 12.9 (from DITHER_PTXAS)"
    assert rows(process("doctor", PATH=str(tmp_path)).out)["ptxas"] == f"{fake} 12.9 (from PATH)"
    missing = rows(process("doctor", DITHER_PTXAS="/nowhere/ptxas").out)["ptxas"]
    assert missing.startswith("none: DITHER_PTXAS is '/nowhere/ptxas', which cannot be executed")
