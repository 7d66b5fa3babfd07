"""Summary writers, which write event files.

The cases write small files under /tmp, each into its own folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import protos as pb
from tests.conformance.case import Case, Graph, Step

FOLDER = "/tmp/runstep-conformance-events-"


def _bytes(value: bytes) -> np.ndarray:
    return np.array(value, object)


def _summary(tag: str) -> bytes:
    return pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=0.5)]).SerializeToString()


WRITES: dict[str, tuple[Any, ...]] = {
    "WriteSummary": (np.int64(1), np.float32(2), _bytes(b"t"), _bytes(b"")),
    "WriteRawProtoSummary": (np.int64(1), _bytes(_summary("raw"))),
    "WriteScalarSummary": (np.int64(1), _bytes(b"s"), np.float32(2)),
    "WriteHistogramSummary": (np.int64(1), _bytes(b"h"), np.float32([1, 2])),
    "WriteImageSummary": (
        np.int64(1), _bytes(b"i"), np.zeros((1, 2, 2, 1), np.float32),
        np.array([255, 0, 0, 255], np.uint8),
    ),
    "WriteAudioSummary": (np.int64(1), _bytes(b"a"), np.zeros((1, 2), np.float32), np.float32(8)),
    "WriteGraphSummary": (np.int64(1), _bytes(pb.GraphDef().SerializeToString())),
    "ImportEvent": (_bytes(pb.Event(step=7).SerializeToString()),),
}  # fmt: skip


def _writer(graph: Graph, op: str) -> Any:
    writer = graph.add("SummaryWriter", shared_name=op, name="writer")[0]
    graph.add(
        "CreateSummaryFileWriter", writer, _bytes((FOLDER + op).encode()), np.int32(10),
        np.int32(1000), _bytes(b".x"), name="create",
    )  # fmt: skip
    return writer


def _written(op: str) -> Case:
    """Write, flush and close; a write after that fails, because the writer no longer exists."""
    graph = Graph()
    writer = _writer(graph, op)
    graph.add(op, writer, *WRITES[op], name="write")
    graph.add("FlushSummaryWriter", writer, name="flush")
    graph.add("CloseSummaryWriter", writer, name="close")
    order = ("create", "create", "write", "flush", "close", "write")
    return Case(op, graph.graph_def, tuple(Step({}, (), (each,)) for each in order), message=True)


def _damaged(op: str) -> Case:
    graph = Graph()
    writer = _writer(graph, f"{op}_damaged")
    step = () if op == "ImportEvent" else (np.int64(1),)
    graph.add(op, writer, *step, _bytes(b"\xff"), name="write")
    steps = (Step({}, (), ("create",)), Step({}, (), ("write",)))
    return Case(f"{op}_damaged", graph.graph_def, steps)


CASES = (
    *(_written(op) for op in WRITES),
    _damaged("ImportEvent"),
    _damaged("WriteRawProtoSummary"),
)
