"""Every function of inlaid.h that returns an error is one call of the guard (capi/src/guard.h), so that no exception can leave it:
before the guard there is nothing but the clearing of out pointers."""

import re

import tree

BODY = re.compile(r"\s*(?:if \((\w+) != nullptr\) \*\1 = (?:nullptr|0);\s*)*return guard\(\[&\] \{.*\}\);\s*", re.DOTALL)


def declared(header):
    return set(re.findall(r"INLAID_MUSTUSE inlaid_error \*\s*(inlaid_\w+)\(", header))


def definitions(text):
    """(name, body) of the functions that return an error; their closing brace stands at the beginning of a line."""
    pattern = r"^inlaid_error \*\s*(inlaid_\w+)\([^)]*\) INLAID_NOEXCEPT \{(.*?)(?:^\}|(?<=;) \}$)"
    return re.findall(pattern, text, re.MULTILINE | re.DOTALL)


def test_every_function_is_guarded():
    wanted = declared(tree.read("capi/include/inlaid.h"))
    bodies = dict(pair for path in tree.files("capi/src", endings=(".cc",)) for pair in definitions(tree.read(path)))
    assert set(bodies) == wanted and len(wanted) > 50
    open_ones = [name for name, body in bodies.items() if not BODY.fullmatch(body)]
    assert not open_ones, f"not one call of the guard: {open_ones}"


def test_the_check_sees_what_is_outside():
    inside = "inlaid_error *inlaid_a(int *o) INLAID_NOEXCEPT {\n  if (o != nullptr) *o = 0;\n  return guard([&] { f(); });\n}\n"
    outside = inside.replace("  return guard", "  std::string s = g();\n  return guard")
    after = inside.replace("return guard([&] { f(); });", "auto e = guard([&] { f(); });\n  return h(e);")
    assert [BODY.fullmatch(body) is not None for text in (inside, outside, after) for _, body in definitions(text)] == [True, False, False]
