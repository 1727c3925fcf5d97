"""Every combination of format, layout, scale layout, input type and producer; the cells of docs/support-matrix.md."""

import functools

import dither
import numpy as np
import oracle
import pytest
from ops import check, data, matrix
from ops.reference import check_part

M, N = 37, 100


def outcome(run):
    """`exact`, or the error that refused the combination. Wrong bits fail the test: no cell says so."""
    try:
        run()
    except AssertionError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "exact"


def place(column):
    """Input type and device of a column."""
    return (column, "cpu") if column in data.DTYPES else ("bfloat16", f"sim:{column}")


def check_values(result, x, layout, scales, dtype, device):
    """Codes and scales, and the values that the same device gives for them."""
    if result.format.name not in check.FORMATS:
        for part in check.parts(result):
            check_part(part, np.asarray(x).astype(np.float32), part.format, scales, device=device)
        return
    check.check_quantized(result, x, layout, scales)
    for part in check.parts(result):
        reference = oracle.quantize(x, part.format.name, 0 if part.is_colwise else 1)
        want = check.expected_values(reference, part.format.name, part.is_colwise, data.DTYPES[dtype])
        check.same_values(dither.dequantize(part, device=device), want, "values")


def quantized(fmt, layout, scales, column):
    dtype, device = place(column)
    x = data.adversarial(M, N, dtype)
    result = dither.quantize(x, fmt, layout, scales, device=device)
    check_values(result, x, layout, scales, dtype, device)


def normalized(fmt, layout, scales, column):
    dtype, device = place(column)
    x = data.adversarial(M, N, dtype)
    gamma = data.normal(1, N, dtype, seed=1)[0]
    y, rsigma = check.expected_norm(x, gamma)
    result = dither.rms_norm(
        x, gamma, 1e-5, format=fmt, layout=layout, scale_layout=scales, return_amax=True, device=device
    )
    check.same_values(result.rsigma, rsigma, "rsigma")
    check.same_bits(result.amax, oracle.amax(y), "amax")
    check_values(result.out, y, layout, scales, dtype, device)


def layer_normalized(fmt, layout, scales, column):
    dtype, device = place(column)
    x, gamma, beta = data.adversarial(M, N, dtype), *(data.normal(1, N, dtype, seed=seed)[0] for seed in (1, 2))
    named = {"format": fmt, "layout": layout, "scale_layout": scales, "return_amax": True, "device": device}
    y, mean, rsigma = oracle.layer_norm(x, gamma, beta, 1e-5)
    with np.errstate(all="ignore"):
        y = y.astype(x.dtype).astype(np.float32)
    result = dither.layer_norm(x, gamma, beta, 1e-5, **named)
    check.same_values(result.mean, mean, "mean")
    check.same_values(result.rsigma, rsigma, "rsigma")
    check.same_bits(result.amax, oracle.amax(y), "amax")
    check_values(result.out, y, layout, scales, dtype, device)


def gated(fmt, layout, scales, column):
    """Its own bits are tested elsewhere: here what becomes of them."""
    dtype, device = place(column)
    gate, up = data.adversarial(M, N, dtype), data.normal(M, N, dtype, seed=1)
    named = {"format": fmt, "layout": layout, "scale_layout": scales, "return_amax": True, "device": device}
    y = np.asarray(dither.swiglu(gate, up)).astype(np.float32)
    result = dither.swiglu(gate, up, **named)
    check.same_bits(result.amax, oracle.amax(y), "amax")
    check_values(result.out, y, layout, scales, dtype, device)


def gradient(name, operands):
    """As `gated`: the output, whatever it is called, of these operands."""

    def cell(fmt, layout, scales, column):
        dtype, device = place(column)
        given = operands(dtype)
        named = {"format": fmt, "layout": layout, "scale_layout": scales, "return_amax": True, "device": device}
        plain = getattr(dither, name)(*given)
        y = np.asarray(plain[0] if isinstance(plain, tuple) else plain).astype(np.float32)
        result = getattr(dither, name)(*given, **named)
        check.same_bits(result.amax, oracle.amax(y), "amax")
        check_values(result[0], y, layout, scales, dtype, device)

    return cell


def of_norm(count):
    """Gradient, source, as many statistics of rows, and gamma."""

    def operands(dtype):
        dz, x = data.normal(M, N, dtype, seed=1), data.adversarial(M, N, dtype)
        statistics = [data.normal(1, M, "float32", seed=seed)[0] for seed in range(count)]
        return dz, x, *statistics, data.normal(1, N, dtype, seed=2)[0]

    return operands


def of_halves(dtype):
    return data.normal(M, 128, dtype, seed=1), data.adversarial(M, 256, dtype)


def of_activation(dtype):
    return data.normal(M, N, dtype, seed=1), data.adversarial(M, N, dtype)


CELLS = {
    "quantize": quantized,
    "rms_norm": normalized,
    "layer_norm": layer_normalized,
    "swiglu": gated,
    "dswiglu": gradient("dswiglu", of_halves),
    "dbias_dgelu": gradient("dbias_dgelu", of_activation),
    "rms_norm_backward": gradient("rms_norm_backward", of_norm(1)),
    "layer_norm_backward": gradient("layer_norm_backward", of_norm(2)),
}


@functools.cache
def page():
    """What the page says of each cell."""
    return matrix.parse(matrix.PATH.read_text())


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("cell", matrix.CELLS, ids="-".join)
def test_cell(cell, record_property, request):
    producer, *rest = cell
    found = outcome(lambda: CELLS[producer](*rest))
    record_property("support-matrix", (cell, found))
    if not request.config.getoption("--update-docs"):
        said = page().get(cell)
        assert said == found, f"{matrix.PATH.name} says {said!r}; run pytest --update-docs"


def test_page_is_what_the_cells_make(request):
    """The page holds the cells and nothing else: with test_cell, it is the page that this run would write."""
    if request.config.getoption("--update-docs"):
        pytest.skip("the page is about to be written")
    text = matrix.PATH.read_text()
    cells = matrix.parse(text)
    assert set(cells) == set(matrix.CELLS)
    assert text == matrix.render(cells)


def test_page_with_another_cell_is_another_page():
    cells = dict.fromkeys(matrix.CELLS, "exact")
    other = {**cells, matrix.CELLS[5]: "ValueError: why"}
    assert matrix.parse(matrix.render(other)) == other
    found = matrix.parse(matrix.render(cells))
    assert sum(found[c] != other[c] for c in cells) == 1
