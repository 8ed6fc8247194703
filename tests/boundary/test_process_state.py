"""Law: the library keeps no state of the process: no mutable global, no static constructor, no look at the environment
outside runtime creation, no exit, no signal handler, no output, no OpenMP.

Checked on our own object files, because the finished library also holds the Rust and C++ run-time libraries. What is
looked at: every archive libinlaid_*.a of the build and the objects of libinlaid.so itself. Left out: the code of others
(NOT_OURS), test support, and generated protobuf classes (their default instances are filled in when first used)."""

import collections
import glob
import os
import re
import subprocess

import tree

# Functions of the C library (and of OpenMP) that read or change the process, end it, or write to its terminal.
FORBIDDEN = re.compile(
    r"^(getenv|secure_getenv|setenv|unsetenv|putenv|clearenv|environ"
    r"|exit|_exit|_Exit|quick_exit|atexit|at_quick_exit|on_exit|abort|__assert_fail"
    r"|signal|sigaction|sigprocmask|raise|kill|setlocale|chdir|fchdir|umask|setrlimit|fork|vfork|system|popen"
    r"|printf|vprintf|__printf_chk|__vprintf_chk|puts|putchar|fputs_unlocked|perror|psignal|syslog|stdout|stderr|stdin"
    r"|_ZSt4cout|_ZSt4cerr|_ZSt4clog|_ZSt5wcout|_ZSt5wcerr|_ZSt3cin"
    r"|pthread_atfork|__register_atfork|openlog|GOMP_\w+|omp_\w+|kmpc_\w+|srand|srandom|rand|random|drand48)$")
# The one place that may read the environment: settings that a runtime takes over when it is created.
ALLOWED = {("runtime", "getenv"), ("runtime", "secure_getenv")}
# Thread-local marks that hold no state between calls, (source file, variable): why.
ALLOWED_STATE = {
    ("thread_pool", "executing_pool"): "set while a worker runs a task, so that a nested call is noticed",
}
# What headers of others bring into every object that includes them, (archive, symbol): why it does no harm.
FROM_HEADERS = [
    (r"libinlaid_(checkpoint|formats|train)\.a", r"_ZStL8__ioinit|^\.init_array$",
     "protobuf's headers include <iostream>; counts its users"),
    (r"libinlaid_(nn|train)\.a", r"_AnyMatcher|regex_traits", "tables inside libstdc++'s <regex>, constant once made"),
]
# Sections that hold data which can change after the library is loaded. Relocated constants (.data.rel.ro) are read-only by
# then; DW.ref.* are the compiler's pointers to the exception personality.
MUTABLE = re.compile(r"^\.(data(?!\.rel\.ro|\.DW\.ref|\.rel\.local\.DW\.ref|\.rel\.DW\.ref)|bss|tdata|tbss)|^\*COM\*$")
STATIC_CONSTRUCTOR = re.compile(r"^\.(init_array|ctors|preinit_array)")
NOT_OURS = re.compile(r"^libinlaid_(protobuf_lite|\w*rust|\w+_testing)\.a$")


def object_sources():
    """The archives and objects that hold our code."""
    sources = []
    for path in glob.glob(os.path.join(tree.BUILD, "**", "libinlaid_*.a"), recursive=True):
        rust = path.startswith(os.path.join(tree.BUILD, "rust") + os.sep)
        if not rust and not NOT_OURS.match(os.path.basename(path)):
            sources.append(path)
    sources += glob.glob(os.path.join(tree.BUILD, "capi", "CMakeFiles", "inlaid*.dir", "src", "**", "*.o"), recursive=True)
    return sorted(sources)


def from_headers(path, symbol):
    return any(re.fullmatch(archive, os.path.basename(path)) and re.search(pattern, symbol)
               for archive, pattern, _ in FROM_HEADERS)


def ours(member):
    return not member.endswith(".pb.cc.o")


def objdump(path):
    """{object name: [(flags, section, symbol)]} of an archive or object."""
    text = subprocess.run(["objdump", "-t", "-w", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    objects = collections.defaultdict(list)
    name = os.path.basename(path)
    for line in text.splitlines():
        header = re.match(r"^(\S+):\s+file format", line)
        if header:
            name = os.path.basename(header[1])
            objects[name]
            continue
        symbol = re.match(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (?:\.hidden |\.internal |\.protected )?(.*)$", line)
        if symbol:
            objects[name].append((symbol[1], symbol[2], symbol[3]))
    return objects


def sections(path):
    text = subprocess.run(["objdump", "-h", "-w", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    found, name = collections.defaultdict(list), os.path.basename(path)
    for line in text.splitlines():
        header = re.match(r"^(\S+):\s+file format", line)
        if header:
            name = os.path.basename(header[1])
        row = re.match(r"^\s*\d+ (\S+)\s+([0-9a-f]+)", line)
        if row and int(row[2], 16) > 0:
            found[name].append(row[1])
    return found


def findings(path):
    """Everything in an archive or object that breaks the law."""
    wrong = []
    for name, symbols in objdump(path).items():
        if not ours(name):
            continue
        for flags, section, symbol in symbols:
            if section == "*UND*" and FORBIDDEN.match(symbol) and (name.split(".")[0], symbol) not in ALLOWED:
                wrong.append(f"{name}: uses {symbol}")
            # 'O' marks an object; thread-local ones carry no mark, so there everything but the section itself ('d').
            if MUTABLE.match(section) and ("O" in flags or section.startswith(".t") and "d" not in flags):
                if any(name.split(".")[0] == source and variable in symbol for source, variable in ALLOWED_STATE):
                    continue
                if not from_headers(path, symbol):
                    wrong.append(f"{name}: mutable {symbol} in {section}")
    for name, present in sections(path).items():
        if ours(name):
            wrong += [f"{name}: {s}: code that runs when the library is loaded" for s in present
                      if STATIC_CONSTRUCTOR.match(s) and not from_headers(path, s)]
    return wrong


def demangle(lines):
    done = subprocess.run(["c++filt"], input="\n".join(lines).encode(), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def test_our_objects_keep_no_process_state():
    sources = object_sources()
    names = {os.path.basename(s) for s in sources}
    assert {f"libinlaid_{layer}.a" for layer in ["kernels", *tree.layers()]} <= names
    if os.path.exists(tree.LIBRARY):
        assert any("/capi/" in s for s in sources), "the objects of the C API were not found"
    wrong = [finding for source in sources for finding in findings(source)]
    assert not wrong, "\n" + demangle(sorted(set(wrong)))


def test_the_check_sees_violations(tmp_path):
    cases = {
        "int counter; int next() { return ++counter; }": "mutable counter",
        "int next() { static int n; return ++n; }": "mutable",
        "thread_local int depth; int* get() { return &depth; }": "mutable depth",
        "#include <map>\nstd::map<int, int> table{{1, 2}}; int f() { return table[1]; }": "when the library is loaded",
        "#include <cstdlib>\nconst char* f() { return getenv(\"X\"); }": "uses getenv",
        "#include <iostream>\nvoid f() { std::cerr << 1; }": "uses std::cerr",
        "#include <cstdio>\nvoid f(int i) { std::printf(\"%d\", i); }": "uses printf",
        "#include <cstdlib>\nvoid f() { std::abort(); }": "uses abort",
        "#include <cstdio>\nvoid f() { std::fputs(\"x\", stderr); }": "uses stderr",
    }
    for number, (code, expected) in enumerate(cases.items()):
        source, target = tmp_path / f"case{number}.cc", tmp_path / f"case{number}.o"
        source.write_text(code)
        subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-c", source, "-o", target], check=True)
        assert expected in demangle(findings(str(target))), code


def test_the_check_lets_constants_pass(tmp_path):
    source, target = tmp_path / "good.cc", tmp_path / "good.o"
    source.write_text("""
        #include <stdexcept>
        #include <string>
        struct Base { virtual ~Base() = default; virtual int f() const { return 1; } };
        struct Derived : Base { int f() const override { return 2; } };
        constexpr const char* kNames[] = {"a", "b"};
        const char* const* names() { return kNames; }
        Base* make() { return new Derived; }
        int guarded(int (*f)()) { try { return f(); } catch (const std::runtime_error& e) { return 0; } }
    """)
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-c", source, "-o", target], check=True)
    assert findings(str(target)) == []


def test_no_source_asks_for_openmp():
    for path in tree.files("kernels", "sdk", "capi") + tree.files(".", endings=("CMakeLists.txt",)):
        text = tree.read(path)
        assert "#pragma omp" not in text and "-fopenmp" not in text and "OpenMP::" not in text, path
