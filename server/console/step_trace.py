"""A traced step as the console's timeline shows it: lanes of threads, and the slowest operations.

Everything that a reader sees of a graph is a string in JSON: names are chosen by clients.
"""

from __future__ import annotations

import collections
import heapq
import re
from typing import Any

import orjson

import protos as pb
from runtime.api import Timeline, dtypes, shape_from_proto, shape_text

MAX_SPANS = 20_000  # of a trace; the first ones are kept
SLOWEST = 10
_LABEL = re.compile(r".* = (?P<op>[^( ]+)\(.*\)\Z", re.DOTALL)
_POOL_THREAD = "tf_"  # begins the names of threads of pools
# A traced step runs each node alone, so that no engine computes several of them together.
_ENGINE = "numpy"


def trace_json(step_stats: pb.StepStats, limit: int = MAX_SPANS) -> bytes:
    """Return a trace as JSON: `seconds`, `lanes`, `slowest`, `chrome_trace` and `truncated`.

    A lane is a thread of a pool; its spans are the nodes that it ran, whose times are microseconds
    from the step's first node. At most `limit` nodes are kept, those that began first.
    """
    kept, truncated = _first(step_stats, limit)
    began = min((each.all_start_nanos for each in _nodes(kept)), default=0)
    lanes: dict[tuple[str, int], dict[str, Any]] = {}
    spans: list[dict[str, Any]] = []
    for device in kept.dev_stats:
        for stats in sorted(device.node_stats, key=lambda each: each.all_start_nanos):
            if not stats.all_end_rel_nanos:  # a constant or a feed, which no thread ran
                continue
            key = device.device, stats.thread_id
            lane = lanes.get(key)
            if lane is None:
                thread = device.thread_names.get(stats.thread_id, "")
                lane = lanes[key] = _lane(thread, len(lanes), device.device)
            span = _span(stats, began)
            lane["spans"].append(span)
            spans.append(span | {"lane": lane["number"]})
    shown = sorted(lanes.values(), key=lambda lane: (lane["pool"], lane["number"]))
    places = {lane.pop("number"): place for place, lane in enumerate(shown)}
    threads: collections.Counter[str] = collections.Counter()
    for lane in shown:  # all threads of a pool have one name
        if lane["pool"]:
            lane["thread"] = f"{lane['pool']}/{threads[lane['pool']]}"
            threads[lane["pool"]] += 1
    return orjson.dumps({
        "seconds": max((span["start_us"] + span["duration_us"] for span in spans), default=0) / 1e6,
        "lanes": shown,
        "slowest": _slowest(spans, places),
        "chrome_trace": orjson.Fragment(Timeline(kept).generate_chrome_trace_format()),
        "truncated": truncated,
    })  # fmt: skip


def _nodes(step_stats: pb.StepStats) -> list[pb.NodeExecStats]:
    return [stats for device in step_stats.dev_stats for stats in device.node_stats]


def _first(step_stats: pb.StepStats, limit: int) -> tuple[pb.StepStats, bool]:
    """Return the nodes that began first, and whether there are others."""
    nodes = _nodes(step_stats)
    if len(nodes) <= limit:
        return step_stats, False
    last = sorted(each.all_start_nanos for each in nodes)[limit - 1]
    kept, left = pb.StepStats(), limit
    for device in step_stats.dev_stats:
        copy = kept.dev_stats.add(device=device.device, thread_names=device.thread_names)
        early = [each for each in device.node_stats if each.all_start_nanos <= last][:left]
        copy.node_stats.extend(early)
        left -= len(early)
    return kept, True


def _lane(thread: str, number: int, device: str) -> dict[str, Any]:
    is_of_pool = thread.startswith(_POOL_THREAD)
    return {
        "pool": thread.removeprefix(_POOL_THREAD) if is_of_pool else "",
        "engine": _ENGINE,
        "thread": thread,
        "device": device,
        "number": number,
        "spans": [],
    }


def _span(stats: pb.NodeExecStats, began: int) -> dict[str, Any]:
    label = _LABEL.match(stats.timeline_label)
    return {
        "node": stats.node_name,
        "op": label["op"] if label else "",
        "start_us": (stats.all_start_nanos - began) / 1000,
        "duration_us": stats.all_end_rel_nanos / 1000,
        "output": "; ".join(map(_output, stats.output)),
    }


def _output(output: pb.NodeOutput) -> str:
    description = output.tensor_description
    data_type, _ = dtypes.from_number(description.dtype)
    return f"{data_type.name_on_wire} {shape_text(shape_from_proto(description.shape))}"


def _slowest(spans: list[dict[str, Any]], places: dict[int, int]) -> list[dict[str, Any]]:
    busy = sum(span["duration_us"] for span in spans) or 1.0
    return [
        {
            "node": span["node"],
            "op": span["op"],
            "duration_us": span["duration_us"],
            "share": span["duration_us"] / busy,
            "lane": places[span["lane"]],
        }
        for span in heapq.nlargest(SLOWEST, spans, key=lambda span: span["duration_us"])
    ]
