"""tests/run --mutants: a test that stays green while the code is wrong is no test.

Each file tests/mutants/*.patch is one defect that somebody could plausibly make, as a unified diff against the root of the
tree (`git diff`), with lines before the diff:

    Mutant: one line that says what is wrong
    Red: UNIT[:CASES] ...    the tests that must notice, as for --filter; any one of them turning red is enough

The runner copies the tree, builds the named tests and requires that they pass as they are. Then it applies one patch at a
time, rebuilds what changed, runs the tests and takes the patch back. A patch that does not apply or compile is a failure
too: it no longer says anything about the code.
"""

import glob
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import build as builder
import units
from build import SOURCE, Failure, say

LEFT_OUT = ("build", ".git", ".cache", "target", "__pycache__")


@dataclass
class Mutant:
    path: str
    title: str
    red: list  # of (unit pattern, case pattern or None)

    @property
    def name(self):
        return os.path.basename(self.path).removesuffix(".patch")


def read(path):
    with open(path, encoding="utf-8") as file:
        head = re.split(r"^(?:diff |--- )", file.read(), maxsplit=1, flags=re.MULTILINE)[0]
    title = re.search(r"^Mutant: *(.+)$", head, re.MULTILINE)
    red = re.search(r"^Red: *(.+)$", head, re.MULTILINE)
    if not title or not red:
        raise Failure(f"{path}: a mutant starts with the lines 'Mutant: ...' and 'Red: ...'")
    tests = [(name, case or None) for name, _, case in (word.partition(":") for word in red[1].split())]
    return Mutant(path, title[1].strip(), tests)


def copy_tree(target):
    shutil.copytree(SOURCE, target, symlinks=True, dirs_exist_ok=True,
                    ignore=lambda folder, names: [n for n in names if n in LEFT_OUT or n.startswith("build-")])


def apply(tree, mutant, reverse=False):
    command = ["patch", "-p1", "-s", "-f", "--fuzz=0", "-i", mutant.path] + (["-R"] if reverse else [])
    done = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout.decode(errors="replace")


def build_targets(chosen):
    """The programs alone when all named tests are programs, otherwise everything."""
    if all(unit.kind == "program" for unit in chosen):
        return sorted({unit.name for unit in chosen})
    return []


def find(tree, build, mutant):
    everything = units.find_all(tree, build)
    chosen = []
    for name, case in mutant.red:
        matching, _ = units.select(everything, name)
        if not matching:
            raise Failure(f"{mutant.name}: no test matches {name!r}")
        chosen += [(unit, case) for unit in matching]
    return chosen


def run_tests(tree, build, data, chosen):
    return [units.run_unit(unit, tree, build, data, case) for unit, case in chosen]


def judge(tree, build, data, mutant, chosen, env):
    """'caught', or what is wrong with the mutant or the tests; and the output that shows it."""
    applied, output = apply(tree, mutant)
    if not applied:
        return "the patch does not apply", output
    try:
        done = subprocess.run(["ninja", "-C", build, f"-j{builder.cores()}", *build_targets([u for u, _ in chosen])],
                              env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            return "the mutant does not compile", done.stdout.decode(errors="replace")
        results = run_tests(tree, build, data, chosen)
        if any(result.failures for result in results):
            return "caught", "; ".join(f"{r.unit.name}: {r.failures[0].splitlines()[0]}" for r in results if r.failures)
        return "NOT CAUGHT", "green: " + ", ".join(r.unit.name for r in results)
    finally:
        restored, output = apply(tree, mutant, reverse=True)
        if not restored:
            raise Failure(f"{mutant.name} cannot be taken back:\n{output}")


def run(options):
    mutants = [read(path) for path in sorted(glob.glob(os.path.join(SOURCE, "tests/mutants/*.patch")))]
    if options.filter:
        mutants = [m for m in mutants if options.filter in m.name]
    if not mutants:
        raise Failure("no mutant to try")
    data = builder.fetch_test_data()
    tree = tempfile.mkdtemp(prefix="inlaid-mutants-")
    # Compiler results are shared between the copy and earlier runs, whose paths differ.
    env = builder.tool_environment({"CCACHE_BASEDIR": tree, "CCACHE_NOHASHDIR": "1"})
    results = []
    try:
        copy_tree(tree)
        build = os.path.join(tree, "build")
        builder.configure(tree, build)
        chosen = {mutant.name: find(tree, build, mutant) for mutant in mutants}
        say(f"building the unchanged tree in {tree}")
        targets = [build_targets([u for u, _ in pairs]) for pairs in chosen.values()]
        builder.compile_tree(build, builder.cores(), sorted(set().union(*targets)) if all(targets) else (), True, env)
        tried = {}
        for pairs in chosen.values():
            for unit, case in pairs:
                tried.setdefault((unit.name, case), (unit, case))
        say(f"the {len(tried)} named tests on the unchanged tree")
        for result in run_tests(tree, build, data, tried.values()):
            if result.failures:
                raise Failure(f"{result.unit.name} is red before any mutant: {result.failures[0]}\n{result.output}")
        for mutant in mutants:
            verdict, output = judge(tree, build, data, mutant, chosen[mutant.name], env)
            result = units.Result(units.Unit(mutant.name, "mutant", [], tree))
            if verdict == "caught":
                result.passed = 1
            else:
                result.fail(mutant.title, verdict)
            say(f"{verdict:>26}  {mutant.name}: {mutant.title}\n{'':>26}  {output.strip()[-2000:] or '-'}")
            results.append(result)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    return results
