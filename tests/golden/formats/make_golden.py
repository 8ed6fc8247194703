"""Makes the golden files of this folder with other people's libraries: gguf, safetensors, transformers, peft, tokenizers.

Run: python make_golden.py   (needs torch, transformers, peft, gguf, safetensors, tokenizers, numpy; not part of CI)

  types.safetensors    every element type that the reader knows, values given by formulas that golden_test.cc repeats
  hf/                  a tiny Llama saved by transformers in bf16 shards, with a tokenizer trained by tokenizers
  hf_single.safetensors  the same weights in one file, written by safetensors
  tiny.gguf            the same model written by gguf: each supported type once, q and k permuted as llama.cpp's converter does
  tiny_f32.safetensors what tiny.gguf means: dequantised by gguf, rows back in transformers' order
  metadata.gguf        every type of metadata value, alone and in arrays
  adapter/             a LoRA adapter for hf/ saved by peft
  tokenizer_PRE.json   tokenizers built from the same vocabulary through the API of tokenizers, one for each known pre-tokenizer
"""
import json
import pathlib
import shutil

import gguf
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.numpy import load_file, save_file as save_numpy
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
TEXT = ["the whale and the sea", "the capital of the land is the town", "hello hello world, room 7 of 12",
        "it's the end of the line; they're here", "milk and honey and bread"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER = "<tool>"
ROWS = 320  # of the embedding; more than the tokenizer has tokens
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(regex):
    return pre_tokenizers.Split(Regex(regex), behavior="isolated")


def pre_tokenizer(name):
    if name == "gpt-2":
        return byte_level(True)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])
    if name == "llama-bpe":
        return pre_tokenizers.Sequence([split(LLAMA3), byte_level(False)])
    if name == "qwen2":
        return pre_tokenizers.Sequence([split(QWEN2), byte_level(False)])
    raise ValueError(name)


def trained_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer("smollm")
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL + [USER], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return tokenizer


def with_pre_tokenizer(vocab, merges, name):
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=name == "llama-bpe"))
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    for token in SPECIAL:
        tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])
    tokenizer.add_tokens([AddedToken(USER, normalized=False, special=False)])
    return tokenizer


def write_types():
    def ramp(n, dtype):
        return (torch.arange(n, dtype=torch.float64) * 0.25 - 2.0).to(dtype)
    save_file({
        "f64": ramp(6, torch.float64).reshape(2, 3), "f32": ramp(12, torch.float32).reshape(3, 4),
        "f16": ramp(5, torch.float16), "bf16": ramp(7, torch.bfloat16), "i64": torch.arange(4) - 2,
        "i32": (torch.arange(3) - 1).to(torch.int32), "u8": torch.arange(9).to(torch.uint8),
        "bool": torch.tensor([True, False, True]), "scalar": torch.tensor(1.5), "empty": torch.zeros(0, 4),
    }, HERE / "types.safetensors", metadata={"format": "pt", "note": "naïve"})


def write_model(tokenizer):
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=ROWS, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=128,
                         rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
                         rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 50000.0})
    model = LlamaForCausalLM(config)
    for name, p in model.named_parameters():
        torch.nn.init.normal_(p, 1.0 if "norm" in name else 0.0, 0.2)
    model = model.to(torch.bfloat16)
    shutil.rmtree(HERE / "hf", ignore_errors=True)
    model.save_pretrained(HERE / "hf", max_shard_size="100KB")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token="<|im_end|>",
                                   pad_token="<|endoftext|>", unk_token="<|endoftext|>", chat_template=TEMPLATE)
    fast.save_pretrained(HERE / "hf")
    weights = {k: v.float().contiguous() for k, v in model.state_dict().items()}
    save_file(model.state_dict(), HERE / "hf_single.safetensors", metadata={"format": "pt"})

    shutil.rmtree(HERE / "adapter", ignore_errors=True)
    torch.manual_seed(2)
    adapted = get_peft_model(model.float(), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"],
                                                       task_type="CAUSAL_LM"))
    for name, p in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, 0.0, 0.1)
    adapted.save_pretrained(HERE / "adapter")
    (HERE / "adapter" / "README.md").unlink(missing_ok=True)
    return config, {k: v.numpy() for k, v in weights.items()}


def permute(weight, heads):
    # llama.cpp, convert_hf_to_gguf.py, LlamaModel.permute
    return (weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2)
            .reshape(weight.shape))


def unpermute(weight, heads):
    # transformers, modeling_gguf_pytorch_utils.py, LlamaTensorProcessor._reverse_permute_weights
    dim = weight.shape[0] // heads // 2
    return weight.reshape(heads, dim, 2, *weight.shape[1:]).swapaxes(2, 1).reshape(weight.shape)


def write_gguf(config, weights, tokenizer):
    T = gguf.GGMLQuantizationType
    model = json.loads(tokenizer.to_str())
    vocab = model["model"]["vocab"]
    tokens, types = [], []
    by_id = {i: t for t, i in vocab.items()}
    for i in range(ROWS):
        tokens.append(by_id.get(i, f"[PAD{i}]"))
        types.append(gguf.TokenType.UNUSED if i not in by_id else gguf.TokenType.CONTROL if by_id[i] in SPECIAL
                     else gguf.TokenType.USER_DEFINED if by_id[i] == USER else gguf.TokenType.NORMAL)
    w = gguf.GGUFWriter(HERE / "tiny.gguf", "llama")
    w.add_name("tiny")
    w.add_block_count(2)
    w.add_context_length(128)
    w.add_embedding_length(64)
    w.add_feed_forward_length(96)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(16)
    w.add_rope_freq_base(50000.0)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(2.0)
    w.add_vocab_size(ROWS)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([" ".join(m) for m in model["model"]["merges"]])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_pad_token_id(0)
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)
    names = {"self_attn.q_proj": ("attn_q", [T.Q4_0, T.Q8_0]), "self_attn.k_proj": ("attn_k", [T.Q4_1, T.F16]),
             "self_attn.v_proj": ("attn_v", [T.F16, T.Q4_0]), "self_attn.o_proj": ("attn_output", [T.BF16, T.Q4_1]),
             "mlp.gate_proj": ("ffn_gate", [T.Q8_0, T.BF16]), "mlp.up_proj": ("ffn_up", [T.F32, T.Q4_1]),
             "mlp.down_proj": ("ffn_down", [T.Q4_0, T.F16]), "input_layernorm": ("attn_norm", [T.F32, T.F32]),
             "post_attention_layernorm": ("ffn_norm", [T.F32, T.F32])}
    plan = [("model.embed_tokens.weight", "token_embd.weight", T.Q8_0), ("model.norm.weight", "output_norm.weight", T.F32),
            ("lm_head.weight", "output.weight", T.Q4_1)]
    for layer in range(2):
        for hf, (name, kinds) in names.items():
            plan.append((f"model.layers.{layer}.{hf}.weight", f"blk.{layer}.{name}.weight", kinds[layer]))
    expected = {}
    for hf, name, kind in plan:
        value = weights[hf].astype(np.float32)
        heads = 4 if "q_proj" in hf else 2 if "k_proj" in hf else 0
        stored = gguf.quants.quantize(permute(value, heads) if heads else value, kind)
        back = gguf.quants.dequantize(stored, kind).astype(np.float32).reshape(value.shape)
        expected[hf] = np.ascontiguousarray(unpermute(back, heads) if heads else back)
        w.add_tensor(name, stored, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    save_numpy(expected, HERE / "tiny_f32.safetensors")


def write_metadata():
    w = gguf.GGUFWriter(HERE / "metadata.gguf", "other")
    w.add_uint8("a.u8", 200)
    w.add_int8("a.i8", -100)
    w.add_uint16("a.u16", 60000)
    w.add_int16("a.i16", -30000)
    w.add_uint32("a.u32", 4000000000)
    w.add_int32("a.i32", -2000000000)
    w.add_uint64("a.u64", 10**19)
    w.add_int64("a.i64", -9 * 10**18)
    w.add_float32("a.f32", 0.1)
    w.add_float64("a.f64", 0.1)
    w.add_bool("a.bool", True)
    w.add_string("a.string", "naïve 東京")
    w.add_array("a.i32s", [1, -2, 3])
    w.add_array("a.f32s", [0.5, -1.5])
    w.add_array("a.bools", [True, False])
    w.add_array("a.strings", ["", "x", "Ġ"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    write_types()
    write_metadata()
    tokenizer = trained_tokenizer()
    parts = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m) for m in parts["merges"]]
    for name in ["gpt-2", "smollm", "llama-bpe", "qwen2"]:
        with_pre_tokenizer(parts["vocab"], merges, name).save(str(HERE / f"tokenizer_{name}.json"), pretty=False)
    tokenizer = with_pre_tokenizer(parts["vocab"], merges, "smollm")
    config, weights = write_model(tokenizer)
    write_gguf(config, weights, tokenizer)


if __name__ == "__main__":
    main()
