"""Forward and backward for a loss of one's own."""

from __future__ import annotations

from array import array
from typing import Any, Sequence

from . import _inlaid
from ._convert import to_json
from ._data import Batch, dlpack_of, has_buffer
from ._errors import InvalidArgument
from ._handle import Handle, capsule_of
from ._model import Adapter, Model
from ._runtime import CancelToken
from ._tensor import Tensor


class Pass(Handle):
    """One forward pass, from Trainer.forward() or forward(): its outputs, and backward() from the gradients of a loss of
    your own. It holds the activations of a micro-batch until backward() or close().

    Outputs are Tensors that share the pass's memory, without a copy, and outlive it.
    """

    _warn_when_dropped = True

    @property
    def log_probs(self) -> Tensor:
        """[rows]: log-probability of each row's target; 0 for a row without one."""
        return self._output("log_probs")

    @property
    def logits(self) -> Tensor:
        """[rows, vocabulary], after the model's soft cap if it has one."""
        return self._output("logits")

    @property
    def hidden_states(self) -> Tensor:
        """[rows, hidden size], after the final norm."""
        return self._output("hidden_states")

    def _output(self, name: str) -> Tensor:
        return Tensor(_inlaid.pass_tensor(self._c, name))

    def backward(self, *, log_probs: Any = None, logits: Any = None, hidden_states: Any = None, count: float = 0,
                 cancel: CancelToken | None = None) -> None:
        """Adds to the trainer's gradients, from the gradients of your loss with respect to the outputs.

        Each is an object with __dlpack__ (PyTorch, NumPy) or with a buffer of float32, or a sequence of floats. They are
        taken as they are; Trainer.apply() divides the sum of gradients by the sum of counts, if that is not 0.
        """
        for name, values in (("log_probs", log_probs), ("logits", logits), ("hidden_states", hidden_states)):
            if values is None:
                continue
            if hasattr(values, "__dlpack__"):
                _inlaid.pass_set_gradient_dlpack(self._c, name, dlpack_of(values))
            else:
                _inlaid.inlaid_pass_set_gradient_f32(self._c, name, _float32_buffer(values, name))
        _inlaid.inlaid_backward(self._c, float(count), capsule_of(cancel))


def _float32_buffer(values: Any, what: str):
    if has_buffer(values):
        view = memoryview(values)
        if view.format != "f":
            raise InvalidArgument(f"the gradient of {what} must hold float32, not values of format {view.format!r}")
        return view if view.c_contiguous else array("f", view.tobytes())
    try:
        return array("f", values)
    except TypeError as e:
        raise InvalidArgument(f"the gradient of {what}: {e}") from e


def outputs_json(outputs: Sequence[str]) -> str:
    return to_json({"outputs": list(outputs)})


def forward(model: Model, batch: Batch, adapter: Adapter | None = None, outputs: Sequence[str] = ("log_probs",),
            cancel: CancelToken | None = None) -> Pass:
    """A pass without gradients and without dropout: for reference policies, teachers, scores."""
    return Pass._of(_inlaid.inlaid_forward(model._c, capsule_of(adapter), batch._c, outputs_json(outputs),
                                           capsule_of(cancel)))
