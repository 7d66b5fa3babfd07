"""Transfer of cases and answers between the two processes: a length, then pickled data.

Cases and answers are packed as plain Python data first.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.conformance.case import Answer, Case, Step


def write_frame(stream: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value)
    rest = memoryview(struct.pack("<Q", len(data)) + data)
    while rest:  # an unbuffered stream may write only a part
        rest = rest[stream.write(rest) :]
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Return the next value; None if the other process has ended."""
    head = _read(stream, 8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<Q", head)
    data = _read(stream, length)
    return pickle.loads(data) if len(data) == length else None


def _read(stream: BinaryIO, length: int) -> bytes:
    data = b""
    while len(data) < length and (part := stream.read(length - len(data))):
        data += part
    return data


def pack_case(case: Case) -> tuple[bytes, list[Any]]:
    steps = [
        (
            {key: tensor_to_proto(value).SerializeToString() for key, value in step.feeds.items()},
            list(step.fetches),
            list(step.targets),
        )
        for step in case.steps
    ]
    return case.graph.SerializeToString(), steps


def unpack_case(packed: tuple[bytes, list[Any]]) -> Case:
    graph, steps = packed
    return Case(
        "case",
        pb.GraphDef.FromString(graph),
        tuple(
            Step(
                {k: tensor_from_proto(pb.TensorProto.FromString(v)) for k, v in feeds.items()},
                fetches,
                targets,
            )
            for feeds, fetches, targets in steps
        ),
    )


def pack_answer(answer: Answer) -> tuple[list[bytes], int, str]:
    values = [tensor_to_proto(value).SerializeToString() for value in answer.values]
    return values, answer.code, answer.message


def unpack_answer(packed: tuple[list[bytes], int, str]) -> Answer:
    values, code, message = packed
    tensors = tuple(tensor_from_proto(pb.TensorProto.FromString(value)) for value in values)
    return Answer(tensors, code, message)
