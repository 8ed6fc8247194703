"""The test runner counts right: a run that should be red is never green."""

import os
import stat
import textwrap

import mutants
import pytest
import units

REPORTING = """#!/usr/bin/python3 -B
import os, sys
# Behaves like a GoogleTest program: --gtest_output=xml:FILE
report = [a.split(":", 1)[1] for a in sys.argv if a.startswith("--gtest_output=xml:")][0]
cases = '''{cases}'''
if cases != "none":
    open(report, "w").write("<testsuites><testsuite>" + cases + "</testsuite></testsuites>")
print("output of the program")
{ending}
"""
PASSED = '<testcase name="Good" classname="Suite" status="run" result="completed"/>'
FAILED = '<testcase name="Bad" classname="Suite" status="run" result="completed"><failure message="1 is not 2"/></testcase>'
SKIPPED = '<testcase name="Skip" classname="Suite" status="run" result="skipped"><skipped message="{}"/></testcase>'
DISABLED = '<testcase name="DISABLED_Off" classname="Suite" status="notrun" result="suppressed"/>'


def program(folder, text, name="some_test"):
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(folder, command, kind="program", **options):
    unit = units.Unit("some_test", kind, [command], str(folder))
    return units.run_unit(unit, str(folder), str(folder), str(folder), **options)


def run_report(folder, cases, ending=""):
    return run(folder, program(folder, REPORTING.format(cases=cases, ending=ending)))


def test_cases_are_counted(tmp_path):
    result = run_report(tmp_path, PASSED * 3)
    assert (result.passed, result.skipped, result.failures) == (3, 0, [])
    result = run_report(tmp_path, PASSED * 2 + FAILED, "sys.exit(1)")
    assert (result.passed, result.failures) == (2, ["Suite.Bad: 1 is not 2"])


@pytest.mark.parametrize("cases, ending", [
    (PASSED, "sys.exit(3)"),                       # died after its report
    ("none", ""),                                  # a test called exit(0)
    ("none", "os.abort()"),                        # crashed
    ("", ""),                                      # holds no test at all
    ("<broken", ""),
    (PASSED + DISABLED, ""),
    (PASSED + SKIPPED.format("the download is missing"), "")])
def test_what_is_not_a_success_is_a_failure(tmp_path, cases, ending):
    assert run_report(tmp_path, cases, ending).failures


def test_a_missing_gpu_is_the_only_reason_for_a_skip(tmp_path):
    result = run_report(tmp_path, PASSED + SKIPPED.format("no GPU on this machine"))
    assert (result.passed, result.skipped, result.failures) == (1, 1, [])


def test_plain_programs_and_scripts_are_one_case(tmp_path):
    for ending, passed in (("exit 0", 1), ("exit 3", 0), ("kill -SEGV $$", 0)):
        result = run(tmp_path, program(tmp_path, f"#!/bin/sh\n{ending}\n"), "script")
        assert (result.passed, len(result.failures)) == (passed, 1 - passed)
    assert run(tmp_path, str(tmp_path / "absent")).failures


def test_a_hanging_test_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "TIMEOUT_SECONDS", 1)
    pid_file = tmp_path / "pid"
    result = run(tmp_path, program(tmp_path, f"#!/bin/sh\nsleep 600 &\necho $! > {pid_file}\nsleep 600\n"), "script")
    assert "still running after 1 s" in result.failures[0]
    child = int(pid_file.read_text())
    status = f"/proc/{child}/status"
    assert not os.path.exists(status) or "State:\tZ" in open(status, encoding="ascii").read()


def test_pytest_files(tmp_path):
    file = tmp_path / "test_x.py"
    file.write_text(textwrap.dedent("""
        import os, pytest
        def test_good(): assert os.environ["INLAID_BUILD"] and not os.environ.get("INLAID_TEST_FULL")
        def test_bad(): assert 1 == 2
        @pytest.mark.skip(reason="no time")
        def test_skipped(): pass
        @pytest.mark.xfail
        def test_expected_to_fail(): assert False
    """))
    unit = units.Unit("test_x.py", "pytest", [units.PYTHON, "-B", "-m", "pytest", str(file)], str(tmp_path))
    result = units.run_unit(unit, str(tmp_path), str(tmp_path), str(tmp_path))
    assert (result.passed, len(result.failures)) == (1, 3)
    result = units.run_unit(unit, str(tmp_path), str(tmp_path), str(tmp_path), case="good")
    assert (result.passed, result.failures) == (1, [])


def test_rust_results_are_counted(tmp_path):
    text = "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out"
    good = program(tmp_path, "#!/bin/sh\necho '" + text.format("ok", 4, 0, 0) + "'\n")
    assert run(tmp_path, good, "cargo").passed == 4
    bad = program(tmp_path, "#!/bin/sh\necho '" + text.format("FAILED", 4, 1, 1) + "'\nexit 101\n")
    result = run(tmp_path, bad, "cargo")
    assert (result.passed, len(result.failures)) == (4, 2)


def test_selection():
    all_units = [units.Unit(n, "program", [], "") for n in ("base_test", "ops_test", "tests/boundary/test_tree.py")]
    assert [u.name for u in units.select(all_units, "")[0]] == [u.name for u in all_units]
    chosen, case = units.select(all_units, "ops*:Rope.*")
    assert [u.name for u in chosen] == ["ops_test"] and case == "Rope.*"
    assert [u.name for u in units.select(all_units, "tree")[0]] == ["tests/boundary/test_tree.py"]


PATCH = """Mutant: two and two are five
Red: some_test

--- a/value
+++ b/value
@@ -1 +1 @@
-4
+{}
"""


def test_mutants_are_judged_by_the_tests_they_name(tmp_path, monkeypatch):
    (tmp_path / "value").write_text("4\n")
    patch = tmp_path / "arithmetic.patch"
    check = program(tmp_path, f"#!/bin/sh\ngrep -q -E '^(4|6)$' {tmp_path}/value\n")
    chosen = [(units.Unit("some_test", "script", [check], str(tmp_path)), None)]
    monkeypatch.setattr(mutants.subprocess, "run", fake_build(mutants.subprocess.run))

    def verdict(text):
        patch.write_text(text)
        mutant = mutants.read(str(patch))
        assert (mutant.name, mutant.title, mutant.red) == ("arithmetic", "two and two are five", [("some_test", None)])
        return mutants.judge(str(tmp_path), str(tmp_path), str(tmp_path), mutant, chosen, None)[0]

    assert verdict(PATCH.format(5)) == "caught"
    assert verdict(PATCH.format(6)) == "NOT CAUGHT"
    assert verdict(PATCH.format(5).replace("-4", "-3")) == "the patch does not apply"
    assert (tmp_path / "value").read_text() == "4\n"
    with pytest.raises(mutants.Failure):
        patch.write_text("--- a/value\n")
        mutants.read(str(patch))


def fake_build(run):
    """subprocess.run, in which a build succeeds at once."""
    return lambda command, **options: run(["true"] if command[0] == "ninja" else command, **options)


def test_every_mutant_still_applies():
    """The mutants themselves run with tests/run --mutants; that they fit the code is checked every time."""
    folder = os.path.join(mutants.SOURCE, "tests", "mutants")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".patch"))
    assert len(names) >= 12
    for name in names:
        mutant = mutants.read(os.path.join(folder, name))
        done = mutants.subprocess.run(["patch", "-p1", "-s", "-f", "--fuzz=0", "--dry-run", "-i", mutant.path],
                                      cwd=mutants.SOURCE, stdout=mutants.subprocess.PIPE)
        assert done.returncode == 0, f"{name}: {done.stdout.decode()}"
