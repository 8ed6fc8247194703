"""Compares exports of one fine-tuned model as other people's libraries see them; for use outside CI.

    python check_exports.py --hf MERGED_FOLDER [--gguf FILE.gguf] [--adapter PEFT_FOLDER --base BASE_FOLDER]
                            [--text TEXT] [--tolerance 1e-3]

  --hf       loads in transformers; every key must match (nothing missing, nothing left over), the tokenizer and the chat
             template must load, a greedy continuation is printed
  --gguf     loads in gguf: each tensor, dequantised and with q and k rows put back, is compared with the folder's; and, through
             transformers' own GGUF import, the logits and the token ids
  --adapter  loads with peft on top of --base (a Hugging Face folder of the untouched base in f32): every key must match, the
             logits, and those after merge_and_unload, are compared with the merged folder's

Prints one line per comparison with the largest absolute difference and exits with 1 if one is over its tolerance: --tolerance
for logits (f32 throughout), for tensors what the stored type allows. Needs torch, transformers, peft, gguf, safetensors.
"""
import argparse
import json
import pathlib
import sys

import gguf
import numpy as np
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

failures = []


def report(what, difference, limit):
    good = difference <= limit
    print(f"{'ok  ' if good else 'FAIL'} {what}: max |difference| {difference:.3e} (limit {limit:.1e})")
    if not good:
        failures.append(what)


def check(what, good, detail=""):
    print(f"{'ok  ' if good else 'FAIL'} {what}{': ' + detail if detail else ''}")
    if not good:
        failures.append(what)


def load(folder, **options):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **options)
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    bad = {k: v for k, v in info.items() if v and set(v) - tied}
    check(f"keys of {folder}", not bad, str(bad) if bad else "all match")
    return model.eval()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double()


def folder_tensors(folder):
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    files = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else ["model.safetensors"]
    out = {}
    for file in files:
        with safe_open(folder / file, "pt") as f:
            check(f"{file} metadata", (f.metadata() or {}).get("format") == "pt")
            for name in f.keys():
                out[name] = f.get_tensor(name).float().numpy()
    return out


def hugging_face_name(name):
    plain = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
             "output.weight": "lm_head.weight"}
    if name in plain:
        return plain[name]
    _, layer, part, kind = name.split(".")
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    return f"model.layers.{layer}.{parts[part]}.{kind}"


def check_gguf(path, folder, model, tokenizer, ids, text, tolerance):
    reader = gguf.GGUFReader(path)
    config = model.config
    wanted = folder_tensors(folder)
    # Half a step of the value itself for floats. For blocks a share of the largest value of the block: half a step for Q8_0, a
    # whole one for Q4_0 and Q5_0, whose steps do not reach one of the two ends, each plus the rounding of the scale to f16; for
    # Q4_K, whose scales are fitted, what no sensible fit goes beyond.
    worst, step = {}, {"F32": (1, 0.0), "F16": (1, 2.0**-11), "BF16": (1, 2.0**-8), "Q8_0": (32, 1.0 / 254 + 2.0**-11),
                       "Q4_0": (32, 1.0 / 8 + 2.0**-11), "Q5_0": (32, 1.0 / 16 + 2.0**-11), "Q4_K": (256, 1.0 / 8)}
    for tensor in reader.tensors:
        if tensor.name == "rope_freqs.weight":
            continue
        name = hugging_face_name(tensor.name)
        value = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if ".attn_q." in tensor.name or ".attn_k." in tensor.name:
            heads = config.num_attention_heads if ".attn_q." in tensor.name else config.num_key_value_heads
            half = value.shape[0] // heads // 2
            value = value.reshape(heads, half, 2, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)
        target = wanted.pop(name).reshape(value.shape)
        kind = tensor.tensor_type.name
        block, share = step[kind]
        scale = np.repeat(np.abs(target.reshape(-1, block)).max(1), block).reshape(target.shape)
        excess = np.abs(value - target) - scale * share * (1 + 2.0**-9)
        w = worst.setdefault(kind, [0, 0.0, -np.inf])
        w[0] += 1
        w[1] = max(w[1], float(np.abs(value - target).max()))
        w[2] = max(w[2], float(excess.max()))
    for kind, (count, difference, excess) in sorted(worst.items()):
        check(f"GGUF: {count} {kind} tensors", excess <= 1e-7, f"max |difference| {difference:.3e}, within what the type allows")
    check("GGUF: no tensor missing", not wanted, ", ".join(list(wanted)[:3]))
    path = pathlib.Path(path)
    imported = load(path.parent, gguf_file=path.name)
    # Quantised weights move the logits: said, not judged.
    exact = set(worst) <= {"F32"}
    difference = float((logits(imported, ids) - logits(model, ids)).abs().max())
    report(f"GGUF logits through transformers ({', '.join(sorted(worst))})", difference, tolerance if exact else np.inf)
    fields = reader.fields
    ours = fields["tokenizer.ggml.tokens"].contents()
    check("GGUF token texts", all(t == tokenizer.convert_ids_to_tokens(i) for i, t in enumerate(ours)
                                  if i < len(tokenizer) and not t.startswith("[PAD")))
    theirs = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    check("GGUF token ids through transformers", theirs(text, add_special_tokens=False)["input_ids"] == ids)
    template = fields.get("tokenizer.chat_template")
    check("GGUF chat template", (template.contents() if template else None) == tokenizer.chat_template)


def check_adapter(adapter, base, merged, ids, tolerance):
    from peft import PeftModel
    with safe_open(pathlib.Path(adapter) / "adapter_model.safetensors", "pt") as f:
        names = set(f.keys())
    model = PeftModel.from_pretrained(load(base), adapter).eval()
    state = {k.replace(".default", "") for k in model.state_dict() if "lora_" in k or "modules_to_save" in k}
    expected = {k.replace(".modules_to_save", "") for k in state}
    check("adapter keys", names == expected, f"{len(names)} in the file; differing: {sorted(names ^ expected)[:4]}")
    with torch.no_grad():
        moved = max((float(p.abs().max()) for n, p in model.named_parameters() if "lora_B" in n), default=0.0)
    check("adapter does something", moved > 0, f"max |lora_B| {moved:.3e}")
    report("adapter logits against the merged folder", float((logits(model, ids) - merged).abs().max()), tolerance)
    report("logits after merge_and_unload", float((logits(model.merge_and_unload(), ids) - merged).abs().max()), tolerance)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hf", required=True)
    parser.add_argument("--gguf")
    parser.add_argument("--adapter")
    parser.add_argument("--base")
    parser.add_argument("--text", default="The capital of France is Paris, and 2024 costs $1,234.56.")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    options = parser.parse_args()
    if options.adapter and not options.base:
        parser.error("--adapter needs --base")

    tokenizer = AutoTokenizer.from_pretrained(options.hf)
    ids = tokenizer(options.text, add_special_tokens=False)["input_ids"]
    print(f"{len(ids)} tokens: {ids[:16]}")
    model = load(options.hf)
    merged = logits(model, ids)
    if tokenizer.chat_template:
        chat = tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}], tokenize=False,
                                             add_generation_prompt=True)
        print(f"chat: {chat!r}")
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)
    print(f"greedy: {tokenizer.decode(out[0, len(ids):])!r}")
    if options.gguf:
        check_gguf(options.gguf, options.hf, model, tokenizer, ids, options.text, options.tolerance)
    if options.adapter:
        check_adapter(options.adapter, options.base, merged, ids, options.tolerance)
    print(f"{len(failures)} failed" if failures else "all equal")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
