"""`dither cache explain | export | import`, and bundles in use. `ls` and `prune` are in test/python/cli."""

import json
import os
import warnings

import dither
import pytest
from cache.key_fields import FIELDS
from dither import cache
from dither.cli import main


@pytest.fixture
def cli(capsys):
    def run(*arguments):
        code = main(["cache", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def filled(python, cache_dir):
    """Keys of three kernels on disk."""
    python("run(); run(2.0); run(1.0, 32)")
    return sorted(path.stem for path in cache_dir.glob("*.kernel"))


def test_explain(cli, filled):
    code, out, _ = cli("explain", filled[0][:8])
    assert code == 0
    assert out.startswith(f"{filled[0]}  scale for host")
    for name, meaning in dither._dither.cache_fields():
        assert f"\n{name}: {meaning}\n" in out
    assert f"  {cache.build()}\n" in out
    assert "SCALE" in out  # what is captured


def test_explain_the_difference(cli, filled, cache_dir):
    by_field = {}
    for a in filled:
        for b in filled:
            code, out, _ = cli("explain", a, b)
            assert code == 0
            by_field[out.splitlines()[0].partition("differ in ")[2]] = out
    assert set(by_field) == {"nothing", "constexprs", "arguments", "arguments, constexprs"}
    assert all(f" FACTOR is float {factor}\n" in by_field["constexprs"] for factor in ("1.0", "2.0"))


def test_explain_nothing(cli):
    assert cli("explain", "abcd")[0] == 2


def export(cli, tmp_path, *arguments):
    path = tmp_path / "kernels.bundle"
    code, out, err = cli("export", path, *arguments)
    assert code == 0, err
    return path, out


def test_a_job_with_a_bundle_never_compiles(cli, filled, python, tmp_path):
    path, out = export(cli, tmp_path)
    assert out.startswith("3 kernels for host")
    job = "s = run(); run(2.0); run(1.0, 32); print(s.compiles, s.disk_hits)"
    elsewhere = {"DITHER_CACHE_BUNDLE": str(path), "DITHER_CACHE_DIR": str(tmp_path / "empty")}
    assert python(job, **elsewhere) == "0 3\n"
    assert not (tmp_path / "empty").exists()
    assert python(job, **elsewhere, DITHER_CACHE="off") == "0 3\n"
    # What the bundle lacks is compiled, and kept where it would be without.
    assert python("s = run(7.0); print(s.compiles)", **elsewhere) == "1\n"
    assert len(list((tmp_path / "empty").glob("*.kernel"))) == 1


def test_several_bundles(cli, filled, python, tmp_path):
    paths = []
    for key in filled:
        paths.append(str(export(cli, tmp_path, key)[0].rename(tmp_path / f"{key}.bundle")))
    job = "s = run(); run(2.0); run(1.0, 32); print(s.compiles)"
    empty = str(tmp_path / "empty")
    assert python(job, DITHER_CACHE_BUNDLE=":".join(paths), DITHER_CACHE_DIR=empty) == "0\n"


def test_import(cli, filled, python, tmp_path, monkeypatch):
    path, _ = export(cli, tmp_path)
    monkeypatch.setenv("DITHER_CACHE_DIR", str(tmp_path / "other"))
    code, out, _ = cli("import", path)
    assert (code, out) == (0, f"3 kernels added to {tmp_path / 'other'}\n")
    assert python("s = run(); run(2.0); print(s.compiles)", DITHER_CACHE_DIR=str(tmp_path / "other")) == "0\n"


def test_export_by_target(cli, filled, cache_dir, tmp_path):
    cache.store(FIELDS, {"name": "k", "target": "sm_90a", "code": b"ptx"})
    path, out = export(cli, tmp_path, "--target", "sm_90a")
    assert out.startswith("1 kernels for sm_90a in ")
    bundle = dither._dither.CacheBundle(str(path))
    assert json.loads(bundle.about) == {"build": cache.build(), "targets": ["sm_90a"]}
    assert bundle[0].code == b"ptx"
    code, _, err = cli("export", path, "--target", "sm_80")
    assert code == 1
    assert err.startswith("error: no kernel in ")
    code, _, err = cli("export", path, "--target", "sm_8")
    assert code == 2
    assert err.startswith("error: unknown target 'sm_8', expected")


def test_kernels_of_another_build_are_not_exported(cli, filled, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "build", lambda: "another")
    code, _, err = cli("export", tmp_path / "b")
    assert code == 1
    assert "is of this build" in err
    assert "(of another build)" in cli("ls")[1]


def test_a_damaged_bundle_is_a_warning_and_never_a_wrong_kernel(cli, filled, start, tmp_path):
    path, _ = export(cli, tmp_path)
    whole = path.read_bytes()
    middle = len(whole) - 300  # within the last entry
    for damaged, message, compiles in (
        (whole[:100], "damaged: ", 3),
        (whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], "damaged: ", 3),
        (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], "damaged: found another checksum", 1),
        (b"hello", "not a bundle of kernels", 3),
        (None, "No such file or directory", 3),
    ):
        path.unlink(missing_ok=True)
        if damaged is not None:
            path.write_bytes(damaged)
        process = start(
            "s = run(); run(2.0); run(1.0, 32); print(s.compiles)",
            DITHER_CACHE_BUNDLE=str(path),
            DITHER_CACHE="off",
        )
        out, err = process.communicate(timeout=60)
        assert out == f"{compiles}\n"
        assert err.count("RuntimeWarning") == 1
        assert message in err
        assert str(path) in err
        code, _, err = cli("import", path)
        assert code == 1
        assert message in err


def test_a_bundle_of_another_build_says_so(cli, filled, tmp_path, monkeypatch):
    path, _ = export(cli, tmp_path)
    monkeypatch.setattr(cache, "build", lambda: "another")
    monkeypatch.setenv("DITHER_CACHE_BUNDLE", str(path))
    with pytest.warns(RuntimeWarning, match="was made by another build of dither"):
        assert cache.load(FIELDS) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.load(FIELDS)
    code, out, _ = cli("import", path)
    assert code == 0
    assert "which this one does not use" in out


def test_prune_removes_what_killed_processes_left(cli, start, shim, cache_dir):
    process = start("run()", **shim(FSSHIM_DIE_AT_RENAME="1"))
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert [path.name[:5] for path in cache_dir.iterdir() if path.name != "lock"] == [".new-"]
    code, out, _ = cli("prune")
    assert code == 0
    assert out.endswith("removed 1 files of processes that were killed\n")
    assert [path.name for path in cache_dir.iterdir()] == ["lock"]


def give_away(path):
    os.chown(path, 12345, 12345)


OTHERS = {
    "writable by all": (lambda path: path.chmod(0o666), "can be written by everybody"),
    "writable by its group": (lambda path: path.chmod(0o664), "can be written by its group"),
    "of another user": (give_away, "belongs to user 12345, expected root"),
}


@pytest.fixture(params=OTHERS)
def others(request):
    """Makes a file one that others have a say in, and what is said of it."""
    if request.param == "of another user" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    return OTHERS[request.param]


def test_a_bundle_of_others_never_runs(cli, filled, start, tmp_path, others):
    spoil, said = others
    path, _ = export(cli, tmp_path)
    spoil(path)
    empty = {"DITHER_CACHE_BUNDLE": str(path), "DITHER_CACHE_DIR": str(tmp_path / "empty")}
    out, err = start("s = run(); run(2.0); print(s.compiles, s.disk_hits)", **empty).communicate(timeout=60)
    assert out == "2 0\n"
    assert err.count("RuntimeWarning") == 1
    assert f"bundle: {path} {said}: the code in it would run as you" in err
    assert "kernels are compiled instead" in err


def test_a_bundle_of_others_is_not_imported(cli, filled, tmp_path, monkeypatch, others):
    spoil, said = others
    path, _ = export(cli, tmp_path)
    spoil(path)
    monkeypatch.setenv("DITHER_CACHE_DIR", str(tmp_path / "empty"))
    code, _, err = cli("import", path)
    assert code == 1 and f"{path} {said}" in err
    assert not list(tmp_path.glob("empty/*.kernel"))


def test_an_entry_of_others_is_not_exported(cli, filled, cache_dir, tmp_path, others):
    spoil, said = others
    entry = cache_dir / f"{filled[0]}.kernel"
    spoil(entry)
    code, out, _ = cli("export", tmp_path / "some.bundle")
    assert code == 0 and f"left out: {entry} {said}" in out
    assert len(dither._dither.CacheBundle(str(tmp_path / "some.bundle"))) == len(filled) - 1
    code, _, err = cli("export", tmp_path / "one.bundle", filled[0])
    assert code == 1 and said in err
    # It can be looked at.
    assert cli("explain", filled[0])[0] == 0


def test_bundles_and_entries_are_ours_alone_whatever_the_umask(cli, python, cache_dir, tmp_path):
    before = os.umask(0)
    try:
        python("run()")
        assert cli("export", tmp_path / "all.bundle")[0] == 0
    finally:
        os.umask(before)
    for path in (tmp_path / "all.bundle", *cache_dir.glob("*.kernel")):
        assert path.stat().st_mode & 0o777 == 0o600
    assert cache_dir.stat().st_mode & 0o777 == 0o700
