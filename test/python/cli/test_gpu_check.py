"""tools/gpu_check and what it runs, against the fake CUDA driver."""

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import dither
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(dither.__file__).parent
BUILD = PACKAGE.parents[1]
FAKE = BUILD / "fakecuda" / "libcuda.so.1"
ONE = "quantize-mxfp4-rowwise-linear-bfloat16"

needs_fake = pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built")


def gpu_check(tmp_path, *arguments, **variables):
    """(exit code, output, what was written)."""
    file = tmp_path / "result.json"
    command = [sys.executable, ROOT / "tools" / "gpu_check", "--json", file, "--jobs", "1", *arguments]
    made = subprocess.run(
        [str(word) for word in command], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert "Traceback" not in made.stdout + made.stderr, made.stdout + made.stderr
    return made.returncode, made.stdout + made.stderr, json.loads(file.read_text()) if file.exists() else None


@pytest.fixture(scope="module")
def compare():
    """The module tools/gpu_checks/compare.py."""
    spec = importlib.util.spec_from_file_location("compare", ROOT / "tools" / "gpu_checks" / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_fake
def test_dry_run(tmp_path):
    steps = "doctor,compare,frameworks,tests,programs,launch,predict"
    code, out, found = gpu_check(tmp_path, "--dry-run", "--build", BUILD, "--only", steps, "--filter", ONE)
    assert code == 0, out
    assert {c["name"]: c["status"] for c in found["checks"]} == {
        "install": "pass",
        "doctor": "pass",
        "compare": "pass",
        "frameworks": "skip",
        "tests": "pass",
        "programs": "pass",
        "launch": "pass",
        "predict": "pass",
    }
    check_predictions(found["predict"], out)
    assert found["launch"]["us"]["4"]["dither"] > 0
    assert found["device"] == "cuda:0: Fake GPU, sm_90a"
    assert [r["name"] for r in found["compare"]] == [f"{ONE} 256x1024", f"{ONE} 133x1000"]
    assert found["dry_run"] and found["date"].endswith("Z") and len(found["commit"].rstrip("+")) in (7, 40)
    assert "numpy" in found["machine"]["packages"]
    assert any(line.startswith("DITHER_CACHE_DIR") for line in found["doctor"])


def check_predictions(found, out):
    """Each row has what was predicted and measured, and the launches that a calibration needs."""
    from dither.predict.calibrate import calibrate
    from dither.predict.work import of_json

    assert (found["gpu"], found["sms"]) == ("H200", 132)
    names = [row["name"] for row in found["rows"]]
    assert names[3:] == ["quantize-mxfp8-row 4096", "rms_norm-nvfp4-row 4096"]
    for row in found["rows"]:
        assert row["predicted"] > 0 and row["measured"] > 0
        assert f"{1e6 * row['predicted']:>10.1f}" in next(line for line in out.splitlines() if row["name"] in line)
        assert all(of_json(work).blocks > 0 for work in row["launches"])
    # Too few to fit to, which says that they are read.
    with pytest.raises(ValueError, match="found 5 measured rows, expected at least 6"):
        calibrate({"predict": found})


@needs_fake
def test_a_launch_that_fails(tmp_path):
    words = ("--dry-run", "--build", BUILD, "--only", "compare", "--filter", ONE)
    code, out, found = gpu_check(tmp_path, *words, FAKE_CUDA_FAIL="cuLaunchKernel#2=1")
    assert code == 1
    check = found["checks"][-1]
    assert (check["name"], check["status"]) == ("compare", "fail")
    assert check["message"].startswith(f"1 of 2 failed:\n{ONE} 133x1000: RuntimeFailure: ")
    assert "failed: compare" in out


@needs_fake
def test_no_kernel_matches(tmp_path):
    words = ("--dry-run", "--build", BUILD, "--only", "compare", "--filter", "nothing")
    code, _, found = gpu_check(tmp_path, *words)
    assert (code, found["checks"][-1]["message"]) == (1, "ran nothing")


@needs_fake
def test_a_device_that_is_not_there(tmp_path):
    words = ("--dry-run", "--build", BUILD, "--only", "doctor", "--device", "cuda:7")
    code, _, found = gpu_check(tmp_path, *words)
    assert code == 1
    assert found["checks"][-1]["message"].startswith("there is no device cuda:7: cpu: ")


@needs_fake
def test_the_wheel_is_what_is_checked(tmp_path):
    wheel = tmp_path / "dither.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path.resolve(), f"dither/{path.relative_to(PACKAGE)}")
    words = ("--dry-run", "--build", BUILD, "--wheel", wheel, "--only", "doctor")
    code, out, found = gpu_check(tmp_path, *words)
    assert code == 0, out
    assert found["checks"][0]["message"].startswith("dither.whl in ")
    assert found["checks"][0]["message"].endswith("/site")


def test_without_a_wheel(tmp_path):
    code, _, found = gpu_check(tmp_path, "--wheel", tmp_path / "gone.whl")
    assert code == 1
    assert found["checks"] == [
        {"name": "install", "status": "fail", "message": f"{tmp_path / 'gone.whl'} was not found", "seconds": 0.0}
    ]


def test_mistakes(tmp_path):
    code, out, found = gpu_check(tmp_path, "--only", "install,dance")
    assert (code, found) == (2, None)
    assert "unknown step 'dance', expected install, doctor, compare" in out
    code, out, _ = gpu_check(tmp_path, "--dry-run", "--build", tmp_path)
    assert code == 2
    assert "libcuda.so.1 was not found" in out


def test_compare_runs_every_kernel_and_finds_them_equal(tmp_path):
    """The CPU against itself: the inputs, launches and comparisons are those of a GPU."""
    file = tmp_path / "compare.json"
    command = [sys.executable, ROOT / "tools" / "gpu_checks" / "compare.py", "--device", "cpu", "--json", file]
    for names in ("amax-*", "*quantize-nvfp4-rowwise-*float16", "rms_norm-with*"):
        made = subprocess.run([*map(str, command), "--filter", names], capture_output=True, text=True)
        assert (made.returncode, made.stderr) == (0, "")
        results = json.loads(file.read_text())
        assert len(results) >= 2
        assert all(result["error"] == "" for result in results)


def test_difference(compare):
    codes = {"row_data": np.array([[1, 2], [3, 4]], np.uint8)}
    assert compare.difference(codes, codes) == ""
    other = {"row_data": np.array([[1, 2], [7, 4]], np.uint8)}
    message = "row_data differs in 1 of 4, first at (1, 0): 0x7, expected 0x3"
    assert compare.difference(other, codes) == message
    nan = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    payload = np.array([0x7FFFFFFF, 0x3F800000], np.uint32).view(np.float32)
    assert compare.difference({"y": payload}, {"y": nan}) == ""
    zero, minus = np.zeros(2, np.float32), -np.zeros(2, np.float32)
    assert compare.difference({"y": minus}, {"y": zero}).startswith("y differs in 2 of 2")


def test_inputs_hold_what_is_special(compare):
    from dither.ops.library import library

    entries = {entry.name: entry for entry in library("host", (256, 1024))}
    x = compare.inputs(entries[ONE], np.random.default_rng(0))["x"].astype(np.float32)
    assert np.isnan(x).any() and np.isinf(x).any() and (x == 0).any()
    arrays = compare.inputs(entries["dequantize-nvfp4-rowwise-float32"], np.random.default_rng(0))
    assert arrays["data"].shape == (256, 512)
    assert len(np.unique(arrays["data"])) == 256
    assert not arrays["y"].any()


def test_a_launch_that_the_log_does_not_hold(compare):
    from dither.ops.library import library

    entry = next(e for e in library("sm_90a", (256, 1024)) if e.name == ONE)
    threads = entry.compile("sm_90a").image.num_threads
    good = f"quantize_kernel grid=64x1x1 block={threads}x1x1 shared=0 stream=0 params=1,2,3,4,5,6"
    assert entry.grid == (64, 1)
    assert compare.check_launch(entry, [good], "sm_90a") == ""
    assert compare.check_launch(entry, [good, good], "sm_90a") == "found 2 launches, expected one"
    assert "expected a launch" in compare.check_launch(entry, ["hello"], "sm_90a")
    for wrong in (good.replace("64x1", "65x1"), good + ",7", good.replace("quantize", "amax")):
        assert compare.check_launch(entry, [wrong], "sm_90a").startswith("found the launch")


def on_device(tmp_path, device):
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT / "tools" / "gpu_checks")])}
    # Arrays for results that nobody writes must not lie where the right ones lay: malloc fills what it gives.
    env |= {"GPU_CHECK_LIBCUDA": str(FAKE), "MALLOC_PERTURB_": "165"}
    tests = ROOT / "test" / "python" / "ops" / "test_support_matrix.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_on_device", "-p", "no:cacheprovider"]
    command += ["--exhaustive", "--on-device", device, "-k", "quantize-mxfp4-rowwise-linear-float32", str(tests)]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)


@needs_fake
def test_tests_run_where_they_are_told(tmp_path):
    """The fake driver runs nothing, so that a test fails which reaches it, and passes where it does not."""
    assert on_device(tmp_path, "cpu").returncode == 0
    made = on_device(tmp_path, "cuda:0")
    assert made.returncode == 1
    assert "1 failed" in made.stdout


def test_frameworks_without_a_gpu(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "frameworks.json"
    command = [sys.executable, ROOT / "tools" / "gpu_checks" / "frameworks.py", "--device", "cpu", "--json", file]
    assert subprocess.run([str(word) for word in command]).returncode == 0
    results = {result["name"]: result for result in json.loads(file.read_text())}
    assert results["numpy_staged"]["error"] == ""
    assert "skipped" not in results["numpy_staged"]
    if "torch finds no CUDA device" in results["torch_tensor"].get("skipped", ""):
        assert all("skipped" in result for name, result in results.items() if name != "numpy_staged")


def benchmark(*arguments, **variables):
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--size", "0.2", "--cols", "512"]
    command += ["--dtype", "bf16", "--repetitions", "2", *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(PACKAGE.parent), **variables}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


def test_benchmark_program(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    file = tmp_path / "rows.json"
    words = ("--only", "MXFP4", "--only", "row+col", "--peer", "dither", "--json", file)
    made = benchmark(*words)
    assert made.returncode == 0, made.stdout + made.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [row["operator"] for row in rows] == ["quantize MXFP4", "quantize MXFP8 row+col"]
    # Rows of 512 bf16, a multiple of 128 of them: 1/2 + 1/32 bytes written for each two read, and 2 (1 + 1/32).
    assert [row["bytes"] for row in rows] == [128 * 512 * 81 // 32, 128 * 512 * 65 // 16]
    assert all(set(row["seconds"]) == {"copy", "dither"} and not row["differs"] for row in rows)


def test_benchmark_of_triton_gives_the_bits(tmp_path):
    pytest.importorskip("triton")
    file = tmp_path / "rows.json"
    words = ("--only", "quantize MXFP4", "--peer", "Triton", "--json", file)
    made = benchmark(*words, TRITON_INTERPRET="1")
    assert made.returncode == 0, made.stdout + made.stderr
    row = json.loads(file.read_text())["rows"][0]
    assert row["differs"] == {} and row["missing"] == {}
    assert "warps" in row["choices"]["Triton"]


def test_benchmark_refuses_wrong_bits(monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import gpu

    expected = gpu.expected

    def other(case):
        return {name: array ^ (name == "scale") for name, array in expected(case).items()}

    monkeypatch.setattr(gpu, "expected", other)
    words = ["--device", "cpu", "--size", "0.2", "--cols", "512", "--dtype", "bf16", "--repetitions", "1"]
    assert gpu.main([*words, "--only", "quantize MXFP4", "--peer", "dither"]) == 1
    assert "* dither, quantize MXFP4 bf16: 100.0000 % of scale differ" in capsys.readouterr().out


def test_benchmark_without_a_gpu():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    env = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    made = subprocess.run([sys.executable, "-m", "benchmarks.gpu"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (1, "error: torch finds no CUDA device\n")
