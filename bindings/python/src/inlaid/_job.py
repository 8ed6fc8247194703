"""A whole job from one configuration."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from . import _inlaid
from ._config import AnyConfig, config_of
from ._convert import PathLike, path_text
from ._handle import Handle
from ._model import Adapter, Model
from ._run import Run
from ._runtime import Runtime
from ._trainer import Trainer


class Job(Handle):
    """Opens model, adapter, data and trainer as a configuration says, and writes into its output_dir."""

    _warn_when_dropped = True

    def __init__(self, runtime: Runtime, config: AnyConfig) -> None:
        self._adopt(_inlaid.inlaid_job_create(runtime._c, config_of(config)._c))

    @classmethod
    def resume(cls, runtime: Runtime, output_dir: PathLike) -> "Job":
        """The job of an output folder, standing where its latest checkpoint left it."""
        return cls._of(_inlaid.inlaid_job_resume(runtime._c, path_text(output_dir)))

    @staticmethod
    def list(runtime: Runtime, folder: PathLike) -> List[Dict[str, Any]]:
        """The jobs whose output folders lie in a folder, with their states; an "interrupted" one waits to be resumed."""
        return json.loads(_inlaid.inlaid_job_list(runtime._c, path_text(folder)))

    @staticmethod
    def report(runtime: Runtime, output_dir: PathLike) -> str:
        """HTML page about the job of an output folder, whether it still trains or not."""
        return _inlaid.inlaid_job_report(runtime._c, path_text(output_dir)).decode()

    @staticmethod
    def verify(runtime: Runtime, output_dir: PathLike) -> Dict[str, Any]:
        """Checks inputs, outputs and checkpoints of an output folder against their hashes: {"ok": ..., "problems": [...], ...}."""
        return json.loads(_inlaid.inlaid_job_verify(runtime._c, path_text(output_dir)))

    def start(self) -> Run:
        """Trains in the background."""
        return Run._of(_inlaid.inlaid_job_start(self._c))

    @property
    def trainer(self) -> Trainer:
        return Trainer._of(_inlaid.inlaid_job_trainer(self._c))

    def model(self) -> Tuple[Model, Adapter | None]:
        """The job's model, and its adapter or None."""
        model, adapter = _inlaid.inlaid_job_model(self._c)
        return Model._of(model), Adapter._of(adapter)

    def describe(self) -> Dict[str, Any]:
        """Parameters, rows, steps done and in all, checkpoint from which it was resumed."""
        return json.loads(_inlaid.inlaid_job_describe(self._c))
