"""Data sets of the library's loader, and batches of the caller's own data."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator

from . import _inlaid
from ._config import AnyConfig, config_of
from ._convert import int32_buffer
from ._handle import Handle
from ._model import Model


class Dataset(Handle):
    """The data of a configuration for a model: split "train" or "eval"."""

    def __init__(self, model: Model, config: AnyConfig, split: str = "train") -> None:
        self._adopt(_inlaid.inlaid_dataset_open(model._c, config_of(config)._c, split))

    def report(self) -> Dict[str, Any]:
        """Rows used, truncated, held out and refused with file, row and reason; tokens and targets."""
        return json.loads(_inlaid.inlaid_dataset_report(self._c))

    def __len__(self) -> int:
        return _inlaid.inlaid_dataset_size(self._c)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        """{"row", "ids", "targets"} of one sample; targets are -100 where nothing is to be learnt."""
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError(index)
        return json.loads(_inlaid.inlaid_dataset_sample(self._c, index))

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (self[i] for i in range(len(self)))


class Batch(Handle):
    """One micro-batch for Trainer.accumulate() and forward().

    tokens: ids; targets: the id to predict at each row, -100 for none; cu_seqlens: boundaries of documents. Each is a
    sequence of ints, an object with a buffer of int32 or int64 (array, NumPy), or one with __dlpack__ (PyTorch). The
    values are copied.
    """

    def __init__(self, tokens: Any = None, targets: Any = None, cu_seqlens: Any = None) -> None:
        self._adopt(_inlaid.inlaid_batch_create())
        for name, values in (("tokens", tokens), ("targets", targets), ("cu_seqlens", cu_seqlens)):
            if values is not None:
                self.add(name, values)

    def add(self, name: str, values: Any) -> None:
        if hasattr(values, "__dlpack__") and not has_buffer(values):
            _inlaid.batch_add_dlpack(self._c, name, dlpack_of(values))
        else:
            _inlaid.inlaid_batch_add_int32(self._c, name, int32_buffer(values, name))


def has_buffer(values: Any) -> bool:
    try:
        memoryview(values)
    except TypeError:
        return False
    return True


def dlpack_of(values: Any):
    try:
        return values.__dlpack__(max_version=(1, 1))
    except TypeError:  # a producer from before version 1
        return values.__dlpack__()
