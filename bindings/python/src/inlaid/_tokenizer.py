"""Tokenizer, chat template, streaming decoder."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Sequence, Union

from . import _inlaid
from ._convert import Json, PathLike, int32_buffer, int32_list, options_json, path_text, to_json
from ._handle import Handle
from ._runtime import Runtime

Messages = Union[str, Sequence[Mapping[str, Any]]]


class Tokenizer(Handle):
    """The tokenizer of a model folder, GGUF file or tokenizer.json. May be used by many threads at once."""

    def __init__(self, runtime: Runtime, path: PathLike) -> None:
        self._adopt(_inlaid.inlaid_tokenizer_open(runtime._c, path_text(path)))

    def encode(self, text: str, add_special: bool = False) -> List[int]:
        """Ids of text; with add_special also what the tokenizer puts around a text (BOS and the like)."""
        return int32_list(_inlaid.inlaid_tokenizer_encode(self._c, text.encode(), bool(add_special)))

    def decode(self, ids: Any, skip_special: bool = False) -> str:
        return _inlaid.inlaid_tokenizer_decode(self._c, int32_buffer(ids, "ids"), bool(skip_special)).decode()

    def render_chat(self, messages: Messages, options: Json | None = None, **more: Any) -> Dict[str, Any]:
        """Renders messages with the model's template: {"text", "ids", "spans"}.

        Options: add_generation_prompt (bool), extra (variables of the template).
        """
        return json.loads(_inlaid.inlaid_tokenizer_render_chat(self._c, to_json(messages), options_json(options, more)))

    def decoder(self, skip_special: bool = False) -> "Decoder":
        return Decoder._of(_inlaid.inlaid_decoder_create(self._c, bool(skip_special)))

    @property
    def vocab_size(self) -> int:
        return _inlaid.inlaid_tokenizer_vocab_size(self._c)


class Decoder(Handle):
    """Decodes ids one at a time and gives text out only when it is final; made by Tokenizer.decoder()."""

    def push(self, token_id: int) -> str:
        return _inlaid.inlaid_decoder_push(self._c, token_id).decode()

    def finish(self) -> str:
        return _inlaid.inlaid_decoder_finish(self._c).decode()
