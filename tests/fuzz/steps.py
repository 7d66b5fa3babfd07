"""Inputs that are a graph and the steps to run on it, as bytes.

They are frames: a GraphDef, then a RunStepRequest for each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from google.protobuf import text_format

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.fuzz.mutate_bytes import join_frames, split_frames
from tests.fuzz.mutate_messages import smaller_messages


def step_of(
    feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str] = ()
) -> pb.RunStepRequest:
    """Return one step."""
    made = [
        pb.NamedTensorProto(name=name, tensor=tensor_to_proto(value))
        for name, value in feeds.items()
    ]
    return pb.RunStepRequest(feed=made, fetch=fetches, target=targets)


def feeds_of(step: pb.RunStepRequest) -> dict[str, np.ndarray]:
    """Return the feeds of a step; raise the OpError of a tensor that is wrong."""
    return {each.name: tensor_from_proto(each.tensor) for each in step.feed}


def write_steps(graph: pb.GraphDef, steps: Sequence[pb.RunStepRequest]) -> bytes:
    """Return the input of a graph and its steps."""
    return join_frames([each.SerializeToString(deterministic=True) for each in (graph, *steps)])


def read_steps(data: bytes) -> tuple[pb.GraphDef, list[pb.RunStepRequest]]:
    """Return the graph and the steps of an input."""
    graph, *steps = split_frames(data)
    return pb.GraphDef.FromString(graph), [pb.RunStepRequest.FromString(each) for each in steps]


def smaller_steps(data: bytes) -> Iterator[bytes]:
    """Yield inputs with fewer steps, nodes, attributes and feeds."""
    graph, steps = read_steps(data)
    for at in range(len(steps)):
        yield write_steps(graph, steps[:at] + steps[at + 1 :])
    size = len(graph.node) // 2
    while size > 1:
        for at in range(0, len(graph.node), size):
            part = pb.GraphDef()
            part.CopyFrom(graph)
            del part.node[at : at + size]
            yield write_steps(part, steps)
        size //= 2
    for smaller in smaller_messages(graph):
        yield write_steps(smaller, steps)  # type: ignore[arg-type] # of the same class
    for at, step in enumerate(steps):
        for smaller in smaller_messages(step):
            yield write_steps(graph, [*steps[:at], smaller, *steps[at + 1 :]])  # type: ignore[list-item] # of the same class


def show_steps(data: bytes) -> str:
    """Return the text of an input."""
    graph, steps = read_steps(data)
    return "\n".join(text_format.MessageToString(each) for each in (graph, *steps))
