"""Makes the golden files of the model tests with PyTorch, transformers and PEFT (versions are written into them).

    python make_golden.py [MODEL.gguf]

Everything is computed in f64, the oracle; beside it stands the error of PyTorch's own f32 against it, so that a test can ask
for "at most twice PyTorch's error". Of large tensors only evenly spaced samples are kept; both errors are measured on the
same samples.

smollm2.safetensors   logits and every parameter's gradient of SmolLM2-135M for one text; losses of 20 AdamW steps, full
                      and LoRA. See "__metadata__" for the setting.
tiny/NAME/            random Llama-like models of a few thousand parameters, one per option: Hugging Face folder, and
                      golden.safetensors with logits, gradients, and logits of a text that is short enough for the options that
                      look at the length.
flips.json            for every attribute of every configuration class: a changed value, and what the logits become.
"""

import contextlib
import copy
import json
import math
import pathlib
import shutil
import sys

import gguf
import peft
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from transformers import (AutoConfig, Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig,
                          MistralForCausalLM, Phi3Config, Phi3ForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

HERE = pathlib.Path(__file__).parent
IDS = [2703, 2002, 359, 10793, 338, 2330, 281, 260, 3426, 30, 1069, 12720, 1512, 28, 1928, 3687, 288, 2330, 1805, 28, 284,
       2645, 601, 351, 4788, 30]
SAMPLES = 256
STEPS = 20
VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}


def sampled(tensor):
    flat = tensor.detach().reshape(-1)
    count = min(SAMPLES, flat.numel())
    return flat[(torch.arange(count, dtype=torch.int64) * flat.numel()) // count]


def relative(a, b):
    return (torch.linalg.vector_norm(a.double() - b) / torch.linalg.vector_norm(b)).item()


NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def load(path, dtype):
    """SmolLM2 with dequantised weights, query and key rows in transformers' order."""
    reader = gguf.GGUFReader(path)
    config = AutoConfig.from_pretrained(str(pathlib.Path(path).parent), gguf_file=pathlib.Path(path).name)
    config.quantization_config = None
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config)
    state = {}
    for tensor in reader.tensors:
        value = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        part = tensor.name.split(".")
        if part[0] == "blk":
            heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(part[2])
            if heads:
                value = value.reshape(heads, value.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(value.shape)
            name = f"model.layers.{part[1]}.{NAMES[part[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[part[0]]
        state[name] = value
    missing = model.load_state_dict(state, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys, missing
    model.tie_weights()
    return model.to(dtype).train()


def loss_of(model, ids):
    """Cross-entropy in the model's own type; the models' built-in loss would compute it in f32."""
    logits = model(input_ids=ids, use_cache=False).logits
    return F.cross_entropy(logits[0, :-1], ids[0, 1:]), logits


def lora_a(name, rows, columns):
    """The start of a LoRA A matrix: a fixed formula instead of a random generator, rounded to f32."""
    offset = sum(name.encode()) % 97
    index = torch.arange(rows * columns, dtype=torch.float64).reshape(rows, columns)
    return (torch.sin(0.37 * index + offset) / math.sqrt(columns)).float()


def losses(model, ids, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0.0)
    result = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss, _ = loss_of(model, ids)
        result.append(loss.item())
        loss.backward()
        optimizer.step()
    return torch.tensor(result, dtype=torch.float64)


def with_lora(model):
    config = peft.LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, config, autocast_adapter_dtype=False)
    for name, parameter in model.named_parameters():
        if ".lora_A." in name:
            short = name.removeprefix("base_model.model.").replace(".default", "")
            parameter.data = lora_a(short, *parameter.shape).to(parameter.dtype)
    return model


def smollm2(path):
    ids = torch.tensor([IDS])
    out, gradients = {}, {}
    for dtype in (torch.float64, torch.float32):
        model = load(path, dtype)
        loss, logits = loss_of(model, ids)
        loss.backward()
        rows = torch.stack([sampled(row) for row in logits[0]])
        named = {n: sampled(p.grad) for n, p in model.named_parameters()}
        if dtype == torch.float64:
            out["logits"] = rows.detach().clone()
            gradients = {n: g.clone() for n, g in named.items()}
            out["loss"] = loss.detach().reshape(1).clone()
        else:
            out["logits.f32_error"] = torch.tensor([relative(rows.detach(), out["logits"])], dtype=torch.float64)
            for n, g in named.items():
                out["gradient/" + n] = gradients[n]
                out["f32_error/" + n] = torch.tensor([relative(g, gradients[n])], dtype=torch.float64)
        del model, loss, logits
    for kind, lr in (("full", 1e-5), ("lora", 1e-3)):
        for dtype in (torch.float64, torch.float32):
            model = load(path, dtype)
            if kind == "lora":
                model = with_lora(model)
            name = f"{kind}.losses" if dtype == torch.float64 else f"{kind}.losses.f32"
            out[name] = losses(model, ids, lr)
            print(name, out[name][:3].tolist(), "...", out[name][-1].item(), flush=True)
            del model
    metadata = dict(VERSIONS, ids=json.dumps(IDS), full_lr="1e-5", lora_lr="1e-3", lora="r 8, alpha 16, all-linear, dropout 0, "
                    "A[i,j] = sin(0.37 (i in + j) + sum(name) % 97) / sqrt(in), B = 0",
                    adamw="betas 0.9 0.999, eps 1e-8, weight decay 0, no clipping, constant rate")
    save_file({k: v.contiguous() for k, v in out.items()}, HERE / "smollm2.safetensors", metadata=metadata)


BASE = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=1,
            eos_token_id=2, initializer_range=0.2)
SHORT = 5
TINY_IDS = [3, 17, 5, 39, 8, 8, 21, 0, 12, 30, 4]
LLAMA3 = dict(rope_type="llama3", rope_theta=100.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
TINY = {
    "plain": (LlamaConfig, {}),
    "tied": (LlamaConfig, dict(tie_word_embeddings=True)),
    "biases": (LlamaConfig, dict(attention_bias=True, mlp_bias=True)),
    "multi_head": (LlamaConfig, dict(num_key_value_heads=4)),
    "one_key_value_head": (LlamaConfig, dict(num_key_value_heads=1)),
    "head_dim": (LlamaConfig, dict(head_dim=6)),
    "rope_linear": (LlamaConfig, dict(rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=2.5))),
    "rope_llama3": (LlamaConfig, dict(rope_parameters=LLAMA3)),
    "gelu": (LlamaConfig, dict(hidden_act="gelu")),
    "qwen2": (Qwen2Config, dict(use_sliding_window=False)),
}


def longrope(pairs, **more):
    return dict(rope_type="longrope", rope_theta=100.0, short_factor=[1.0 + 0.25 * i for i in range(pairs)],
                long_factor=[1.5 + 0.5 * i for i in range(pairs)], **more)


# Thresholds lie below the length of TINY_IDS, so that every option has an effect.
TINY.update({
    "rope_dynamic": (LlamaConfig, dict(head_dim=8, max_position_embeddings=8,
                                       rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=2.5))),
    "rope_yarn": (LlamaConfig, dict(head_dim=16, rope_parameters=dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, beta_fast=3.0, beta_slow=0.2))),
    "rope_yarn_scaled": (LlamaConfig, dict(head_dim=16, rope_parameters=dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.1,
        mscale=1.0, mscale_all_dim=0.5, truncate=False))),
    "rope_yarn_factor": (LlamaConfig, dict(head_dim=16, rope_parameters=dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=200, attention_factor=0.8))),
    "rope_longrope": (LlamaConfig, dict(head_dim=8, rope_parameters=longrope(4, original_max_position_embeddings=8))),
    "mistral": (MistralConfig, dict(sliding_window=4)),
    "qwen2_window": (Qwen2Config, dict(use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    "qwen2_layer_types": (Qwen2Config, dict(use_sliding_window=True, sliding_window=5,
                                            layer_types=["sliding_attention", "full_attention"])),
    "qwen3": (Qwen3Config, dict(head_dim=8)),
    "qwen3_window": (Qwen3Config, dict(head_dim=6, attention_bias=True, use_sliding_window=True, sliding_window=4,
                                       max_window_layers=0)),
    "phi3": (Phi3Config, dict(num_attention_heads=2, num_key_value_heads=1, pad_token_id=None, sliding_window=6,
                              original_max_position_embeddings=8,
                              rope_parameters=longrope(2, partial_rotary_factor=0.5))),
    "phi3_plain": (Phi3Config, dict(num_attention_heads=2, num_key_value_heads=1, pad_token_id=None,
                                    original_max_position_embeddings=64)),
    "gemma2": (Gemma2Config, dict(head_dim=8, pad_token_id=None, sliding_window=4, query_pre_attn_scalar=12,
                                  attn_logit_softcapping=1.5, final_logit_softcapping=2.5, tie_word_embeddings=True)),
    "gemma2_uncapped": (Gemma2Config, dict(head_dim=8, pad_token_id=None, sliding_window=4, query_pre_attn_scalar=12,
                                           attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True)),
})
# As transformers 4 saved them; other keys say which layers have the window.
WITHOUT_LAYER_TYPES = {"qwen2_window", "gemma2"}
MODELS = {LlamaConfig: LlamaForCausalLM, Qwen2Config: Qwen2ForCausalLM, MistralConfig: MistralForCausalLM,
          Qwen3Config: Qwen3ForCausalLM, Phi3Config: Phi3ForCausalLM, Gemma2Config: Gemma2ForCausalLM}


@contextlib.contextmanager
def exact(dtype):
    """While it lasts, models of f64 compute in f64 throughout: transformers asks for f32 by name in softmax, norms and rotary
    tables, and gets f64."""
    if dtype != torch.float64:
        yield
        return
    saved = (torch.float32, torch.float, torch.Tensor.float)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved


def tiny_model(config_class, changes, seed):
    torch.manual_seed(seed)
    config = config_class(**dict(copy.deepcopy(BASE), **copy.deepcopy(changes)))
    config._attn_implementation = "eager"
    model = MODELS[config_class](config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)  # norms and biases away from their neutral values
    return model


def twin_of(model, dtype):
    """A copy in another type, with rotary tables of that type."""
    twin = copy.deepcopy(model).to(dtype)
    twin.model.rotary_emb = type(twin.model.rotary_emb)(twin.config)
    return twin


def split(name, value, config):
    """What Inlaid calls the parts of phi3's fused matrices."""
    if "qkv_proj" in name:
        size = config.hidden_size // config.num_attention_heads
        rows = [config.num_attention_heads * size, config.num_key_value_heads * size, config.num_key_value_heads * size]
        return zip([name.replace("qkv_proj", part) for part in ("q_proj", "k_proj", "v_proj")], value.split(rows))
    if "gate_up_proj" in name:
        return zip([name.replace("gate_up_proj", part) for part in ("gate_proj", "up_proj")], value.chunk(2))
    return [(name, value)]


def tiny():
    root = HERE / "tiny"
    shutil.rmtree(root, ignore_errors=True)
    ids = torch.tensor([TINY_IDS])
    for seed, (name, (config_class, changes)) in enumerate(TINY.items()):
        model = tiny_model(config_class, changes, seed)
        folder = root / name
        # One of the folders is sharded.
        model.save_pretrained(folder, max_shard_size="6KB" if name == "biases" else "5GB")
        (folder / "generation_config.json").unlink(missing_ok=True)
        if name in WITHOUT_LAYER_TYPES:
            description = json.loads((folder / "config.json").read_text())
            del description["layer_types"]
            (folder / "config.json").write_text(json.dumps(description, indent=2, sort_keys=True) + "\n")
        out = {}
        for dtype in (torch.float64, torch.float32):
            with exact(dtype):
                twin = twin_of(model, dtype)
                loss, logits = loss_of(twin, ids)
                loss.backward()
                values = {"loss": loss.detach().reshape(1), "logits": logits[0].detach()}
                for n, p in twin.named_parameters():
                    values.update({"gradient/" + part: g for part, g in split(n, p.grad, twin.config)})
                # A text of its own, short enough for the thresholds.
                short = twin_of(model, dtype)(input_ids=ids[:, :SHORT], use_cache=False).logits
                values["short_logits"] = short[0].detach()
            for key, value in values.items():
                if dtype == torch.float64:
                    out[key] = value.clone()
                else:
                    out["f32_error/" + key] = torch.tensor([relative(value, out[key])], dtype=torch.float64)
        save_file({k: v.contiguous() for k, v in out.items()}, folder / "golden.safetensors",
                  metadata=dict(VERSIONS, ids=json.dumps(TINY_IDS)))


# For every attribute of a configuration class, another value. None: the weights would no longer fit, or nothing but weights and
# text is named by it.
FLIPS = dict(
    vocab_size=None, hidden_size=None, intermediate_size=None, num_hidden_layers=None, num_attention_heads=None,
    num_key_value_heads=None, head_dim=None, hidden_act="relu", hidden_activation="relu", max_position_embeddings=32,
    initializer_range=0.5, rms_norm_eps=1e-2, use_cache=False, pad_token_id=3, bos_token_id=4, eos_token_id=[5, 6],
    pretraining_tp=2, tie_word_embeddings=None, rope_parameters=dict(rope_type="default", rope_theta=50.0), attention_bias=None,
    attention_dropout=0.5, resid_pdrop=0.5, embd_pdrop=0.5, mlp_bias=None, use_sliding_window=True, sliding_window=2,
    max_window_layers=0, layer_types=["full_attention", "sliding_attention"], original_max_position_embeddings=9,
    query_pre_attn_scalar=20, attn_logit_softcapping=0.7, final_logit_softcapping=None, use_bidirectional_attention=True)
# Attributes of every configuration that belong to no architecture.
COMMON = {"architectures", "model_type", "transformers_version", "dtype", "return_dict", "output_hidden_states", "output_attentions",
          "id2label", "label2id", "problem_type", "chunk_size_feed_forward", "is_encoder_decoder", "_name_or_path",
          "_attn_implementation_internal"}
ROTARY = [("rope_parameters", dict(rope_theta=100.0, **r)) for r in (
    dict(rope_type="linear", factor=2.0), dict(rope_type="dynamic", factor=2.0),
    dict(rope_type="yarn", factor=2.0, original_max_position_embeddings=8),
    dict(rope_type="longrope", short_factor=[1.0, 1.5], long_factor=[2.0, 3.0], original_max_position_embeddings=8, factor=4.0),
    dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16),
    dict(rope_type="proportional", factor=4.0), dict(rope_type="default", partial_rotary_factor=0.5))]
MORE_FLIPS = {
    "plain": [("hidden_act", "gelu_pytorch_tanh"), ("hidden_act", "quick_gelu"), ("sliding_window", 2),
              ("partial_rotary_factor", 0.5)] + ROTARY,
    "mistral": [("sliding_window", None), ("layer_types", ["full_attention", "full_attention"])] + ROTARY[2:4],
    "qwen2": [("max_window_layers", 1)],
    "qwen3": ROTARY[:3],
    "qwen2_window": [("use_sliding_window", False), ("sliding_window", None), ("max_window_layers", 2),
                     ("layer_types", ["full_attention", "full_attention"])],
    "phi3_plain": [("rope_parameters", dict(longrope(4), partial_rotary_factor=1.0)),
                   ("rope_parameters", dict(longrope(4, original_max_position_embeddings=64), rope_type="su")),
                   ("partial_rotary_factor", 0.5), ("partial_rotary_factor", 0.3)] + ROTARY[:1] + ROTARY[6:],
    "gemma2": [("hidden_act", "gelu_pytorch_tanh"), ("attn_logit_softcapping", None), ("final_logit_softcapping", 4.0),
               ("sliding_window", None), ("layer_types", ["sliding_attention", "sliding_attention"])],
}
FLIPPED = ["plain", "mistral", "qwen2", "qwen2_window", "qwen3", "phi3_plain", "gemma2"]


def flip(folder, config_class, name, value):
    """The last row of logits of a saved model whose config.json says something else."""
    weights = load_file(folder / "model.safetensors")
    description = json.loads((folder / "config.json").read_text())
    with exact(torch.float64):
        config = config_class.from_dict(dict(description, **{name: copy.deepcopy(value)}))
        config._attn_implementation = "eager"
        twin = MODELS[config_class](config)
        twin.load_state_dict(weights, strict=False)
        twin.tie_weights()
        twin = twin_of(twin, torch.float64).train()
        torch.manual_seed(1)
        return twin(input_ids=torch.tensor([TINY_IDS]), use_cache=False).logits[0, -1].tolist()


def flips():
    """What a changed attribute does to the logits; changes of shape, which would not fit the weights, are left out."""
    cases = []
    for model in FLIPPED:
        config_class, changes = TINY[model]
        attributes = set(config_class(**dict(copy.deepcopy(BASE), **copy.deepcopy(changes))).to_dict()) - COMMON
        assert attributes <= set(FLIPS), attributes - set(FLIPS)
        chosen = [(n, FLIPS[n]) for n in sorted(attributes) if FLIPS[n] is not None]
        for name, value in chosen + MORE_FLIPS.get(model, []):
            case = {"model": model, "attribute": name, "value": value}
            try:
                case["logits"] = flip(HERE / "tiny" / model, config_class, name, value)
            except Exception as e:
                case["error"] = str(e)[:200]
            cases.append(case)
    text = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "flips.json").write_text(json.dumps({"versions": VERSIONS, "ids": TINY_IDS})[:-1] + ', "cases": [\n' + text + "\n]}\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    tiny()
    flips()
    if len(sys.argv) > 1:
        smollm2(sys.argv[1])
