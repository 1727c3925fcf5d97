"""Entries on disk, from Python: hits, misses, and directories that cannot be used."""

import os
import stat
import warnings

import dither
import dither.language as dl
import numpy as np
import pytest
from cache.key_fields import FIELDS
from dither import cache

ENTRY = {"name": "k", "target": "sm_90a", "numbers": [1, None], "code": b"\0code"}


def test_what_is_stored_is_loaded(cache_dir):
    assert cache.load(FIELDS) is None
    cache.store(FIELDS, ENTRY)
    assert cache.load(FIELDS) == ENTRY
    assert cache.load({**FIELDS, "target": "sm_80"}) is None
    assert [path.name for path in cache_dir.iterdir()] == [f"{cache.key_of(FIELDS)}.kernel"]
    assert stat.S_IMODE(cache_dir.stat().st_mode) == 0o700


def test_a_second_process_compiles_nothing(python):
    assert python("s = run(); print(s.compiles, s.disk_hits)") == "1 0\n"
    assert python("s = run(); print(s.compiles, s.disk_hits)") == "0 1\n"
    assert python("s = run(2.0); print(s.compiles, s.disk_hits)") == "1 0\n"


def test_code_for_whole_tiles_and_for_others_are_two_entries(python):
    code = """
        for rows in {}:
            x, y = aligned(16)[:rows], aligned(16)[:rows]
            x[:] = 1
            scale[(rows + 1) // 2](x, y, ROWS=2, FACTOR=2.0, device="sim:sm_90a")
            assert (y == 6).all()
        print(COUNTS.compiles, COUNTS.disk_hits)
    """
    assert python(code.format((4,))) == "1 0\n"
    assert python(code.format((4, 2))) == "0 1\n"
    assert python(code.format((3,))) == "1 0\n"  # what is there is for others
    assert python(code.format((3, 4, 1, 2))) == "0 2\n"


def test_a_captured_value_is_part_of_the_key(python):
    python("run()")
    # The module's check expects 3; 5 gives another kernel, not the one on disk.
    out = python(
        """
        import kernels_on_disk
        kernels_on_disk.SCALE = 5.0
        try:
            run()
        except AssertionError as error:
            print(error, scale.stats.compiles)
        """
    )
    assert out == "a wrong kernel 1\n"


def test_a_warm_start_has_no_use_for_mlir(python):
    """A context of MLIR is made by _dither.Module alone."""
    python("run()")
    out = python(
        "from dither import _dither as d; d.Module = d.compile = None; s = run(); print(s.compiles, s.disk_hits)"
    )
    assert out == "0 1\n"


def test_modes(cache_dir, monkeypatch):
    monkeypatch.setenv("DITHER_CACHE", "off")
    cache.store(FIELDS, ENTRY)
    assert cache.load(FIELDS) is None
    monkeypatch.setenv("DITHER_CACHE", "readonly")
    cache.store(FIELDS, ENTRY)
    with cache.compiling(FIELDS, lambda: cache.load(FIELDS)) as found:
        assert found is None
    assert not cache_dir.exists()
    monkeypatch.setenv("DITHER_CACHE", "on")
    cache.store(FIELDS, ENTRY)
    monkeypatch.setenv("DITHER_CACHE", "readonly")
    assert cache.load(FIELDS) == ENTRY


def test_waiting_gives_what_another_has_made(start):
    """Both miss; the second waits for the first."""
    slow = """
        import dither.compiled, time
        whole = dither.compiled.Lowered.compile
        def compile(self, *args, **kwargs):
            print("compiling", flush=True)
            time.sleep(1)
            return whole(self, *args, **kwargs)
        dither.compiled.Lowered.compile = compile
        s = run(); print(s.compiles, s.disk_hits)
    """
    first = start(slow)
    assert first.stdout.readline() == "compiling\n"
    second = start("s = run(); print(s.compiles, s.disk_hits)")
    assert second.communicate(timeout=60) == ("0 1\n", "")
    assert first.communicate(timeout=60) == ("1 0\n", "")


def test_waiting_ends(start, monkeypatch):
    with cache.compiling(FIELDS, lambda: cache.load(FIELDS)) as found:
        assert found is None
        code = f"""
            import time
            from dither import cache
            begin = time.monotonic()
            with cache.compiling({FIELDS!r}, lambda: None) as found:
                print(found, time.monotonic() - begin < 30)
        """
        assert start(code, DITHER_CACHE_LOCK_TIMEOUT="0").communicate(timeout=60) == ("None True\n", "")


def test_a_failed_compile_frees_the_key(start):
    with pytest.raises(KeyError), cache.compiling(FIELDS, lambda: None):
        raise KeyError
    lock = cache.disk().lock(cache._pairs(FIELDS), 0)
    assert lock.held


def test_a_directory_that_cannot_be_made_gives_one_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DITHER_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="compiled kernels are not kept: cannot make the directory"):
        cache.store(FIELDS, ENTRY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(FIELDS, ENTRY)
        assert cache.load(FIELDS) is None


def test_a_warning_that_is_an_error_stops_no_launch(start, tmp_path):
    (tmp_path / "file").write_text("")
    code = "import warnings; warnings.simplefilter('error'); s = run(); print(s.compiles)"
    out, err = start(code, DITHER_CACHE_DIR=str(tmp_path / "file" / "cache")).communicate(timeout=60)
    assert out == "1\n"
    assert err.startswith("RuntimeWarning: compiled kernels are not kept: cannot make the directory")
    assert len(err.splitlines()) == 1


def test_a_user_without_a_home_directory(monkeypatch):
    """As in containers: a user id that nobody knows, and no HOME."""
    for name in ("DITHER_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)

    @dither.jit
    def kernel(x):
        dl.store(x, (0,), dl.load(x, (0,), (8,)) * 2.0)

    x = np.ones(8, np.float32)
    with pytest.warns(RuntimeWarning, match="not kept: found no home directory of this user, expected HOME or") as seen:
        kernel[1](x)
        kernel[1](x.reshape(1, 8)[0])
    assert len(seen) == 1
    assert x[0] == 4
    assert kernel.stats.compiles == 1
    monkeypatch.setenv("DITHER_CACHE", "off")
    kernel.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel[1](x)


def test_the_command_line_of_a_user_without_a_home_directory(monkeypatch, capsys):
    from dither.cli import main

    monkeypatch.setattr(cache, "directory", _no_directory)
    assert main(["cache", "ls"]) == 1
    assert capsys.readouterr().err == "error: nowhere\n"
    assert main(["doctor"]) in (0, 1)
    assert "nowhere" in capsys.readouterr().out


def _no_directory():
    raise cache.NoDirectory("nowhere")


@pytest.mark.parametrize(
    "settings, message",
    [({"FSSHIM_FULL_AFTER": "1000"}, "No space left on device"), ({"FSSHIM_READ_ONLY": "1"}, "Read-only file system")],
)
def test_disks_that_take_nothing(start, shim, cache_dir, settings, message):
    process = start("s = run(); run(2.0); print(s.compiles)", **shim(**settings))
    out, err = process.communicate(timeout=60)
    assert out == "2\n"
    assert err.count("RuntimeWarning") == 1
    assert f"compiled kernels are not kept: cannot write to {cache_dir}: {message}" in err
    assert not list(cache_dir.glob("*.kernel"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_entries_of_another_user_are_refused(cache_dir):
    cache.store(FIELDS, ENTRY)
    path = next(cache_dir.glob("*.kernel"))
    os.chown(path, 12345, 12345)
    assert cache.load(FIELDS) is None
    cache.store(FIELDS, ENTRY)
    assert cache.load(FIELDS) == ENTRY


def test_code_of_a_damaged_entry_never_runs(python, cache_dir):
    python("run()")
    path = next(cache_dir.glob("*.kernel"))
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:]):
        path.write_bytes(damaged)
        assert python("print(run().compiles)") == "1\n"
        assert path.read_bytes() == whole, "it was not replaced by the same"
    assert dither.cache.disk().files()
