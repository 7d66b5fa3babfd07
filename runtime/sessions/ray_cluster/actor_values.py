"""Tensors, requests and answers as they cross the boundary of a host actor.

Numbers cross as numpy arrays, which Ray puts into shared memory if they are large; they are read
there without a copy. Strings cross as serialized TensorProtos. Nothing else crosses: a resource or
a variant has no value outside of its process.

An answer is `(0, content)`, or `(code, message)` of an OpError: no exception crosses, because the
classes of a raised exception would have to be importable on the other side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import protos as pb
from runtime.foundation.errors import InternalError, OpError, as_op_error, error_for_code
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.runtime_session import Tensor

PROTOCOL = 2  # of the calls to a host actor; a host of another number is another host
Sent: TypeAlias = Any  # a numpy array or scalar, or bytes: a serialized TensorProto
Answer: TypeAlias = tuple[int, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of SessionOptions that hold in the host as well."""

    max_graph_nodes: int
    max_session_bytes: int | None
    max_step_bytes: int | None
    clusters: str
    engine: str = "auto"
    precision: str = "float32"


def to_sent(value: Tensor) -> Sent:
    """Return a tensor as it is sent; raise UnimplementedError for a resource or a variant."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind == "O":
        return tensor_to_proto(value).SerializeToString()
    if value.dtype.kind in "SU":
        return tensor_to_proto(np.asarray(value, object)).SerializeToString()
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value
    return np.asarray(value)  # of a subclass, which the other side may not know


def from_sent(value: Sent) -> Tensor:
    """Return the tensor that was sent."""
    if isinstance(value, bytes):
        return tensor_from_proto(pb.TensorProto.FromString(value))
    return value


def sent_feeds(feeds: Mapping[str, Tensor]) -> dict[str, Sent]:
    """Return {name: value as it is sent}."""
    return {name: to_sent(value) for name, value in feeds.items()}


def received_feeds(feeds: Mapping[str, Sent]) -> dict[str, Tensor]:
    """Return {name: tensor}."""
    return {name: from_sent(value) for name, value in feeds.items()}


def answer_of(values: Sequence[Tensor], metadata: pb.RunMetadata | None) -> Answer:
    """Return the answer to a step."""
    reported = b"" if metadata is None else metadata.SerializeToString()
    return (0, ([to_sent(value) for value in values], reported))


def refusal(error: BaseException) -> Answer:
    """Return the answer that is an error."""
    told = as_op_error(error)
    return (int(told.code), told.message)


def content_of(answer: Answer) -> Any:
    """Return the content of an answer; raise its OpError."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InternalError(f"A host actor answered with a {type(answer).__name__}")
    code, content = answer
    if code:
        raise error_for_code(code, content)
    return content


def values_of(answer: Answer, metadata: pb.RunMetadata | None) -> list[Tensor]:
    """Return the values of a step's answer and fill `metadata`; raise the OpError of the answer."""
    values, reported = content_of(answer)
    if metadata is not None and reported:
        metadata.MergeFromString(reported)
    return [from_sent(value) for value in values]


def error_of(answer: Answer) -> OpError | None:
    """Return the OpError of an answer, or None."""
    return error_for_code(*answer) if answer[0] else None
