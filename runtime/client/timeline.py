"""Timeline: the trace of one step as Chrome trace JSON, for Perfetto and chrome://tracing.

Each device is shown as a process and each thread as a track. Each node is a span that gives its op
and the types and shapes of its outputs. Times are microseconds.

TF: tensorflow/python/client/timeline.py (Timeline)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import protos as pb
from runtime.framework.dtypes import from_number
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import shape_from_proto

_LABEL = re.compile(r".* = (?P<op>[^( ]+)\((?P<inputs>.*)\)\Z", re.DOTALL)
_NANOS_PER_MICRO = 1000

# A trace event: one JSON object in Chrome's trace format.
Event: TypeAlias = dict[str, Any]


class Timeline:
    """The trace of one `Session.run`, from `RunMetadata.step_stats` recorded with FULL_TRACE."""

    def __init__(self, step_stats: pb.StepStats) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(self) -> str:
        """Return the trace as JSON text."""
        return json.dumps({"displayTimeUnit": "ns", "traceEvents": list(self._events())})

    def _events(self) -> Iterator[Event]:
        for process, device in enumerate(self._step_stats.dev_stats):
            yield _name("process_name", process, 0, device.device)
            yield from _thread_names(process, device)
            for stats in device.node_stats:
                yield _span(process, stats)


def _thread_names(process: int, device: pb.DeviceStepStats) -> Iterator[Event]:
    for thread in sorted({stats.thread_id for stats in device.node_stats}):
        title = device.thread_names.get(thread, f"thread {thread}")
        yield _name("thread_name", process, thread, title)


def _name(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _span(process: int, stats: pb.NodeExecStats) -> Event:
    label = _LABEL.match(stats.timeline_label)
    op = label["op"] if label else stats.timeline_label
    return {
        "ph": "X",
        "cat": "Op",
        "name": op or stats.node_name,
        "pid": process,
        "tid": stats.thread_id,
        "ts": _micros(stats.all_start_nanos, stats.all_start_micros),
        "dur": _micros(stats.all_end_rel_nanos, stats.all_end_rel_micros),
        "args": {"name": stats.node_name, "op": op, **dict(_outputs(stats))},
    }


def _micros(nanos: int, micros: int) -> float:
    """Return a time in µs, from `nanos` if the writer set nanoseconds, else from `micros`."""
    return nanos / _NANOS_PER_MICRO if nanos else float(micros)


def _outputs(stats: pb.NodeExecStats) -> Iterator[tuple[str, str]]:
    for output in stats.output:
        description = output.tensor_description
        data_type, _ = from_number(description.dtype)
        shape = shape_text(shape_from_proto(description.shape))
        yield f"output:{output.slot}", f"{data_type.name_on_wire}{shape}"
