"""Makes k_quants.gguf, a tiny Llama of one layer in the types that quantise 256 values together and in those of five bits, with
the PyPI package gguf; and k_quants_f32.safetensors, what gguf says that its tensors mean, q and k rows back in the order of
transformers. For sdk/formats/golden_test.cc.

Run: python make_k_quants.py   (needs gguf, numpy, safetensors; not part of CI)
"""
import pathlib

import gguf
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from safetensors.numpy import save_file

from make_golden import permute, unpermute

HERE = pathlib.Path(__file__).parent
HIDDEN, MLP, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 256, 32, 4, 2, 16, 32
# Where the f16 scales of a K-quant are, which gguf does not write itself: its blocks are random, with sane scales.
HALVES = {T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
PLAN = [
    ("model.embed_tokens.weight", "token_embd.weight", (VOCAB, HIDDEN), T.Q4_K),
    ("lm_head.weight", "output.weight", (VOCAB, HIDDEN), T.Q6_K),
    ("model.norm.weight", "output_norm.weight", (HIDDEN,), T.F32),
    ("model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", (HIDDEN,), T.F32),
    ("model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", (HIDDEN,), T.F32),
    ("model.layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight", (HEADS * HEAD_DIM, HIDDEN), T.Q5_K),
    ("model.layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", (KV_HEADS * HEAD_DIM, HIDDEN), T.Q3_K),
    ("model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", (KV_HEADS * HEAD_DIM, HIDDEN), T.Q2_K),
    ("model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight", (HIDDEN, HEADS * HEAD_DIM), T.Q5_1),
    ("model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight", (MLP, HIDDEN), T.Q2_K),
    ("model.layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight", (MLP, HIDDEN), T.Q4_K),
    ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight", (HIDDEN, MLP), T.Q5_0),
]


def stored(shape, kind, rng):
    if kind not in HALVES:
        return gguf.quants.quantize(rng.standard_normal(shape).astype(np.float32) * np.float32(0.1), kind)
    values, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (*shape[:-1], shape[-1] // values, size), dtype=np.uint8)
    for at in HALVES[kind]:
        halves = (rng.uniform(1e-4, 1e-3, blocks.shape[:-1])).astype(np.float16)
        blocks[..., at:at + 2] = halves[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def main():
    rng = np.random.default_rng(4)
    w = gguf.GGUFWriter(HERE / "k_quants.gguf", "llama")
    w.add_block_count(1)
    w.add_context_length(64)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(MLP)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(10000.0)
    w.add_vocab_size(VOCAB)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    tokens = [chr(ord("a") + i) for i in range(26)] + ["ab"]
    w.add_token_list(tokens + [f"[PAD{i}]" for i in range(len(tokens), VOCAB)])
    w.add_token_types([gguf.TokenType.NORMAL if i < len(tokens) else gguf.TokenType.UNUSED for i in range(VOCAB)])
    w.add_token_merges(["a b"])
    expected = {}
    for name, in_file, shape, kind in PLAN:
        data = stored(shape, kind, rng)
        value = gguf.quants.dequantize(data, kind).astype(np.float32).reshape(shape)
        heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else 0
        expected[name] = np.ascontiguousarray(unpermute(value, heads) if heads else value)
        if heads:
            assert np.array_equal(permute(expected[name], heads), value)
        w.add_tensor(in_file, data, raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    save_file(expected, HERE / "k_quants_f32.safetensors")


if __name__ == "__main__":
    main()
