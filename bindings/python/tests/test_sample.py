"""The samples."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import inlaid
import tiny

MODEL = os.path.join(os.environ.get("INLAID_TEST_DATA", "/nowhere"), "SmolLM2-135M-Instruct.Q4_1.gguf")


def tiny_model(runtime, tmp_path):
    """A folder with the tiny model, its tokenizer and a chat template."""
    folder = tmp_path / "model"
    with inlaid.Model(runtime, tiny.config(tmp_path)) as model:
        model.export(folder)
    shutil.copy(tiny.TOKENIZER, folder / "tokenizer.json")
    shutil.copy(tiny.CHATML, folder / "chat_template.jinja")
    return folder


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                          env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, output
    return output


def test_finetune_answers_and_goes_on(runtime, tmp_path):
    folder, rows, out = tiny_model(runtime, tmp_path), tmp_path / "rows.jsonl", tmp_path / "out"
    with open(rows, "w", encoding="utf-8") as file:
        for i in range(200):
            row = [{"role": "user", "content": f"say {i}"}, {"role": "assistant", "content": "red house"}]
            file.write(json.dumps({"messages": row}) + "\n")

    def run():
        sample = os.path.join(tiny.SOURCE, "samples/python/finetune.py")
        events, answer = output_of([sys.executable, sample, folder, rows, out, "say 7"]).split("done 60 done\n")
        return [float(line.split()[-1]) for line in events.splitlines() if line.startswith("step ")], answer

    losses, answer = run()
    assert len(losses) == 60 and losses[-1] < losses[0]
    model, adapter = inlaid.open_result(runtime, out)
    with model, inlaid.Generator(model, adapter, max_new_tokens=64) as generator:
        expected = generator.generate([{"role": "user", "content": "say 7"}])
    assert expected and answer == expected + "\n"
    assert run() == ([], answer)  # the second time there is nothing left to train


@pytest.mark.parametrize("sample", ["samples/python/own_loss.py", "samples/own_loss_c/run"])
def test_own_loss_raises_the_reward(sample):
    """On the pretrained model, because a random one hardly ever says what is rewarded: a third of the steps of the sample."""
    program = os.path.join(tiny.SOURCE, sample)
    output = output_of([sys.executable, program, MODEL, "9"] if sample.endswith(".py") else [program, "9", MODEL])
    rewards = [float(line.split()[3]) for line in output.splitlines() if line.startswith("step ")]
    assert len(rewards) == 9
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.1, rewards
