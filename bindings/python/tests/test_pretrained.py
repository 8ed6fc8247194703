"""The pretrained model, SmolLM2-135M-Instruct, through Python."""

import os

import pytest

import inlaid

DATA = os.environ.get("INLAID_TEST_DATA", "/nowhere")
MODEL = os.path.join(DATA, "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def model():
    with inlaid.Runtime() as runtime, inlaid.Model.load(runtime, MODEL, weights_dtype="as_stored") as m:
        yield m


def test_encode(model):
    assert model.tokenizer.encode("Hello, world!") == [19556, 28, 905, 17]


def test_greedy_answer(model):
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    with inlaid.Generator(model, max_new_tokens=32) as generator:
        pieces = list(generator.stream(chat))
        assert "".join(pieces) == "The capital of France is Paris."
        assert len(pieces) > 3
