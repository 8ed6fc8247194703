"""tests/run after the machine's set-up: builds, runs all units in parallel, reports, counts."""

import argparse
import concurrent.futures
import json
import os
import sys
import threading
import time

import build as builder
import mutants
import sanitize
import units
from build import SOURCE, Failure, say

GIB = 1 << 30
MEMORY_PER_JOB = 4 * GIB  # the largest tests train the 135-million-parameter model with AdamW: about 3 GiB
SHOWN_LINES = 120         # of a failed unit's output, from its end


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tests/run")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"), help="the build tree")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.jobs = options.jobs or default_jobs()
    return options


def default_jobs():
    available = 0
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    return max(1, min(builder.cores(), available // MEMORY_PER_JOB))


def order_by_time(chosen, build):
    """Longest first, by the times of the last run, so that no long unit is left alone at the end."""
    try:
        with open(os.path.join(build, "test-seconds.json"), encoding="ascii") as file:
            seconds = json.load(file)
    except (OSError, ValueError):
        seconds = {}
    return sorted(chosen, key=lambda unit: -seconds.get(unit.name, 60.0)), seconds


def print_result(result):
    total = result.passed + result.skipped + len(result.failures)
    mark = "FAILED" if result.failures else "ok"
    say(f"{mark:>6} {result.seconds:7.1f} s  {result.unit.name} ({total - len(result.failures)}/{total})")
    if result.failures:
        lines = result.output.rstrip().splitlines()
        if len(lines) > SHOWN_LINES:
            say(f"    | ... {len(lines) - SHOWN_LINES} lines before this")
        for line in lines[-SHOWN_LINES:]:
            say("    | " + line)


def run_all(chosen, build, data, jobs, case=None, full=False, extra_env=None):
    """Runs the units, at most `jobs` at a time; those that want to be alone come last, one by one."""
    ordered, seconds = order_by_time(chosen, build)
    results = []
    lock = threading.Lock()

    def run(unit):
        result = units.run_unit(unit, SOURCE, build, data, case, full, extra_env)
        with lock:
            results.append(result)
            seconds[unit.name] = round(result.seconds, 1)
            print_result(result)

    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for done in [pool.submit(run, unit) for unit in ordered if not unit.alone]:
            done.result()
    for unit in ordered:
        if unit.alone:
            run(unit)
    with open(os.path.join(build, "test-seconds.json"), "w", encoding="ascii") as file:
        json.dump(seconds, file, indent=0, sort_keys=True)
    return results


def close(results, start):
    """Prints every failed case once more, then the closing line. Returns the exit code."""
    passed = sum(r.passed for r in results)
    skipped = sum(r.skipped for r in results)
    failures = [(r.unit.name, failure) for r in results for failure in r.failures]
    if failures:
        say("\nfailed:")
        for name, failure in failures:
            say(f"  {name}: " + failure.splitlines()[0][:300])
    say(f"\n{time.monotonic() - start:.0f} s in all")
    say(f"{passed} passed, {len(failures)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failures else 1


def ordinary_run(options):
    data = None if options.list else builder.fetch_test_data()
    say(f"configure: {builder.configure(SOURCE, options.build):.1f} s")
    if options.list:
        for unit in units.select(units.find_all(SOURCE, options.build), options.filter)[0]:
            say(unit.name)
        return None
    say(f"build: {builder.compile_tree(options.build, builder.cores()):.1f} s")
    chosen, case = units.select(units.find_all(SOURCE, options.build), options.filter)
    if not chosen:
        raise Failure(f"no test matches {options.filter!r}")
    say(f"{len(chosen)} test programs and files, {options.jobs} at a time, model in {data}")
    return run_all(chosen, options.build, data, options.jobs, case, options.full)


def main():
    options = parse_arguments()
    start = time.monotonic()
    try:
        if options.mutants:
            results = mutants.run(options)
        elif options.sanitize:
            results = sanitize.run(options, run_all)
        else:
            results = ordinary_run(options)
    except Failure as failure:
        say(f"tests/run: {failure}")
        say("0 passed, 1 failed")
        return 1
    return 0 if results is None else close(results, start)


if __name__ == "__main__":
    sys.exit(main())
