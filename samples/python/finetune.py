"""Fine-tunes a language model on a JSONL file, shows the loss, and asks the result a question.

  PYTHONPATH=build/python python3 samples/python/finetune.py MODEL ROWS.jsonl OUT "Question?"
"""
import os
import sys

import inlaid

model_path, rows, out, question = sys.argv[1:]
config = {"model": {"path": model_path}, "data": {"train": [{"path": rows}], "eval_fraction": 0.02},
          "adapter": {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "target_modules": "all-linear"},
          "train": {"max_steps": 60, "micro_batch_tokens": 512}, "optim": {"learning_rate": 1e-3}, "output_dir": out}

with inlaid.Runtime() as runtime:
    resumed = os.path.exists(os.path.join(out, "job.json"))
    job = inlaid.Job.resume(runtime, out) if resumed else inlaid.Job(runtime, config)
    with job, job.start() as run:
        try:
            for event in run:
                loss = event.get("loss", event.get("eval_loss"))
                print(event.kind, event.step, event.text if loss is None else f"loss {loss:.3f}", flush=True)
        except KeyboardInterrupt:
            run.stop()  # saves; start the program again to go on
            run.join()
    model, adapter = inlaid.open_result(runtime, out)
    with model, inlaid.Generator(model, adapter, max_new_tokens=64) as generator:
        for text in generator.stream([{"role": "user", "content": question}]):
            print(text, end="", flush=True)
        print()
