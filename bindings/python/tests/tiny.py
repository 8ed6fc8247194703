"""A random model of a few thousand weights, its tokenizer and data: real training in milliseconds."""

import json
import os
import random

SOURCE = os.environ.get("INLAID_SOURCE") or os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TOKENIZER = os.path.join(SOURCE, "tests/golden/text/tokenizers/byte_bpe.json")
CHATML = os.path.join(SOURCE, "tests/golden/text/templates/chatml.jinja")

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
    "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": 600,
    "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
}
WORDS = "a b c the an old new red blue house river tree walks sings falls sees and or in on".split()


def write_rows(folder, rows=40, seed=1):
    """A JSONL file of texts; its path."""
    choose = random.Random(seed)
    path = os.path.join(str(folder), f"rows-{seed}.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(rows):
            file.write(json.dumps({"text": " ".join(choose.choices(WORDS, k=choose.randint(4, 12)))}) + "\n")
    return path


def config(folder, lora=False, hidden_size=32, **sections):
    """A configuration that trains MODEL on fresh rows; sections are merged into it."""
    result = {
        "model": {"config": {**MODEL, "hidden_size": hidden_size, "intermediate_size": hidden_size * 3 // 2},
                  "tokenizer": TOKENIZER},
        "data": {"train": [{"path": write_rows(folder), "format": "text"}],
                 "eval": [{"path": write_rows(folder, 6, seed=2), "format": "text"}], "max_length": 64},
        "train": {"max_steps": 6, "micro_batch_tokens": 128, "seed": 7},
        "optim": {"learning_rate": 0.01, "lr_scheduler_type": "constant"},
    }
    if lora:
        result["adapter"] = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": "all-linear",
                             "lora_dropout": 0.1}
    for name, section in sections.items():
        if isinstance(section, dict):
            result[name] = {**result.get(name, {}), **section}
        else:
            result[name] = section
    return result


def endless(folder, **sections):
    """A configuration whose training does not end by itself within any test."""
    return config(folder, train={"max_steps": 10_000_000, "micro_batch_tokens": 128, "seed": 7}, **sections)
