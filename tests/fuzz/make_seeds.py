#!/usr/bin/env python3
"""Makes the inputs in seeds/ that the fuzz targets start from: small, valid (or nearly), one for each feature of a format.

Run: python3 make_seeds.py     (standard library only; the result is committed)

Files named crash-* are not made here: each is an input that once broke something, and stays as a regression test.
"""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
CUT = b"\n--8<--\n"


def put(target, name, *parts):
    folder = HERE / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(CUT.join(p.encode() if isinstance(p, str) else p for p in parts))


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- protobuf, GGUF and safetensors by hand ----------------------------------------------------------------------


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed32(number, value):
    return varint(number << 3 | 5) + struct.pack("<I", value)



GGUF = {"u8": (0, "<B"), "i8": (1, "<b"), "u16": (2, "<H"), "i16": (3, "<h"), "u32": (4, "<I"), "i32": (5, "<i"),
        "f32": (6, "<f"), "bool": (7, "<B"), "str": (8, None), "u64": (10, "<Q"), "i64": (11, "<q"), "f64": (12, "<d")}


def gguf_text(text):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text)) + text


def gguf_element(kind, value):
    return gguf_text(value) if kind == "str" else struct.pack(GGUF[kind][1], value)


def gguf(metadata, tensors=(), version=3):
    """metadata: (key, kind, value or list); tensors: (name, shape with the rows first, type, bytes)."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, kind, value in metadata:
        out += gguf_text(key)
        if isinstance(value, list):
            out += struct.pack("<IIQ", 9, GGUF[kind][0], len(value)) + b"".join(gguf_element(kind, v) for v in value)
        else:
            out += struct.pack("<I", GGUF[kind][0]) + gguf_element(kind, value)
    data = b""
    for name, shape, kind, bytes_ in tensors:
        data += b"\0" * (-len(data) % 32)
        out += gguf_text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        out += struct.pack("<IQ", kind, len(data))
        data += bytes_
    return out + b"\0" * (-len(out) % 32) + data


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape, bytes_ in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def f32(*shape):
    n = 1
    for size in shape:
        n *= size
    return struct.pack(f"<{n}f", *[(i % 7 - 3) / 4 for i in range(n)])


# ---- configurations -----------------------------------------------------------------------------------------------


def make_config():
    job = {"model": {"path": "m.gguf", "weights_dtype": "bf16"}, "adapter": {"peft_type": "LORA", "r": 16, "lora_alpha": 32,
           "target_modules": ["q_proj", "v_proj"], "rank_pattern": {"layers\\.0": 4}},
           "data": {"train": [{"path": "a.jsonl", "format": "chat", "weight": 0.5, "columns": {"messages": "dialogue"}}],
                    "eval_fraction": 0.02, "max_length": 512, "truncation": "right", "chat_template": "{{ messages }}"},
           "train": {"max_steps": 60, "micro_batch_tokens": 512, "global_batch_tokens": 1024, "seed": 7, "eval_steps": 5,
                     "early_stopping_patience": 3},
           "optim": {"learning_rate": 1e-3, "lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr": 1e-5},
                     "warmup_ratio": 0.03}, "logging": {"writers": ["jsonl", "html"], "sample_prompts": ["Hi"]},
           "output_dir": "out"}
    put("config", "job", dumps(job), "optim.learning_rate", "2e-4")
    put("config", "minimal", '{"model":{"path":"m"},"data":{"train":[{"path":"r.jsonl"}]}}', "train.max_steps", "10")
    put("config", "scratch", dumps({"model": {"config": {"model_type": "llama"}, "trainable": ["norm"]}, "train":
        {"num_train_epochs": 2, "micro_batch_size": 4, "global_batch_size": 16}, "optim": {"lr_scheduler_type": "linear"},
        "precision": {}, "parallel": {}}), "optim", '{"weight_decay":0.1}')
    put("config", "unknown_key", '{"optim":{"lr":1}}', "optim.lr", "1")


def make_json():
    put("json", "values", '{"a":[1,-2.5e3,true,false,null,"\\u00e9\\ud83d\\ude00\\n"],"b":{"c":{}},"":18446744073709551615}')
    put("json", "deep", "[" * 64 + "]" * 64)
    put("json", "numbers", "[0,-0,-0.0,1e308,-1e308,1e-320,9223372036854775807,-9223372036854775808,9223372036854775808,0.1]")


def make_model_config():
    for name in ("plain", "gemma2", "phi3", "qwen2_window", "qwen3_window", "rope_dynamic", "rope_linear", "rope_llama3",
                 "rope_longrope", "rope_yarn", "rope_yarn_scaled", "mistral", "qwen2_layer_types"):
        put("model_config", name, dumps(json.loads((GOLDEN / "model/tiny" / name / "config.json").read_text())))
    config = json.loads((GOLDEN / "model/tiny/rope_yarn/config.json").read_text())
    config["rope_scaling"] = config.pop("rope_parameters")
    config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    put("model_config", "rope_of_version_4", dumps(config))


def make_adapter_config():
    put("adapter_config", "peft", dumps(json.loads((GOLDEN / "formats/adapter/adapter_config.json").read_text())))
    put("adapter_config", "patterns", dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 16.5, "target_modules":
        "model\\.layers\\.\\d+\\.(self_attn\\.[qv]_proj|mlp\\..*)", "rank_pattern": {"^model\\.layers\\.1\\..*": 4, "q_proj": 2},
        "alpha_pattern": {"v_proj": 3}, "use_rslora": True, "modules_to_save": ["lm_head"], "exclude_modules": ["down_proj"]}))
    put("adapter_config", "all_linear", '{"peft_type":"LORA","r":4,"target_modules":"all-linear","lora_dropout":0.1}')
    put("adapter_config", "backtracking", dumps({"peft_type": "LORA", "r": 4, "target_modules": "(((.*)*)*)*(a|a)*x"}))
    put("adapter_config", "repeats", dumps({"peft_type": "LORA", "r": 4, "target_modules": "((.{1,99}){1,99}){1,99}x"}))
    put("adapter_config", "groups", dumps({"peft_type": "LORA", "r": 4, "target_modules": "(" * 400 + "a" + ")*" * 400}))


def make_safetensors():
    put("safetensors", "types", (GOLDEN / "formats/types.safetensors").read_bytes())
    put("safetensors", "two", safetensors([("a", "F32", [2, 3], f32(2, 3)), ("b", "BF16", [4], b"\1\2" * 4),
                                           ("empty", "I64", [0, 5], b""), ("scalar", "U8", [], b"\7")], {"format": "pt"}))
    put("safetensors", "nothing", safetensors([]))


# ---- GGUF ---------------------------------------------------------------------------------------------------------


def vocabulary(kind):
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab", "\u0120" if kind == "gpt2" else "\u2581", "c", "abc", "[PAD9]"]
    metadata = [("tokenizer.ggml.model", "str", kind), ("tokenizer.ggml.tokens", "str", tokens),
                ("tokenizer.ggml.token_type", "i32", [2, 3, 3, 1, 1, 1, 1, 1, 1, 5]),
                ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2),
                ("tokenizer.ggml.unknown_token_id", "u32", 0), ("tokenizer.ggml.add_bos_token", "bool", 1)]
    if kind in ("gpt2", "gemma"):
        metadata += [("tokenizer.ggml.merges", "str", ["a b", "ab c"]), ("tokenizer.ggml.pre", "str", "default")]
    if kind in ("llama", "t5"):
        metadata += [("tokenizer.ggml.scores", "f32", [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -2.5, 0.0])]
    if kind == "t5":
        metadata += [("tokenizer.ggml.precompiled_charsmap", "u8", []), ("tokenizer.ggml.remove_extra_whitespaces", "bool", 1)]
    return metadata + [("tokenizer.chat_template", "str", "{% for m in messages %}{{ m.content }}{% endfor %}")]


def llama(arch="llama", **changes):
    values = {"context_length": ("u32", 64), "embedding_length": ("u32", 4), "block_count": ("u32", 1),
              "feed_forward_length": ("u32", 4), "attention.head_count": ("u32", 2), "attention.head_count_kv": ("u32", 1),
              "attention.layer_norm_rms_epsilon": ("f32", 1e-5), "rope.freq_base": ("f32", 10000.0), **changes}
    return [("general.architecture", "str", arch), ("general.alignment", "u32", 32)] + [
        (f"{arch}.{key}", kind, value) for key, (kind, value) in values.items()]


def llama_tensors(kind=0, extra=()):
    def of(*shape):
        return f32(*shape) if kind == 0 or len(shape) == 1 else bytes(2 * shape[0] * shape[1])

    def tensor(name, *shape):
        return (name, list(shape), kind if len(shape) == 2 else 0, of(*shape))
    return [tensor("token_embd.weight", 10, 4), tensor("output_norm.weight", 4), tensor("blk.0.attn_norm.weight", 4),
            tensor("blk.0.ffn_norm.weight", 4), tensor("blk.0.attn_q.weight", 4, 4), tensor("blk.0.attn_k.weight", 2, 4),
            tensor("blk.0.attn_v.weight", 2, 4), tensor("blk.0.attn_output.weight", 4, 4), tensor("blk.0.ffn_gate.weight", 4, 4),
            tensor("blk.0.ffn_up.weight", 4, 4), tensor("blk.0.ffn_down.weight", 4, 4), *extra]


def make_gguf():
    put("gguf", "metadata", (GOLDEN / "formats/metadata.gguf").read_bytes())
    put("gguf", "model", gguf(llama() + vocabulary("gpt2"), llama_tensors()))
    put("gguf", "model_f16", gguf(llama() + vocabulary("llama"), llama_tensors(1), version=2))
    put("gguf", "model_rope_freqs", gguf(llama(), llama_tensors(extra=[("rope_freqs.weight", [1], 0, struct.pack("<f", 1.0))])))
    put("gguf", "model_yarn", gguf(llama("qwen2", **{"rope.scaling.type": ("str", "yarn"), "rope.scaling.factor": ("f32", 2.0),
        "rope.scaling.original_context_length": ("u32", 32)}), llama_tensors()))
    put("gguf", "model_linear", gguf(llama("qwen3", **{"rope.scaling.type": ("str", "linear"), "rope.scaling.factor":
        ("f32", 2.0), "attention.key_length": ("u32", 2)}), llama_tensors()))
    for kind in ("gpt2", "llama", "t5", "bert"):
        put("gguf", "tokenizer_" + kind, gguf([("general.architecture", "str", "llama")] + vocabulary(kind)))
    q4 = gguf([("general.architecture", "str", "llama")], [("a", [2, 32], 2, bytes(36)), ("b", [256], 14, bytes(210)),
                                                           ("c", [2, 256], 12, bytes(288))])
    put("gguf", "quantised", q4)


def make_hugging_face():
    config = dumps(json.loads((GOLDEN / "model/tiny/phi3/config.json").read_text()))
    tokenizer = dumps({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": True, "chat_template":
                       [{"name": "default", "template": "{{ messages }}"}, {"name": "tool_use", "template": "x"}]})
    weights = safetensors([("model.layers.0.self_attn.qkv_proj.weight", "F32", [32, 2], f32(32, 2)),
                           ("model.layers.0.mlp.gate_up_proj.weight", "F16", [48, 1], bytes(96)),
                           ("model.norm.weight", "F32", [16], f32(16))])
    generation = '{"eos_token_id":[2,3],"temperature":0.5}'
    index = dumps({"metadata": {"total_size": 1}, "weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"}})
    special = '{"unk_token":{"content":"<unk>","lstrip":false},"pad_token":"<pad>"}'
    put("hugging_face", "single", config, generation, tokenizer, special, "", weights)
    put("hugging_face", "sharded", config, generation, tokenizer, special, index, weights)
    plain = dumps(json.loads((GOLDEN / "model/tiny/plain/config.json").read_text()))
    put("hugging_face", "plain", plain, "", "", "", "", safetensors([("model.norm.weight", "BF16", [2], bytes(4))]))


# ---- checkpoints, caches, records -----------------------------------------------------------------------------------


def make_checkpoint():
    header = dumps({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                    "w.moment_1": {"dtype": "F32", "shape": [2, 2], "data_offsets": [16, 32]}}).encode()
    header += b" " * (-len(header) % 8)
    shard = struct.pack("<Q", len(header)) + header + f32(2, 4)
    begin = 8 + len(header)

    def record(role, key, offset):
        box = field(1, b"\0\0") + field(2, b"\2\2")
        return field(1, "w") + field(2, role) + field(3, b"\2\2") + field(4, box) + field(5, field(2, 4)) + field(
            6, field(1, 2) + field(2, 1)) + field(7, 2) + field(9, key) + field(10, begin + offset) + field(11, 16) + fixed32(12, 7)
    index = field(1, 1) + field(3, field(1, "state-00000-00000.safetensors") + field(2, len(shard)) + field(3, begin) +
                                fixed32(4, 1)) + field(4, record(1, "w", 0)) + field(4, record(2, "w.moment_1", 16))
    writer = field(2, "index-00000.pb") + field(3, len(index)) + field(4, hashlib.sha256(index).hexdigest()) + field(5, 2)
    manifest = field(1, 1) + field(2, 1) + field(3, "inlaid 0.1.0") + field(4, 1767225600000) + field(5, 12) + field(
        6, field(1, 1) + field(2, 40)) + field(7, field(1, "json") + field(2, '{"losses":[2.5]}')) + field(
        8, b"".join(field(i, 1) for i in range(1, 7))) + field(9, writer) + field(10, "{}") + field(11, '{"model_type":"llama"}')
    more = field(12, field(1, "m.gguf") + field(2, "0" * 64)) + field(13, field(1, "default") + field(
        2, '{"peft_type":"LORA"}')) + field(14, field(1, "d") + field(2, "t"))
    put("checkpoint", "whole", manifest, index, shard, '{"latest":"step-000012","best":["step-000012"]}')
    put("checkpoint", "adapter", manifest + more, index, shard, "")
    put("checkpoint", "newer", field(1, 9) + field(2, 9) + field(3, "inlaid 9"), index, shard, "[]")
    entry = field(1, "index-00000.pb.x") + field(2, 3) + field(3, "0" * 64)
    put("checkpoint", "extra_files", manifest + field(16, entry) + field(17, field(1, "k") + field(2, "v")), index, shard,
        '{"latest":7}')


def make_token_cache():
    report = dumps({"rows": 2, "used": 2, "truncated": 0, "held_out": 0, "tokens": 5, "target_tokens": 2, "boundary_tokens": 0,
                    "files": [{"file": "a.jsonl", "container": "jsonl", "format": "chat", "decided_by": "row 1 has messages",
                               "rows": 2, "unused_columns": {"id": 2}}], "refused": [], "dropped": [{"file": "a.jsonl", "row": 3,
                                                                                                    "reason": "long"}],
                    "warnings": ["w"]}).encode()

    def sample(row, *tokens):
        targets = [*tokens[1:], -100]
        return struct.pack(f"<qQ{2 * len(tokens)}i", row, len(tokens), *tokens, *targets)
    records = sample(0, 1, 2, 3) + sample(1, 4, 5)
    put("token_cache", "two", struct.pack("<I", len(records)) + records + struct.pack("<Q", len(report)) + report + b"b" * 64 +
        struct.pack("<Q", 2))


def make_jobs():
    state = {"state": "running", "text": "", "step": 7, "total_steps": 60, "updated": 1767225600.5}
    job = {"created": "2026-01-31T00:00:00", "config": {"output_dir": "out"}}
    put("jobs", "running", dumps(state), dumps(job), '{"latest":"step-000007"}')
    put("jobs", "done", dumps({**state, "state": "done"}), dumps(job), "")


def make_report():
    job = {"inlaid_version": "0.1.0", "created": "2026-01-31T00:00:00", "config": {"model": {"path": "m.gguf"}, "adapter":
           {"peft_type": "LORA"}, "output_dir": "out"}}
    data = {"train": {"rows": 10, "used": 8, "truncated": 1, "held_out": 0, "tokens": 400, "target_tokens": 100,
                      "refused": [{"file": "a.jsonl", "row": 3, "reason": "no <content>"}], "dropped": []}}
    events = [{"event": "state", "step": 0, "seq": 1, "time": 1767225600.25, "text": "running"},
              {"event": "sample", "step": 0, "seq": 2, "time": 1767225601, "prompt": "Hi", "text": "<b>no</b>"}]
    for step in range(1, 6):
        events.append({"event": "step", "step": step, "seq": step + 2, "time": 1767225600 + step, "loss": 3 / step,
                       "learning_rate": 1e-4, "grad_norm": 1.5, "tokens_per_second": 300, "mean_token_accuracy": 0.5,
                       "num_tokens": 100 * step, "num_rows": step, "total_steps": 5, "memory_peak_bytes": 1e9,
                       "memory_peak_weights": 5e8, "memory_peak_data": 1e6})
    events += [{"event": "eval", "step": 5, "seq": 9, "time": 1767225606, "eval_loss": 1.5, "eval_mean_token_accuracy": 0.4},
               {"event": "warning", "step": 5, "seq": 10, "time": 1767225606, "text": "careful & <slow>"},
               {"event": "change", "step": 5, "seq": 11, "time": 1767225606, "text": "optim.learning_rate"},
               {"event": "checkpoint", "step": 5, "seq": 12, "time": 1767225606, "text": "out/checkpoints/step-000005"},
               {"event": "sample", "step": 5, "seq": 13, "time": 1767225606, "prompt": "Hi", "text": "Hello"},
               {"event": "done", "step": 5, "seq": 14, "time": 1767225607, "text": "done"}]
    lines = "\n".join(dumps(e) for e in events) + "\n"
    put("report", "run", dumps(job), dumps(data), lines)
    put("report", "young", dumps(job), "", dumps(events[0]) + "\n" + dumps(events[2]) + '\n{"event": "st')
    def losses(name, *points):
        put("report", name, dumps(job), "", "".join(dumps(dict(events[2], step=s, loss=v)) + "\n" for s, v in points))
    losses("far_from_zero", (1, 1e16), (2, 1e16 + 2))
    losses("extremes", (1, 1e300), (2, -1e300), (3, 5e-324), (9007199254740993, -1e99), (9223372036854775807, 1e99))
    losses("backwards", (5, 1.0), (1, 0.0), (2, 0.0), (-9223372036854775808, 3))


# ---- text -----------------------------------------------------------------------------------------------------------


def make_tokenizer_json():
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None}

    def added(*texts):
        return [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                 "special": True} for i, t in enumerate(texts)]
    letters = [chr(c) for c in range(33, 127)]
    bpe = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
           "fuse_unk": False, "byte_fallback": False, "vocab": {t: i for i, t in enumerate(
               ["<unk>", "<s>", "</s>", *letters, "\u0120", "th", "the", "a" * 3, "aa"])}, "merges": [["t", "h"], ["th", "e"],
                                                                                                      ["a", "a"], ["aa", "a"]]}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                         {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    put("tokenizer_json", "bpe", dumps({**base, "added_tokens": added("<unk>", "<s>", "</s>"), "pre_tokenizer": byte_level,
                                        "decoder": byte_level, "post_processor": template, "model": bpe}))
    split = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\d{1,3}| ?[^\\s\\p{L}]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated",
         "invert": False}, {"type": "Digits", "individual_digits": True}, {**byte_level, "use_regex": False}]}
    norm = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Replace", "pattern":
            {"Regex": " {2,}"}, "content": " "}, {"type": "Prepend", "prepend": "x"}, {"type": "Strip", "strip_left": True,
                                                                                      "strip_right": True}]}
    put("tokenizer_json", "split", dumps({**base, "added_tokens": added("<unk>"), "normalizer": norm, "pre_tokenizer": split,
                                          "decoder": byte_level, "model": {**bpe, "byte_fallback": True, "dropout": 0.5}}))
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581", -2.0], ["a", -3.0], ["the", -4.0],
               ["\u2581t", -5.0], ["<0x41>", -9.0]], "byte_fallback": True}
    meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
               {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    put("tokenizer_json", "unigram", dumps({**base, "added_tokens": added("<unk>"), "normalizer": {"type": "Precompiled",
        "precompiled_charsmap": ""}, "pre_tokenizer": meta, "decoder": decoder, "model": unigram}))
    words = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {"[UNK]": 0, "the": 1, "quick": 2, "##s": 3, "fo": 4, "##x": 5}}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    put("tokenizer_json", "word_piece", dumps({**base, "normalizer": bert, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, "post_processor": {"type": "BertProcessing",
        "sep": ["quick", 2], "cls": ["the", 1]}, "model": words}))
    put("tokenizer_json", "word_level", dumps({**base, "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel",
        "vocab": {"a": 0, "the": 7}, "unk_token": "a"}}))


def make_sentencepiece():
    def piece(text, score=0.0, kind=1):
        return field(1, field(1, text) + field(2, float(score)) + field(3, kind))
    pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581t", -1) + piece("he", -2) + piece(
        "\u2581the", -3) + piece("\u2581", -4) + piece("t", -5) + piece("h", -6) + piece("e", -7) + piece("<ab>", 0, 4)
    bytes_ = b"".join(piece(f"<0x{i:02X}>", 0, 6) for i in range(256))

    def model(kind, pieces, fallback, normalizer=b""):
        trainer = field(3, kind) + field(35, fallback) + field(40, 0) + field(41, 1) + field(42, 2)
        return pieces + field(2, trainer) + field(3, normalizer)
    config = dumps({"add_bos_token": True, "bos_token": "<s>", "tokenizer_class": "LlamaTokenizer", "added_tokens_decoder":
                    {"1": {"content": "<s>", "special": True}, "11": {"content": "<new>", "special": False}}})
    put("sentencepiece", "bpe", config, "", model(2, pieces, 0))
    put("sentencepiece", "bpe_bytes", "{}", "", model(2, pieces + bytes_, 1))
    put("sentencepiece", "unigram", '{"legacy":false}', '{"<x>":11}', model(1, pieces, 0, field(3, 1) + field(4, 1) + field(5, 1)))
    put("sentencepiece", "character_map", "", "", model(1, pieces, 0, field(2, struct.pack("<I4I", 16, 0, 1, 2, 3) + b"a\0b\0")))
    put("sentencepiece", "tiktoken", "", "", "IQ== 0\nIg== 1\n")


def make_chat_template():
    chat = dumps([{"role": "system", "content": "Be <b>."}, {"role": "user", "content": "Hi"}, {"role": "assistant",
                  "content": "Hello, \u00e9!", "reasoning_content": "hm", "tool_calls": [{"function": {"name": "f", "arguments":
                  {"x": [1, 2.5, None]}}}]}, {"role": "user", "content": " bye "}, {"role": "assistant", "content": "ok"}])
    for name in ("chatml", "generation", "inst", "llama3_like", "qwen3_like", "trimming"):
        put("chat_template", name, (GOLDEN / f"text/templates/{name}.jinja").read_bytes(), chat,
            '{"tools":[{"type":"function","function":{"name":"f"}}]}')
    put("chat_template", "filters", "{{ messages|map(attribute='content')|join(',')|upper|replace('A','b')|indent(2) }}"
        "{{ messages|selectattr('role','equalto','user')|list|length }}{{ strftime_now('%Y %d') }}{{ [3,1]|sort|first }}"
        "{{ messages[0].content[::-1].strip().split('e') }}{{ 7 // 2 ** 3 % 5 }}{{ {'a':1}.items()|list|tojson(indent=2) }}"
        "{{ range(3)|batch(2)|list }}{{ 'x%s' % 3 if false else 'y' }}{{ cycler('a','b').next() }}", chat, "{}")
    # Each of these would take a machine for hours, or all of its memory, without a bound.
    put("chat_template", "endless_loop", "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
        "{% endfor %}{% endfor %}{% endfor %}", "[]", "{}")
    put("chat_template", "endless_recursion", "{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}", "[]", "{}")
    put("chat_template", "doubling", "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}{{ ns.x }}", "[]", "{}")
    put("chat_template", "repeating", "{{ 'ab' * 999999999 }}{{ [0] * 999999999 }}", "[]", "{}")
    put("chat_template", "output", "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 100 }}{% endfor %}", "[]", "{}")
    put("chat_template", "nested_lists", "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}{{ ns.x }}{{ ns.x|tojson }}{{ ns.x == ns.x }}", "[]", "{}")
    put("chat_template", "huge_range", "{{ range(9999999999)|list|length }}{{ range(99999)|map('string')|join|length }}", "[]", "{}")
    put("chat_template", "deep_expression", "{{ " + "(" * 1500 + "1" + ")" * 1500 + " }}", "[]", "{}")
    put("chat_template", "deep_blocks", "{% if 1 %}" * 700 + "{% endif %}" * 700, "[]", "{}")
    put("chat_template", "padding", "{{ 'a'.center(999999999) }}{{ 'a'|center(999999999) }}{{ 'a'.replace('', 'b' * 9999) }}"
        "{{ ('a' * 9999).replace('a', 'b' * 9999) }}{{ 'x'|indent(999999999) }}", "[]", "{}")
    put("chat_template", "many_turns", "{% for m in messages %}{% for i in range(3000) %}{% endfor %}{{ m.content|trim }}{% endfor %}",
        dumps([{"role": "assistant", "content": f" {i} "} for i in range(60)]), "{}")


def make_data():
    def rows(name, options, *lines):
        put("data", options.split(" ")[0].replace(".", "_") + "_" + name, f"{options}\n" + "\n".join(lines) + "\n")
    chat = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a?"}, {"role": "assistant",
            "content": "b", "weight": 1}, {"role": "user", "content": [{"type": "text", "text": "c"}]}, {"role": "assistant",
            "content": "d", "train": False}], "id": 3}
    share = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "r"}], "system": "be", "tools": "[]"}
    call = {"conversations": [{"from": "human", "value": "q"}, {"from": "function_call", "value": '{"name":"f","arguments":{}}'},
                              {"from": "observation", "value": "7"}, {"from": "gpt", "value": "r"}]}
    pair = {"prompt": "p ", "completion": "yes"}
    turns = {"prompt": [{"role": "user", "content": "u"}], "completion": [{"role": "assistant", "content": "v"}]}
    alpaca = {"instruction": "do", "input": "it", "output": "done", "history": [["a", "b"]], "system": "s"}
    text = {"text": "yes yes \u00e9\u6771"}
    rows("chat", "a.jsonl assistant error chat", dumps(chat), "", dumps(chat))
    rows("chat_auto", "b.jsonl last_assistant right auto", dumps(chat), dumps({"messages": []}), dumps(chat))
    rows("share_gpt", "c.jsonl assistant left auto", dumps(share), dumps(call))
    rows("pairs", "d.jsonl completion drop auto", dumps(pair), dumps({**pair, "completion": ""}))
    rows("turns", "e.jsonl completion error auto", dumps(turns), dumps({**turns, "completion": "v"}))
    rows("alpaca", "f.jsonl assistant error alpaca", dumps(alpaca), dumps({"instruction": "x", "output": "y"}))
    rows("text", "g.jsonl all right text", dumps(text), dumps({"text": "yes" * 99}))
    rows("array", "h.json all error auto", "[", dumps(text) + ",", dumps(text), "]")
    rows("array_broken", "i.json all right auto", "[" + dumps(text) + ",{]")
    rows("lines", "j.json all error auto", dumps(text), dumps(text))
    rows("plain", "k.txt all drop auto", "one line", "and its second", "", "another document \u6771", "", "")
    rows("plain_windows", "l.txt all error text", "\ufeffone\r", "\r", "two\r")
    rows("preference", "m.jsonl assistant error auto", dumps({"prompt": "a", "chosen": "b", "rejected": "c"}))


if __name__ == "__main__":
    for name, make in sorted(globals().items()):
        if name.startswith("make_"):
            make()
