"""Finds the tests and runs one of them.

A unit is what is started as one process: a GoogleTest program, a plain test program, a pytest file, a test script, the
tests of a Rust crate. A unit reports its test cases.

  GoogleTest, C     every test that CMake registered with add_test (`ctest --show-only`)
  pytest            test_*.py and *_test.py under tests/ and bindings/python/tests/; unittest classes, too
  script            executable files *_test.sh under tests/ and samples/: one case each
  Rust              crates (Cargo.toml) under sdk/ and bindings/rust/ that hold a #[test]

What a test finds in its environment: INLAID_SOURCE (root of the sources), INLAID_BUILD (the build tree), INLAID_TEST_DATA
(the folder of the pretrained model), INLAID_TEST_FULL=1 under --full, PYTHONPATH with the built binding, and TMPDIR, a
folder of its own that is removed afterwards. Standard input is empty.

Exactness of the count: a GoogleTest program that ends with 0 without having written its report is a failure (a test
called exit), so is a disabled case, and so is a skip for any reason but a missing GPU (its message says "no GPU").
"""

import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

import build as builder

PYTHON = "/usr/bin/python3"
TIMEOUT_SECONDS = 1200
FULL_TIMEOUT_SECONDS = 6 * 3600
NO_GPU = re.compile(r"\bno (gpu|cuda device)\b", re.IGNORECASE)


@dataclass
class Unit:
    name: str                # what --filter matches and the report shows
    kind: str                # program, pytest, script or cargo
    command: list
    cwd: str
    alone: bool = False      # nothing else runs beside it


@dataclass
class Result:
    unit: Unit
    seconds: float = 0.0
    passed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)  # of "case: message"
    output: str = ""

    def fail(self, case, message):
        self.failures.append(f"{case}: {message}")


# ---- finding ------------------------------------------------------------------------------------------------------


def registered_programs(build):
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, stdout=subprocess.PIPE, check=True,
                             stdin=subprocess.DEVNULL)
    units = []
    for test in json.loads(listing.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        if "command" not in test:  # the program was not built
            test["command"] = [os.path.join(build, "tests", test["name"])]
        units.append(Unit(test["name"], "program", test["command"], properties.get("WORKING_DIRECTORY", build),
                          bool(properties.get("RUN_SERIAL"))))
    return units


def files_below(source, top, matches):
    found = []
    for folder, folders, names in os.walk(os.path.join(source, top)):
        folders[:] = sorted(f for f in folders if f not in ("__pycache__", "target") and not f.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if matches(name)]
    return found


def pytest_files(source):
    files = []
    for top in ("tests", "bindings/python/tests"):
        files += files_below(source, top, lambda name: re.fullmatch(r"test_\w+\.py|\w+_test\.py", name))
    return [Unit(os.path.relpath(f, source), "pytest", [PYTHON, "-B", "-m", "pytest", f], source) for f in files]


def scripts(source):
    files = []
    for top in ("tests", "samples"):
        files += [f for f in files_below(source, top, lambda name: name.endswith("_test.sh")) if os.access(f, os.X_OK)]
    return [Unit(os.path.relpath(f, source), "script", [f], source) for f in files]


def crates(source, build):
    units = []
    for top in ("sdk", "bindings/rust"):
        for manifest in files_below(source, top, lambda name: name == "Cargo.toml"):
            folder = os.path.dirname(manifest)
            rust = files_below(folder, ".", lambda name: name.endswith(".rs"))
            if not any("#[test]" in open(file, encoding="utf-8").read() for file in rust):
                continue
            # The target folder beside the one of the build, so that the compiled dependencies are shared between runs.
            target = os.path.join(build, "cargo-tests")
            units.append(Unit(os.path.relpath(folder, source), "cargo",
                              ["cargo", "test", "--locked", "--manifest-path", manifest, "--target-dir", target], source))
    return units


def find_all(source, build):
    return registered_programs(build) + pytest_files(source) + scripts(source) + crates(source, build)


def select(units, pattern):
    """Units whose name matches the glob, or contains it; and the case pattern behind a colon, or None."""
    if not pattern:
        return units, None
    glob, _, case = pattern.partition(":")
    chosen = [u for u in units if fnmatch.fnmatch(u.name, glob) or glob in u.name]
    return chosen, case or None


# ---- running ------------------------------------------------------------------------------------------------------


def test_environment(source, build, data, scratch, full):
    env = builder.tool_environment({
        "INLAID_SOURCE": source, "INLAID_BUILD": build, "INLAID_TEST_DATA": data, "TMPDIR": scratch,
        "PYTHONPATH": os.path.join(build, "python"), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
        "GTEST_COLOR": "no"})
    env.pop("INLAID_TEST_FULL", None)
    if full:
        env["INLAID_TEST_FULL"] = "1"
    return env


def run_process(command, env, cwd, timeout):
    """Output, exit code (negative: signal) and whether it ran past its time. Ends everything that the command left."""
    process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
        late = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        late = True
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return output.decode(errors="replace"), process.returncode, late


def read_report(path, result):
    """Counts the cases of a JUnit-style XML report (GoogleTest's and pytest's)."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        skip = case.find("skipped")
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        if failure is not None:
            result.fail(name, (failure.get("message") or "failed").strip())
        elif skip is not None or case.get("result") in ("skipped", "suppressed") or case.get("status") == "notrun":
            reason = " ".join(filter(None, (skip.get("message"), skip.text))) if skip is not None else "disabled"
            if NO_GPU.search(reason):
                result.skipped += 1
            else:
                result.fail(name, f"not run, and a missing GPU is the only reason for that: {reason.strip()}")
        else:
            result.passed += 1


def is_gtest(program):
    try:
        with open(program, "rb") as file:
            return b"gtest_output" in file.read()
    except OSError:
        return False


def describe_exit(code, late, timeout):
    if late:
        return f"still running after {timeout} s"
    return f"ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"


def run_unit(unit, source, build, data, case=None, full=False, extra_env=None):
    timeout = FULL_TIMEOUT_SECONDS if full or extra_env else TIMEOUT_SECONDS  # extra_env: a sanitizer's slow build
    result = Result(unit)
    scratch = tempfile.mkdtemp(prefix="inlaid-test-")
    report = os.path.join(scratch, "report.xml")
    work = os.path.join(scratch, "tmp")
    os.mkdir(work)
    env = test_environment(source, build, data, work, full)
    env.update(extra_env or {})
    command = list(unit.command)
    reports = unit.kind == "pytest" or (unit.kind == "program" and is_gtest(command[0]))
    if unit.kind == "pytest":
        command += ["-q", "-ra", "-p", "no:cacheprovider", f"--junit-xml={report}"] + (["-k", case] if case else [])
    elif reports:
        command += [f"--gtest_output=xml:{report}"] + ([f"--gtest_filter={case}"] if case else [])
    start = time.monotonic()
    try:
        result.output, code, late = run_process(command, env, unit.cwd, timeout)
        counted = False
        if reports and os.path.exists(report):
            try:
                read_report(report, result)
                counted = True
            except ElementTree.ParseError as error:
                result.fail(unit.name, f"unreadable report: {error}")
        if unit.kind == "cargo":
            counted = read_cargo(result)
        empty = result.passed + result.skipped + len(result.failures) == 0
        nothing_matched = unit.kind == "pytest" and code == 5 and case
        if (code != 0 or late) and not nothing_matched:
            if not result.failures:
                result.fail(unit.name, describe_exit(code, late, timeout))
        elif reports and not counted:
            result.fail(unit.name, "ended with success without a report")
        elif reports and empty and not case:
            result.fail(unit.name, "holds no test")
        elif not reports and not counted:
            result.passed = 1
    except OSError as error:
        result.fail(unit.name, f"cannot be started: {error}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    result.seconds = time.monotonic() - start
    return result


def read_cargo(result):
    lines = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", result.output, re.MULTILINE)
    for passed, failed, ignored in lines:
        result.passed += int(passed)
        for _ in range(int(failed)):
            result.fail(result.unit.name, "a Rust test failed")
        for _ in range(int(ignored)):
            result.fail(result.unit.name, "a Rust test is ignored")
    return bool(lines)
