"""Cases stored in a file with their graphs and feeds: those that a tool generated.

TF: tensorflow/core/protobuf/master.proto (RunStepRequest holds a step)
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.conformance.case import Case, Step, read_frames, write_frames


def write_cases(path: pathlib.Path, cases: Sequence[Case]) -> None:
    """Store cases: a list of (name, number of steps, tolerance, shape_only), graphs, steps."""
    index, frames = [], []
    for case in cases:
        index.append([case.name, len(case.steps), case.tolerance, case.shape_only])
        frames.append(case.graph.SerializeToString(deterministic=True))
        frames += [_step_proto(step).SerializeToString(deterministic=True) for step in case.steps]
    write_frames(path, [json.dumps(index).encode(), *frames])


def read_cases(path: pathlib.Path) -> tuple[Case, ...]:
    """Return the cases that `write_cases` stored."""
    head, *rest = read_frames(path)
    frames = iter(rest)
    cases = []
    for name, count, tolerance, shape_only in json.loads(head):
        graph = pb.GraphDef.FromString(next(frames))
        steps = tuple(_step(pb.RunStepRequest.FromString(next(frames))) for _ in range(count))
        cases.append(Case(name, graph, steps, tolerance, shape_only=shape_only))
    return tuple(cases)


def _step_proto(step: Step) -> pb.RunStepRequest:
    feeds = [
        pb.NamedTensorProto(name=name, tensor=tensor_to_proto(value))
        for name, value in step.feeds.items()
    ]
    return pb.RunStepRequest(feed=feeds, fetch=step.fetches, target=step.targets)


def _step(proto: pb.RunStepRequest) -> Step:
    feeds = {each.name: tensor_from_proto(each.tensor) for each in proto.feed}
    return Step(feeds, tuple(proto.fetch), tuple(proto.target))
