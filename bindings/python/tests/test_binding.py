"""The generated layer against the header, and the version check."""

import os
import re
import subprocess
import sys

import pytest

import inlaid
import tiny
from inlaid import _inlaid, _version

# Functions of the header that are wrapped under another name, because their arguments are no thing for Python.
RENAMED = {"inlaid_runtime_create": "create_runtime", "inlaid_batch_add": "batch_add_dlpack",
           "inlaid_model_get_tensor": "model_tensor", "inlaid_pass_output": "pass_tensor",
           "inlaid_pass_set_gradient": "pass_set_gradient_dlpack"}
# Pointers to memory that pass_tensor gives as a tensor.
NOT_WRAPPED = {"inlaid_pass_data", "inlaid_pass_size"}


def header_functions():
    with open(os.path.join(tiny.SOURCE, "capi/include/inlaid.h"), encoding="utf-8") as file:
        return set(re.findall(r"\b(inlaid_\w+)\([^;{]*\)\s*INLAID_NOEXCEPT;", file.read()))


def test_every_function_of_the_header_is_wrapped():
    functions = header_functions()
    assert len(functions) > 80
    # Releases belong to the capsules, errors and buffers to the conversions.
    wanted = {RENAMED.get(f, f) for f in functions - NOT_WRAPPED
              if not f.endswith("_release") and not f.startswith(("inlaid_error_", "inlaid_buffer_"))}
    assert wanted - set(dir(_inlaid)) == set()
    stray = {f for f in dir(_inlaid) if f.startswith("inlaid_")} - functions
    assert stray == set()


def test_the_facade_uses_every_wrapped_function():
    text = ""
    folder = os.path.dirname(inlaid.__file__)
    for name in os.listdir(folder):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text += file.read()
    unused = {f for f in dir(_inlaid) if f.startswith("inlaid_") and not re.search(rf"\b{f}\b", text)}
    assert unused == {"inlaid_event_metric"}  # the facade has a dict of all metrics


def test_all_names_exist():
    assert [name for name in inlaid.__all__ if not hasattr(inlaid, name)] == []


@pytest.mark.parametrize("built, loaded, good", [
    (0x00001, 0x00001, True), (0x00001, 0x00002, True), (0x00002, 0x00001, False), (0x00001, 0x10001, False),
    (0x10003, 0x10004, True), (0x20000, 0x10009, False)])
def test_version_check(built, loaded, good):
    if good:
        _version.check(built, loaded)
        return
    with pytest.raises(ImportError) as e:
        _version.check(built, loaded)
    assert f"{built >> 16}.{built & 0xffff}" in str(e.value) and f"{loaded >> 16}.{loaded & 0xffff}" in str(e.value)
    assert "libinlaid.so" in str(e.value)


def test_version_and_features():
    assert _version.version() == inlaid.__version__ and "0.1" in inlaid.__version__
    assert os.path.exists(_inlaid.library_path())
    assert inlaid.has_feature("lora") and not inlaid.has_feature("no such thing")


def test_import_starts_nothing():
    """One thread afterwards, no output, signal handlers untouched, no package from outside the standard library."""
    program = """
import os, signal, sys
before = {n: signal.getsignal(n) for n in signal.valid_signals()}
modules = set(sys.modules)
import inlaid
assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')
assert {n: signal.getsignal(n) for n in signal.valid_signals()} == before
new = {m.partition('.')[0] for m in set(sys.modules) - modules} - {'inlaid'}
new = {m for m in new if not m.startswith('swig_runtime_data')}  # where extensions made by SWIG keep their types
assert new <= set(sys.stdlib_module_names), new
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"")


def test_wrong_handle_is_a_type_of_error_not_a_crash(runtime):
    for bad in (runtime, object(), 17, "text"):
        with pytest.raises((ValueError, TypeError)):
            _inlaid.inlaid_model_describe(bad)
    with pytest.raises(ValueError):
        _inlaid.inlaid_model_describe(runtime._c)  # a capsule of another type
    with pytest.raises(inlaid.InvalidArgument):
        _inlaid.inlaid_model_describe(None)
    with pytest.raises(TypeError):
        _inlaid.inlaid_tokenizer_encode(None, 17, 0)
