"""Timelines of traced steps."""

from __future__ import annotations

import json

import protos as pb
from runtime.client import Session, Timeline, float32, ops, placeholder


def test_a_timeline_has_a_process_a_device_and_a_track_a_thread(graph):
    x = placeholder(float32, [None, 2], name="x")
    y = ops.MatMul(x, [[1.0], [2.0]], name="product")
    metadata = pb.RunMetadata()
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    Session().run(y, {x: [[1, 2]]}, options, metadata)
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    names = {event["name"]: event for event in events if event["ph"] == "M"}
    assert names["process_name"]["args"]["name"].endswith("/device:CPU:0")
    span = next(event for event in events if event["name"] == "MatMul")
    assert span["ph"] == "X"
    assert span["pid"] == names["process_name"]["pid"]
    assert span["tid"] == names["thread_name"]["tid"]
    assert span["dur"] > 0
    assert span["args"] == {"name": "product", "op": "MatMul", "output:0": "float32[1,1]"}
