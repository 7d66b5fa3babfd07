"""Read and write steps of sessions as messages of TensorFlow's master service.

Over HTTP, feeds are checked against the graph, as the feeds of JSON bodies are. Over gRPC they are
not checked, as in TensorFlow's master. All functions may be called on any thread.

TF: tensorflow/core/protobuf/master.proto
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

import protos as pb
from runtime.api import DataType, fed_more_than_once, tensor_from_proto, tensor_to_proto
from runtime.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from server.codec.proto_json import read_proto
from server.codec.session.large_responses import Part, is_large, message_field, tensor_parts
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

_RUN_STEP_TENSOR = pb.RunStepResponse.DESCRIPTOR.fields_by_name["tensor"].number
_NAMED_TENSOR = pb.NamedTensorProto.DESCRIPTOR.fields_by_name["tensor"].number
_RUN_CALLABLE_FETCH = pb.RunCallableResponse.DESCRIPTOR.fields_by_name["fetch"].number
# Feeds that need more bytes than this, and more than this factor times the bytes of their message,
# consist of repeated values.
_FEW_BYTES = 1 << 18
_CLAIMED_FACTOR = 16
_ITEMSIZES = {
    data_type.value: data_type.numpy.itemsize
    for data_type in DataType
    if data_type not in (DataType.INVALID, *PROCESS_ONLY)
}
D = TypeVar("D", "ReceivedRunStep", "ReceivedRunCallable")


class ProtoSteps:
    """Reads messages into StepRequests and writes response messages.

    The methods may be called on any thread. Every `read_…` raises the same errors as the method of
    the same name in `JsonSteps`, and ResourceExhaustedError if the shape of a feed requires more
    than `max_tensor_bytes`.
    """

    media_type = "application/x-protobuf"

    def __init__(self, max_tensor_bytes: int) -> None:
        self._max_bytes = max_tensor_bytes

    def bytes_to_read(self, body: bytes, call: str) -> int:
        """Return how many bytes `read_<call>` decodes: those of the body, or those that its feeds
        need if they claim many more.
        """
        kind = pb.RunCallableRequest if call == "run_callable" else pb.RunStepRequest
        if len(body) >= _FEW_BYTES:
            return len(body)
        message: Any = read_proto(body, kind)
        feeds = message.feed
        return bytes_needed(
            len(body), feeds if kind is pb.RunCallableRequest else [feed.tensor for feed in feeds]
        )

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
    feeds = list(feeds)
    check_claims([feed.tensor for feed in feeds], max_bytes)
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


class Undecoded(NamedTuple):
    """A parsed request of few bytes whose feeds claim many; `decode()` returns the whole request.

    `size` is the number of bytes that the feeds need.
    """

    size: int
    decode: Callable[[], ReceivedRunStep | ReceivedRunCallable]


def receive_run_step(max_bytes: int, data: bytes) -> ReceivedRunStep | Undecoded:
    """Parse a RunStepRequest; if a feed cannot be decoded, return the error as `fault`.

    A feed must not require more than `max_bytes`.
    """
    message = pb.RunStepRequest.FromString(data)
    decode = functools.partial(_decoded_run_step, max_bytes, message)
    return _decoded_or_not(len(data), [feed.tensor for feed in message.feed], decode)


def _decoded_run_step(max_bytes: int, message: pb.RunStepRequest) -> ReceivedRunStep:
    try:
        return ReceivedRunStep(message, decoded_feeds(message.feed, max_bytes))
    except OpError as error:
        return ReceivedRunStep(message, {}, error)


def receive_run_callable(max_bytes: int, data: bytes) -> ReceivedRunCallable | Undecoded:
    """Parse a RunCallableRequest; if a feed cannot be decoded, return the error as `fault`.

    A feed must not require more than `max_bytes`.
    """
    message = pb.RunCallableRequest.FromString(data)
    decode = functools.partial(_decoded_run_callable, max_bytes, message)
    return _decoded_or_not(len(data), message.feed, decode)


def check_claims(tensors: Sequence[pb.TensorProto], max_bytes: int) -> None:
    """Raise ResourceExhaustedError if tensors of repeated values need over `max_bytes` together."""
    needed = [_claimed_bytes(tensor) for tensor in tensors] if len(tensors) > 1 else []
    repeated = sum(
        claimed
        for claimed, tensor in zip(needed, tensors, strict=False)
        if claimed > _CLAIMED_FACTOR * tensor.ByteSize()
    )
    if repeated > max_bytes:
        raise ResourceExhaustedError(
            f"{len(tensors)} feeds that repeat their values need {repeated} bytes together; "
            f"the limit of a tensor is {max_bytes}"
        )


def _decoded_or_not(
    size: int, tensors: Iterable[pb.TensorProto], decode: Callable[[], D]
) -> D | Undecoded:
    needed = bytes_needed(size, tensors)
    return decode() if needed == size else Undecoded(needed, decode)


def bytes_needed(size: int, tensors: Iterable[pb.TensorProto]) -> int:
    """Return the `size` of a message, or what its tensors need if their values are repeated."""
    claimed = max(0, sum(map(_claimed_bytes, tensors)))
    return size if claimed <= max(_CLAIMED_FACTOR * size, _FEW_BYTES) else claimed


def _claimed_bytes(tensor: pb.TensorProto) -> int:
    """Return how many bytes a tensor of this shape needs."""
    itemsize = _ITEMSIZES.get(tensor.dtype, 8)
    return itemsize * math.prod(dim.size for dim in tensor.tensor_shape.dim)


def _decoded_run_callable(max_bytes: int, message: pb.RunCallableRequest) -> ReceivedRunCallable:
    try:
        check_claims(message.feed, max_bytes)
        feeds = [tensor_from_proto(tensor, max_bytes) for tensor in message.feed]
    except OpError as error:
        return ReceivedRunCallable(message, [], error)
    return ReceivedRunCallable(message, feeds)


def write_run_step(step: StepRequest, values: Sequence[Any]) -> bytes:
    """Write a serialized RunStepResponse with the tensors in the order of the fetches."""
    if any(map(is_large, values)):
        parts: list[Part] = []
        for index, (name, value) in enumerate(zip(step.fetches, values, strict=True)):
            named = pb.NamedTensorProto(name=name).SerializeToString()
            tensor = message_field(_NAMED_TENSOR, _tensor_parts(step, index, value))
            parts += message_field(_RUN_STEP_TENSOR, [named, *tensor])
        return b"".join([*parts, pb.RunStepResponse(metadata=step.metadata).SerializeToString()])
    response = pb.RunStepResponse(metadata=step.metadata)
    for index, (name, value) in enumerate(zip(step.fetches, values, strict=True)):
        _write_tensor(step, index, value, response.tensor.add(name=name).tensor)
    return response.SerializeToString()


def write_run_callable(step: StepRequest, values: Sequence[Any]) -> bytes:
    """Write a serialized RunCallableResponse with the tensors in the order of the fetches."""
    if any(map(is_large, values)):
        parts: list[Part] = []
        for index, value in enumerate(values):
            parts += message_field(_RUN_CALLABLE_FETCH, _tensor_parts(step, index, value))
        rest = pb.RunCallableResponse(metadata=step.metadata).SerializeToString()
        return b"".join([*parts, rest])
    response = pb.RunCallableResponse(metadata=step.metadata)
    for index, value in enumerate(values):
        _write_tensor(step, index, value, response.fetch.add())
    return response.SerializeToString()


def _tensor_parts(step: StepRequest, index: int, value: Any) -> list[Part]:
    """Return the parts of a serialized TensorProto, without a copy of a large value."""
    proto = pb.TensorProto()
    if not is_large(value):
        _write_tensor(step, index, value, proto)
        return [proto.SerializeToString()]
    # Equal to writing the whole tensor, because the content of an array without elements is empty.
    _write_tensor(step, index, value[:0], proto)
    proto.tensor_shape.dim[0].size = len(value)
    return tensor_parts(proto, value)


def _write_tensor(step: StepRequest, index: int, value: Any, proto: pb.TensorProto) -> None:
    """Write a value with the element type of its fetch, if `step.fetch_types` is set."""
    if step.fetch_types:
        tensor_to_proto(np.asarray(value), step.fetch_types[index], proto)
    else:
        tensor_to_proto(value, None, proto)
