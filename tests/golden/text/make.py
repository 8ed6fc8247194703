"""Makes the golden files of this folder with the oracle packages tokenizers, transformers, Jinja2 and gguf.

    python make.py [SmolLM2-135M-Instruct.Q4_1.gguf]

Without the model, smollm2.json stays as it is. Needed only to remake the files, never to build or test.
"""
import json
import pathlib
import sys

from corpus import CHATS, TEXTS, TRAINING, WEATHER
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

HERE = pathlib.Path(__file__).parent
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def write(name, value):
    # One item a line, so that a change shows as such.
    if isinstance(value, list):
        text = "[\n" + ",\n".join(json.dumps(v, ensure_ascii=False) for v in value) + "\n]\n"
    else:
        text = "{\n" + ",\n".join(
            json.dumps(k) + ": [\n" + ",\n".join(json.dumps(v, ensure_ascii=False) for v in vs) + "\n]"
            for k, vs in value.items()) + "\n}\n"
    (HERE / name).write_text(text, encoding="utf-8", newline="\n")


# ---- small tokenizers of every kind ----

def byte_level_bpe():
    """GPT-2 and SmolLM2: digits alone, byte level, offsets that leave out the space (which the engine undoes)."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t.train_from_iterator(TRAINING * 4 + TEXTS, trainers.BpeTrainer(
        vocab_size=600, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def llama3_like():
    """Llama 3: ignore_merges, a regex with look-ahead, a begin token by template, an added token that is not special."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TRAINING * 4 + TEXTS, trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([AddedToken("<think>", special=False, normalized=False),
                  AddedToken("</think>", special=False, normalized=False)])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])])
    return t


def byte_fallback_bpe():
    """Llama 2: spaces as a letter, byte tokens for what is unknown."""
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    specials = ["<unk>", "<s>", "</s>"]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trained.train_from_iterator(TRAINING * 4 + TEXTS, trainers.BpeTrainer(
        vocab_size=500, special_tokens=specials + [f"<0x{b:02X}>" for b in range(256)], show_progress=False))
    model = json.loads(trained.to_str())["model"]
    t.model = models.BPE(model["vocab"], [tuple(m) for m in model["merges"]], byte_fallback=True, unk_token="<unk>",
                         fuse_unk=True)
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                     special_tokens=[("<s>", 1)])
    return t


def word_piece():
    """BERT: lower case, no accents, ## pieces."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(TRAINING * 4 + TEXTS, trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def unigram():
    """T5 and XLM-R: Viterbi over scores, Metaspace."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.train_from_iterator(TRAINING * 4 + TEXTS, trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                     special_tokens=[("</s>", 1)])
    return t


def whole_offsets(tokenizer):
    """The same tokenizer without truncation and padding, and with the space in the range of its token."""
    def untrim(processor):
        if processor and "trim_offsets" in processor:
            processor["trim_offsets"] = False
        for part in (processor or {}).get("processors", []):
            untrim(part)
    value = json.loads(tokenizer.to_str())
    untrim(value["post_processor"])
    result = Tokenizer.from_str(json.dumps(value))
    result.no_truncation()
    result.no_padding()
    return result


def encodings(tokenizer, texts, add_special):
    rows = []
    for text in texts:
        e = tokenizer.encode(text, add_special_tokens=add_special)
        at = [0]  # character to byte
        for c in text:
            at.append(at[-1] + len(c.encode("utf-8")))
        rows.append({"text": text, "add_special": add_special, "ids": e.ids, "begin": [at[b] for b, _ in e.offsets],
                     "end": [at[b] for _, b in e.offsets], "decoded": tokenizer.decode(e.ids, skip_special_tokens=False),
                     "decoded_plain": tokenizer.decode(e.ids, skip_special_tokens=True)})
    return rows


def make_tokenizers():
    golden = {}
    for name, make in [("byte_bpe", byte_level_bpe), ("llama3_like", llama3_like), ("byte_fallback", byte_fallback_bpe),
                       ("word_piece", word_piece), ("unigram", unigram)]:
        t = make()
        if name == "word_piece":  # must have no effect
            t.enable_truncation(8)
            t.enable_padding(length=32)
        path = HERE / "tokenizers" / f"{name}.json"
        path.write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        plain = whole_offsets(t)
        texts = [x for x in TEXTS if len(x) < 400]
        golden[name] = encodings(plain, texts, False) + encodings(plain, texts[:12], True)
    write("tokenizers.json", golden)


# ---- renders ----

EXTRAS = {
    "chatml": [{}], "trimming": [{}], "generation": [{}],
    "llama3_like": [{"date_string": "26 Jul 2024"}, {"date_string": "1 Jan 2025", "tools": [WEATHER]}],
    "qwen3_like": [{}, {"tools": [WEATHER], "enable_thinking": False}],
    "inst": [{}, {"tools": [WEATHER]}],
}


def render(template, messages, extra, add_generation_prompt, **more):
    extra = dict(extra)
    return render_jinja_template([messages], chat_template=template, tools=extra.pop("tools", None),
                                 documents=extra.pop("documents", None), add_generation_prompt=add_generation_prompt,
                                 **more, **SPECIAL_TOKENS, **extra)


def make_renders():
    rows, generation = [], []
    for name, extras in EXTRAS.items():
        template = (HERE / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
        for chat, messages in CHATS.items():
            for extra in extras:
                for prompt in (False, True):
                    row = {"template": name, "chat": chat, "messages": messages, "extra": extra,
                           "add_generation_prompt": prompt}
                    try:
                        row["rendered"] = render(template, messages, extra, prompt)[0][0]
                    except Exception as error:  # noqa: BLE001 - that it fails is the expectation
                        row["error"] = str(error)
                    rows.append(row)
        if name == "generation":
            for chat, messages in CHATS.items():
                (text,), (spans,) = render(template, messages, {}, False, return_assistant_tokens_mask=True)
                to_byte = lambda n: len(text[:n].encode("utf-8"))  # noqa: E731
                generation.append({"chat": chat, "messages": messages, "rendered": text,
                                   "spans": [[to_byte(b), to_byte(e)] for b, e in spans]})
    write("renders.json", rows)
    write("generation.json", generation)


def make_expressions():
    """Corners of Jinja2 in the environment of transformers: one small template each."""
    from expressions import EXPRESSIONS, VARIABLES
    rows = []
    for source in EXPRESSIONS:
        row = {"template": source}
        try:
            row["rendered"] = _compile_jinja_template(source).render(**VARIABLES)
        except Exception as error:  # noqa: BLE001
            row["error"] = str(error)
        rows.append(row)
    write("expressions.json", {"variables": [VARIABLES], "rows": rows})


# ---- SmolLM2 from its GGUF ----

def make_smollm2(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    strings = lambda key: [bytes(fields[key].parts[i]).decode() for i in fields[key].data]  # noqa: E731
    tokens, merges = strings("tokenizer.ggml.tokens"), strings("tokenizer.ggml.merges")
    kinds = [int(fields["tokenizer.ggml.token_type"].parts[i][0]) for i in fields["tokenizer.ggml.token_type"].data]
    template = strings("tokenizer.chat_template")[0]
    t = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s, k in zip(tokens, kinds) if k == 3])
    specials = {"bos_token": tokens[1], "eos_token": tokens[2], "unk_token": tokens[0], "pad_token": tokens[2]}
    texts = [{"text": x, "ids": t.encode(x, add_special_tokens=False).ids} for x in TEXTS]
    renders = []
    for messages in CHATS.values():
        for prompt in (False, True):
            row = {"messages": messages, "extra": {}, "add_generation_prompt": prompt}
            row["rendered"] = render_jinja_template([messages], chat_template=template, add_generation_prompt=prompt,
                                                    **specials)[0][0]
            row["ids"] = t.encode(row["rendered"], add_special_tokens=False).ids
            renders.append(row)
    write("smollm2.json", {"texts": texts, "renders": renders})


if __name__ == "__main__":
    make_tokenizers()
    make_renders()
    make_expressions()
    if len(sys.argv) > 1:
        make_smollm2(sys.argv[1])
