"""Settings of a test end with it."""

import os

import pytest


@pytest.fixture(autouse=True)
def settings():
    before = {name: value for name, value in os.environ.items() if name.startswith("DITHER_")}
    yield
    for name in [name for name in os.environ if name.startswith("DITHER_")]:
        del os.environ[name]
    os.environ.update(before)
