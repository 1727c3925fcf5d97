"""Results depend on the rows alone: not on their number, their place, the threads or the run."""

import hashlib
import os
import subprocess
import sys
import textwrap

import dither
import numpy as np
import pytest
from ops import data
from ops.check import FORMATS, array, bits, same_bits

M, N = 100, 4097


def rowwise(x, fmt):
    return dither.quantize(x, fmt, amax=30.0 if fmt == "nvfp4" else None)


@pytest.mark.parametrize("fmt", FORMATS)
def test_rows_alone_are_rows_of_a_batch(fmt):
    x = data.adversarial(M, N, "bfloat16")
    batch = rowwise(x, fmt)
    for rows in (slice(0, 1), slice(17, 18), slice(3, 20), slice(67, 100)):
        alone = rowwise(data.aligned(x[rows]), fmt)
        same_bits(alone.data, array(batch.data)[rows])
        same_bits(alone.scale_inv, array(batch.scale_inv)[rows])


@pytest.mark.parametrize("n", [100, 4097])
def test_norms_of_rows_alone_are_those_of_a_batch(n):
    """The order of a row's sum does not depend on the batch."""
    x, gamma = data.normal(M, n, "bfloat16"), data.normal(1, n, "bfloat16", seed=1)[0]
    batch = dither.rms_norm(x, gamma, format="mxfp8_e4m3")
    for rows in (slice(0, 1), slice(17, 18), slice(3, 20), slice(67, 100)):
        alone = dither.rms_norm(data.aligned(x[rows]), gamma, format="mxfp8_e4m3")
        same_bits(alone.rsigma, batch.rsigma[rows])
        same_bits(alone.out.data, array(batch.out.data)[rows])
        same_bits(alone.out.scale_inv, array(batch.out.scale_inv)[rows])


OPERATORS = {name: op for name in dither.__all__ if isinstance(op := getattr(dither, name), dither.ops.Fused)}
#: What is dropped depends on an element's place.
BY_PLACE = ("add_dropout", "ddropout")


def operands(producer, m, n):
    """Operands of a producer, those that may be left out included, by name."""
    made = {}
    shapes = {"tile": (m, n), "row": (1, n), "column": (1, m), "periodic": (m, 32)}
    for i, (name, role) in enumerate(producer.roles.items()):
        if role in shapes:
            x = data.normal(*shapes[role], "bfloat16" if role == "tile" else "float32", seed=i)
            made[name] = x[0] if role in ("row", "column") else x
    return made


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in BY_PLACE])
def test_rows_of_every_operator(name):
    """What is made of a row depends on that row alone: output, codes, scales, and what is saved of it."""
    operator = OPERATORS[name]
    producer = operator.operator.producer
    given = operands(producer, 70, 192)
    kinds = {field: kind for field, kind in producer.saves.items() if kind != "column_sum"}
    for fmt in (None, "mxfp8_e4m3"):
        batch = operator(**given, format=fmt)
        for rows in (slice(0, 1), slice(17, 18), slice(3, 41)):
            sliced = {
                key: data.aligned(value[rows]) if producer.roles[key] != "row" else value
                for key, value in given.items()
            }
            alone = operator(**sliced, format=fmt)
            one, all_of = (x if producer.saves == {} else getattr(x, producer.output) for x in (alone, batch))
            if fmt is None:
                same_bits(one, array(all_of)[rows])
            else:
                same_bits(one.data, array(all_of.data)[rows])
                same_bits(one.scale_inv, array(all_of.scale_inv)[rows])
            for field in kinds:
                same_bits(getattr(alone, field), array(getattr(batch, field))[rows])


@pytest.mark.parametrize("fmt", FORMATS)
def test_columns_alone_are_columns_of_a_matrix(fmt):
    """Whole blocks of rows, quantized along columns."""
    x = data.adversarial(128, 100, "bfloat16")
    amax = 30.0 if fmt == "nvfp4" else None
    batch = dither.quantize(x, fmt, "colwise", amax=amax)
    alone = dither.quantize(data.aligned(x[32:96]), fmt, "colwise", amax=amax)
    rows, columns = (slice(None), slice(16, 48)) if fmt == "nvfp4" else (slice(32, 96), slice(None))
    same_bits(alone.data, array(batch.data)[rows, columns])
    rows, columns = (slice(None), slice(2, 6)) if fmt == "nvfp4" else (slice(1, 3), slice(None))
    same_bits(alone.scale_inv, array(batch.scale_inv)[rows, columns])


@pytest.mark.parametrize("fmt", FORMATS)
def test_both_is_rowwise_and_colwise(fmt):
    x = data.adversarial(37, 100, "bfloat16")
    both = dither.quantize(x, fmt, "both")
    for half, layout in ((both.rowwise, "rowwise"), (both.colwise, "colwise")):
        alone = dither.quantize(x, fmt, layout)
        same_bits(alone.data, half.data)
        same_bits(alone.scale_inv, half.scale_inv)


SCRIPT = """
    import hashlib
    import sys

    import dither
    import numpy as np
    from dither import _dither

    sys.path.append({tests!r})
    from ops import data
    from ops.check import bits, parts

    digest = hashlib.sha256()
    for _ in range(3):
        x, gamma = data.adversarial(300, 4097, "bfloat16"), data.normal(1, 4097, "bfloat16", seed=1)[0]
        for fmt in ("nvfp4", "mxfp8_e4m3"):
            norm = dither.rms_norm(data.normal(300, 4097, "bfloat16"), gamma, format=fmt, return_amax=True)
            arrays = [norm.rsigma, norm.amax]
            for part in [*parts(dither.quantize(x, fmt, "both")), norm.out]:
                arrays += [part.data, part.scale_inv, *([] if part.amax is None else [part.amax])]
                arrays.append(np.nan_to_num(part.dequantize(dither.float32)))
            for array in arrays:
                digest.update(bits(array).tobytes())
        # Sums of columns, of all rows and of groups.
        dz, x, gate = (data.normal(300, 512, "bfloat16", seed=i) for i in range(3))
        gamma, rsigma = data.normal(1, 512, "float32")[0], data.normal(1, 300, "float32", seed=1)[0]
        groups = dither.Groups(np.array([70, 0, 200, 30], np.int32))
        for found in (
            dither.layer_norm_backward(dz, x, rsigma, rsigma, gamma)[1:],
            dither.dbias_dswiglu(dz, x, gate, format="mxfp8_e4m3", layout="both")[1:],
            dither.dbias_dgelu(dz, x, groups=groups)[1:],
        ):
            for array in found:
                digest.update(bits(array).tobytes())
    print(_dither.num_threads(), digest.hexdigest())
"""


def test_number_of_threads():
    """1, 2, 3 and 8 threads, each in a process of its own, three runs each."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = textwrap.dedent(SCRIPT).format(tests=tests)
    found = {}
    for threads in (1, 2, 3, 8):
        env = dict(os.environ, DITHER_NUM_THREADS=str(threads))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        used, digest = done.stdout.split()
        assert int(used) == threads
        found[threads] = digest
    assert len(set(found.values())) == 1, found


def test_runs_are_alike():
    x = data.adversarial(300, 100, "bfloat16")
    digests = {hashlib.sha256(bits(rowwise(x, "nvfp4").data).tobytes()).hexdigest() for _ in range(20)}
    assert len(digests) == 1
    other = data.aligned(np.roll(x, 1, 0))
    assert hashlib.sha256(bits(rowwise(other, "nvfp4").data).tobytes()).hexdigest() not in digests
