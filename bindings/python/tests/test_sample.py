"""samples/python/finetune.py, on the tiny model with a chat template."""

import json
import os
import shutil
import subprocess
import sys

import inlaid
import tiny


def test_finetune_answers_and_goes_on(runtime, tmp_path):
    folder, rows, out = tmp_path / "model", tmp_path / "rows.jsonl", tmp_path / "out"
    with inlaid.Model(runtime, tiny.config(tmp_path)) as model:
        model.export(folder)
    shutil.copy(tiny.TOKENIZER, folder / "tokenizer.json")
    shutil.copy(tiny.CHATML, folder / "chat_template.jinja")
    with open(rows, "w", encoding="utf-8") as file:
        for i in range(200):
            row = [{"role": "user", "content": f"say {i}"}, {"role": "assistant", "content": "red house"}]
            file.write(json.dumps({"messages": row}) + "\n")

    def run():
        command = [sys.executable, os.path.join(tiny.SOURCE, "samples/python/finetune.py"), folder, rows, out, "say 7"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                              env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        output = done.stdout.decode()
        assert done.returncode == 0, output
        events, answer = output.split("done 60 done\n")
        return [float(line.split()[-1]) for line in events.splitlines() if line.startswith("step ")], answer

    losses, answer = run()
    assert len(losses) == 60 and losses[-1] < losses[0]
    model, adapter = inlaid.open_result(runtime, out)
    with model, inlaid.Generator(model, adapter, max_new_tokens=64) as generator:
        expected = generator.generate([{"role": "user", "content": "say 7"}])
    assert expected and answer == expected + "\n"
    assert run() == ([], answer)  # the second time there is nothing left to train
