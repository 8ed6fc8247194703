"""The finished libinlaid.so.0 is a polite guest: it exports exactly what the headers declare, needs nothing but the C++
run-time libraries, does nothing while it is loaded, and can be unloaded."""

import os
import re
import subprocess
import sys

import pytest
import tree
from test_public_headers import C_HEADERS, prototypes

NEEDED = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
ABI = os.path.join(tree.SOURCE, "capi", "abi")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def exported():
    """Names of the dynamic symbols that the library defines, without the version, and their kinds."""
    found = {}
    for line in output("nm", "-D", "--defined-only", tree.LIBRARY).splitlines():
        _, kind, name = line.split()
        if kind != "A":  # the version node itself
            found[name.partition("@")[0]] = kind
    return found


def dynamic(tag):
    return re.findall(rf"\({tag}\).*\[(.*?)\]", output("readelf", "-dW", tree.LIBRARY))


def listed_symbols():
    with open(os.path.join(ABI, "symbols.txt"), encoding="ascii") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def test_exports_are_the_declared_functions(tmp_path):
    declared = {name for name, _, _ in prototypes(tmp_path, C_HEADERS)}
    symbols = exported()
    assert set(symbols) - declared == set(), "exported and not declared"
    assert declared - set(symbols) == set(), "declared and not exported"
    assert set(symbols.values()) == {"T"}, "only functions are exported"


def test_exports_carry_the_version_node():
    for line in output("nm", "-D", "--defined-only", tree.LIBRARY).splitlines():
        name = line.split()[2]
        assert name == "INLAID_0" or name.endswith("@@INLAID_0"), name


def test_exports_match_the_committed_list():
    listed = listed_symbols()
    assert listed == sorted(set(listed)), "symbols.txt is sorted, each name once"
    assert set(listed) == set(exported()), "change capi/abi/symbols.txt together with the header"


def test_needs_only_the_run_time_libraries():
    assert set(dynamic("NEEDED")) <= NEEDED
    assert dynamic("SONAME") == ["libinlaid.so.0"]


def test_no_builder_path_and_hardened():
    text = output("readelf", "-dW", tree.LIBRARY)
    assert "RPATH" not in text and "RUNPATH" not in text, "a search path of the builder is in the library"
    assert "TEXTREL" not in text, "the library is not position-independent"
    assert re.search(r"BIND_NOW|FLAGS_1.*NOW", text)
    segments = output("readelf", "-lW", tree.LIBRARY)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.*\bRW\s", segments), "the stack would become executable"


# Runs in a fresh interpreter: what a process looks like before, while and after the library is in it.
LOADING = r"""
import ctypes, ctypes.util, locale, os, sys
def status(key):
    return next(l.split()[1] for l in open("/proc/self/status") if l.startswith(key))
def look():
    return (status("Threads:"), status("SigCgt:"), status("SigIgn:"), status("SigBlk:"), locale.setlocale(locale.LC_ALL),
            os.getcwd(), dict(os.environ), sorted(os.listdir("/proc/self/fd")))
path = sys.argv[1]
before = look()
library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
library.inlaid_abi_version.restype = ctypes.c_uint32
major = library.inlaid_abi_version() >> 16
assert major == 0, major
assert look() == before, "loading changed the process"
close = ctypes.CDLL(None).dlclose
close.argtypes = [ctypes.c_void_p]
assert close(library._handle) == 0
assert "libinlaid" not in open("/proc/self/maps").read(), "the library cannot be unloaded"
assert look() == before, "unloading changed the process"
"""


def test_loading_and_unloading_leave_no_trace():
    done = subprocess.run([sys.executable, "-c", LOADING, tree.LIBRARY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout.decode()) == (0, "")


def test_abi_matches_the_baseline():
    """abidiff: bit 8 is an incompatible change. An addition (4) comes with a new baseline in the same commit, so it is a
    difference too. Constants are invisible to it; the frozen list of them is a test of the bindings."""
    baseline = os.path.join(ABI, "libinlaid.so.0.abi")
    assert os.path.exists(baseline), "make it with tests/boundary/store_abi"
    assert ".debug_info" in output("readelf", "-SW", tree.LIBRARY), "capi/src must be compiled with -g for this check"
    done = subprocess.run(["abidiff", baseline, tree.LIBRARY], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("change, code", [
    ("int32_t inlaid_a(struct inlaid_s *s);", 0),
    ("int32_t inlaid_a(struct inlaid_s *s); int32_t inlaid_b(void);", 4),
    ("int32_t inlaid_a(struct inlaid_s *s, int32_t more);", 4),
    ("int32_t inlaid_b(void);", 12)])
def test_abidiff_sees_changes(tmp_path, change, code):
    def build(name, declarations):
        source, library = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
        source.write_text("#include <stdint.h>\nstruct inlaid_s { uint32_t struct_size; };\n" +
                          declarations.replace(";", " { return 0; }") + "\n")
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", source, "-o", library], check=True)
        return library
    old = build("old", "int32_t inlaid_a(struct inlaid_s *s);")
    done = subprocess.run(["abidiff", old, build("new", change)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, done.stdout.decode()
