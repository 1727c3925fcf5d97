"""Processes with real kernels on one directory, some killed; the larger run is test/unit/Cache/StressTest.cpp."""

import re
import time

import pytest

PROCESSES = 4
RANK = """
import random, os
from dither import cache
kernels = [(factor, columns) for factor in (1.0, 2.0, 3.0) for columns in (16, 32)]
random.Random({seed}).shuffle(kernels)
whole = cache.store
def store(fields, entry):
    with open({log!r}, "a") as log:
        log.write(f"{{os.getpid()}} {{fields['constexprs']!r}} {{fields['arguments']}}\\n")
    whole(fields, entry)
cache.store = store
for factor, columns in kernels:
    run(factor, columns)
"""


@pytest.mark.parametrize("trouble", ["killed", "no locks", "late", "full"])
def test_ranks(start, shim, python, tmp_path, cache_dir, trouble):
    settings = {
        "no locks": {"FSSHIM_NO_LOCKS": "1"},
        "late": {"FSSHIM_DELAY_MS": "300"},
        "full": {"FSSHIM_FULL_AFTER": "20000"},
    }.get(trouble)
    variables = shim(**settings) if settings else {}
    log = tmp_path / "log"
    code = RANK.format(seed="os.getpid()", log=str(log))
    ranks = [start(code, PYTHONWARNINGS="ignore", **variables) for _ in range(PROCESSES)]
    killed = set()
    if trouble == "killed":
        for kernels, victim in enumerate(ranks[:2], 1):
            while not log.exists() or len(log.read_text().splitlines()) < kernels:
                time.sleep(0.002)
            victim.kill()
    for rank in ranks:
        out, err = rank.communicate(timeout=120)
        if rank.returncode == -9 and trouble == "killed":
            killed.add(rank.pid)
        else:
            assert rank.returncode == 0, out + err
    assert bool(killed) == (trouble == "killed")
    made = [line.split(" ", 1) for line in log.read_text().splitlines()]
    survivors = [kernel for process, kernel in made if int(process) not in killed]
    if trouble == "killed":
        assert len(survivors) == len(set(survivors)), "compiled twice"
    assert len({kernel for _, kernel in made}) == 6
    python("from dither.cli import main; main(['cache', 'prune'])")
    assert all(re.fullmatch(r"lock|[0-9a-f]{64}\.kernel", path.name) for path in cache_dir.iterdir())
    if trouble != "full":
        s = "s = [run(f, c) for f in (1.0, 2.0, 3.0) for c in (16, 32)][0]; print(s.compiles, s.disk_hits)"
        assert python(s) == "0 6\n"
