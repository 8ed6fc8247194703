"""PyTorch's side of the training benchmark: fine-tuning steps of a GGUF model with transformers (and PEFT for LoRA) on the CPU.

    bench_torch.py --model GGUF --tokens FILE --batch 4 --length 256 --steps 6 --mode full|lora --lr 1e-5 --threads 2
    bench_torch.py --model GGUF --make-tokens FILE TEXT...

What is measured is PyTorch as its users run it at its best in eager mode: f32, scaled_dot_product_attention, fused AdamW,
gradients set to None, no gradient checkpointing, no clipping. Weight decay 0, betas 0.9 and 0.999, eps 1e-8. LoRA: rank 16,
alpha 32, no dropout, on every linear layer but the head.

Step s trains on the rows [s * batch, (s + 1) * batch) of the token file, an array of int32 cut into rows of `length`; every
token of a row but its first is a target. One JSON object goes to standard output:

    losses                  mean loss of each step, before its update
    tokens_per_second       batch * length / time of each step; the first one holds one-time costs
    peak_rss_bytes          highest resident memory while the steps ran, measured from the end of loading
    process_peak_rss_bytes  highest resident memory of the whole process
"""

import argparse
import array
import json
import os
import sys
import time


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--mode", choices=["full", "lora"], default="full")
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--make-tokens", nargs="+", metavar="FILE TEXT")
    return parser.parse_args()


def memory(key):
    """VmHWM (highest) or VmRSS (now) of this process in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":"))


def reset_peak():
    """Starts VmHWM anew from the present resident memory."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def load(path, torch):
    from transformers import AutoModelForCausalLM
    folder, name = os.path.split(os.path.abspath(path))
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="sdpa")


def add_lora(model):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear",
                                            task_type="CAUSAL_LM"))


def read_tokens(options, torch):
    tokens = array.array("i")
    needed = options.steps * options.batch * options.length
    with open(options.tokens, "rb") as file:
        tokens.frombytes(file.read(needed * 4))
    if len(tokens) < needed:
        sys.exit(f"{options.tokens} holds {len(tokens)} tokens, {needed} are needed")
    return torch.tensor(tokens, dtype=torch.long).view(options.steps, options.batch, options.length)


def train(options, torch):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rows = read_tokens(options, torch)
    model = load(options.model, torch)
    model.config.use_cache = False
    if options.mode == "lora":
        model = add_lora(model)
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, fused=True)
    forward = torch.compile(model) if options.compile else model
    load_peak = memory("VmHWM")
    reset_peak()
    losses, speeds = [], []
    for ids in rows:
        start = time.perf_counter()
        loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        speeds.append(round(ids.numel() / (time.perf_counter() - start), 2))
        print(f"step {len(losses)}: loss {losses[-1]:.6f}, {speeds[-1]:.1f} tokens/s", file=sys.stderr)
    peak = memory("VmHWM")
    return {"program": f"torch {torch.__version__} {'compiled' if options.compile else 'eager'}",
            "trained_parameters": sum(p.numel() for p in trained), "losses": losses, "tokens_per_second": speeds,
            "peak_rss_bytes": peak, "process_peak_rss_bytes": max(peak, load_peak)}


def make_tokens(options):
    """Tokens of real text, with the model's own tokenizer: what a training run sees, in no special order."""
    from transformers import AutoTokenizer
    target, *texts = options.make_tokens
    folder, name = os.path.split(os.path.abspath(options.model))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokens = array.array("i")
    for path in texts:
        with open(path, encoding="utf-8") as file:
            tokens.extend(tokenizer(file.read(), add_special_tokens=False)["input_ids"])
    with open(target, "wb") as file:
        tokens.tofile(file)
    return {"tokens": len(tokens), "distinct": len(set(tokens))}


def main():
    options = parse_arguments()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    import torch
    print(json.dumps(make_tokens(options) if options.make_tokens else train(options, torch)))


if __name__ == "__main__":
    main()
