"""Models and adapters."""

from __future__ import annotations

import json
from typing import Any, Dict, Tuple

from . import _inlaid
from ._config import AnyConfig, config_of
from ._convert import Json, PathLike, options_json, path_text
from ._handle import Handle, capsule_of
from ._runtime import Runtime
from ._tensor import Tensor
from ._tokenizer import Tokenizer


class Model(Handle):
    """A model with fresh weights from `model.config` of a configuration; see load() for pretrained ones."""

    _warn_when_dropped = True

    def __init__(self, runtime: Runtime, config: AnyConfig) -> None:
        self._adopt(_inlaid.inlaid_model_create(runtime._c, config_of(config)._c, None))

    @classmethod
    def load(cls, runtime: Runtime, path: PathLike, options: Json | None = None, **more: Any) -> "Model":
        """From a Hugging Face folder or a GGUF file. Options: weights_dtype, tokenizer, chat_template."""
        return cls._of(_inlaid.inlaid_model_load(runtime._c, path_text(path), options_json(options, more), None))

    def export(self, path: PathLike, adapter: "Adapter | None" = None, options: Json | None = None, **more: Any) -> None:
        """Writes the model, with the adapter merged into it if one is given.

        Options: format ("huggingface" or "gguf"), dtype ("f32", "bf16", "f16"; GGUF also "q8_0", "q4_0", "q4_k"), certificate
        (True: compare the written files with this model, see certificate()), data (evaluation data for it, as in a configuration).
        """
        _inlaid.inlaid_model_export(self._c, capsule_of(adapter), path_text(path), options_json(options, more))

    @staticmethod
    def certificate(runtime: Runtime, path: PathLike) -> Dict[str, Any]:
        """What an exported folder or GGUF file says of its own fidelity."""
        return json.loads(_inlaid.inlaid_export_certificate(runtime._c, path_text(path)))

    def describe(self) -> Dict[str, Any]:
        """Configuration, parameter counts, table of tensors."""
        return json.loads(_inlaid.inlaid_model_describe(self._c))

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer._of(_inlaid.inlaid_model_tokenizer(self._c))

    def tensor(self, name: str) -> Tensor:
        """A copy of one weight."""
        return Tensor(_inlaid.model_tensor(self._c, name))


class Adapter(Handle):
    """A fresh adapter on a shared base, from the adapter part of a configuration; see load() for an existing one."""

    def __init__(self, model: Model, config: AnyConfig) -> None:
        self._adopt(_inlaid.inlaid_adapter_create(model._c, config_of(config)._c))

    @classmethod
    def load(cls, model: Model, path: PathLike) -> "Adapter":
        """From a PEFT folder."""
        return cls._of(_inlaid.inlaid_adapter_load(model._c, path_text(path)))

    def save(self, path: PathLike) -> None:
        """Writes a PEFT folder."""
        _inlaid.inlaid_adapter_save(self._c, path_text(path))

    def describe(self) -> Dict[str, Any]:
        return json.loads(_inlaid.inlaid_adapter_describe(self._c))


def open_result(runtime: Runtime, path: PathLike, options: Json | None = None,
                **more: Any) -> Tuple[Model, "Adapter | None"]:
    """Opens what training made: output folder of a job (its latest checkpoint, or with checkpoint="best" its best one),
    checkpoint, PEFT folder, Hugging Face folder or GGUF file."""
    model, adapter = _inlaid.inlaid_result_open(runtime._c, path_text(path), options_json(options, more), None)
    return Model._of(model), Adapter._of(adapter)
