"""Law: kernels/ includes nothing from sdk/; a layer of sdk/ includes only itself and lower layers, and nothing from capi/;
the command line, the bindings and the samples see the engine only through the public headers."""

import os
import re

import tree

PUBLIC = {"inlaid.h", "inlaid_plugin.h", "inlaid.hpp"}
# Made during the build: protobuf's classes. They stand in the layer that makes them.
GENERATED = re.compile(r"\.pb\.h$")


def layer_of(path):
    """('kernels', None), ('sdk', 'nn'), ('capi', None), ... of a path from the root; None for anything else."""
    parts = path.split("/")
    if parts[0] == "sdk" and len(parts) > 2:
        return "sdk", parts[1]
    if parts[0] in ("kernels", "capi", "bindings", "samples", "tests") and len(parts) > 1:
        return parts[0], None
    return None


def host_program(path):
    return path.startswith(("capi/cli/", "capi/service/", "bindings/", "samples/"))


def violation(path, bracket, name, order):
    """Why `path` may not include `name`, or None."""
    part, layer = layer_of(path)
    target = layer_of(name)
    if host_program(path):
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        own = "/".join(path.split("/")[:2]) + "/"
        if name in PUBLIC or name.removeprefix("capi/include/") in PUBLIC:
            return None
        if bracket == "<":
            return None if target is None else "reaches into the engine"
        inside = any(p.startswith(own) and os.path.exists(os.path.join(tree.SOURCE, p)) for p in (beside, name))
        return None if inside else "a host program includes only the public headers and its own files"
    if bracket == "<":
        return None if target is None else "own headers are included with quotes"
    if path.startswith("capi/include/"):
        return None if name in PUBLIC else "a public header includes only public headers"
    if part == "tests":
        return None
    if target is None:
        if part == "capi" and name in PUBLIC:
            return None
        if part == "sdk" and GENERATED.search(name):
            return None
        return "is not a path from the root of the tree"
    if part == "kernels":
        return None if target[0] == "kernels" else "kernels/ knows nothing else"
    if part == "sdk":
        if target[0] == "kernels":
            return None
        if target[0] != "sdk":
            return "sdk/ stands below everything but kernels/"
        if target[1] not in order or layer not in order:
            return "is in no layer of sdk/CMakeLists.txt"
        return None if order.index(target[1]) <= order.index(layer) else f"{layer} is below {target[1]}"
    return None if target[0] in ("kernels", "sdk", "capi") else "the library includes nothing from outside it"


def test_every_include_follows_the_directions():
    order = tree.layers()
    assert order[0] == "base" and order[-1] == "train"
    wrong, seen = [], 0
    for path in tree.files("kernels", "sdk", "capi", "bindings", "samples"):
        if layer_of(path) is None:
            continue
        for number, bracket, name in tree.includes(tree.read(path)):
            seen += 1
            reason = violation(path, bracket, name, order)
            if reason:
                wrong.append(f"{path}:{number}: includes {name}: {reason}")
    assert seen > 100
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_link_follows_the_directions():
    order = tree.layers()
    for layer in order:
        text = tree.read(f"sdk/{layer}/CMakeLists.txt")
        for call in re.findall(r"inlaid_layer\((.*?)\)", text, re.DOTALL):
            name, _, rest = call.strip().partition("\n")
            assert name.split()[0] in (layer, layer + "_testing")
            for linked in re.findall(r"\binlaid_(\w+)", rest):
                if linked in order:
                    assert order.index(linked) < order.index(layer), f"sdk/{layer} links inlaid_{linked}, which is above it"


def test_header_guards_name_their_path():
    wrong = []
    for path in tree.files("kernels", "sdk", "capi/src", "capi/cli", endings=(".h",)):
        guard = "INLAID_" + re.sub(r"\W", "_", path).upper() + "_"
        if f"#ifndef {guard}\n#define {guard}\n" not in tree.read(path):
            wrong.append(f"{path}: expected the guard {guard}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_checks_see_violations():
    order = ["base", "tensor", "nn"]
    for path, bracket, name in [
            ("kernels/gemm/cpu.cc", '"', "sdk/base/error.h"),
            ("kernels/gemm/cpu.cc", "<", "sdk/base/error.h"),
            ("sdk/base/error.cc", '"', "sdk/tensor/tensor.h"),
            ("sdk/nn/linear.cc", '"', "capi/include/inlaid.h"),
            ("sdk/nn/linear.cc", '"', "linear.h"),
            ("capi/include/inlaid.h", '"', "sdk/base/error.h"),
            ("capi/cli/main.cc", '"', "sdk/base/json.h"),
            ("capi/cli/main.cc", '"', "capi/src/guard.h"),
            ("bindings/python/src/inlaid/inlaid.i.c", '"', "sdk/base/json.h"),
            ("samples/embed_c/main.c", "<", "sdk/base/json.h")]:
        assert violation(path, bracket, name, order), (path, name)
    for path, bracket, name in [
            ("kernels/gemm/cpu.cc", '"', "kernels/kernels.h"),
            ("sdk/nn/linear.cc", '"', "sdk/tensor/tensor.h"),
            ("sdk/nn/linear.cc", "<", "vector"),
            ("capi/src/error.cc", '"', "sdk/base/error.h"),
            ("capi/cli/main.cc", "<", "CLI/CLI.hpp"),
            ("samples/embed_c/main.c", "<", "inlaid.h")]:
        assert violation(path, bracket, name, order) is None, (path, name)
