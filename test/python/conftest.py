"""Settings of a run: a compile cache of its own, the reference beside the tests, and the support matrix."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))

import sampling  # noqa: E402 (beside this file)

CACHE = pytest.StashKey[str]()


def pytest_addoption(parser):
    parser.addoption("--update-docs", action="store_true", help="write what the tests find to docs/support-matrix.md")
    parser.addoption("--update-hashes", action="store_true", help="write what the CPU gives to golden/hashes.txt")
    parser.addoption("--exhaustive", action="store_true", help="run every case, where others run a sample")


def pytest_configure(config):
    config.addinivalue_line("markers", "exhaustive: runs with --exhaustive only")
    config.addinivalue_line("markers", 'sample(of): without it as many cases as have each of the "values", or "pairs"')
    if hasattr(config, "workerinput"):
        return  # workers inherit the environment of the process that starts them
    # JAX has the devices that its tests of meshes need, from when it is first used.
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
    # Kernels come from this build of the compiler, and each is compiled once for all workers.
    config.stash[CACHE] = tempfile.mkdtemp(prefix="dither-cache-")
    for name in [name for name in os.environ if name.startswith("DITHER_")]:
        if name not in ("DITHER_PTXAS", "DITHER_HOST_FEATURES", "DITHER_NUM_THREADS"):
            del os.environ[name]
    os.environ["DITHER_CACHE_DIR"] = config.stash[CACHE]
    # The suite runs on the CPU wherever it runs; tests of a GPU ask for one.
    os.environ["DITHER_DEVICE"] = "cpu"
    os.environ["DITHER_SIM_CHECKS"] = "init,races"


def pytest_collection_modifyitems(config, items):
    named = any("[" in word for word in config.args)
    if config.getoption("--exhaustive") or config.getoption("--update-docs") or named:
        return
    less = sampling.left_out(items)
    config.hook.pytest_deselected(items=[item for item in items if item in less])
    items[:] = [item for item in items if item not in less]


def pytest_unconfigure(config):
    if CACHE in config.stash:
        shutil.rmtree(config.stash[CACHE], ignore_errors=True)


_found: dict[tuple, str] = {}


def pytest_runtest_logreport(report):
    """Collects the cells that tests found; under xdist the reports of all workers arrive in one process."""
    for name, value in report.user_properties:
        if name == "support-matrix" and report.when == "call":
            _found[tuple(value[0])] = value[1]


def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput") or not session.config.getoption("--update-docs"):
        return
    from ops import matrix

    missing = set(matrix.CELLS) - set(_found)
    if missing:
        message = f"docs/support-matrix.md was not written: {len(missing)} of {len(matrix.CELLS)} cells were not tested"
        raise pytest.UsageError(message)
    matrix.PATH.write_text(matrix.render(_found))


@pytest.fixture
def jax_float64():
    """JAX with float64, and as it was for others."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)
