"""Trainer.forward(), forward() and Pass.backward(): outputs without copies, gradients in every form, what is refused."""

import ctypes
import gc
import math
from array import array

import pytest

import inlaid
from test_dlpack import FLOAT, ManagedVersioned, Producer

TOKENS, TARGETS = [5, 6, 7, 8], [6, 7, -100, 9]


@pytest.fixture
def trainer(parts):
    model, config, _ = parts
    with inlaid.Trainer(model, config) as result:
        yield result


def address(tensor):
    """Where the values of an object with __dlpack__ lie."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = tensor.__dlpack__(max_version=(1, 1))
    view = ManagedVersioned.from_address(get(capsule, b"dltensor_versioned")).tensor
    return view.data, (view.code, view.bits, view.ndim, view.device_type)


def floats(values):
    """A DLPack tensor of float32 made with ctypes."""
    producer = Producer([0] * len(values), True, code=FLOAT)
    (ctypes.c_float * len(values)).from_buffer(producer.values)[:] = values
    return producer


def test_outputs_share_memory_and_outlive_the_pass(parts):
    model = parts[0]
    batch = inlaid.Batch(TOKENS, TARGETS)
    forward = inlaid.forward(model, batch, outputs=["log_probs", "logits", "hidden_states"])
    log_probs, logits, hidden = forward.log_probs, forward.logits, forward.hidden_states
    assert (log_probs.shape, logits.shape, hidden.shape) == ((4,), (4, 600), (4, 32))
    assert address(log_probs)[1] == (FLOAT, 32, 1, 1) and address(logits)[1] == (FLOAT, 32, 2, 1)
    data = address(logits)[0]
    assert data == address(forward.logits)[0]  # no copy
    values = logits.tolist()
    for row, target in enumerate(TARGETS):
        total = math.log(sum(math.exp(z) for z in values[row]))
        expected = 0 if target == -100 else values[row][target] - total
        assert log_probs.tolist()[row] == pytest.approx(expected, abs=1e-5)
    forward.close()
    gc.collect()
    assert address(logits)[0] == data
    assert (ctypes.c_float * 600).from_address(data)[:] == values[0]
    with pytest.raises(inlaid.FailedPrecondition):
        forward.logits


@pytest.mark.parametrize("form", [list, tuple, lambda v: array("f", v), lambda v: memoryview(array("f", v)), floats])
def test_the_engines_own_loss(runtime, parts, trainer, form):
    config = parts[1]
    batch = inlaid.Batch(TOKENS, TARGETS)
    with trainer.forward(batch) as forward:
        loss = -sum(forward.log_probs.tolist()) / 3
        gradient = form([-1.0] * 4)
        forward.backward(log_probs=gradient, count=3)
        assert getattr(gradient, "freed", 1) == 1
    got = trainer.apply()
    trainer.close()
    with inlaid.Model(runtime, config) as twin, inlaid.Trainer(twin, config) as engine:
        assert engine.accumulate(batch)["loss"] == pytest.approx(loss, rel=1e-6)
        assert engine.apply()["grad_norm"] == got["grad_norm"]
    assert "loss" not in got.metrics


def test_misuse_is_named(parts, trainer):
    model = parts[0]
    batch = inlaid.Batch(TOKENS, TARGETS)
    with trainer.forward(batch) as forward:
        with pytest.raises(inlaid.NotFound, match="logits"):
            forward.logits
        with pytest.raises(inlaid.FailedPrecondition, match="no output"):
            forward.backward()
        for wrong in ([1.0, 2.0], floats([1.0] * 3), Producer([1] * 4, True), array("d", [1.0] * 4), ["a"] * 4):
            with pytest.raises(inlaid.InvalidArgument):
                forward.backward(log_probs=wrong)
        forward.backward(log_probs=[1.0] * 4)
        with pytest.raises(inlaid.FailedPrecondition, match="backward already"):
            forward.backward(log_probs=[1.0] * 4)
    with inlaid.forward(model, batch) as evaluated:
        with pytest.raises(inlaid.FailedPrecondition, match="without gradients"):
            evaluated.backward(log_probs=[1.0] * 4)
    with pytest.raises(inlaid.InvalidArgument, match="entropy"):
        trainer.forward(batch, outputs=["entropy"])
    with pytest.warns(ResourceWarning, match="unclosed Pass"):
        trainer.forward(batch)
        gc.collect()
