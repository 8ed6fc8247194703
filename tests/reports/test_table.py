"""table.tsv says of every report either which tests answer it, and these are there, or why none does yet."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "boundary"))
import tree  # noqa: E402


def rows():
    lines = [line for line in tree.read("tests/reports/table.tsv").splitlines() if not line.startswith("#")]
    assert lines[0].split("\t") == ["number", "threads", "what was wrong", "tests"]
    return [line.split("\t") for line in lines[1:]]


def cpp_tests():
    found = {}
    for path in tree.files("sdk", "tests", "kernels", endings=("_test.cc",)):
        for suite, case in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", tree.read(path), re.MULTILINE):
            found[f"{suite}.{case}"] = path
    return found


def missing(test, programs):
    if not test.endswith(".py") and ":" not in test:
        return test not in programs
    path, _, name = test.partition(":")
    if not os.path.exists(os.path.join(tree.SOURCE, path)):
        return True
    return bool(name) and not re.search(rf"^ *def {name}\(", tree.read(path), re.MULTILINE)


def test_every_report_has_its_row():
    numbers = [row[0] for row in rows()]
    # Of the list of the ABI, 7, 8, 14 and 16 to 18 concern languages without a binding here.
    expected = [f"D{i}" for i in range(1, 24)] + [f"E{i}" for i in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15, 19, 20)]
    assert numbers == expected


def test_every_test_is_there():
    programs = cpp_tests()
    for number, threads, what, tests in rows():
        assert re.fullmatch(r"[\w./-]+#\d+( [\w./-]+#\d+)*", threads), threads
        assert what
        if re.match(r"(later|policy): \w", tests):
            tests = " ".join(re.findall(r"\b[A-Z]\w+\.[A-Z]\w+\b", tests))
        else:
            assert tests
        gone = [test for test in tests.split() if missing(test, programs)]
        assert not gone, f"{number}: {gone}"


def test_tests_of_reports_name_their_threads():
    text = tree.read("tests/reports/reports_test.cc")
    listed = " ".join(row[3] for row in rows())
    for comment, case in re.findall(r"((?:^//.*\n)+)TEST\(Reports, (\w+)\)", text, re.MULTILINE):
        assert re.search(r"\w#\d+", comment), f"{case} does not say where it comes from"
        assert f"Reports.{case}" in listed, case
    assert len(re.findall(r"^TEST\(Reports, ", text, re.MULTILINE)) == listed.count("Reports.")


def test_the_check_sees_what_is_missing():
    assert missing("No.SuchTest", cpp_tests()) and missing("tests/boundary/tree.py:no_such_test", {})
    assert not missing("tests/boundary/tree.py:files", {})
