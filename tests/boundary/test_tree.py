"""The tree stays readable: a fixed set of top-level entries, files of a size that one can take in, no loose ends."""

import os
import re

import tree

TOP = {"CMakeLists.txt", "LICENSE", "NOTICE", "README.md", "bindings", "capi", "kernels", "samples", "sdk", "tests"}
LONGEST_FILE = 600
LONGEST_LINE = 140  # .clang-format breaks code at 110; a comment may run further
LOOSE_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
TEXT = tree.CPP + (".py", ".rs", ".i", ".sh", ".txt", ".md", ".proto", ".json", ".toml", ".java", ".map")


def test_top_level_entries():
    entries = {e for e in os.listdir(tree.SOURCE) if not re.match(r"\.|build$|build-|__pycache__$", e)}
    assert entries == TOP


def test_no_file_is_too_long():
    long = []
    for path in tree.files("kernels", "sdk", "capi", endings=tree.CPP + (".rs",)):
        lines = tree.read(path).count("\n")
        if lines > LONGEST_FILE:
            long.append(f"{path}: {lines} lines")
    assert not long, "\n" + "\n".join(long)


def test_no_line_is_too_long():
    long = []
    for path in tree.files("kernels", "sdk", "capi"):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if len(line) > LONGEST_LINE and "http" not in line:
                long.append(f"{path}:{number}: {len(line)} columns")
    assert not long, "\n" + "\n".join(long)


def test_what_is_made_is_not_judged():
    assert tree.is_made("samples/quickstart/out") and tree.is_made("samples/quickstart/out-2") and tree.is_made("sdk/text/rust/target")
    assert not tree.is_made("samples/quickstart/data") and not tree.is_made("sdk/train/out") and not tree.is_made("samples/out")


def test_no_loose_ends():
    found = []
    for path in tree.files("kernels", "sdk", "capi", "bindings", "samples", "tests", endings=TEXT):
        if path == os.path.relpath(os.path.abspath(__file__), tree.SOURCE) or "/golden/" in path or "/data/" in path:
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if LOOSE_END.search(line):
                found.append(f"{path}:{number}: {line.strip()}")
    assert not found, "\n" + "\n".join(found)


def test_every_test_file_is_built():
    """A *_test.cc that no CMakeLists.txt names would never run."""
    with open(os.path.join(tree.BUILD, "build.ninja"), encoding="utf-8") as file:
        built = set(re.findall(r"\S+_test\.(?:cc|c)\b(?!\.o)", file.read()))
    for path in tree.files("kernels", "sdk", "capi", "tests", endings=("_test.cc", "_test.c")):
        assert os.path.join(tree.SOURCE, path) in built, f"{path} is in no CMakeLists.txt"


# Crates of the lock file that leave no code in the library: build scripts, procedural macros and what only those use, and
# crates for other platforms.
NOT_LINKED = {
    "inlaid-text", "cc", "find-msvc-tools", "pkg-config", "shlex", "version_check", "r-efi", "wasip2", "wit-bindgen",
    "darling", "darling_core", "darling_macro", "derive_builder_core", "derive_builder_macro", "ident_case", "strsim",
    "macro_rules_attribute-proc_macro", "monostate-impl", "paste", "pastey", "proc-macro2", "quote", "rustversion",
    "serde_derive", "syn", "thiserror-impl", "unicode-ident", "zerocopy-derive"}


def test_notice_names_every_crate_that_is_linked_in():
    locked = set(re.findall(r'^name = "([^"]+)"', tree.read("sdk/text/rust/Cargo.lock"), re.MULTILINE))
    section = tree.read("NOTICE").split("Rust crates, by licence")[1].split("What is linked into the program")[0]
    named = set(re.findall(r"[\w-]+", " ".join(line for line in section.splitlines() if line.startswith("    "))))
    assert locked - NOT_LINKED == named
