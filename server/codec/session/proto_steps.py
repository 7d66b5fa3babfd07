"""Read and write steps of sessions as messages of TensorFlow's master service.

Over HTTP, feeds are checked against the graph, as the feeds of JSON bodies are. Over gRPC they are
not checked, as in TensorFlow's master. All functions may be called on any thread.

TF: tensorflow/core/protobuf/master.proto
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import protos as pb
from runtime.api import fed_more_than_once, tensor_from_proto, tensor_to_proto
from runtime.errors import InvalidArgumentError, OpError
from server.codec.proto_json import read_proto
from server.codec.session.step_parts import (
    PROCESS_ONLY,
    StepSession,
    TensorInfo,
    check_feed,
    fetch_types,
    not_feedable,
    set_options,
)
from server.steps.step_request import StepRequest


class ProtoSteps:
    """Reads messages into StepRequests and writes response messages.

    The methods may be called on any thread. Every `read_…` raises the same errors as the method of
    the same name in `JsonSteps`, and ResourceExhaustedError if the shape of a feed requires more
    than `max_tensor_bytes`.
    """

    media_type = "application/x-protobuf"

    def __init__(self, max_tensor_bytes: int) -> None:
        self._max_bytes = max_tensor_bytes

    def read_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a RunStepRequest into `step`."""
        message = self._read_step(body, step, session)
        if message.partial_run_handle:
            raise InvalidArgumentError("A part of a partial run goes to :partialRun")

    def read_partial_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read a part of a partial run from a RunStepRequest with a `partial_run_handle`."""
        message = self._read_step(body, step, session)
        step.partial_run_handle = message.partial_run_handle
        if message.target:
            raise InvalidArgumentError(
                f"Targets belong to :partialRunSetup, got {list(message.target)} in a part"
            )

    def _read_step(self, body: bytes, step: StepRequest, session: StepSession) -> pb.RunStepRequest:
        message = read_proto(body, pb.RunStepRequest)
        step.feeds = decoded_feeds(message.feed, self._max_bytes, session.tensor_info)
        step.fetches, step.targets = list(message.fetch), list(message.target)
        step.fetch_types = fetch_types(step.fetches, session.tensor_info)
        options = message.options
        set_options(step, options, pool_is_chosen=options.inter_op_thread_pool != 0)
        return message

    def read_run_callable(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a RunCallableRequest into `step`."""
        message = read_proto(body, pb.RunCallableRequest)
        prepared = session.session.callable(message.handle)
        options = prepared.options
        feeds = [
            pb.NamedTensorProto(name=name, tensor=tensor)
            for name, tensor in prepared.by_name(message.feed).items()
        ]
        step.compiled = prepared.compiled
        step.fetches, step.targets = options.fetch, options.target
        step.feeds = decoded_feeds(feeds, self._max_bytes, session.tensor_info)
        step.fetch_types = fetch_types(options.fetch, session.tensor_info)
        run_options = options.run_options
        set_options(step, run_options, pool_is_chosen=run_options.inter_op_thread_pool != 0)

    def write_run(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write a serialized RunStepResponse with the tensors in the order of the fetches."""
        return write_run_step(step, values)

    def write_run_callable(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write a serialized RunCallableResponse with the tensors in the order of the fetches."""
        return write_run_callable(step, values)


def decoded_feeds(
    feeds: Iterable[pb.NamedTensorProto], max_bytes: int, tensor_info: TensorInfo | None = None
) -> dict[str, np.ndarray]:
    """Decode feeds to arrays by name, and check them against the graph if `tensor_info` is given.

    Raises InvalidArgumentError if a name is fed twice or an array does not fit the graph, and
    ResourceExhaustedError if a tensor requires more than `max_bytes`.
    """
    arrays: dict[str, np.ndarray] = {}
    for index, feed in enumerate(feeds):
        if feed.name in arrays:
            raise fed_more_than_once(feed.name)
        if tensor_info is None:
            arrays[feed.name] = tensor_from_proto(feed.tensor, max_bytes)
            continue
        data_type, shape = tensor_info(feed.name)
        if data_type in PROCESS_ONLY:
            raise not_feedable(feed.name, data_type)
        arrays[feed.name] = array = tensor_from_proto(feed.tensor, max_bytes)
        check_feed(array, index, feed.name, data_type, shape)
    return arrays


class ReceivedRunStep(NamedTuple):
    """A RunStepRequest with its decoded feeds, or with the error that decoding them raised.

    `fault` must be raised only after the session was looked up: an unknown session is reported
    first.
    """

    message: pb.RunStepRequest
    feeds: dict[str, np.ndarray]
    fault: OpError | None = None


class ReceivedRunCallable(NamedTuple):
    """A RunCallableRequest with its decoded feeds, or with the error that decoding them raised."""

    message: pb.RunCallableRequest
    feeds: list[np.ndarray]
    fault: OpError | None = None


def receive_run_step(max_bytes: int, data: bytes) -> ReceivedRunStep:
    """Parse a RunStepRequest; if a feed cannot be decoded, return the error as `fault`.

    A feed must not require more than `max_bytes`.
    """
    message = pb.RunStepRequest.FromString(data)
    try:
        return ReceivedRunStep(message, decoded_feeds(message.feed, max_bytes))
    except OpError as error:
        return ReceivedRunStep(message, {}, error)


def receive_run_callable(max_bytes: int, data: bytes) -> ReceivedRunCallable:
    """Parse a RunCallableRequest; if a feed cannot be decoded, return the error as `fault`.

    A feed must not require more than `max_bytes`.
    """
    message = pb.RunCallableRequest.FromString(data)
    try:
        feeds = [tensor_from_proto(tensor, max_bytes) for tensor in message.feed]
    except OpError as error:
        return ReceivedRunCallable(message, [], error)
    return ReceivedRunCallable(message, feeds)


def write_run_step(step: StepRequest, values: Sequence[Any]) -> bytes:
    """Write a serialized RunStepResponse with the tensors in the order of the fetches."""
    response = pb.RunStepResponse(metadata=step.metadata)
    for index, (name, value) in enumerate(zip(step.fetches, values, strict=True)):
        _write_tensor(step, index, value, response.tensor.add(name=name).tensor)
    return response.SerializeToString()


def write_run_callable(step: StepRequest, values: Sequence[Any]) -> bytes:
    """Write a serialized RunCallableResponse with the tensors in the order of the fetches."""
    response = pb.RunCallableResponse(metadata=step.metadata)
    for index, value in enumerate(values):
        _write_tensor(step, index, value, response.fetch.add())
    return response.SerializeToString()


def _write_tensor(step: StepRequest, index: int, value: Any, proto: pb.TensorProto) -> None:
    """Write a value with the element type of its fetch, if `step.fetch_types` is set."""
    if step.fetch_types:
        tensor_to_proto(np.asarray(value), step.fetch_types[index], proto)
    else:
        tensor_to_proto(value, None, proto)
