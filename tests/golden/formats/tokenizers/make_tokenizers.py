"""Makes the golden files of this folder: tiny SentencePiece and WordPiece tokenizers, alone and inside GGUF files, with the ids that
other people's libraries give.

    python make_tokenizers.py [PYTHON_WITH_XLLAMACPP]

Needs sentencepiece, transformers, tokenizers, gguf; never needed to build or test. The argument is an interpreter in which
llama_cpp_ids.py runs; without it the column of llama.cpp stays empty.

  NAME/tokenizer.model, tokenizer_config.json   SentencePiece models as they lie in a Hugging Face folder
  NAME.gguf                                     vocabularies in GGUF, with the metadata of a model but no tensors
  ids.json         for each of them one row a text: the ids and texts of the reference (transformers' fast tokenizer, for `bert` and
                   `t5` in GGUF the classes BertTokenizer and T5Tokenizer), and the ids of sentencepiece and llama.cpp where these differ
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, T5Tokenizer

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "text"))
from corpus import TEXTS, TRAINING  # noqa: E402

MORE = ["a \u2581 b", "\u2581x\u2581\u2581y", " \u2581 z", "<0x41><0x0A>", "<|user|> hi<|end|> there", "  <|user|>  <|end|>",
        "x<s> y</s>", "<s>[INST] hi [/INST] hello </s><s>[INST] more [/INST]", "ABC ＡＢＣ ﬁne", "tab\tto\u3000wide\u00a0space", "12 345 6789"]
CORPUS = [t for t in TEXTS if len(t) < 400] + MORE
TEMPLATE = "{% for m in messages %}<|user|>{{ m['content'] }}<|end|>{% endfor %}"
# A small character map instead of NFKC, whose table has 240 kB.
RULES = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u200b": "", "\ufb01": "fi", "\ufb02": "fl", "\u00bd": "1\u20442",
         "e\u0301": "\u00e9", "A\u030a": "\u00c5", "\u2122": "TM", **{chr(0xFF21 + i): chr(0x41 + i) for i in range(26)}}
LOWER = {**RULES, **{chr(0x41 + i): chr(0x61 + i) for i in range(26)}, "\u00c0": "\u00e0"}


def rules_file(folder, rules):
    path = pathlib.Path(folder) / "rules.tsv"
    path.write_text("".join(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
                            for a, b in rules.items()))
    return str(path)


def train(name, rules=None, **options):
    lines = [line for t in TRAINING * 4 + TEXTS for line in t.split("\n") if line.strip() and "\0" not in line]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        if rules:
            options["normalization_rule_tsv"] = rules_file(temporary, rules)
        else:
            options["normalization_rule_name"] = "identity"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=os.path.join(temporary, "m"), minloglevel=2, num_threads=1,
            character_coverage=0.98, **options)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(pathlib.Path(temporary, "m.model").read_bytes())
    for field in ("model_prefix", "input"):  # paths of this machine
        model.trainer_spec.ClearField(field)
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    (folder / "tokenizer.model").write_bytes(model.SerializeToString(deterministic=True))
    return model


def write_config(name, config):
    text = json.dumps(config, indent=1, ensure_ascii=False) + "\n"
    (HERE / name / "tokenizer_config.json").write_text(text, encoding="utf-8", newline="\n")


def rows_of(encode, decode, texts=CORPUS, **others):
    rows = []
    for index, text in enumerate(texts):
        ids = encode(text)
        row = {"text": text, "ids": ids, "decoded": decode(ids, False), "decoded_plain": decode(ids, True)}
        for key, column in others.items():
            if column is not None and column[index] != ids:
                row[key] = column[index]
        rows.append(row)
    return rows


def fast_rows(tokenizer, **others):
    backend = tokenizer.backend_tokenizer if hasattr(tokenizer, "backend_tokenizer") else tokenizer
    return rows_of(lambda t: backend.encode(t, add_special_tokens=False).ids,
                   lambda ids, skip: backend.decode(ids, skip_special_tokens=skip), **others)


def with_special(tokenizer):
    backend = tokenizer.backend_tokenizer if hasattr(tokenizer, "backend_tokenizer") else tokenizer
    return backend.encode("hello world", add_special_tokens=True).ids


# ---- tokenizer.model in a Hugging Face folder ----

def make_models(golden):
    bpe = dict(model_type="bpe", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True)
    train("llama", **bpe, byte_fallback=True, vocab_size=700, user_defined_symbols=["<|user|>", "<|end|>"])
    write_config("llama", {"add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "LlamaTokenizer"})
    train("bpe_rules", RULES, model_type="bpe", vocab_size=500, control_symbols=["<|user|>", "<|end|>"], pad_id=3, bos_id=-1)
    write_config("bpe_rules", {"add_eos_token": True, "eos_token": "</s>"})
    train("unigram", RULES, model_type="unigram", vocab_size=330, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_config("unigram", {"legacy": False})
    train("unigram_bytes", LOWER, model_type="unigram", vocab_size=560, byte_fallback=True, add_dummy_prefix=False,
          user_defined_symbols=["<|user|>", "<|end|>"])
    write_config("unigram_bytes", {})
    # The model of `llama` with a renamed piece and two tokens more.
    (HERE / "added").mkdir(exist_ok=True)
    shutil.copy(HERE / "llama" / "tokenizer.model", HERE / "added" / "tokenizer.model")

    def added(text, special):
        return {"content": text, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": special}
    write_config("added", {"added_tokens_decoder": {
        "0": added("<unk>", True), "1": added("<s>", True), "2": added("</s>", True), "3": added("<|user|>", True),
        "4": added("<|stop|>", True), "700": added("[INST]", False), "701": added("[/INST]", True)}, "eos_token": "<|stop|>"})
    for name in ("llama", "bpe_rules", "unigram", "unigram_bytes", "added"):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
            pathlib.Path(folder, "config.json").write_text('{"model_type": "llama"}')
            tokenizer = AutoTokenizer.from_pretrained(folder)
        own = sentencepiece.SentencePieceProcessor(model_file=str(HERE / name / "tokenizer.model"))
        golden[name] = {"rows": fast_rows(tokenizer, sentencepiece=[own.encode(t) for t in CORPUS]),
                        "with_special": with_special(tokenizer), "reference": type(tokenizer).__name__}
    # The same model without a word about its class.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "llama" / "tokenizer.model", folder)
        pathlib.Path(folder, "config.json").write_text('{"model_type": "llama"}')
        tokenizer = AutoTokenizer.from_pretrained(folder)
    own = sentencepiece.SentencePieceProcessor(model_file=str(HERE / "llama" / "tokenizer.model"))
    golden["llama_classless"] = {"rows": fast_rows(tokenizer, sentencepiece=[own.encode(t) for t in CORPUS]),
                                 "with_special": with_special(tokenizer), "reference": type(tokenizer).__name__}


# ---- vocabularies in GGUF ----

def writer(name, kind, architecture="llama"):
    w = gguf.GGUFWriter(HERE / f"{name}.gguf", architecture)
    w.add_block_count(1)
    w.add_context_length(64)
    w.add_embedding_length(32)
    w.add_feed_forward_length(64)
    w.add_head_count(2)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model(kind)
    return w


def close(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def add_pieces(w, name, padding=0):
    """Pieces as llama.cpp's converter lists them: bytes as such, user-defined symbols by type."""
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((HERE / name / "tokenizer.model").read_bytes())
    pad = range(len(model.pieces), len(model.pieces) + padding)
    w.add_token_list([p.piece for p in model.pieces] + [f"[PAD{i}]" for i in pad])
    w.add_token_scores([p.score for p in model.pieces] + [-10000.0] * padding)
    w.add_token_types([int(p.type) for p in model.pieces] + [int(gguf.TokenType.UNUSED)] * padding)
    return model


def make_ggufs():
    w = writer("llama", "llama")
    add_pieces(w, "llama", 4)
    w.add_tokenizer_pre("default")
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_chat_template(TEMPLATE)
    close(w)
    w = writer("llama_no_prefix", "llama")  # as little as possible is said
    add_pieces(w, "llama")
    w.add_add_space_prefix(False)
    w.add_add_bos_token(False)
    w.add_add_eos_token(True)
    close(w)
    w = writer("phi3", "llama", "phi3")
    add_pieces(w, "llama")
    w.add_bos_token_id(1)
    close(w)
    w = writer("gemma", "llama", "gemma2")
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((HERE / "llama" / "tokenizer.model").read_bytes())
    w.add_token_list([" " * len(p.piece) if len(p.piece) > 1 and not p.piece.strip("\u2581") else p.piece for p in model.pieces])
    w.add_token_scores([-1000.0 for p in model.pieces])  # as in the published files, scores say nothing about merges
    w.add_token_types([int(p.type) for p in model.pieces])
    w.add_add_space_prefix(False)
    w.add_bos_token_id(1)
    w.add_unk_token_id(0)
    close(w)
    w = writer("t5", "t5")
    model = add_pieces(w, "unigram")
    w.add_add_space_prefix(True)
    w.add_remove_extra_whitespaces(True)
    w.add_precompiled_charsmap(model.normalizer_spec.precompiled_charsmap)
    w.add_eos_token_id(1)
    w.add_pad_token_id(0)
    w.add_unk_token_id(2)
    close(w)
    for name, tokenizer in [("bert", bert(True)), ("bert_cased", bert(False))]:
        path = HERE / f"{name}.json"
        path.write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        w = writer(name, "bert")
        vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        # As llama.cpp's converter: "##" goes away, beginnings of words get a "▁", control tokens stay.
        w.add_token_list([t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t, _ in vocab])
        w.add_token_types([int(gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL) for t, _ in vocab])
        w.add_tokenizer_pre("default")
        for add, text in [(w.add_bos_token_id, "[CLS]"), (w.add_sep_token_id, "[SEP]"), (w.add_unk_token_id, "[UNK]"),
                          (w.add_pad_token_id, "[PAD]"), (w.add_mask_token_id, "[MASK]")]:
            add(special.index(text))
        if name == "bert_cased":
            w.add_bool("tokenizer.ggml.normalizer.lowercase", False)
        close(w)


def bert(lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(TRAINING * 4 + TEXTS, trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]])
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def llama_cpp(names, interpreter):
    if not interpreter:
        return {name: None for name in names}
    jobs = {name: {"gguf": str(HERE / f"{name}.gguf"), "texts": CORPUS} for name in names}
    done = subprocess.run([interpreter, str(HERE / "llama_cpp_ids.py")], input=json.dumps(jobs), capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def make_gguf_rows(golden, interpreter):
    names = ["llama", "llama_no_prefix", "phi3", "gemma", "t5", "bert", "bert_cased"]
    theirs = llama_cpp(names, interpreter)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((HERE / "unigram" / "tokenizer.model").read_bytes())
    for name in names:
        if name == "t5":  # transformers' import of GGUF leaves the character map out
            tokenizer = T5Tokenizer(vocab=[(p.piece, p.score) for p in model.pieces], extra_ids=0, additional_special_tokens=None,
                                    _spm_precompiled_charsmap=model.normalizer_spec.precompiled_charsmap)
        elif name.startswith("bert"):
            tokenizer = Tokenizer.from_file(str(HERE / f"{name}.json"))
        elif name == "llama_no_prefix":  # transformers' import ignores add_space_prefix
            from transformers import LlamaTokenizer
            from transformers.integrations.gguf.gguf_tokenizer_mapping import add_gguf_special_tokens, get_merges
            pieces = sentencepiece_model_pb2.ModelProto()
            pieces.ParseFromString((HERE / "llama" / "tokenizer.model").read_bytes())
            parts = {"tokens": [p.piece for p in pieces.pieces], "scores": [p.score for p in pieces.pieces],
                     "token_type": [int(p.type) for p in pieces.pieces], "tokenizer_type": "llama"}
            tokenizer = LlamaTokenizer(vocab={t: i for i, t in enumerate(parts["tokens"])}, merges=get_merges(parts),
                                       add_prefix_space=False, add_eos_token=True)
            tokenizer = add_gguf_special_tokens(tokenizer, parts)
        else:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(str(HERE), gguf_file=f"{name}.gguf")
        rows = fast_rows(tokenizer, llama_cpp=theirs[name])
        if name == "gemma":  # GemmaTokenizer adds a "<pad>" that is not in the file
            rows = [row for row in rows if max(row["ids"], default=0) < 700]
        golden[name + ".gguf"] = {"rows": rows, "with_special": with_special(tokenizer),
                                  "reference": type(tokenizer).__name__}


def main():
    golden = {}
    make_models(golden)
    make_ggufs()
    make_gguf_rows(golden, sys.argv[1] if len(sys.argv) > 1 else None)
    text = "{\n" + ",\n".join(
        json.dumps(name) + ': {"reference": ' + json.dumps(entry["reference"]) + ', "with_special": ' + json.dumps(entry["with_special"]) +
        ', "rows": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in entry["rows"]) + "\n]}"
        for name, entry in golden.items()) + "\n}\n"
    (HERE / "ids.json").write_text(text, encoding="utf-8", newline="\n")
    for name, entry in golden.items():
        counts = {key: sum(key in row for row in entry["rows"]) for key in ("sentencepiece", "llama_cpp")}
        print(f"{name}: {len(entry['rows'])} rows; different in {counts}; {entry['with_special']}")


if __name__ == "__main__":
    main()
