#!/usr/bin/env python3
"""Makes dictionaries/NAME.dict: the words of each format, in libFuzzer's form, for the driver and for libFuzzer alike.

Run: python3 make_dictionaries.py     (standard library only; the result is committed)
"""
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent

JSON = ['{', '}', '[', ']', ':', ',', '"', '"":', 'null', 'true', 'false', '\\u0000', '\\ud800', '[[[[[[[[', '{"a":', '1e999', '-0',
        '\xff', '\xc3\xa9', '\xef\xbf\xbd']
CUT = ["\n--8<--\n"]
TEMPLATE = """{{ }} {% %} {%- -%} {# #} |tojson |trim |list |length |join |map(' |selectattr(' |sort |batch(2) |slice(3) |reverse
|replace('a','b') |indent(9) |format |default |items |dictsort |unique |groupby(' |tojson(indent=9) .split( .strip() .items() .center(
.join( .format( .splitlines() .replace( range(99999) namespace() raise_exception( strftime_now(' cycler( joiner( loop.index loop.last
loop.cycle( messages message.content add_generation_prompt tools bos_token eos_token none true not in is defined
is string and or ~ ** // % * 999999999 == != <= [::-1] [:3] [0] [-1] 'a' "b" -9223372036854775808 0.1 1e308""".split()
TEMPLATE += ["{% for x in ", "{% endfor %}", "{% for x in y recursive %}", "{% if x %}", "{% else %}", "{% endif %}", "{% set x = ",
             "{% set x %}", "{% endset %}", "{% macro f(x) %}", "{% endmacro %}", "{{ f(f) }}", "{% call f() %}", "{% endcall %}",
             "{% generation %}", "{% endgeneration %}", "{% break %}", "{% continue %}", "{% filter upper %}", "{% endfilter %}",
             "{% raw %}", "{% endraw %}", "{% include 'chat' %}", "{% import 'chat' as c %}", "{% extends 'chat' %}", "{% block a %}",
             "{% do x %}", "{% with x=1 %}", "{% endwith %}"]


def strings_of(*files):
    """String literals of our own readers: keys and values that they know."""
    words = set()
    for file in files:
        text = (SOURCE / file).read_text()
        words |= {w for w in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) if re.fullmatch(r"[\w.<>|/-]{2,40}", w)}
    return sorted(words)


def quoted(words):
    return ['"' + w + '"' for w in words] + ['"' + w + '":' for w in words]


def of_golden(name):
    text = (SOURCE / "tests/golden/text/tokenizers" / name).read_text()
    return sorted(set(re.findall(r'"([a-z_]{3,30})":', text)) | set(re.findall(r'"type": ?"(\w+)"', text)))


WORDS = {
    "adapter_config": JSON + quoted(strings_of("sdk/nn/adapter.cc")) + ["(.*)*", "{1,99}", "(a|b)", "[^.]", "\\\\d", "(?:", "(?=", "\\\\1"],
    "chat_template": TEMPLATE + CUT + JSON + quoted(["role", "content", "user", "assistant", "system", "tool_calls", "function"]),
    "checkpoint": CUT + ["index-00000.pb", "state-00000-00000.safetensors", "w", "w.moment_1", "json", "../x", "/", "\x00", "\x08\x01",
                         "\x12\x00", "\x4a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                         "step-000012", "latest", "best"],
    "config": JSON + CUT + quoted(strings_of("sdk/config/table.cc", "sdk/config/rules.cc")),
    "data": JSON + quoted(strings_of("sdk/data/conversation.cc")) + ["\n", "\r\n", "\xef\xbb\xbf", "a.jsonl", "a.json", "a.txt",
             " assistant error auto\n", " all drop text\n", " completion left chat\n", " last_assistant right alpaca\n", "<|im_end|>"],
    "gguf": strings_of("sdk/formats/gguf_config.cc", "sdk/formats/gguf_file.cc", "sdk/formats/gguf_tokenizer.cc",
                       "sdk/formats/gguf_vocabulary.cc", "sdk/formats/gguf_pieces.cc", "sdk/formats/llama_names.cc") +
            ["GGUF", "\x09\x00\x00\x00\x08\x00\x00\x00", "\x09\x00\x00\x00\x09\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff",
             "\xff\xff\xff\xff\xff\xff\xff\x7f", "[PAD9]", "llama.block_count", "tokenizer.ggml.tokens"],
    "hugging_face": JSON + CUT + quoted(strings_of("sdk/formats/hugging_face.cc", "sdk/formats/tokenizer_config.cc",
                                                  "sdk/formats/fused.cc", "sdk/models/decoder_config.cc")) + ["../", "__metadata__"],
    "jobs": JSON + CUT + quoted(["created", "state", "text", "step", "total_steps", "updated", "latest", "best", "running", "done",
                                 "step-000007", "config"]),
    "json": JSON,
    "model_config": JSON + quoted(strings_of("sdk/models/decoder_config.cc", "sdk/models/rotary_config.cc",
                                             "sdk/formats/llama_geometry.cc")),
    "report": JSON + CUT + ["\n"] + quoted(strings_of("sdk/train/report/report.cc", "sdk/train/report/run_record.cc") +
                                           ["memory_peak_x", "<script>", "1e308", "num_rows"]),
    "safetensors": JSON + quoted(strings_of("sdk/formats/safetensors_header.cc")) + ["__metadata__", "\xff\xff\xff\xff\xff\xff\xff\xff"],
    "sentencepiece": JSON + CUT + quoted(strings_of("sdk/formats/sentencepiece_model.cc")) + ["\xe2\x96\x81", "<0x41>", "\x18\x06",
                      "\x15\x00\x00\xc0\x7f", "\x15\x00\x00\x80\x7f", "\x18\x02", "\x98\x02\x01", "\x12\x02", "\x0a\x00"],
    "token_cache": JSON + ["INLAIDTC", "\x00" * 8, "\xff" * 8, "\x9c\xff\xff\xff"],
    "tokenizer_json": JSON + quoted(sorted(set().union(*[of_golden(n) for n in ("albert.json", "byte_bpe.json", "gemma.json", "t5.json",
                      "unigram_bytes.json", "word_piece.json")]))) + ["\\\\p{L}+", "(a*)*b", "(?!\\\\S)", "{0,99999}", "\\u2581", "<0x41>"],
}


def escaped(word):
    raw = word.encode("latin-1") if all(ord(c) < 256 for c in word) else word.encode()
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\x{b:02x}" for b in raw)


for name, words in WORDS.items():
    (HERE / "dictionaries" / (name + ".dict")).write_text("".join(f'"{escaped(w)}"\n' for w in dict.fromkeys(words)))
