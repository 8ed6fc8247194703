"""What the boundary tests share: where the tree and the build are, and how source files are found and read."""

import os
import re

SOURCE = os.environ.get("INLAID_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("INLAID_BUILD") or os.path.join(SOURCE, "build")
LIBRARY = os.path.join(BUILD, "lib", "libinlaid.so.0")
INCLUDE = os.path.join(SOURCE, "capi", "include")
CPP = (".h", ".hpp", ".c", ".cc", ".cu")


def is_made(path):
    """Whether a folder, relative to SOURCE, is made by a build or a sample (as .gitignore says), or hidden: not ours to judge."""
    name = os.path.basename(path)
    return name.startswith((".", "build")) or name in ("target", "__pycache__") or re.fullmatch(r"samples/[^/]+/out[^/]*", path)


def files(*tops, endings=CPP):
    """Paths relative to SOURCE of the files below some folders that are ours: nothing built, hidden or downloaded."""
    found = []
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(SOURCE, top)):
            folders[:] = sorted(f for f in folders if not is_made(os.path.relpath(os.path.join(folder, f), SOURCE)))
            found += [os.path.relpath(os.path.join(folder, n), SOURCE) for n in sorted(names) if n.endswith(endings)]
    return found


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def includes(text):
    """(line number, bracket, name) of every #include of a C or C++ text."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            found.append((number, match[1], match[2]))
    return found


def layers():
    """The layers of sdk/, low to high: the order of sdk/CMakeLists.txt."""
    return re.findall(r"^add_subdirectory\((\w+)\)", read("sdk/CMakeLists.txt"), re.MULTILINE)
