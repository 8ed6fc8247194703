"""Makes sentencepiece.json: tokenizer.json files that transformers' own classes build from the SentencePiece models of
../formats/tokenizers, with character maps ("Precompiled"), byte fallback and every way to put a space in front; and their ids.

    python make_sentencepiece.py

Needs transformers and sentencepiece; never to build or test.
"""
import json
import pathlib

from corpus import TEXTS
from make import encodings, whole_offsets, write
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken
from transformers import AlbertTokenizer, GemmaTokenizer, LlamaTokenizer, T5Tokenizer
from transformers.convert_slow_tokenizer import SpmConverter
from transformers.tokenization_utils_base import generate_merges

HERE = pathlib.Path(__file__).parent
MODELS = HERE.parent / "formats" / "tokenizers"


def read(name):
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((MODELS / name / "tokenizer.model").read_bytes())
    return model, [(p.piece, p.score) for p in model.pieces], {p.piece: i for i, p in enumerate(model.pieces)}


def main():
    model, pieces, _ = read("unigram")
    charsmap = model.normalizer_spec.precompiled_charsmap
    t5 = T5Tokenizer(vocab=pieces, extra_ids=3, _spm_precompiled_charsmap=charsmap)
    # ALBERT's names for the special pieces; its own unknown piece is number 1.
    names = {0: "<pad>", 1: "<unk>", 2: "[CLS]", 3: "[SEP]"}
    albert = AlbertTokenizer(vocab=[(names.get(i, p), s) for i, (p, s) in enumerate(pieces)] + [("[MASK]", 0.0), ("\u2581", -3.0)],
                             _spm_precompiled_charsmap=charsmap)
    lower, lower_pieces, _ = read("unigram_bytes")
    unigram_bytes = SpmConverter.build_tokenizer_from_spm_proto(lower, lower_pieces)
    _, _, vocab = read("llama")
    llama = LlamaTokenizer(vocab=vocab, merges=generate_merges(vocab), add_bos_token=True)
    llama.add_tokens([AddedToken("<|user|>", normalized=False, special=False), AddedToken("<|end|>", normalized=False, special=True)])
    gemma = GemmaTokenizer(vocab=vocab, merges=generate_merges(vocab), bos_token="<s>", eos_token="</s>", pad_token="<unk>",
                           mask_token="<unk>")
    golden = {}
    texts = [t for t in TEXTS if len(t) < 200] + ["<|user|> hi<|end|> there", "x</s> y", " \u2581 z", "ABC ＡＢＣ ﬁne ½"]
    for name, tokenizer in [("t5", t5), ("albert", albert), ("unigram_bytes", unigram_bytes), ("llama", llama), ("gemma", gemma)]:
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        (HERE / "tokenizers" / f"{name}.json").write_text(json.dumps(json.loads(backend.to_str()), ensure_ascii=False) + "\n",
                                                          encoding="utf-8", newline="\n")
        plain = whole_offsets(backend)
        golden[name] = encodings(plain, texts, False) + encodings(plain, texts[:8], True)
    write("sentencepiece.json", golden)


if __name__ == "__main__":
    main()
