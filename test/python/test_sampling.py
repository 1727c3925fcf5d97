"""What is left out of a run has its values, or pairs of them, in another case."""

import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sample

SIZES = [(3, 3), (7, 2, 9), (10, 3, 3), (4, 4, 2, 5)]


@pytest.mark.parametrize("strength", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_each_combination_is_there(sizes, strength):
    rows = list(itertools.product(*map(range, sizes)))
    random.Random(1).shuffle(rows)
    rows = rows[: len(rows) * 2 // 3]  # not each case exists
    taken = [rows[i] for i in sample(rows, strength)]

    def combinations(among):
        return {places for row in among for places in itertools.combinations(enumerate(row), strength)}

    assert combinations(taken) == combinations(rows)
    assert sample(rows, strength) == sample(list(rows), strength)


def test_few_are_enough():
    """As many as the longest parameter, or two, have values; at most a quarter more."""
    for sizes in SIZES:
        rows = list(itertools.product(*map(range, sizes)))
        for strength in (1, 2):
            least = 1
            for size in sorted(sizes)[-strength:]:
                least *= size
            assert least <= len(sample(rows, strength)) <= 1.25 * least


def test_values_are_spread():
    """The short parameter goes on with the long one, and does not stay at its first value."""
    rows = list(itertools.product(range(30), range(3)))
    counts = [sum(rows[i][1] == value for i in sample(rows, 1)) for value in range(3)]
    assert min(counts) >= 5


def test_one_parameter_and_none():
    assert sample([(i,) for i in range(5)], 2) == [0, 1, 2, 3, 4]
    assert sample([], 1) == []


MODULE = """
import pytest

@pytest.mark.sample("values")
@pytest.mark.parametrize("pair", [("a", 1), ("b", 1), ("a", 2), ("b", 2)])
@pytest.mark.parametrize("x", [object(), object()])
def test_some(x, pair):
    pass

@pytest.mark.exhaustive
def test_late():
    pass

def test_always():
    pass
"""


@pytest.mark.parametrize(
    ("words", "count"),
    [([], 3), (["--exhaustive"], 10), (["test_module.py::test_some[x0-pair0]"], 1), (["-k", "late"], 0)],
)
def test_a_run(words, count, tmp_path):
    """What pytest runs: a sample, everything, or what was named."""
    (tmp_path / "test_module.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conftest", "--rootdir", "."]
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert f"{count} passed" in done.stdout if count else "passed" not in done.stdout, done.stdout + done.stderr
