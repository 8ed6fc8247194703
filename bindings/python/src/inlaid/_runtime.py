"""The runtime, from which everything hangs, and cancellation tokens."""

from __future__ import annotations

import json
from typing import Any, Dict

from . import _inlaid
from ._convert import Json, milliseconds, options_json
from ._handle import Handle


class Runtime(Handle):
    """Thread pool, kernels and memory limit. Several runtimes may live in one process.

    `settings`, or keywords: memory_limit (bytes), disk_limit (bytes), wall_time_limit (seconds a run), zero_memory (bool),
    cpu_level ("portable", "avx2", "avx512").
    Leaving a `with` block shuts the runtime down: running work is cancelled, threads are joined.
    """

    _warn_when_dropped = True

    def __init__(self, cpu_threads: int = 0, settings: Json | None = None, **more: Any) -> None:
        self._adopt(_inlaid.create_runtime(cpu_threads, options_json(settings, more)))

    def describe(self) -> Dict[str, Any]:
        """Versions, kernels in use, threads, memory limit, and bytes in use and at the peak per category."""
        return json.loads(_inlaid.inlaid_runtime_describe(self._c))

    def shutdown(self, timeout: float | None = None) -> None:
        """Cancels all runs and joins the library's threads; afterwards only describe() and close() are of use."""
        _inlaid.inlaid_runtime_shutdown(self._c, milliseconds(timeout))

    def __exit__(self, *exc_info) -> None:
        if not self.closed:
            self.shutdown()
        self.close()


class CancelToken(Handle):
    """Stops the calls that it was given to, from any thread or signal handler; once triggered, it stays triggered."""

    def __init__(self) -> None:
        self._adopt(_inlaid.inlaid_cancel_create())

    def cancel(self) -> None:
        _inlaid.inlaid_cancel_trigger(self._c)
