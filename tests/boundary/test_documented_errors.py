"""Every error that the comment of a function in inlaid.h names is provoked by a test of the C API: a statement that calls the
function and expects that code, through fails() or EXPECT_FAILS_OUT. NULL handles, forked children and exceptions, which the
rules at the head of the header cover, are checked function by function in tests/faults/entries_test.cc."""

import re

import tree

CODES = ("CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED",
         "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED", "UNAVAILABLE", "DATA_LOSS", "ABORTED", "PERMISSION_DENIED")
# Comments that name a code which another function gives.
ELSEWHERE = {
    ("inlaid_runtime_create", "RESOURCE_EXHAUSTED"): "inlaid_job_create",       # what exceeds a limit of settings_json
    ("inlaid_runtime_shutdown", "FAILED_PRECONDITION"): "inlaid_model_create",  # work on children afterwards
}


def documented(header):
    """(function, code) for every code in the comment above a function that returns an error."""
    pairs = set()
    comment = ""
    for match in re.finditer(r"/\*(.*?)\*/|INLAID_MUSTUSE inlaid_error \*\s*(inlaid_\w+)\(|;", header, re.DOTALL):
        if match[1] is not None:
            comment += match[1]
        elif match[2] is not None:
            pairs |= {(match[2], code) for code in CODES if re.search(rf"\b{code}\b", comment)}
        else:
            comment = ""
    return pairs


def statements(text):
    """Pieces of C++ between semicolons that stand outside of parentheses; lambdas in arguments stay whole."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'R"\((.*?)\)"', '""', text, flags=re.DOTALL)
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    depth, start = 0, 0
    for place, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif (char == ";" and depth <= 0) or (char in "{}" and depth <= 0):
            yield text[start:place]
            start, depth = place + 1, 0
    yield text[start:]


def provoked():
    pairs = set()
    for path in tree.files("tests/capi", "tests/faults", "tests/reports", endings=(".cc", ".c")):
        for statement in statements(tree.read(path)):
            if "fails(" not in statement and "EXPECT_FAILS_OUT" not in statement:
                continue
            for code in re.findall(r"\bINLAID_([A-Z_]+)\b", statement):
                pairs |= {(function, code) for function in re.findall(r"\binlaid_\w+", statement)}
    return pairs


def test_every_documented_error_is_provoked():
    wanted = documented(tree.read("capi/include/inlaid.h"))
    assert len(wanted) > 40
    seen = provoked()
    missing = sorted(pair for pair in wanted - seen if (ELSEWHERE.get(pair), pair[1]) not in seen)
    assert not missing, "documented, but expected by no test: " + ", ".join(f"{f} {c}" for f, c in missing)


def test_what_counts_as_provoking():
    text = 'void f() { EXPECT_TRUE(fails(inlaid_a(x, "; inlaid_c"), INLAID_NOT_FOUND)); ok(inlaid_b(x)); } // inlaid_d INLAID_NOT_FOUND'
    found = [s for s in statements(text) if "fails(" in s]
    assert len(found) == 1 and "inlaid_a" in found[0] and "inlaid_b" not in found[0] and "inlaid_c" not in found[0]
    header = ("/* X. NOT_FOUND; DATA_LOSS. */\nINLAID_API INLAID_MUSTUSE inlaid_error *inlaid_a(int x);\n"
              "/* Y */ INLAID_MUSTUSE inlaid_error *inlaid_b(int x);")
    assert documented(header) == {("inlaid_a", "NOT_FOUND"), ("inlaid_a", "DATA_LOSS")}
