"""What kernels keep alive: nothing beyond their own life, and what they are of is freed with them."""

import gc
import weakref

import dither
import dither.language as dl
import loaded
import numpy as np
import pytest
from dither.compiler import captures_of

X = np.ones(8, np.float32)
Y = np.zeros(8, np.float32)
SOURCE = """import dataclasses, enum
import dither, dither.language as dl
class Held:
    pass
class Mode(enum.Enum):
    A = 2.0
@dataclasses.dataclass(frozen=True)
class Config:
    n: float = 2.0
    @property
    def scale(self):
        return self.n
class Level(enum.IntEnum):
    LOW = 3
held = Held()
config = Config()
def helper(t):
    return t * config.scale
@dither.jit
def kernel(x, y, mode: dl.constexpr = Mode.A, C: dl.constexpr = config):
    dl.store(y, (0,), helper(dl.load(x, (0,), (8,))) * mode.value * C.scale)
@dither.jit
def plain(x, y, C, level: dl.constexpr):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * C.scale * level.value)
"""


def launch(module):
    for _ in range(3):
        module.kernel[1](X, Y)
    assert Y[0] == 8


def fail(module):
    with pytest.raises(ValueError, match="rank"):
        module.kernel[1](np.ones((1, 1, 1, 1, 1), np.float32), Y)


def prepare(module):
    module.ready = module.kernel.prepare(1, X, Y)
    module.ready()


def pass_config(module):
    for _ in range(3):
        module.kernel[1](X, Y, module.Mode.A, module.Config(3.0))


def pass_without_annotations(module):
    for _ in range(3):
        module.plain[1](X, Y, module.Config(2.0), module.Level.LOW)
    assert Y[0] == 6


def look_inside(module):
    module.compiled = module.kernel.compile(X, Y)
    module.kernel.stats()


def used(path, use):
    """Weak references into a module that was made, used and dropped."""
    module = loaded.load(path, SOURCE)
    use(module)
    texts = [source.text for source in captures_of(module.kernel).sources]
    assert len(texts) == 2
    kept = (
        module.held,
        module.kernel,
        module.helper,
        module.Mode,
        module.Config,
        module.Level,
        module.kernel.fn.__code__,
        *texts,
    )
    return [weakref.ref(one) for one in kept]


@pytest.mark.parametrize("use", [launch, fail, prepare, pass_config, pass_without_annotations, look_inside])
def test_a_module_is_freed_with_all_its_globals(tmp_path, use):
    refs = used(tmp_path / "short_lived.py", use)
    gc.collect()
    assert [ref() for ref in refs if ref() is not None] == []


def test_kernels_that_are_dropped_leave_nothing():
    """As a notebook does that defines a kernel again and again."""
    factor = 3.0

    def make():
        @dither.jit
        def kernel(x, y):
            dl.store(y, (0,), dl.load(x, (0,), (8,)) * factor)

        for _ in range(2):
            kernel[1](X, Y)
        return weakref.ref(kernel)

    def objects():
        gc.collect()
        return len(gc.get_objects())

    make()
    before = objects()
    refs = [make() for _ in range(200)]
    assert objects() - before < len(refs) + 50  # the references themselves
    assert all(ref() is None for ref in refs)
