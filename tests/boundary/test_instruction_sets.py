"""Code for an optional instruction set stays in functions that are entered after the processor was asked.

The trap: an inline function or template that several files use is emitted in each of them as a weak symbol, and the linker
keeps one copy for all. If it keeps the one from a file that was compiled for AVX-512, ordinary code crashes on a processor
without it. So such files may emit weak symbols only inside a namespace of the instruction set's name."""

import glob
import os
import re
import subprocess

import pytest
import tree

LEVELS = ["avx2", "avx512"]


def objects(level):
    kernels = os.path.join(tree.BUILD, "kernels", "**")
    return sorted(set(glob.glob(os.path.join(kernels, f"*_{level}.dir", "**", "*.o"), recursive=True) +
                      glob.glob(os.path.join(kernels, f"*_{level}.cc.o"), recursive=True)))


def shared_symbols(path, level):
    """Weak symbols that an object defines outside of the level's namespace."""
    text = subprocess.run(["nm", "-C", "--defined-only", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = []
    for line in text.splitlines():
        match = re.match(r"^[0-9a-f]* ([WVu]) (.*)$", line)
        if match and not re.search(rf"\b{level}::", match[2]) and not match[2].startswith("DW.ref."):
            found.append(match[2])
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_no_shared_code_is_compiled_for_an_optional_instruction_set(level):
    if os.uname().machine != "x86_64":
        assert not objects(level)
        return
    paths = objects(level)
    assert len(paths) > 5, "the objects of this instruction set were not found"
    wrong = [f"{os.path.relpath(p, tree.BUILD)}: {s}" for p in paths for s in shared_symbols(p, level)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_check_sees_a_shared_function(tmp_path):
    source, target = tmp_path / "x_avx2.cc", tmp_path / "x_avx2.o"
    source.write_text("""
        inline int plain(int a) { return a * 3; }
        namespace avx2 { inline int own(int a) { return a * 5; } }
        using F = int (*)(int);
        F addresses(bool first) { return first ? &plain : &avx2::own; }
    """)
    subprocess.run(["g++", "-O2", "-c", source, "-o", target], check=True)
    assert shared_symbols(str(target), "avx2") == ["plain(int)"]
