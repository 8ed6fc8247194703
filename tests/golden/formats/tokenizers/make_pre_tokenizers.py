"""Makes pre_tokenizers.json: the ids that each kind of byte-level pre-tokenizer gives over one vocabulary.

    python make_pre_tokenizers.py [PYTHON_WITH_XLLAMACPP]

Needs tokenizers, transformers and gguf; never needed to build or test. The merges were learned on whole lines, so that they reach
across every place at which a pre-tokenizer may split. The expressions are written here as the models' own tokenizer.json have them;
five of them are also taken from transformers, and must be equal. llama.cpp's ids, by name, are compared; where they differ the rows
are listed in "llama_cpp_differs".
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.integrations.gguf import gguf_tokenizer_mapping as theirs

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "text"))
from corpus import TEXTS, TRAINING  # noqa: E402

MORE = ["I'LL we'Ve IT'S don'T 'tis rock'n'roll", "1 12 123 1234 12345 123456 1234567 12345678 1,234,567.89", "٣٤٥ ½⅓ Ⅷ①②③④", "price:$12,345.67!!!\r\n\r\n  next",
        "हिन्दी में लिखना বাংলা తెలుగు", "HelloWorld camelCase XMLHttpRequest iPhone ÉCOLE École", "a/b//c///d\n/e", "<sentinel:12><x> IMGIMGABCZ",
        "日本語とkanji混在123テスト", "한국어 텍스트 가나다", "\t\t  \t x\n \n\n  y   ", "foo_bar __init__ --flag=1 #tag @user", "çok güzel'in Türkiye'nin",
        "    four\n        eight", "“quoted” ‘single’ …", "x" * 30 + " " * 20 + "y", "a , b . c ! d ? e", "e\u0301 \u0301x",
        "'llama 'start don'tcha 'SLOW we'vet 'Reese", "12345678901 and 1234.5678 or 007", "The whole words capital Japan Tokyo functional 2024 !!"]
CORPUS = [t for t in TEXTS if len(t) < 130] + MORE

SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
LLAMA3 = theirs._LLAMA3_SPLIT
QWEN2 = theirs._QWEN2_SPLIT
GPT4O = theirs._GPT4O_SPLIT
HAN = "[一-龥぀-ゟ゠-ヿ]+"
MARKS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
LATIN = ("\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼ"
         "ℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GRANITE = (r"[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
           r"|[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
           r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
WIDE = r"\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
DEEPSEEK3 = r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# name: (expressions, ignore_merges, NFC, other names); "gpt2" and "digits" are built into tokenizers.
KINDS = {
    "gpt-2": (["gpt2"], False, False, "phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0 mellum "
              "modern-bert mpt olmo jais trillion granite-docling exaone4"),
    "smollm": (["digits", "gpt2"], False, False, "starcoder refact command-r codeshell exaone minerva-7b mellum2"),
    "default": ([r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], False, False, ""),
    "llama-bpe": ([LLAMA3], True, False, "llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"),
    "qwen2": ([QWEN2], False, True, ""),
    "stablelm2": ([QWEN2], False, False, "deepseek-r1-qwen kormo f2llmv2 megrez hunyuan solar-open grok-2"),
    "dbrx": ([LLAMA3], False, False, "smaug-bpe chatglm-bpe"),
    "glm4": ([LLAMA3], True, False, "glm5"),
    "qwen35": ([theirs._QWEN35_SPLIT], False, False, ""),
    "minicpm5": ([r"\p{N}{1,3}", SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"], True, False, ""),
    "jais-2": ([SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" + WIDE], False, False, ""),
    "deepseek-llm": (["[\r\n]", LATIN, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", "[一-龥ࠀ-一가-퟿]+", r"\p{N}+"], False, False, ""),
    "deepseek-coder": (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"], False, False, ""),
    "deepseek-v3": ([r"\p{N}{1,3}", HAN, MARKS + DEEPSEEK3], False, False, "hunyuan-dense joyai-llm hy_v4"),
    "spark2_5": ([r"\p{N}{1,3}", HAN, MARKS + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"], False, False, ""),
    "youtu": (["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", CASED], True, False, ""),
    "falcon": ([r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"], False, False, ""),
    "bloom": ([BLOOM], False, False, "poro-chat gpt3-finnish"),
    "viking": ([BLOOM, r"\p{N}"], False, False, ""),
    "tekken": ([theirs._TEKKEN_SPLIT], True, False, ""),
    "chameleon": (["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2], False, False, ""),
    "gpt-4o": ([GPT4O], False, False, "llama4 kanana2 talkie minimax-m2"),
    "granite-embed-multi-97m": ([GRANITE], True, False, ""),
    "tiny_aya": ([r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O], False, False, "cohere2moe"),
    "bailingmoe": ([r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"], False, False,
                   "bailingmoe2 llada-moe"),
    "seed-coder": ([SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"], False, False, ""),
    "ufakzeka": ([r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"], False, False, ""),
    "afmoe": ([r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|\z))",
               "[一-鿿㐀-䶿\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-⿟\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff가-\ud7af\u1100-\u11ff]+",
               MARKS + DEEPSEEK3], False, False, ""),
    "superbpe": ([r"\p{N}+", r"(?=(\d{3})+(?!\d))"], False, False, ""),
    "laguna": ([r"[^\n]+|[\n]+", QWEN2], False, False, ""),
    "exaone-moe": ([SUFFIX + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"], False, False, ""),
}
REFUSED = "gemma4 granite-embed-multi-311m mmbert sarvam-moe whitespace kimi-k2 k2-horizon"


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def trained():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = byte_level(False)
    lines = [t for t in TRAINING * 3 + CORPUS[:-1] * 3 + CORPUS[-3:-2] * 20 if "<|" not in t]  # llama.cpp knows special tokens by their text
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1100, show_progress=False, max_token_length=12,
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(t.to_str())["model"]
    # Words to which no merges lead: only ignore_merges finds them.
    for word in ["\u0120whole", "\u0120Japan", "\u0120Tokyo", "\u0120functional", "The", "789", "\u0120!!", "four"]:
        model["vocab"].setdefault(word, len(model["vocab"]))
    return model


def build(model, splits, ignore_merges, nfc):
    t = Tokenizer(models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]], ignore_merges=ignore_merges))
    parts = []
    for regex in splits:
        if regex == "digits":
            parts.append(pre_tokenizers.Digits(individual_digits=True))
        elif regex != "gpt2":
            parts.append(pre_tokenizers.Split(Regex(regex), behavior="isolated"))
    t.pre_tokenizer = pre_tokenizers.Sequence(parts + [byte_level("gpt2" in splits)])
    if nfc:
        t.normalizer = normalizers.NFC()
    t.decoder = decoders.ByteLevel()
    return t


def write_gguf(path, model, name):
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(name)
    tokens = [t for t, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    w.add_token_list(tokens)
    w.add_token_types([1] * len(tokens))
    w.add_token_merges([" ".join(m) for m in model["merges"]])
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    model = trained()
    ids = {name: [build(model, *kind[:3]).encode(t).ids for t in CORPUS] for name, kind in KINDS.items()}
    names = {name: [name, *kind[3].split()] for name, kind in KINDS.items()}
    differs = {}
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            jobs = {}
            for kind, all_names in names.items():
                for name in all_names:
                    path = str(pathlib.Path(folder, name + ".gguf"))
                    write_gguf(path, model, name)
                    jobs[name] = {"gguf": path, "texts": CORPUS}
            done = subprocess.run([sys.argv[1], str(HERE / "llama_cpp_ids.py")], input=json.dumps(jobs), capture_output=True, text=True, check=True)
            answer = json.loads(done.stdout)
            for kind, all_names in names.items():
                for name in all_names:
                    if answer[name][3] is None:
                        print(name, "is refused by llama.cpp")
                        continue
                    rows = [i for i, (a, b) in enumerate(zip(answer[name], ids[kind])) if a != b]
                    if name == kind:
                        differs[kind] = rows
                    elif rows != differs[kind]:
                        print(name, "differs from", kind, rows, differs[kind])
    lines = ['"model": ' + json.dumps(model, ensure_ascii=False), '"texts": ' + json.dumps(CORPUS, ensure_ascii=False),
             '"names": ' + json.dumps(names), '"refused": ' + json.dumps(REFUSED.split()), '"llama_cpp_differs": ' + json.dumps(differs),
             '"ids": {\n' + ",\n".join(json.dumps(k) + ": " + json.dumps(v, separators=(",", ":")) for k, v in ids.items()) + "\n}"]
    (HERE / "pre_tokenizers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")
    print({k: len(v) for k, v in differs.items()})


if __name__ == "__main__":
    main()
