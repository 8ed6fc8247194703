"""What training reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict

from . import _inlaid

KINDS = {
    _inlaid.INLAID_EVENT_STEP: "step",
    _inlaid.INLAID_EVENT_EVAL: "eval",
    _inlaid.INLAID_EVENT_CHECKPOINT: "checkpoint",
    _inlaid.INLAID_EVENT_WARNING: "warning",
    _inlaid.INLAID_EVENT_STATE: "state",
    _inlaid.INLAID_EVENT_DONE: "done",
    _inlaid.INLAID_EVENT_SAMPLE: "sample",
    _inlaid.INLAID_EVENT_CHANGE: "change",
}


@dataclass(frozen=True)
class Event:
    """One event, a plain value: event["loss"] is a metric, event.text a state, warning, folder, answer or how the run ended."""

    kind: str                   # one of KINDS, or "unknown" for a kind that this version does not know
    step: int                   # optimizer steps done
    seq: int                    # number within the run; a gap shows dropped events
    metrics: Dict[str, float]
    text: str
    json: str                   # the whole event

    def __getitem__(self, metric: str) -> float:
        return self.metrics[metric]

    def get(self, metric: str, default: Any = None) -> Any:
        return self.metrics.get(metric, default)

    def to_dict(self) -> Dict[str, Any]:
        return json.loads(self.json)


def event_of(e) -> Event:
    metrics = {_inlaid.inlaid_event_metric_name(e, i): _inlaid.inlaid_event_metric_value(e, i)
               for i in range(_inlaid.inlaid_event_metric_count(e))}
    return Event(KINDS.get(_inlaid.inlaid_event_kind(e), "unknown"), _inlaid.inlaid_event_step(e),
                 _inlaid.inlaid_event_seq(e), metrics, _inlaid.inlaid_event_text(e), _inlaid.inlaid_event_json(e))
