"""Text from a model, token by token."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

from . import _inlaid
from ._convert import Json, int32_buffer, options_json
from ._errors import FailedPrecondition
from ._handle import Handle, capsule_of
from ._model import Adapter, Model
from ._runtime import CancelToken
from ._tokenizer import Tokenizer


class Token(NamedTuple):
    id: int
    text: str    # what became final with this token; often empty


class Generator(Handle):
    """Generates with a model, with an adapter or without, and a key/value cache of its own.

    Options: max_new_tokens, max_length, temperature (0 = greedy), top_k, top_p, seed, stop (texts).
    After prompt(), iterating gives tokens; stream() and generate() give text.
    """

    _warn_when_dropped = True

    def __init__(self, model: Model, adapter: Adapter | None = None, options: Json | None = None, **more: Any) -> None:
        self._adopt(_inlaid.inlaid_generator_create(model._c, capsule_of(adapter), options_json(options, more)))
        self._model = model._c    # its tokenizer is needed for prompts that are text
        self._going = False

    def close(self) -> None:
        self._model = None
        super().close()

    def prompt(self, prompt: Any) -> None:
        """Starts a new sequence from text, a chat (list of messages), or token ids."""
        _inlaid.inlaid_generator_prompt(self._c, int32_buffer(self._ids(prompt), "ids"))
        self._going = True

    def next(self, cancel: CancelToken | None = None) -> Token | None:
        """The next token, or None when the sequence has ended."""
        if not self._going:
            self._c
            return None
        token_id, text, done = _inlaid.inlaid_generator_next(self._c, capsule_of(cancel))
        self._going = not done
        return Token(token_id, text.decode())

    def __iter__(self) -> "Generator":
        return self

    def __next__(self) -> Token:
        token = self.next()
        if token is None:
            raise StopIteration
        return token

    def stream(self, prompt: Any, cancel: CancelToken | None = None) -> Iterator[str]:
        """Pieces of the answer to a prompt, as they become final."""
        self.prompt(prompt)
        while (token := self.next(cancel)) is not None:
            if token.text:
                yield token.text

    def generate(self, prompt: Any, cancel: CancelToken | None = None) -> str:
        """The whole answer to a prompt."""
        return "".join(self.stream(prompt, cancel))

    def _ids(self, prompt: Any) -> Any:
        self._c
        if isinstance(prompt, str):
            return Tokenizer._of(_inlaid.inlaid_model_tokenizer(self._model)).encode(prompt, add_special=True)
        if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], dict):
            tokenizer = Tokenizer._of(_inlaid.inlaid_model_tokenizer(self._model))
            return tokenizer.render_chat(prompt, add_generation_prompt=True)["ids"]
        return prompt
