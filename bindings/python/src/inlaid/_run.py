"""A training run in the background, as an iterator of events."""

from __future__ import annotations

import json
import time
from typing import Any

from . import _inlaid
from ._convert import milliseconds
from ._errors import DeadlineExceeded, OutOfRange
from ._event import Event, event_of
from ._handle import Handle

# The interpreter sees a signal only between two calls, so no call waits longer than this.
_SLICE_MS = 200


class Run(Handle):
    """Made by Trainer.run() and Job.start(). Iterating gives the events; the loop ends after the "done" event by raising
    what ended the run, if it neither finished nor was stopped. Ctrl-C interrupts every wait; the run itself goes on until
    it is stopped, cancelled or closed (close() cancels).
    """

    _warn_when_dropped = True

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event, or None when there was none in time. Raises OutOfRange after the "done" event."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS if deadline is None else min(_SLICE_MS, milliseconds(deadline - time.monotonic()))
            e = _inlaid.inlaid_run_next(self._c, left)
            if e is not None:
                event = event_of(e)
                if event.kind != "unknown":
                    return event
            elif deadline is not None and time.monotonic() >= deadline:
                return None

    def __iter__(self) -> "Run":
        return self

    def __next__(self) -> Event:
        try:
            return self.next()
        except OutOfRange:
            pass
        self.join()
        raise StopIteration

    def request(self, verb: str) -> None:
        """Asks for "pause", "resume", "save", "eval" or "stop"; the answer is an event."""
        _inlaid.inlaid_run_request(self._c, verb)

    def set(self, key: str, value: Any) -> None:
        """Changes optim.learning_rate, optim.weight_decay or optim.max_grad_norm from the next step on."""
        _inlaid.inlaid_run_set(self._c, key, json.dumps(value))

    def pause(self) -> None:
        self.request("pause")

    def resume(self) -> None:
        self.request("resume")

    def save(self) -> None:
        self.request("save")

    def stop(self) -> None:
        """Ends the run after the current step, and saves."""
        self.request("stop")

    def cancel(self) -> None:
        """Ends the run as soon as possible, without saving."""
        _inlaid.inlaid_run_cancel(self._c)

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end and raises what ended the run: nothing if it finished or was stopped, Cancelled if it was
        cancelled. DeadlineExceeded if it is still going after timeout seconds. Repeatable."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS if deadline is None else min(_SLICE_MS, milliseconds(deadline - time.monotonic()))
            try:
                return _inlaid.inlaid_run_join(self._c, left)
            except DeadlineExceeded:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
