"""The command line as its users meet it: exit codes, messages, Ctrl-C, on a random model of a few thousand weights."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

SOURCE = os.environ.get("INLAID_SOURCE") or os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("INLAID_BUILD") or os.path.join(SOURCE, "build")
INLAID = os.path.join(BUILD, "bin", "inlaid")
sys.path.insert(0, os.path.join(SOURCE, "bindings/python/tests"))
import tiny  # noqa: E402

DONE, FAILED, USAGE, DATA, RESOURCES, DAMAGED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def inlaid(*arguments, **keywords):
    return subprocess.run([INLAID, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=120, check=False, **keywords)


@pytest.fixture
def job(tmp_path):
    """A function that writes a job file with sections merged into the tiny configuration; its path."""
    def write(**sections):
        path = tmp_path / "job.json"
        path.write_text(json.dumps(tiny.config(tmp_path, output_dir=str(tmp_path / "out"), **sections)))
        return path
    return write


@pytest.fixture
def trained(job, tmp_path):
    result = inlaid("train", job(lora=True))
    assert result.returncode == DONE, result.stderr
    return tmp_path / "out"


def endless(job):
    return job(train={"max_steps": 10_000_000, "micro_batch_tokens": 128, "seed": 7})


def start(*arguments):
    return subprocess.Popen([INLAID, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def test_an_unknown_command_is_named():
    result = inlaid("trian", "job.json")
    assert result.returncode == USAGE
    assert "there is no command 'trian'" in result.stderr
    assert "'chek'" in inlaid("data", "chek").stderr


def test_data_given_as_a_job_file(tmp_path):
    result = inlaid("data", "check", tiny.write_rows(tmp_path))
    assert result.returncode == USAGE
    assert "data is named with --data" in result.stderr


def test_plan_beyond_the_memory_limit(job):
    result = inlaid("--memory-limit", "400kB", "plan", job())
    assert result.returncode == RESOURCES
    assert "refused: the job needs " in result.stdout and " MiB (" in result.stdout
    assert inlaid("--json", "--memory-limit", "400kB", "plan", job()).returncode == RESOURCES
    result = inlaid("plan", job())
    assert result.returncode == DONE
    assert result.stdout.splitlines()[-2].split()[0] == "total"


def test_train_beyond_the_memory_limit(job, tmp_path):
    result = inlaid("--memory-limit", "400kB", "train", job())
    assert result.returncode == RESOURCES
    assert "RESOURCE_EXHAUSTED" in result.stderr and "inlaid: the job needs " in result.stderr
    assert not (tmp_path / "out").exists()


def test_errors_as_json(tmp_path):
    result = inlaid("--json", "verify", tmp_path / "none")
    assert json.loads(result.stderr)["kind"] == "error"
    assert json.loads(result.stderr)["exit"] == result.returncode != DONE


def test_nothing_held_out(job, tmp_path):
    config = json.loads(job().read_text())
    config["data"].pop("eval")
    config["data"]["eval_fraction"] = 1e-9
    job().write_text(json.dumps(config))
    result = inlaid("train", tmp_path / "job.json")
    assert result.returncode == DATA
    assert "data.eval_fraction 1e-09 holds out none of the 40 rows" in result.stderr
    assert not (tmp_path / "out").exists()


def test_failed_job_leaves_an_older_folder_alone(job, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("text")
    assert inlaid("--memory-limit", "400kB", "train", job()).returncode == RESOURCES
    assert (tmp_path / "out" / "precious").exists()


def test_rows_beyond_an_epoch(job):
    assert "rows seen" in inlaid("train", job(train={"max_steps": 1, "micro_batch_tokens": 128})).stdout


def test_several_epochs(job):
    result = inlaid("train", job(train={"max_steps": None, "num_train_epochs": 3, "micro_batch_tokens": 128}))
    assert "120 rows trained on, 3.00 times the 40 rows there" in result.stdout


def test_resume_of_a_finished_job(trained):
    result = inlaid("resume", trained)
    assert result.returncode == DONE
    assert "all of its steps are done" in result.stdout


def test_resume_of_what_is_no_output_folder(job, tmp_path):
    job()
    result = inlaid("resume", tmp_path)
    assert result.returncode == USAGE
    assert "no record of a job" in result.stderr
    assert inlaid("resume", tmp_path / "nowhere").returncode == USAGE


def test_damaged_checkpoint_says_how_to_go_on(trained):
    (checkpoint,) = (trained / "checkpoints").glob("step-*")
    (shard,) = checkpoint.glob("*.safetensors")
    damaged = bytearray(shard.read_bytes())
    damaged[-1] ^= 1
    shard.write_bytes(damaged)
    result = inlaid("resume", trained)
    assert result.returncode == DAMAGED
    assert f"move {checkpoint} away" in result.stderr
    assert inlaid("verify", trained).returncode == DAMAGED


def test_describe_is_short(trained):
    described = json.loads(inlaid("describe", trained).stdout)
    assert described["tensors"]["moment_1 f32"] > 1
    assert isinstance(json.loads(inlaid("--json", "describe", trained).stdout)["tensors"], list)


def test_export_refuses_before_it_speaks(trained, tmp_path):
    (tmp_path / "there.gguf").write_text("")
    result = inlaid("export", trained, "--format", "gguf", "--dtype", "q4_k", "--to", tmp_path / "there.gguf")
    assert result.returncode == USAGE
    assert result.stderr.startswith("inlaid: ALREADY_EXISTS") and len(result.stderr.splitlines()) == 1
    result = inlaid("export", trained, "--format", "gguf", "--dtype", "q9")
    assert "export options: dtype 'q9' cannot be exported as gguf" in result.stderr


def test_exports_are_certified(trained, tmp_path):
    exported = json.loads(inlaid("--json", "export", trained, "--format", "huggingface", "--to", tmp_path / "m").stdout)
    assert exported["certificate"]["held_out"]["rows"] == 6
    assert "certificate: logits differ by at most" in inlaid("export", trained, "--format", "peft").stdout
    plain = inlaid("export", trained, "--format", "gguf", "--no-certificate")
    assert plain.returncode == DONE and "certificate" not in plain.stdout


def test_convert(trained, tmp_path):
    assert inlaid("export", trained, "--format", "huggingface", "--to", tmp_path / "m").returncode == DONE
    assert inlaid("convert", tmp_path / "m", tmp_path / "m.gguf", "--dtype", "f16").returncode == DONE
    back = inlaid("--json", "convert", tmp_path / "m.gguf", tmp_path / "again")
    assert json.loads(back.stdout)["certificate"]["logits"]["max_abs_difference"] == 0
    assert (tmp_path / "again" / "config.json").exists()
    result = inlaid("export", tmp_path / "m.gguf", "--format", "gguf")
    assert result.returncode == USAGE and "--to" in result.stderr


@pytest.mark.parametrize("signals", [1, 2])
def test_interrupt(job, tmp_path, signals):
    process = start("train", endless(job))
    wait_for(lambda: (tmp_path / "out" / "events.jsonl").exists() and (tmp_path / "out" / "events.jsonl").stat().st_size > 0)
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, err
    assert "inlaid resume" in out
    if signals == 1:
        assert "saved " in out and list((tmp_path / "out" / "checkpoints").glob("step-*"))
    assert not [p for p in (tmp_path / "out").rglob("*.tmp")]


def test_interrupt_while_loading(job, tmp_path):
    rows = tmp_path / "many.jsonl"
    with open(rows, "w", encoding="utf-8") as file:
        file.write((json.dumps({"text": " ".join(tiny.WORDS)}) + "\n") * 400_000)
    process = start("train", job(data={"train": [{"path": str(rows), "format": "text"}], "max_length": 64}))
    wait_for(lambda: caught(process.pid, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "inlaid: interrupted; training had not begun, there is nothing to save" in err


def caught(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        masks = dict(line.split(":", 1) for line in file if line.startswith("SigCgt"))
    return int(masks["SigCgt"], 16) >> (number - 1) & 1


def test_second_resume_is_refused_at_once(job, tmp_path):
    process = start("train", endless(job))
    try:
        wait_for(lambda: (tmp_path / "out" / "events.jsonl").exists())
        result = inlaid("resume", tmp_path / "out")
        assert result.returncode == USAGE
        assert "is being trained by another run" in result.stderr and result.stdout == ""
    finally:
        process.kill()
        process.communicate()


def test_conversation_without_a_terminal(trained):
    generation = json.dumps({"max_new_tokens": 2})
    result = subprocess.run([INLAID, "chat", trained, "--generation", generation], input="a b\n", capture_output=True,
                            text=True, timeout=60, check=False)
    if result.returncode == DONE:
        assert ">" not in result.stdout and "Ctrl-D" not in result.stdout
    else:
        assert "template" in result.stderr  # the tiny model has none


def test_progress_bar_on_a_terminal(job):
    parent, child = pty.openpty()
    process = subprocess.Popen([INLAID, "train", job()], stdout=child, stdin=subprocess.DEVNULL)
    os.close(child)
    text = b""
    try:
        while chunk := os.read(parent, 4096):
            text += chunk
    except OSError:  # the other side was closed
        pass
    assert process.wait(60) == DONE
    assert b"\r\x1b[K[####" in text and b"tok/s" in text and b"GiB" in text
