"""Nothing changes a bit unnoticed: hashes of all that operators and functions of the language give.

`pytest test/python/golden --update-hashes` writes what the CPU gives to hashes.txt. A commit that moves a hash says
which, and why. NaN has no payload of its own here: which one comes out of arithmetic is not defined.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from golden.cases import cases

HASHES = Path(__file__).with_name("hashes.txt")
GPUS = ("sm_80", "sm_90a", "sm_100a", "sm_120a", "sm_100a:ptx91")


def hash_of(written):
    """Of shapes, types and bits, NaN as one value."""
    digest = hashlib.sha256()
    for a in written:
        digest.update(f"{a.dtype} {a.shape} ".encode())
        if a.dtype.itemsize > 1 and a.dtype.kind != "i":
            wide = a.astype(np.float32)
            a = np.where(np.isnan(wide), np.array(np.nan, a.dtype), a)
        digest.update(np.ascontiguousarray(a).tobytes())
    return digest.hexdigest()[:16]


def stored():
    """Hashes by name."""
    return dict(line.rsplit(" ", 1) for line in HASHES.read_text().splitlines())


def moved(device, first=0, every=1):
    """What differs from the stored hashes, of each nth case."""
    known = stored()
    return [name for name, run in list(cases())[first::every] if hash_of(run(device)) != known.get(name)]


def test_names(request):
    """Each case has a hash; this is where they are written."""
    if request.config.getoption("--update-hashes"):
        HASHES.write_text("".join(f"{name} {hash_of(run('cpu'))}\n" for name, run in cases()))
    assert [name for name, _ in cases()] == list(stored())


@pytest.mark.parametrize("part", range(8))
def test_cpu(part):
    assert moved("cpu", first=part, every=8) == []


@pytest.mark.parametrize("gpu", GPUS)
def test_simulated_gpus(gpu):
    """Every thirteenth case, so that each family has some on each target."""
    assert moved(f"sim:{gpu}", first=GPUS.index(gpu), every=13) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu", sorted({*GPUS, "sm_86", "sm_89", "sm_103a", "sm_121a", "sm_120a:ptx91"}))
def test_all_of_simulated_gpus(gpu):
    assert moved(f"sim:{gpu}") == []
