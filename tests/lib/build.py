"""Configures and builds one build tree, and fetches what the tests need from outside."""

import os
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Failure(Exception):
    """A step before the tests failed; its output is already on the terminal."""


def say(text):
    print(text, flush=True)


def cores():
    return len(os.sched_getaffinity(0))


def tool_environment(extra=None):
    """The caller's environment, with a per-user Rust toolchain in reach and nothing that changes the tests' meaning."""
    env = dict(os.environ)
    for name in ("PYTHONPATH", "PYTHONHOME", "GTEST_FILTER", "LD_PRELOAD", "MAKEFLAGS"):
        env.pop(name, None)
    cargo = os.path.join(os.path.expanduser("~"), ".cargo", "bin")
    if os.path.isdir(cargo) and cargo not in env.get("PATH", "").split(":"):
        env["PATH"] = cargo + ":" + env.get("PATH", "/usr/bin:/bin")
    env.update(extra or {})
    return env


def step(title, command, env=None, quiet=False, cwd=None):
    """Runs a command and shows its output if it fails (always, unless quiet). Returns the seconds it took."""
    start = time.monotonic()
    done = subprocess.run(command, env=env or tool_environment(), stdin=subprocess.DEVNULL, cwd=cwd,
                          stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        if quiet:
            say(done.stdout.decode(errors="replace"))
        raise Failure(f"{title} failed (exit {done.returncode}): {' '.join(command)}")
    return seconds


def fetch_test_data():
    """The folder with the pretrained model. A failed download is a failure of the run, never a skip."""
    folder = os.environ.get("INLAID_TEST_DATA")
    if folder:
        return os.path.abspath(folder)
    done = subprocess.run([os.path.join(SOURCE, "sdk/deps/fetch_model")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, env=tool_environment())
    if done.returncode != 0:
        raise Failure("fetching the pretrained model failed")
    return done.stdout.decode().strip().splitlines()[-1]


def configure(source, build, options=()):
    return step("cmake", ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                          "-DPython3_EXECUTABLE=/usr/bin/python3", "-DINLAID_TESTS=ON", "-DINLAID_PYTHON=ON", *options], quiet=True)


def compile_tree(build, jobs, targets=(), quiet=False, env=None):
    return step("the build", ["ninja", "-C", build, f"-j{jobs}", *targets], env=env, quiet=quiet)
