"""Keys: every input is in them, and nothing else."""

import itertools
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dither
import pytest
from cache.key_fields import FIELDS
from dither import cache


def test_the_fields_are_those_of_the_table():
    assert {name for name, _ in dither._dither.cache_fields()} == {*FIELDS, "build"}


def test_any_change_of_any_field_changes_the_key():
    keys = {cache.key_of(FIELDS)}
    for name in FIELDS:
        for text in ("", FIELDS[name] + "\0", FIELDS[name] + " ", "é", "\ud800"):
            keys.add(cache.key_of({**FIELDS, name: text}))
    assert len(keys) == 1 + 5 * len(FIELDS)
    for a, b in itertools.combinations(FIELDS, 2):  # the same bytes, elsewhere
        keys.add(cache.key_of({**FIELDS, a: FIELDS[b], b: FIELDS[a]}))
    assert len(keys) == 1 + 5 * len(FIELDS) + math.comb(len(FIELDS), 2)


def test_the_order_of_fields_does_not_matter():
    assert cache.key_of(dict(reversed(FIELDS.items()))) == cache.key_of(FIELDS)


@pytest.mark.parametrize("wrong", ["a missing one", "one too many"])
def test_fields_that_are_not_the_tables(wrong):
    fields = {**FIELDS, "weather": "fine"} if wrong == "one too many" else {"kernel": "k"}
    with pytest.raises(ValueError, match="expected"):
        cache.key_of(fields)


def test_the_build_is_part_of_it(monkeypatch):
    before = cache.key_of(FIELDS)
    monkeypatch.setattr(cache, "build", lambda: "another")
    assert cache.key_of(FIELDS) != before


BUILD = "import dither.cache; print(dither.cache.build())"


def build_of(package):
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    made = subprocess.run([sys.executable, "-c", BUILD], env=env, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def test_the_build_is_known_by_content_alone(tmp_path):
    """A copy with other times is the same build; any source of the compiler that changes makes another."""
    package = tmp_path / "dither"
    source = Path(dither._dither.__file__).parent
    shutil.copytree(
        source, package, ignore=shutil.ignore_patterns("__pycache__", "_dither*"), copy_function=shutil.copy
    )
    (package / Path(dither._dither.__file__).name).symlink_to(dither._dither.__file__)
    assert build_of(package) == cache.build()
    for name in ("compiler/walker.py", "language/_math.py", "compiled.py"):
        path = package / name
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert build_of(package) != cache.build()
        path.write_text(text)
    (package / "cli" / "doctor.py").write_text("")
    assert build_of(package) == cache.build()


def test_keys_and_code_are_the_same_in_every_process(python, tmp_path):
    """Other hash seeds, working directories and user names; each with an empty cache."""
    code = """
        import hashlib, pathlib
        from dither import cache
        for factor, columns in ((1.0, 16), (2.0, 16), (1.0, 32)):
            run(factor, columns)
        for path, _, _ in sorted(cache.disk().files()):
            print(pathlib.Path(path).name, hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest())
        t = dither.TensorType(dither.float32, (None, 64))
        for target in ("sm_80", "sm_90a", "sm_100a"):
            kernel = scale.compile(t, t, ROWS=2, FACTOR=2.0, target=target)
            print(target, hashlib.sha256(kernel.ptx.encode()).hexdigest())
    """
    seen = {
        python(code, PYTHONHASHSEED=seed, DITHER_CACHE_DIR=str(tmp_path / f"cache{seed}"), HOME=str(tmp_path / seed))
        for seed in ("0", "1", "12345")
    }
    assert len(seen) == 1
    assert len(next(iter(seen)).splitlines()) == 6


def test_the_library_gives_the_same_ptx_in_every_process(python):
    code = """
        import hashlib
        from dither.ops.library import library
        for target in ("sm_90a", "sm_100a"):
            for entry in [e for e in library(target) if "nvfp4" in e.name][::20]:
                print(target, entry.name, hashlib.sha256(entry.lower(target).compile().image.code).hexdigest())
    """
    first, second = (python(code, PYTHONHASHSEED=seed) for seed in ("3", "4"))
    assert first == second
    assert len(first.splitlines()) > 2


#: What each variable has to do with code. A new one must be put where it belongs: it may have to be in the key.
AROUND = {"DUMP_DIR", "OVERRIDE_DIR", "REPRODUCER", "TIMING", "REMARKS", "LINE_INFO"}  # compile without the cache
IN_KEY = {"HOST_FEATURES", "MATH"}  # is in the key as the target, as math
NEUTRAL = {"DEVICE", "NUM_THREADS", "SIM_CHECKS", "LIBCUDA", "PTXAS", "DUMP_STAGES", "VERIFY", "LOG"}
NEUTRAL |= {"CACHE", "CACHE_DIR", "CACHE_SIZE", "CACHE_BUNDLE", "CACHE_LOCK_TIMEOUT"}


def test_every_variable_is_known_to_leave_code_alone_or_goes_round_the_cache():
    names = {row["name"].removeprefix("DITHER_") for row in dither._dither.environment()}
    assert names == AROUND | IN_KEY | NEUTRAL


def test_variables_that_go_round_the_cache(python, start, tmp_path):
    python("run()")
    values = {name: str(tmp_path / name) for name in AROUND} | {"TIMING": "1", "LINE_INFO": "1"}
    begun = {
        name: start("s = run(); print(s.compiles, s.disk_hits)", **{f"DITHER_{name}": values[name]}) for name in values
    }
    for name, process in begun.items():
        out, err = process.communicate(timeout=60)
        assert out == "1 0\n", f"{name}: {err}"
