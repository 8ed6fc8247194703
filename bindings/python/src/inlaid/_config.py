"""The configuration of a job: strict JSON, canonical form, plan."""

from __future__ import annotations

import json
from typing import Any, Dict, Union

from . import _inlaid
from ._convert import Json, PathLike, path_text, to_json
from ._handle import Handle
from ._runtime import Runtime


class Config(Handle):
    """A validated configuration from a dict or JSON text; relative paths are taken from `folder` when it is given."""

    def __init__(self, config: Json, folder: PathLike | None = None) -> None:
        self._adopt(_inlaid.inlaid_config_parse(to_json(config), None if folder is None else path_text(folder)))

    def set(self, path: str, value: Any) -> None:
        """Sets one value, as in set("optim.learning_rate", 1e-4), and validates again."""
        _inlaid.inlaid_config_set(self._c, path, json.dumps(value))

    def to_json(self) -> str:
        """Canonical text: defaults filled in, fixed order; equal configurations give equal text."""
        return _inlaid.inlaid_config_to_json(self._c).decode()

    def to_dict(self) -> Dict[str, Any]:
        return json.loads(self.to_json())


AnyConfig = Union[Config, Json]


def config_of(config: AnyConfig) -> Config:
    return config if isinstance(config, Config) else Config(config)


def plan(runtime: Runtime, config: AnyConfig) -> Dict[str, Any]:
    """Predicted peak memory per category, floating-point operations and refusals, before anything is allocated."""
    return json.loads(_inlaid.inlaid_config_plan(runtime._c, config_of(config)._c))


def schema() -> Dict[str, Any]:
    """JSON Schema of everything that Config accepts."""
    return json.loads(_inlaid.inlaid_config_schema())
