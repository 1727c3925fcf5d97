"""`dither.profile`: launches that are recorded, their traffic, and the lines of the source."""

import inspect
import re

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.ops.library import library
from dither.profile import CACHED, Traffic

SIM = "sim:sm_90a"


@dither.jit
def scaled(x, gamma, y, total):
    i = dl.program_id(0)
    t = dl.load(x, (i * 4, 0), (4, 256))
    p = t * dl.load(gamma, (0,), (256,))
    dl.store(y, (i * 4, 0), p)
    dl.atomic_max(total, (), dl.reshape(dl.amax(dl.amax(p, 1), 0), ()))


def launch(rows=64):
    x, gamma = np.ones((rows, 256), np.float32), np.ones(256, np.float32)
    scaled[rows // 4](x, gamma, np.empty_like(x), np.zeros((), np.float32), device=SIM)


def test_nothing_is_recorded_outside():
    with dither.profile.record() as runs:
        pass
    launch()
    assert runs == []
    assert not dither.profile.recording()


def test_a_run():
    with dither.profile.record() as runs:
        launch()
        launch(128)
        scaled[1](*(np.ones(s, np.float32) for s in ((4, 256), (256,), (4, 256), ())), device="cpu")
    assert [(r.kernel, r.target, r.grid) for r in runs] == [("scaled", "sm_90a", (n, 1, 1)) for n in (16, 32)]
    found = {t.name: t for t in runs[0].traffic}
    size = 64 * 256 * 4
    x = found["x"]
    assert (x.size, x.loaded, x.fetched, x.stored, x.minimum, x.moved) == (size, size, size, 0, size, size)
    assert x.requests == x.full == size // 512
    y = found["y"]
    assert (y.loaded, y.fetched, y.stored, y.moved) == (0, 0, size, size)
    gamma, total = found["gamma"], found["total"]
    assert (gamma.fetched, gamma.minimum, gamma.moved) == (16 * 1024, 1024, 1024)
    assert (total.updated, total.minimum, total.moved) == (16 * 4, 4, 4)
    assert runs[0].moved == runs[0].minimum == 2 * size + 1024 + 4
    assert runs[0].counters.blocks == 16
    assert runs[0].approximations == ()


def test_what_is_large_is_read_as_often_as_blocks_read_it():
    small = Traffic("x", CACHED, 3 * CACHED, 0, 0, 3 * CACHED, 1, 1)
    large = Traffic("x", 2 * CACHED, 3 * CACHED, 0, 0, 3 * CACHED, 1, 1)
    assert (small.moved, large.moved) == (CACHED, 3 * CACHED)
    assert Traffic("y", CACHED, 0, 3 * CACHED, 0, 0, 1, 1).moved == 3 * CACHED
    assert Traffic("y", CACHED, CACHED, CACHED, 0, CACHED, 1, 1).minimum == 2 * CACHED


def test_counting_ends_with_the_recording():
    from dither import _dither

    with dither.profile.record():
        launch()
    launch()
    codes = list(scaled._compiled._values.values())
    plain = [code._loaded.get(SIM) for code in codes if code._loaded.get(SIM) and ".loc" not in code.ptx]
    counters = [_dither.counters(kernel) for kernel in plain]
    assert counters and all(c.total.sectors == 0 and c.global_loads > 0 for c in counters)


def test_recordings_do_not_nest():
    with dither.profile.record(), pytest.raises(RuntimeError, match="recorded already"), dither.profile.record():
        pass
    assert not dither.profile.recording()


def test_lines_of_the_source():
    with dither.profile.record() as runs:
        launch()
    source, first = inspect.getsourcelines(scaled.fn)
    # LLVM gives line 0 to what it moved from one place to another.
    found = [line for line in runs[0].counters.lines if line.file == __file__ and line.file_line]
    assert len(found) > 0.8 * len(runs[0].counters.lines)

    def texts(opcode):
        return {source[line.file_line - first].strip() for line in found if re.match(opcode, line.text)}

    assert texts("mul.*f32") == {"p = t * dl.load(gamma, (0,), (256,))"}
    assert texts("st.global") == {"dl.store(y, (i * 4, 0), p)"}
    assert texts("(atom|red).global") == {"dl.atomic_max(total, (), dl.reshape(dl.amax(dl.amax(p, 1), 0), ()))"}
    stored = sum(line.count.bytes for line in found if line.text.startswith("st.global"))
    assert stored == 64 * 256 * 4


def instructions(ptx):
    """PTX without positions and what goes with them."""
    drop = re.compile(r"\s*(\.loc\s|\.file\s|\.section\s|\$L__(tmp|func_begin|func_end)\d+:)|\s*$")
    return [line for line in ptx.splitlines() if not drop.match(line)]


@pytest.mark.parametrize("name", [e.name for e in library("sm_90a") if e.core])
def test_line_information_changes_no_instruction(name, monkeypatch):
    (entry,) = (e for e in library("sm_90a") if e.name == name)
    plain = entry.lower("sm_90a").compile().ptx
    monkeypatch.setenv("DITHER_LINE_INFO", "1")
    with_lines = entry.lower("sm_90a").compile().ptx
    assert ".loc" not in plain
    assert re.search(r"\.file\s1 .*kernels?\.py", with_lines)
    assert instructions(plain) == instructions(with_lines)


def test_devices_that_count_nothing():
    from dither import _dither

    with pytest.raises(TypeError, match="not simulated"):
        _dither.count_memory(_dither.get_device("cpu"), True)
