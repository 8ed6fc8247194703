"""Training one step at a time, checkpoints, evaluation."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, Sequence

from . import _inlaid
from ._config import AnyConfig, config_of
from ._convert import Json, PathLike, options_json, path_text
from ._data import Batch, Dataset
from ._errors import OutOfRange
from ._event import Event, event_of
from ._handle import Handle, capsule_of
from ._model import Adapter, Model
from ._pass import Pass, outputs_json
from ._run import Run
from ._runtime import CancelToken, Runtime


class Trainer(Handle):
    """Trains a model, or an adapter on it. A call that computes returns at its end; `cancel` ends it earlier."""

    _warn_when_dropped = True

    def __init__(self, model: Model, config: AnyConfig, adapter: Adapter | None = None,
                 dataset: Dataset | None = None) -> None:
        self._adopt(_inlaid.inlaid_trainer_create(model._c, capsule_of(adapter), config_of(config)._c))
        if dataset is not None:
            self.set_dataset(dataset)

    def set_dataset(self, dataset: Dataset) -> None:
        _inlaid.inlaid_trainer_set_dataset(self._c, dataset._c)

    def step(self, cancel: CancelToken | None = None) -> Event:
        """One optimizer step. Raises OutOfRange when all steps are done; after Cancelled everything is as before."""
        return event_of(_inlaid.inlaid_trainer_step(self._c, capsule_of(cancel)))

    def steps(self, cancel: CancelToken | None = None) -> Iterator[Event]:
        """Trains until all steps are done."""
        while True:
            try:
                event = self.step(cancel)
            except OutOfRange:
                return
            yield event

    def accumulate(self, batch: Batch, cancel: CancelToken | None = None) -> Event:
        """Forward and backward of one micro-batch; its gradients are added."""
        return event_of(_inlaid.inlaid_trainer_accumulate(self._c, batch._c, capsule_of(cancel)))

    def forward(self, batch: Batch, outputs: Sequence[str] = ("log_probs",), cancel: CancelToken | None = None) -> Pass:
        """Forward for a loss of your own; its backward() adds to the gradients, as accumulate() does.

        Outputs: "log_probs", "logits", "hidden_states".
        """
        return Pass._of(_inlaid.inlaid_trainer_forward(self._c, batch._c, outputs_json(outputs), capsule_of(cancel)))

    def apply(self) -> Event:
        """Clipping, optimizer and schedule on the accumulated gradients."""
        return event_of(_inlaid.inlaid_trainer_apply(self._c))

    def set(self, key: str, value: Any) -> None:
        """Changes optim.learning_rate, optim.weight_decay or optim.max_grad_norm for all steps to come."""
        _inlaid.inlaid_trainer_set(self._c, key, json.dumps(value))

    def evaluate(self, dataset: Dataset, cancel: CancelToken | None = None) -> Event:
        return event_of(_inlaid.inlaid_trainer_evaluate(self._c, dataset._c, capsule_of(cancel)))

    def run(self, eval_data: Dataset | None = None, options: Json | None = None, **more: Any) -> Run:
        """Trains in the background. Options: until, eval_steps, save_steps, save_total_limit, checkpoint_dir,
        keep_best, early_stopping_patience, early_stopping_threshold."""
        return Run._of(_inlaid.inlaid_run_start(self._c, capsule_of(eval_data), options_json(options, more)))

    def save(self, folder: PathLike, cancel: CancelToken | None = None) -> None:
        """Writes a checkpoint to a folder that must not exist."""
        _inlaid.inlaid_checkpoint_save(self._c, path_text(folder), capsule_of(cancel))

    def restore(self, folder: PathLike) -> None:
        """Continues from a checkpoint, bit for bit."""
        _inlaid.inlaid_checkpoint_restore(self._c, path_text(folder))


def evaluate(model: Model, dataset: Dataset, adapter: Adapter | None = None,
             cancel: CancelToken | None = None) -> Event:
    """Evaluates a model, with an adapter or without."""
    return event_of(_inlaid.inlaid_evaluate(model._c, capsule_of(adapter), dataset._c, capsule_of(cancel)))


def checkpoint_manifest(runtime: Runtime, folder: PathLike) -> Dict[str, Any]:
    """The manifest of a checkpoint; reads no shard."""
    return json.loads(_inlaid.inlaid_checkpoint_manifest(runtime._c, path_text(folder), 1))


def checkpoint_manifest_bytes(runtime: Runtime, folder: PathLike) -> bytes:
    """The same as the Protocol Buffers message that the file holds."""
    return _inlaid.inlaid_checkpoint_manifest(runtime._c, path_text(folder), 0)


def checkpoint_verify(runtime: Runtime, folder: PathLike) -> Dict[str, Any]:
    """Checks sizes and checksums of every shard; damage found is content of the report."""
    return json.loads(_inlaid.inlaid_checkpoint_verify(runtime._c, path_text(folder)))
