"""Tensors without elements: loads give zeros, stores do nothing, in C++ as in Python."""

import itertools

import dither
import dither.language as dl
import numpy as np
import pytest

torch = pytest.importorskip("torch")

SHAPES = [(0, 8), (8, 0), (0, 0)]
MAKERS = {
    "numpy": lambda shape: np.full(shape, 5, np.float32),
    "torch": lambda shape: torch.full(shape, 5.0),
    "transposed": lambda shape: torch.full(shape[::-1], 5.0).t() if 0 in shape else torch.full(shape, 5.0),
    "sliced": lambda shape: np.full((9, 9), 5, np.float32)[: shape[0], : shape[1]],
}


def make_kernel():
    @dither.jit
    def copy(x, y):
        r = dl.program_id(0)
        dl.store(y, (r, 0), dl.load(x, (r, 0), (1, 8)))

    return copy


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("shapes", ["trailing", "static", "dynamic"])
@pytest.mark.parametrize("maker", MAKERS)
def test_loads_give_zeros_and_stores_do_nothing(maker, shapes, device):
    copy, make = make_kernel(), MAKERS[maker]
    for of_x, of_y in itertools.product(SHAPES, [*SHAPES, (8, 8)]):
        for _ in range(2):
            x, y = make(of_x), make(of_y)
            copy[8](x, y, shapes=shapes, device=device)
            assert not np.asarray(y).any()
            y = make(of_y)
            copy[0](x, y, shapes=shapes, device=device)
            assert (np.asarray(y) == 5).all()


def test_they_stay_in_cpp():
    copy = make_kernel()
    for shape in SHAPES:
        x, y = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        copy[8](x, y)
        before = copy._launcher.hits
        copy[8](x, y)
        assert copy._launcher.hits == before + 1


def test_an_empty_batch_compiles_nothing():
    copy = make_kernel()
    x, y = torch.ones(64, 8), torch.zeros(64, 8)
    copy[64](x, y)
    copy[0](torch.ones(0, 8), torch.zeros(0, 8))
    copy[64](torch.ones(0, 8), y)
    assert not y.any()
    assert len(copy.stats.builds) == 1


def test_prepared():
    copy = make_kernel()
    y = torch.full((8, 8), 5.0)
    launch = copy.prepare(8, torch.zeros(8, 0), y)
    launch()
    assert not y.any()
    y[:] = 5
    launch(torch.zeros(8, 0), y)
    assert not y.any()
