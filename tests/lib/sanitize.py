"""tests/run --sanitize: the C and C++ tests under AddressSanitizer + UndefinedBehaviorSanitizer, then ThreadSanitizer.

Each has a build tree of its own (build-address, build-thread). Python is left out: an interpreter that was not built with
a sanitizer cannot load a library that was. The reports stop a program at the first finding.
"""

import os

import build as builder
import units
from build import SOURCE, say

CONFIGURATIONS = {
    "address": ("address,undefined", {
        "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_init_order=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}),
    "thread": ("thread", {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=" +
                          os.path.join(SOURCE, "tests/lib/tsan_suppressions.txt")}),
}


def run(options, run_all):
    data = builder.fetch_test_data()
    results = []
    for name, (sanitizers, environment) in CONFIGURATIONS.items():
        build = os.path.join(SOURCE, "build-" + name)
        say(f"== {sanitizers}")
        builder.configure(SOURCE, build, [f"-DINLAID_SANITIZE={sanitizers}", "-DINLAID_PYTHON=OFF"])
        say(f"build: {builder.compile_tree(build, builder.cores()):.1f} s")
        chosen, case = units.select(units.registered_programs(build), options.filter)
        for result in run_all(chosen, build, data, options.jobs, case, options.full, environment):
            result.unit.name += f" [{name}]"
            results.append(result)
    return results
