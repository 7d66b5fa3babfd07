"""Lanes and slowest operations of a trace."""

from __future__ import annotations

import json

import protos as pb
from server.console.step_trace import trace_json


def stats_of(*nodes: tuple[str, int, int, int]) -> pb.StepStats:
    """A trace of (node, thread, start in µs, duration in µs)."""
    stats = pb.StepStats()
    device = stats.dev_stats.add(device="/device:CPU:0", thread_names={1: "tf_online", 2: "Main"})
    for name, thread, start, duration in nodes:
        node = device.node_stats.add(
            node_name=name,
            thread_id=thread,
            all_start_nanos=10**9 + start * 1000,
            all_end_rel_nanos=duration * 1000,
            timeline_label=f"{name} = Mul()",
        )
        description = node.output.add().tensor_description
        description.dtype = pb.DT_FLOAT
        description.shape.dim.add(size=2)
    return stats


def test_threads_are_lanes_and_times_are_relative() -> None:
    trace = json.loads(trace_json(stats_of(("b", 1, 5, 10), ("a", 2, 0, 4), ("fed", 2, 0, 0))))
    main, pool = trace["lanes"]
    assert (main["pool"], main["thread"]) == ("", "Main")
    assert (pool["pool"], pool["thread"], pool["engine"]) == ("online", "online/0", "numpy")
    assert pool["spans"] == [
        {"node": "b", "op": "Mul", "start_us": 5.0, "duration_us": 10.0, "output": "float32 [2]"}
    ]
    assert [each["node"] for each in main["spans"]] == ["a"]  # no thread ran a feed
    assert trace["seconds"] == 15e-6 and trace["truncated"] is False
    assert [(each["node"], each["lane"]) for each in trace["slowest"]] == [("b", 1), ("a", 0)]
    assert sum(each["share"] for each in trace["slowest"]) == 1
    assert len(trace["chrome_trace"]["traceEvents"]) == 6


def test_the_first_spans_and_the_ten_slowest_are_kept() -> None:
    stats = stats_of(*((f"n{index}", 1, index, index) for index in range(1, 31)))
    trace = json.loads(trace_json(stats, limit=20))
    assert [span["node"] for span in trace["lanes"][0]["spans"]] == [f"n{i}" for i in range(1, 21)]
    assert trace["truncated"] is True
    assert [each["node"] for each in trace["slowest"]] == [f"n{i}" for i in range(20, 10, -1)]
    assert len(trace["chrome_trace"]["traceEvents"]) == 22


def test_names_may_have_any_characters_and_a_step_no_nodes() -> None:
    name = '<img onerror="alert(1)"> = (x'
    trace = json.loads(trace_json(stats_of((name, 1, 0, 1))))
    assert trace["lanes"][0]["spans"][0]["node"] == name
    empty = json.loads(trace_json(pb.StepStats()))
    assert empty["lanes"] == empty["slowest"] == [] and empty["seconds"] == 0
