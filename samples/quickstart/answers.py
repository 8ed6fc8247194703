"""Asks a model the three questions of data/prompts.json, and lays the answers out. Used by samples/quickstart/run.

  answers.py ask INLAID MODEL ANSWERS.json    asks and stores
  answers.py show ANSWERS.json
  answers.py compare BEFORE.json AFTER.json   side by side
  answers.py summary OUT                      rows, time, and what the evaluations said
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap

PROMPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "prompts.json")
GENERATION = {"max_new_tokens": 48}  # greedy: the same answer every time


def ask(inlaid, model, target):
    with open(PROMPTS, encoding="utf-8") as file:
        prompts = json.load(file)
    answers = []
    for prompt in prompts:
        system, user = (message["content"] for message in prompt["messages"])
        done = subprocess.run([inlaid, "--json", "chat", model, "--system", system, "--prompt", user, "--generation",
                               json.dumps(GENERATION)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(done.returncode)
        answers.append(json.loads(done.stdout))
    with open(target + ".part", "w", encoding="utf-8") as file:
        json.dump(answers, file, ensure_ascii=False, indent=1)
    os.replace(target + ".part", target)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def width():
    return max(60, min(110, shutil.get_terminal_size((100, 24)).columns))


def wrapped(text, columns):
    text = text.strip()
    if text and text[-1] not in ".!?":
        text += " ..."  # cut off at max_new_tokens
    return [line for part in text.splitlines() or [""] for line in textwrap.wrap(part, columns) or [""]]


def show(answers):
    for entry in read(answers):
        print(entry["prompt"])
        for line in wrapped(entry["answer"], width() - 4):
            print("    " + line)


def compare(before, after):
    columns = (width() - 7) // 2
    for old, new in zip(read(before), read(after)):
        left, right = wrapped(old["answer"], columns), wrapped(new["answer"], columns)
        left += [""] * (len(right) - len(left))
        right += [""] * (len(left) - len(right))
        print(f"\n{old['prompt']}")
        print(f"  {'before':<{columns}} | after")
        print(f"  {'-' * columns}-+-{'-' * columns}")
        for a, b in zip(left, right):
            print(f"  {a:<{columns}} | {b}".rstrip())


def summary(out):
    evaluations, seconds, rows = [], {}, 0
    with open(os.path.join(out, "events.jsonl"), encoding="utf-8") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the half line of a run that was killed
            if event["event"] == "eval":
                evaluations.append(event)
            elif event["event"] == "step":
                seconds[event["step"]] = event["step_seconds"]
                rows = int(event["num_rows"])
    there = read(os.path.join(out, "data_report.json"))["train"]["used"]
    time = round(sum(seconds.values()))
    different = "different " if rows <= there else ""  # within the first pass over the data no row comes twice
    print(f"\nTrained on {rows} {different}rows of {there} in {time // 60}:{time % 60:02}.")
    first, last = evaluations[0], evaluations[-1]
    print(f"Rows it has never seen: loss {first['eval_loss']:.2f} before, {last['eval_loss']:.2f} after; accuracy "
          f"{first['eval_mean_token_accuracy']:.0%} before, {last['eval_mean_token_accuracy']:.0%} after.")


if __name__ == "__main__":
    {"ask": ask, "show": show, "compare": compare, "summary": summary}[sys.argv[1]](*sys.argv[2:])
