"""lit: .mlir, .test and .py files under Dialect, Transforms, Conversion, Pipelines, Target, Tools and Execution.

Run through the build tree: `ninja -C build check-dither-lit`, or for one file
`/usr/lib/llvm-22/bin/lit -v build/test --filter Dialect/Quant/ops`.

Features a test may require:
  ptxas        a ptxas was found (DITHER_PTXAS, CUDA's, PATH, the one Triton carries); it is `%ptxas`
  python       the Python module is built; `%python` imports dither
  cuda-device  a CUDA device is present
  avx2, avx512 the host has them
"""

import glob
import os
import platform
import shutil
import subprocess

import lit.formats

config.name = "dither"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".py"]
config.excludes = ["lit.cfg.py", "Inputs", "fuzz", "unit", "python", "conftest.py"]
config.test_source_root = os.path.join(config.dither_source, "test")
config.test_exec_root = os.path.join(config.dither_build, "test")

path = [os.path.join(config.dither_build, "bin"), config.llvm_tools, config.environment["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["PYTHONPATH"] = os.path.join(config.dither_build, "python")
# Tests see no knobs but their own, and leave no cache behind in the home directory.
config.environment["DITHER_CACHE_DIR"] = os.path.join(config.dither_build, "test", "cache")


def find_ptxas():
    nvidia = os.path.join("triton", "backends", "nvidia", "bin")
    venv = os.path.join(os.path.dirname(os.path.dirname(config.python)), "lib", "python3.*", "site-packages", nvidia)
    candidates = [os.environ.get("DITHER_PTXAS"), "/usr/local/cuda/bin/ptxas", shutil.which("ptxas")]
    candidates += sorted(glob.glob(os.path.join(venv, "ptxas-blackwell"))) + sorted(
        glob.glob(os.path.join(venv, "ptxas"))
    )
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None


def has_cuda_device():
    smi = shutil.which("nvidia-smi")
    return bool(smi) and subprocess.run([smi, "-L"], capture_output=True).stdout.startswith(b"GPU")


def host_features():
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line.split() for line in f if line.startswith("flags")), [])
    except OSError:
        return
    if "avx2" in flags:
        yield "avx2"
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(flags):
        yield "avx512"


config.available_features.update(host_features())
config.available_features.add(platform.machine())
ptxas = find_ptxas()
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
if glob.glob(os.path.join(config.dither_build, "python", "dither", "_dither*.so")):
    config.available_features.add("python")
if has_cuda_device():
    config.available_features.add("cuda-device")
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%mlir_includes", " ".join(f"-I {path}" for path in config.mlir_includes)))
config.substitutions.append(("%dither", config.dither_source))
