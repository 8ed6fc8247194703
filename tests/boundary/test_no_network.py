"""Law: the library and the program talk to nobody. Training, evaluation, export and chat run where a socket is death: under a
seccomp filter that kills the process at the first system call that makes one, of whatever family, and at io_uring, which could
make one unseen; and, where the system lets us, in a network namespace of its own without an interface.

The filter needs no right and no tool, so this test runs everywhere. That it bites is tested first."""

import ctypes
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys

import pytest
import tree

PROGRAM = os.path.join(tree.BUILD, "bin", "inlaid")
# Architecture of the audit record, and the numbers of socket, socketpair and io_uring_setup.
SYSCALLS = {"x86_64": (0xC000003E, (41, 53, 425)), "aarch64": (0xC00000B7, (198, 199, 425))}

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_KILL_PROCESS, RET_ALLOW = 0x80000000, 0x7FFF0000
LOAD, EQUAL, GREATER_EQUAL, RETURN = 0x20, 0x15, 0x35, 0x06  # of classic BPF, with constant operands
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000

LIBC = ctypes.CDLL(None, use_errno=True)


def filter_program():
    """Kills for another architecture, for x32 calls and for the system calls above; allows the rest."""
    architecture, numbers = SYSCALLS[platform.machine()]
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, RET_KILL_PROCESS), (LOAD, 0, 0, 0)]
    if platform.machine() == "x86_64":
        program += [(GREATER_EQUAL, 0, 1, 0x40000000), (RETURN, 0, 0, RET_KILL_PROCESS)]
    for number in numbers:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, RET_KILL_PROCESS)]
    program.append((RETURN, 0, 0, RET_ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in program)


CODE = ctypes.create_string_buffer(filter_program())
PROGRAM_OF_FILTER = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", (len(CODE) - 1) // 8, ctypes.addressof(CODE)))


def without_sockets():
    """For preexec_fn: from here on, in this process and its children, a socket is death."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET)  # may be forbidden too; the filter below is not
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        os._exit(99)
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(PROGRAM_OF_FILTER), 0, 0) != 0:
        os._exit(99)


def run(*command):
    return subprocess.run(command, preexec_fn=without_sockets, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
def test_the_filter_bites(family):
    done = run(sys.executable, "-c", f"import _socket; _socket.socket({int(family)}, 1, 0)")
    assert done.returncode == -signal.SIGSYS, done.stdout.decode()


def test_the_filter_lets_the_rest_through():
    done = run(sys.executable, "-c", "print(sum(range(10)))")
    assert done.returncode == 0 and done.stdout == b"45\n"


def write_job(folder):
    golden = os.path.join(tree.SOURCE, "tests", "golden", "text")
    tokenizer = folder / "tokenizer"
    tokenizer.mkdir()
    for source, name in (("tokenizers/byte_bpe.json", "tokenizer.json"), ("templates/chatml.jinja", "chat_template.jinja")):
        with open(os.path.join(golden, source), encoding="utf-8") as file:
            (tokenizer / name).write_text(file.read())
    (tokenizer / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    rows = [{"messages": [{"role": "user", "content": f"Define lamp {i}"}, {"role": "assistant", "content": f"a lamp {i}"}]}
            for i in range(12)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = {"model": {"tokenizer": str(tokenizer),
                     "config": {"model_type": "llama", "vocab_size": 600, "hidden_size": 32, "intermediate_size": 48,
                                "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 256}},
           "data": {"train": [{"path": "rows.jsonl"}], "eval_fraction": 0.3},
           "train": {"micro_batch_tokens": 128, "max_steps": 3},
           "logging": {"writers": ["jsonl", "csv", "tensorboard", "html"]},
           "output_dir": "out"}
    (folder / "job.json").write_text(json.dumps(job))


def test_a_whole_job_without_a_network(tmp_path):
    write_job(tmp_path)
    out = str(tmp_path / "out")
    for command in (["train", str(tmp_path / "job.json")],
                    ["resume", out],
                    ["eval", out, "--data", str(tmp_path / "rows.jsonl")],
                    ["chat", out, "--prompt", "Define lamp 3", "--generation", '{"max_new_tokens": 4}'],
                    ["export", out, "--format", "huggingface"],
                    ["export", out, "--format", "gguf", "--dtype", "f16"],
                    ["eval", out + "/model.gguf", "--data", str(tmp_path / "rows.jsonl")],
                    ["report", out],
                    ["verify", out]):
        done = run(PROGRAM, *command)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout.decode()}"


def test_the_library_imports_nothing_that_makes_a_socket():
    listing = subprocess.run(["nm", "-D", "--undefined-only", tree.LIBRARY], stdout=subprocess.PIPE, check=True).stdout.decode()
    imported = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    assert "pread" in imported or "pread64" in imported  # the listing is one
    assert not imported & {"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "getaddrinfo",
                           "gethostbyname", "sendto", "recvfrom", "sendmsg", "recvmsg"}
