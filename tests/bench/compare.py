"""Runs the two sides of the training benchmark in turn (A B A B) and prints the ratios.

Each side is a process of its own that reads the same model and the same token file, with the same number of threads. A
ratio counts only if both did the same work: the losses of every step must agree to 1e-3 (relative); otherwise the ratio is
void and the exit code is 1. The first step of a process is left out of its speed. The speed of a side is the median over all
other steps of all its processes; its memory is the highest resident size while the steps ran, the largest of its processes.
"""

import argparse
import datetime
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOLERANCE = 1e-3
# name: (mode, batch, length, least speed ratio, greatest memory ratio); None: only reported
CASES = {
    "full-4x256": ("full", 4, 256, 1.0, 0.8),
    "full-1x1024": ("full", 1, 1024, None, None),
    "lora-4x256": ("lora", 4, 256, 1.0, 0.5),
}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tests/bench/run")
    parser.add_argument("--rival", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--model", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--json", help="file for the numbers")
    return parser.parse_args()


def run_side(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed ({done.returncode}):\n{done.stderr.decode(errors='replace')[-4000:]}")
    return json.loads(done.stdout.decode().strip().splitlines()[-1])


def largest_difference(a, b):
    """Largest relative difference of two loss curves; infinite when they cannot be compared."""
    if len(a) != len(b) or not a:
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        if not abs(x) < float("inf") or not abs(y) < float("inf"):
            return float("inf")
        worst = max(worst, abs(x - y) / max(abs(x), 1e-12))
    return worst


def speed(runs):
    return statistics.median(s for run in runs for s in (run["tokens_per_second"][1:] or run["tokens_per_second"]))


def memory(runs):
    return max(run["peak_rss_bytes"] for run in runs)


def judge(name, ours, theirs):
    """One result: numbers, ratios, and what is wrong with them."""
    _, _, _, least_speed, most_memory = CASES[name]
    difference = max(largest_difference(t["losses"], o["losses"]) for t in theirs for o in ours)
    result = {"case": name, "loss_difference": difference, "void": not difference <= TOLERANCE,
              "inlaid": {"losses": ours[0]["losses"], "tokens_per_second": speed(ours), "peak_rss_bytes": memory(ours)},
              "torch": {"losses": theirs[0]["losses"], "tokens_per_second": speed(theirs), "peak_rss_bytes": memory(theirs)}}
    result["speed_ratio"] = result["inlaid"]["tokens_per_second"] / result["torch"]["tokens_per_second"]
    result["memory_ratio"] = result["inlaid"]["peak_rss_bytes"] / result["torch"]["peak_rss_bytes"]
    result["missed"] = [text for missed, text in [
        (result["void"], f"void: losses differ by {difference:.1e}"),
        (least_speed and result["speed_ratio"] < least_speed, f"speed below {least_speed} x"),
        (most_memory and result["memory_ratio"] > most_memory, f"memory above {most_memory} x")] if missed]
    return result


def show(result):
    print(f"\n{result['case']}   losses of each step (largest relative difference {result['loss_difference']:.1e})")
    for side in ("torch", "inlaid"):
        numbers = result[side]
        print(f"  {side:7}" + " ".join(f"{loss:9.6f}" for loss in numbers["losses"]))
    print(f"  {'':7}{'tokens/s':>10}{'peak MB':>10}")
    for side in ("torch", "inlaid"):
        numbers = result[side]
        print(f"  {side:7}{numbers['tokens_per_second']:10.1f}{numbers['peak_rss_bytes'] / 1e6:10.0f}")
    if result["void"]:
        print("  ratio    void: the two sides did not do the same work")
    else:
        print(f"  ratio  {result['speed_ratio']:9.2f}x{result['memory_ratio']:9.2f}x")
    for text in result["missed"]:
        print(f"  MISSED   {text}")
    sys.stdout.flush()


def setting(options):
    """What the numbers belong to."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    version = subprocess.run([options.rival, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, check=True)
    return {"date": datetime.date.today().isoformat(), "processor": processor, "cores": os.cpu_count(), "torch": version.stdout.decode().strip(),
            "threads": options.threads, "steps": options.steps, "pairs": options.pairs, "learning_rate": options.lr, "dtype": "f32"}


def main():
    options = parse_arguments()
    ours = os.path.join(SOURCE, "build", "tests", "bench_train")
    theirs = [options.rival, "-B", os.path.join(SOURCE, "tests", "bench", "bench_torch.py")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens.bin")
        texts = [os.path.join(SOURCE, "LICENSE")] + sorted(glob.glob(os.path.join(SOURCE, "kernels/*.h")) +
                                                           glob.glob(os.path.join(SOURCE, "sdk/*/*.h")))
        made = run_side([*theirs, "--model", options.model, "--make-tokens", tokens, *texts])
        print(f"{options.threads} threads, {options.steps} steps, {options.pairs} pairs; "
              f"{made['tokens']} tokens of the project's own text, {made['distinct']} distinct")
        for name in options.case or CASES:
            mode, batch, length, _, _ = CASES[name]
            arguments = ["--model", options.model, "--tokens", tokens, "--batch", str(batch), "--length", str(length),
                         "--steps", str(options.steps), "--mode", mode, "--lr", str(options.lr),
                         "--threads", str(options.threads)]
            runs = {"torch": [], "inlaid": []}
            for _ in range(options.pairs):
                runs["torch"].append(run_side([*theirs, *arguments]))
                runs["inlaid"].append(run_side([ours, *arguments]))
            results.append(judge(name, runs["inlaid"], runs["torch"]))
            show(results[-1])
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump({"setting": setting(options), "results": results}, file, indent=1)
            file.write("\n")
    return 1 if any(result["missed"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
