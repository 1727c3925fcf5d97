"""`dither profile`."""

import html
import html.parser
import json
import re

import pytest

PROGRAM = """
import sys
import ml_dtypes
import numpy as np
from kernels import double

for rows, times in ((64, 2), (128, 1)):
    x = np.ones((rows, 256), np.float32)
    y = np.empty(x.shape, ml_dtypes.bfloat16)
    for _ in range(times):
        double[rows // 8](x, y, ROWS=8)
print("arguments", sys.argv[1:])
"""
KERNEL = ("x=f32[64,256]", "y=bf16[64,256]", "ROWS=8", "--grid", "8")


@pytest.fixture
def program(tmp_path, kernel_file):
    """A file that launches `double` three times, on two grids."""
    path = kernel_file.with_name("program.py")
    path.write_text(PROGRAM)
    return path


def test_a_program(process, program, tmp_path):
    figures = tmp_path / "figures.json"
    result = process("profile", program, "--device", "sim:sm_100a", "--args", "a 'b c'", "--json", figures)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "arguments ['a', 'b c']"
    head, *rows = [line.split() for line in lines[1:4]]
    assert head[:6] == ["kernel", "target", "grid", "threads", "launches", "instr"]
    assert [[*row[:4], row[5]] for row in rows] == [
        ["1:", "double", "sm_100a", "8x1x1", "2"],
        ["2:", "double", "sm_100a", "16x1x1", "1"],
    ]
    both = json.loads(figures.read_text())
    assert [(one["launches"], one["grid"]) for one in both] == [(2, [8, 1, 1]), (1, [16, 1, 1])]
    size = 64 * 256 * 6
    assert [(one["moved"], one["minimum"]) for one in both] == [(2 * size, 2 * size)] * 2
    for one in both:
        assert sum(one["classes"].values()) == one["counts"]["warps"]
        assert sum(line["counts"]["lanes"] for line in one["lines"]) == one["counts"]["lanes"]


def test_a_kernel(process, kernel_file, tmp_path):
    result = process("profile", f"{kernel_file}:double", *KERNEL, "--device", "sim:sm_80", "--lines", 2)
    assert result.code == 0, result.err
    assert result.out.splitlines()[1].split()[:3] == ["double", "sm_80", "8x1x1"]
    assert "65.5kB" in result.out and "32.8kB" in result.out
    found = [line for line in result.out.splitlines() if f"{kernel_file}:" in line]
    assert len(found) == 2
    assert any(line.endswith("dl.store(y, (r, 0), (t + t).to(dl.bfloat16))") for line in found)


class Rows(html.parser.HTMLParser):
    """The rows of a page that have counts: the text of the line, its counts and where it comes from."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.links = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("src", "href") if name in given]
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append(["", json.loads(given["data-c"]) if "data-c" in given else None, given.get("data-at")])

    def handle_data(self, data):
        if self.tags[-1:] == ["td"]:
            self.rows[-1][0] += data

    def handle_endtag(self, tag):
        if tag in self.tags:
            while self.tags.pop() != tag:
                pass


def test_the_heat_map(process, kernel_file, tmp_path):
    page = tmp_path / "map.html"
    result = process("profile", f"{kernel_file}:double", *KERNEL, "--html", page)
    assert result.code == 0, result.err
    assert result.out.endswith(f"heat map in {page}\n")
    parsed = Rows(page.read_text())
    assert parsed.links == []
    assert parsed.tags == []
    source = kernel_file.read_text().splitlines()
    python = [row for row in parsed.rows if row[1] and any(row[0].endswith(line) for line in source if line.strip())]
    ptx = [row for row in parsed.rows if row[1] and row not in python]
    (stored,) = [row for row in python if "dl.store(y" in row[0]]
    stores = [row for row in ptx if "st.global" in row[0]]
    assert stores and all(
        row[2] == stored[2] == f"{kernel_file}:{source.index(stored[0].lstrip('0123456789')) + 1}" for row in stores
    )
    # Every instruction of a Python line is one of the PTX lines that it became.
    for row in python:
        mine = [r[1] for r in ptx if r[2] == row[2]]
        assert row[1] == [sum(column) for column in zip(*mine, strict=True)]
    assert sum(row[1][2] for row in stores) == 64 * 256 * 2


def predicted(out):
    """Rows of the two tables of predictions, by (kernel, gpu), as words by the columns' heads."""
    found = {}
    for part in out.partition("predicted, in %")[2].split("\n\n")[1:3]:
        head, *rows = [re.split(r"\s{2,}", line.strip()) for line in part.strip().splitlines()]
        for row in rows:
            found.setdefault((row[0], row[1]), {}).update(zip(head, row, strict=True))
    return found


def test_predictions(process, kernel_file, tmp_path):
    """A kernel of few instructions at 4096 rows is as fast as a copy on each GPU of the target; both tables, JSON and
    the page say so."""
    figures, page = tmp_path / "figures.json", tmp_path / "map.html"
    words = ("x=f32[2048,1024]", "y=bf16[2048,1024]", "ROWS=8", "--grid", "256", "--json", figures, "--html", page)
    result = process("profile", f"{kernel_file}:double", *words)
    assert result.code == 0, result.err
    rows = predicted(result.out)
    assert list(rows) == [("double", "H100"), ("double", "H200")]
    (one,) = json.loads(figures.read_text())
    for row, found in zip(rows.values(), one["predicted"], strict=True):
        assert row["bytes"] == "100%" and int(row["latency"].rstrip("%")) > 50
        assert 50 < int(row["speed"].rstrip("%")) <= 110
        assert row["speed"] == f"{100 * found['speed']:.0f}%" and row["gpu"] == found["gpu"]
        assert row["blocks/SM"] == str(found["occupancy"]["blocks"])
        assert float(row["waves"]) == pytest.approx(256 / 132 / found["occupancy"]["blocks"], abs=0.01)
        assert row["counted"] == found["work"]["source"]
        assert (found["work"]["loaded"], found["work"]["stored"]) == (8 * 1024 * 4, 8 * 1024 * 2)
    assert html.unescape(page.read_text()).count("predicted, in % of the speed of a copy") == 1


@pytest.mark.parametrize("order", ["column_major", "128x4", "linear"])
def test_orders_of_scales_of_an_operator(process, order):
    """Names that kernels know, too, are strings here."""
    scales = "mxfp8_e4m3" if order == "128x4" else "fp8_1x128_e4m3"
    words = ("quantize", "x=bf16[128,256]", f"format={scales}", "layout=colwise", f"scale_layout={order}")
    result = process("profile", "--operator", *words, "--device", "sim:sm_90a")
    assert result.code == 0, result.err


def test_predictions_of_an_operator(process):
    words = ("quantize", "x=bf16[128,1024]", "format=nvfp4", "amax=f32[]", "layout=both")
    result = process("profile", "--operator", *words, "--device", "sim:sm_100a", "--gpu", "b200", DITHER_PTXAS="/none")
    assert result.code == 0, result.err
    (row,) = predicted(result.out).values()
    # There is no ptxas: what the PTX says, whose registers nobody knows.
    assert (row["gpu"], row["counted"], row["registers"]) == ("B200", "ptx", "-")


def test_no_gpu_runs_the_code(process, kernel_file):
    result = process("profile", f"{kernel_file}:double", *KERNEL, "--device", "sim:sm_89")
    assert result.code == 0 and "predicted" not in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["{file}:double", *KERNEL, "--gpu", "H20"],
            2,
            "found GPU 'H20', expected one of A100, H100, H200, B200, RTX5090",
        ),
        (
            ["{file}:double", *KERNEL, "--gpu", "A100"],
            2,
            "found GPU 'A100' and code for sm_90a, expected --device sim:sm_80",
        ),
        (["--operator", "quantise", "x=f32[4,4]"], 2, "found operator 'quantise', expected a function of dither"),
        (["--operator", "quantize", "x=f32[4,4]", "--grid", "3"], 2, "found --grid or --num-warps with an operator"),
        (["gone.py"], 2, "gone.py was not found"),
        (["{file}", "--device", "cpu"], 2, "found device 'cpu', expected sim:TARGET: others count nothing"),
        (["{file}", "--device", "sim:sm_12"], 1, "device 'sim:sm_12': "),
        (["{file}"], 1, "{file} made no launches on sim:sm_90a"),
        (["{file}", "x=1"], 2, "found 'x=1' with a program, expected its arguments in --args"),
        (["{file}", "--grid", "3"], 2, "found --grid or --num-warps with a program"),
        (["{file}:double", *KERNEL[:3]], 2, "found a kernel and no --grid, expected the number of its programs"),
        (["{file}:double", "x=f32[?,256]", *KERNEL[1:]], 2, "parameter 'x' has an extent that is not known"),
        (["{file}:double", *KERNEL, "--filter", "other*"], 1, "{file}:double made no launches of kernels 'other*'"),
    ],
)
def test_errors(process, kernel_file, arguments, code, message):
    result = process("profile", *(text.format(file=kernel_file) for text in arguments))
    assert result.code == code
    assert result.err.startswith("error: " + message.format(file=kernel_file)), result.err


def test_grids_that_are_none(dither, kernel_file):
    for grid in ("0", "1,2,3,4", "1,x"):
        assert dither("profile", f"{kernel_file}:double", "--grid", grid).code == 2


def test_a_program_that_fails(process, program):
    program.write_text("import sys; sys.exit('no input')")
    assert process("profile", program).err == f"error: {program} ended with no input\n"
    program.write_text("1 / 0")
    assert process("profile", program).err == (
        f"error: {program} cannot be run: ZeroDivisionError: division by zero\n"
        f"    {program}:1, in <module>\n        1 / 0\n"
    )
