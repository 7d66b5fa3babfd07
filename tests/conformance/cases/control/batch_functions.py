"""Cases of BatchFunction with attributes that its queue rejects, and with empty batches."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import protos as pb
from tests.conformance.case import Case, Step
from tests.conformance.cases.old_ops import batched


def _with(**attrs: Any) -> Case:
    """The batched function with other attributes."""
    case = batched()
    graph = pb.GraphDef()
    graph.CopyFrom(case.graph)
    node = next(node for node in graph.node if node.op == "BatchFunction")
    for name, value in attrs.items():
        if isinstance(value, bool):
            node.attr[name].b = value
        elif isinstance(value, int):
            node.attr[name].i = value
        else:
            node.attr[name].list.i[:] = value
    name = "_".join(f"{name}={value}" for name, value in attrs.items())
    return dataclasses.replace(case, name=name, graph=graph, message=True)


def _without_rows(shape: tuple[int, ...], **attrs: Any) -> Case:
    """The batched function with an empty batch, which is not put in a queue."""
    case = _with(**attrs)
    feeds = {"x:0": np.zeros(shape, np.float32), "captured:0": np.ones(shape[1:], np.float32)}
    steps = (Step(feeds, ("result:0",)),)
    return dataclasses.replace(case, name=f"no_rows_{len(shape)}_{case.name}", steps=steps)


SPLIT = {"enable_large_batch_splitting": True}
ADAPTIVE = {"num_batch_threads": 0}
CASES = (
    _with(batch_timeout_micros=-1),
    _with(batch_timeout_micros=-1, max_batch_size=0),
    _with(batch_timeout_micros=-1, **ADAPTIVE),
    *(_with(max_batch_size=size) for size in (0, -1, 2)),
    *(_with(max_batch_size=size, **ADAPTIVE) for size in (0, -1, 2)),
    _with(max_batch_size=2, **SPLIT),
    _with(max_batch_size=2, **SPLIT, **ADAPTIVE),
    *(_with(allowed_batch_sizes=sizes) for sizes in ((2, 3), (4, 2), (2, 4))),
    *(_with(allowed_batch_sizes=sizes, **SPLIT) for sizes in ((2, 3), (2, 5))),
    _with(allowed_batch_sizes=(2, 5), **SPLIT, **ADAPTIVE),
    _with(max_enqueued_batches=-1),
    _without_rows((0,), max_batch_size=0),
    _without_rows((0, 2), max_batch_size=4),
    _without_rows((0, 2), max_batch_size=0, **ADAPTIVE),
)
