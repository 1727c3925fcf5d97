#!/usr/bin/env python3
"""Runs lit, the gtest binaries, pytest, random tile programs, and what runs kernels for aarch64 and under sanitizers;
closes with one line: N passed, N failed, N skipped.

What to run comes from build/test/suites.json, which CMake writes. Counts are read from each
runner's own report (lit's JSON, gtest's JSON, pytest's JUnit XML), never from its text. A runner
that dies, hangs or runs no test counts as one failure. Exits 1 if anything failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SUITES = ("unit", "lit", "aarch64", "pytest", "programs", "sanitize")
#: Random tile programs: seconds for which they are run, the first seed, and at most how many: every run makes the same.
PROGRAM_SECONDS, PROGRAM_SEED, PROGRAM_COUNT = 60, 1, 480
#: CMake presets, and the gtest binaries that are built and run with each: what threads and processes share.
SANITIZERS = ("asan-ubsan", "tsan")
SANITIZED = ("CacheTests", "RuntimeTests", "LaunchTests", "CInterfaceTests", "ProgramTests", "XlaTests")
ROOT = Path(__file__).resolve().parent.parent
#: The preset for aarch64, where its packages lie, the gtest binaries that are built, and what runs them.
AARCH64, SYSROOT = "aarch64", ROOT / "build-aarch64" / "sysroot"
CROSS = ("NumericsTests", "RuntimeTests", "LaunchTests", "ProgramTests", "CInterfaceTests")
QEMU = ("qemu-aarch64", "-L", str(SYSROOT))
#: What starts its own program again, or forks where there are threads: qemu-user does neither.
NOT_EMULATED = ("DevicesTest.With*", "ThreadPool.ReadsTheEnvironment", "ThreadPool.SurvivesFork")


@dataclasses.dataclass
class Result:
    """What one runner did; `failures` are one line each."""

    name: str
    passed: int = 0
    skipped: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    slowest: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def fail(self, why: str) -> None:
        self.failures.append(f"{self.name}: {why}")


def run(
    command: list[str],
    timeout: float,
    capture: bool = False,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[int | None, str, float]:
    """Runs a command in its own process group, which is ended as a whole at the timeout, but for a minute in which it
    may say what it did until then.

    Returns (exit status or None for a timeout, output if captured, seconds).
    """
    start = time.monotonic()
    pipe = subprocess.PIPE if capture else None
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=subprocess.STDOUT if capture else None,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        status = None
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return status, (output or b"").decode(errors="replace"), time.monotonic() - start


def ended(status: int | None, timeout: float) -> str:
    """How a process ended, in words."""
    if status is None:
        return f"did not end within {timeout:.0f} s"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"exited with {status}"


def read_gtest(report: Path, result: Result) -> None:
    """Adds the counts of a gtest JSON report."""
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("failures"):
                result.fail(name)
            elif test["status"] == "NOTRUN" or test.get("result") == "SKIPPED":
                result.skipped += 1
            else:
                result.passed += 1
            result.slowest.append((float(test.get("time", "0s").rstrip("s")), f"{result.name}: {name}"))


def run_unit(
    binary: Path,
    reports: Path,
    timeout: float,
    emulator: tuple[str, ...] = (),
    less: tuple[str, ...] = (),
    shard: tuple[int, int] = (0, 1),
) -> tuple[Result, str]:
    """One gtest binary, less some tests, or one of so many parts of it; its output comes back to be shown where
    something failed."""
    part, parts = shard
    result = Result(binary.name if parts == 1 else f"{binary.name} {part + 1}/{parts}")
    report = reports / f"{binary.name}-{part}.json"
    report.unlink(missing_ok=True)
    if not binary.exists():
        result.fail(f"{binary} was not built")
        return result, ""
    command = [*emulator, str(binary), f"--gtest_output=json:{report}", "--gtest_color=no", "--gtest_brief=1"]
    command += [f"--gtest_filter=-{':'.join(less)}"] if less else []
    env = {**os.environ, "GTEST_SHARD_INDEX": str(part), "GTEST_TOTAL_SHARDS": str(parts)}
    status, output, result.seconds = run(command, timeout, capture=True, env=env)
    if report.exists():
        read_gtest(report, result)
    if status != 0 and not result.failures:
        result.fail(ended(status, timeout))
    elif result.passed + result.skipped == 0 and not result.failures:
        result.fail("ran no test")
    return result, output if result.failures else ""


def run_units(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """All gtest binaries, `jobs` at a time."""
    binaries = [Path(suites["units_dir"]) / name for name in suites["units"]]
    results = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run_unit, binary, reports, args.timeout) for binary in binaries]
        for future in concurrent.futures.as_completed(futures):
            result, output = future.result()
            print(f"  {result.name}: {result.passed} passed, {len(result.failures)} failed ({result.seconds:.1f} s)")
            if output:
                print(output, flush=True)
            results.append(result)
    if not binaries:
        results.append(Result("gtest", failures=["gtest: found no test binary"]))
    return results


def run_lit(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """All lit tests in one run."""
    result = Result("lit")
    report = reports / "lit.json"
    report.unlink(missing_ok=True)
    command = [suites["lit"], "-sv", "--no-progress-bar", f"-j{args.jobs}", "--output", str(report), suites["lit_site"]]
    if args.filter:
        command += ["--filter", args.filter]
    status, _, result.seconds = run(command, args.timeout)
    if report.exists():
        for test in json.loads(report.read_text())["tests"]:
            if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
                result.passed += 1
            elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
                result.skipped += 1
            else:
                result.fail(f"{test['name']} ({test['code']})")
            result.slowest.append((test.get("elapsed") or 0.0, test["name"]))
    if status != 0 and not result.failures:
        result.fail(ended(status, args.timeout))
    elif result.passed == 0 and not result.failures:
        result.fail("ran no test")
    return [result]


def run_pytest(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """All pytest tests in one run."""
    result = Result("pytest")
    report = reports / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"-n{args.jobs}",
        "--dist=loadgroup",
        f"--junitxml={report}",
        suites["pytest"],
    ]
    if args.filter:
        command += ["-k", args.filter]
    if args.exhaustive:
        command.append("--exhaustive")
    env = dict(os.environ, PYTHONPATH=suites["pythonpath"])
    status, _, result.seconds = run(command, args.timeout, env=env)
    if report.exists():
        for test in ElementTree.parse(report).iter("testcase"):
            name = f"{test.get('classname')}::{test.get('name')}"
            if test.find("failure") is not None or test.find("error") is not None:
                result.fail(name)
            elif test.find("skipped") is not None:
                result.skipped += 1
            else:
                result.passed += 1
            result.slowest.append((float(test.get("time", 0)), name))
    if status == 5 or (status == 0 and result.passed == 0):
        result.fail("ran no test")
    elif status is None or (status != 0 and not result.failures):
        result.fail(ended(status, args.timeout))
    return [result]


def run_programs(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """Random tile programs (test/fuzz/programs) on all targets. One test."""
    result = Result("programs")
    fuzzer = Path(__file__).resolve().parent.parent / "test" / "fuzz" / "programs"
    command = [sys.executable, str(fuzzer), f"--seed={PROGRAM_SEED}", f"--seconds={PROGRAM_SECONDS}"]
    command += [f"--count={PROGRAM_COUNT}", f"--jobs={args.jobs}", f"--output={reports / 'programs'}"]
    env = dict(os.environ, PYTHONPATH=suites["pythonpath"])
    status, _, result.seconds = run(command, args.timeout, env=env)
    if status == 0:
        result.passed = 1
    else:
        result.fail(ended(status, args.timeout))
    return [result]


def run_fuzzer(fuzzer: Path, corpus: str, seconds: int, timeout: float) -> tuple[Result, str]:
    """One libFuzzer program: its corpus, then inputs that it makes for some seconds. One test."""
    result = Result(fuzzer.name)
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(fuzzer), f"-max_total_time={seconds}", f"-artifact_prefix={fuzzer.parent}/", scratch]
        status, output, result.seconds = run([*command, *([corpus] if corpus else [])], timeout, capture=True)
    if status == 0:
        result.passed = 1
    else:
        result.fail(ended(status, timeout))
    return result, output if result.failures else ""


def step(args: argparse.Namespace, made: Result, *command: str) -> bool:
    """Whether a command succeeds, whose output is shown where it does not."""
    status, output, seconds = run(list(command), args.timeout, capture=True, cwd=ROOT)
    made.seconds += seconds
    if status != 0:
        print(output, flush=True)
        made.fail(f"'{' '.join(command)}' {ended(status, args.timeout)}")
    return status == 0


def build_preset(
    preset: str, args: argparse.Namespace, made: Result, names: tuple[str, ...], *more: str
) -> tuple[Path, list[str], dict[str, str]]:
    """Configures a preset's tree and builds the gtest binaries of `names`, its fuzzers and `more`; returns the tree,
    the binaries, and the fuzzers with their corpora."""
    build = ROOT / f"build-{preset}"
    if not step(args, made, "cmake", "--preset", preset, f"-DPython3_EXECUTABLE={sys.executable}"):
        return build, [], {}
    found = json.loads((build / "test" / "suites.json").read_text())
    units = [name for name in found["units"] if name in names]
    if not step(args, made, "ninja", "-C", str(build), f"-j{args.jobs}", *units, *found["fuzzers"], *more):
        return build, [], {}
    return build, units, found["fuzzers"]


def run_aarch64(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """Builds what runs kernels for aarch64, and runs its gtest binaries under qemu-user. What Python compiles for
    aarch64 is run by pytest, where this has built the library."""
    results = [made := Result(AARCH64)]
    if not step(args, made, str(ROOT / "tools" / "aarch64_sysroot"), str(SYSROOT)):
        return results
    build, units, _ = build_preset(AARCH64, args, made, CROSS, "dither_runtime")
    print(f"  {AARCH64}: built in {made.seconds:.1f} s", flush=True)
    place = reports / AARCH64
    place.mkdir(exist_ok=True)
    parts = 2 * args.jobs
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        # Almost all of the time is that of a few tests of one binary.
        futures = [
            pool.submit(run_unit, build / "unit" / name, place, args.timeout, QEMU, NOT_EMULATED, (part, parts))
            for name in units
            for part in range(parts)
        ]
        results += collect(AARCH64, futures)
    return results


def collect(name: str, futures: list[concurrent.futures.Future[tuple[Result, str]]]) -> list[Result]:
    """What runners of one tree did, as they end, under its name."""
    results = []
    for future in concurrent.futures.as_completed(futures):
        result, output = future.result()
        result.name = f"{name}: {result.name}"
        print(f"  {result.name}: {result.passed} passed, {len(result.failures)} failed ({result.seconds:.1f} s)")
        if output:
            print(output, flush=True)
        results.append(result)
    return results


def run_sanitized(suites: dict, args: argparse.Namespace, reports: Path) -> list[Result]:
    """Builds and runs SANITIZED for each of SANITIZERS, and the fuzzers of those that have some."""
    results = []
    for preset in SANITIZERS:
        results.append(made := Result(preset))
        build, units, fuzzers = build_preset(preset, args, made, SANITIZED)
        place = reports / preset
        place.mkdir(exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            futures = [
                pool.submit(run_fuzzer, build / "fuzz" / n, corpus, args.fuzz_seconds, args.timeout)
                for n, corpus in fuzzers.items()
            ]
            futures += [pool.submit(run_unit, build / "unit" / name, place, args.timeout) for name in units]
            results += collect(preset, futures)
        print(f"  {preset}: built in {made.seconds:.1f} s", flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", choices=SUITES, action="append", help="run this suite alone (repeatable)")
    parser.add_argument("--filter", help="a lit --filter and pytest -k expression")
    parser.add_argument("--exhaustive", action="store_true", help="run every case of pytest, where others run a sample")
    parser.add_argument("--timeout", type=float, default=4200, help="seconds for each runner")
    parser.add_argument("--fuzz-seconds", type=int, default=10, help="for each fuzzer")
    args = parser.parse_args()

    description = args.build / "test" / "suites.json"
    if not description.exists():
        print(f"error: {description} was not found: configure first (make build)", file=sys.stderr)
        return 2
    suites = json.loads(description.read_text())
    needed = {"lit": suites["lit"], "pytest": suites["pytest"], "programs": suites["pytest"]}
    runners = {"unit": run_units, "lit": run_lit, "aarch64": run_aarch64}
    runners |= {"pytest": run_pytest, "programs": run_programs, "sanitize": run_sanitized}
    reports = (args.build / "test" / "reports").resolve()
    reports.mkdir(parents=True, exist_ok=True)

    results: list[Result] = []
    for name in SUITES:
        if name in (args.only or SUITES) and needed.get(name, True):
            print(f"== {name}", flush=True)
            results += runners[name](suites, args, reports)

    slowest = sorted((entry for result in results for entry in result.slowest), reverse=True)[:10]
    print("== slowest")
    for seconds, name in slowest:
        print(f"  {seconds:6.1f} s  {name}")
    failures = [failure for result in results for failure in result.failures]
    for failure in failures:
        print(f"FAILED {failure}")
    passed = sum(result.passed for result in results)
    skipped = sum(result.skipped for result in results)
    print(f"{passed} passed, {len(failures)} failed, {skipped} skipped", flush=True)
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
