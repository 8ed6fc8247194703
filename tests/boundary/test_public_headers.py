"""The public headers are plain C99 that is also C++17, each complete on its own, and their signatures use only types whose
size is the same for every compiler and language: fixed-width integers, double, pointers."""

import os
import re
import subprocess

import pytest
import tree

WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", tree.INCLUDE]
C_HEADERS = ["inlaid.h", "inlaid_plugin.h"]
SCALARS = {"void", "double", "float", "char", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
           "uint64_t"}


def compile_text(tmp_path, text, compiler, *options):
    source = tmp_path / "use.txt"
    source.write_text(text)
    return subprocess.run([compiler, *WARNINGS, *options, str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def including(*headers):
    return "".join(f'#include "{h}"\n' for h in headers) + "typedef int not_empty;\n"


def present():
    return [h for h in C_HEADERS if os.path.exists(os.path.join(tree.INCLUDE, h))]


def test_both_headers_are_there():
    assert present() == C_HEADERS


@pytest.mark.parametrize("headers", [(h,) for h in C_HEADERS] + [tuple(C_HEADERS), tuple(reversed(C_HEADERS))])
@pytest.mark.parametrize("language", ["c99", "c11", "c++17", "c++20"])
def test_headers_compile(tmp_path, headers, language):
    if language.startswith("c++"):
        done = compile_text(tmp_path, including(*headers, *headers), "g++", f"-std={language}", "-x", "c++")
    else:
        done = compile_text(tmp_path, including(*headers, *headers), "gcc", f"-std={language}", "-x", "c",
                            "-Wstrict-prototypes")
    assert done.returncode == 0, done.stdout.decode()


def test_the_compiler_is_strict_here(tmp_path):
    for bad in ("long long f();\nenum { a, };\nint x = 1; int x2 = ({ 1; });\n", "int f(unused) { return 1; }\n"):
        assert compile_text(tmp_path, bad, "gcc", "-std=c99", "-x", "c", "-Wstrict-prototypes").returncode != 0


def prototypes(tmp_path, headers):
    """(name, return type, parameters) of every function that the headers declare, as the compiler understood it."""
    source, listing = tmp_path / "declare.c", tmp_path / "prototypes.txt"
    source.write_text(including(*headers))
    subprocess.run(["gcc", "-std=c99", "-I", tree.INCLUDE, "-fsyntax-only", "-aux-info", listing, source], check=True)
    found = []
    for line in listing.read_text().splitlines():
        match = re.match(r"/\* (.+?):\d+:\w+ \*/ extern (.*?)\b(\w+) \((.*)\);$", line)
        if match and os.path.dirname(os.path.abspath(match[1])) == tree.INCLUDE:
            found.append((match[3], match[2].strip(), match[4]))
    return found


def scalar_aliases():
    text = "".join(tree.read(f"capi/include/{h}") for h in present())
    return set(re.findall(r"^typedef (?:" + "|".join(SCALARS) + r") (\w+);", text, re.MULTILINE))


def type_problem(text, allowed):
    if "*" in text or text == "...":
        return "variable arguments" if text == "..." else None
    words = [w for w in text.split() if w != "const"]
    return None if words and " ".join(words) in allowed else f"{text!r} has no fixed size or is a struct by value"


def test_signatures_use_portable_types(tmp_path):
    allowed = SCALARS | scalar_aliases()
    functions = prototypes(tmp_path, present())
    assert len(functions) > 20
    wrong = []
    for name, result, parameters in functions:
        for text in [result, *(p.strip() for p in parameters.split(","))]:
            problem = type_problem(text, allowed)
            if problem:
                wrong.append(f"{name}: {problem}")
        if not name.startswith("inlaid_"):
            wrong.append(f"{name}: a public function starts with inlaid_")
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_type_check_sees_violations():
    for text in ("long", "size_t", "enum kind", "_Bool", "struct options", "unsigned int", "..."):
        assert type_problem(text, SCALARS), text
    for text in ("int32_t", "const char *", "struct inlaid_error *", "double", "size_t *"):
        assert type_problem(text, SCALARS) is None, text


def test_no_enum_type_and_a_size_first_in_every_option_struct():
    for header in present():
        text = re.sub(r"/\*.*?\*/", "", tree.read(f"capi/include/{header}"), flags=re.DOTALL)
        assert not re.search(r"\benum\b", text), header
        for name, body in re.findall(r"struct\s+(inlaid_\w+)\s*\{(.*?)\}", text, re.DOTALL):
            assert re.match(r"\s*uint32_t\s+struct_size\s*;", body), f"{name} in {header} does not start with struct_size"


def test_functions_are_noexcept_for_cpp(tmp_path):
    names = [name for name, _, _ in prototypes(tmp_path, ["inlaid.h"])]
    source = including(*C_HEADERS) + "#include <type_traits>\ntemplate <class F> struct quiet : std::false_type {};\n" \
        "template <class R, class... A> struct quiet<R (*)(A...) noexcept> : std::true_type {};\n" + "".join(
            f'static_assert(quiet<decltype(&{n})>::value, "{n} is not noexcept");\n' for n in names)
    # A template argument drops the attributes of the function, and g++ would warn about that.
    done = compile_text(tmp_path, source, "g++", "-std=c++17", "-x", "c++", "-Wno-ignored-attributes")
    assert done.returncode == 0, done.stdout.decode()
