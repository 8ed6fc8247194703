"""Tokenizer, chat template and streaming decode, with text that is not ASCII."""

import array

import pytest

import inlaid
import tiny

NASTY = ["", " ", "a\0b", "Grüße", "日本語のテキスト", "👩‍👩‍👧‍👦 family", "tab\tnew\nline\r\n", "a" * 500, "\ufeffmark", "e\u0301"]


@pytest.fixture
def tokenizer(runtime):
    with inlaid.Tokenizer(runtime, tiny.TOKENIZER) as t:
        yield t


@pytest.mark.parametrize("text", NASTY)
def test_round_trip_and_streaming(tokenizer, text):
    ids = tokenizer.encode(text)
    assert all(0 <= i < tokenizer.vocab_size for i in ids)
    assert tokenizer.decode(ids) == text
    decoder = tokenizer.decoder()
    pieces = [decoder.push(i) for i in ids] + [decoder.finish()]
    assert "".join(pieces) == text


def test_ids_in_every_form(tokenizer):
    ids = tokenizer.encode("the old house")
    for form in (ids, tuple(ids), iter(ids), array.array("i", ids), array.array("q", ids), memoryview(array.array("i", ids)),
                 memoryview(array.array("i", [x for i in ids for x in (i, 0)]))[::2]):
        assert tokenizer.decode(form) == "the old house"
    for wrong in (b"bytes", array.array("f", [1.0]), [2**40], ["a"], 17, [1.5]):
        with pytest.raises(inlaid.InvalidArgument):
            tokenizer.decode(wrong)
    with pytest.raises(inlaid.InvalidArgument):
        tokenizer.decode([10_000_000])


def test_special_tokens(tokenizer):
    ids = tokenizer.encode("<|im_start|>x<|im_end|>")
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.decode(ids, skip_special=True) == "x"
    assert tokenizer.vocab_size == 600


def test_render_chat(runtime, tmp_path):
    with pytest.raises(inlaid.FailedPrecondition):
        inlaid.Tokenizer(runtime, tiny.TOKENIZER).render_chat([{"role": "user", "content": "x"}])
    with open(tiny.CHATML, encoding="utf-8") as file:
        template = file.read()
    folder = tmp_path / "model"
    with inlaid.Model(runtime, tiny.config(tmp_path)) as model:
        model.export(folder)
    with inlaid.Model.load(runtime, folder, tokenizer=tiny.TOKENIZER, chat_template=template) as model:
        messages = [{"role": "user", "content": "Grüße 👋"}, {"role": "assistant", "content": "日本"}]
        rendered = model.tokenizer.render_chat(messages)
        spans = {s["message"]: rendered["text"].encode()[s["begin"]:s["end"]].decode() for s in rendered["spans"]}
        assert spans[1].startswith("日本")
        assert model.tokenizer.decode(rendered["ids"]) == rendered["text"]
        prompt = model.tokenizer.render_chat(messages[:1], add_generation_prompt=True)
        assert prompt == model.tokenizer.render_chat(messages[:1], '{"add_generation_prompt": true}')
        assert rendered["text"].startswith(prompt["text"])
        with inlaid.Generator(model, max_new_tokens=3) as generator:
            assert generator.generate(messages[:1]) == generator.generate(prompt["ids"])


def test_unicode_paths_and_messages(runtime, tmp_path):
    folder = tmp_path / "Größe 日本 👋"
    with pytest.raises(inlaid.NotFound) as e:
        inlaid.Model.load(runtime, folder)
    assert folder.name in str(e.value)
    with inlaid.Model(runtime, tiny.config(tmp_path)) as model:
        model.export(folder)
    with inlaid.Model.load(runtime, folder, tokenizer=tiny.TOKENIZER) as model:
        assert model.tokenizer.encode("x")
