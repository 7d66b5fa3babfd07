"""Read and write steps of sessions as JSON: `:run`, `:partialRun` and `:runCallable`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from google.protobuf import json_format

import protos as pb
from runtime.api import DataType
from runtime.errors import InvalidArgumentError, OpError
from server.codec.json_body import (
    parse_large_object,
    parse_object,
    parse_sliced_object,
    to_json,
    type_name,
)
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.large.array_parts import LARGE_ANSWER_BYTES, content_bytes
from server.codec.large.large_values import LargeList
from server.codec.large.number_array import NumberArray
from server.codec.proto_json import read_json_proto
from server.codec.session.step_parts import (
    PROCESS_ONLY,
    StepSession,
    TensorInfo,
    check_feed,
    fetch_types,
    not_feedable,
    set_options,
)
from server.codec.session.tensor_reader import read_tensor
from server.codec.session.tensor_writer import Encoding, tensor_parts, write_tensor
from server.steps.step_request import StepRequest

_RUN_KEYS = frozenset({"feeds", "fetches", "targets", "priority", "options"})
_PARTIAL_RUN_KEYS = frozenset({"partial_run_handle", "feeds", "fetches"})
_RUN_CALLABLE_KEYS = frozenset({"handle", "feeds"})
_POOL_KEYS = frozenset({"inter_op_thread_pool", "interOpThreadPool"})  # the two valid spellings

_Fill = Callable[[StepRequest, StepSession, dict[str, Any]], None]


class JsonSteps:
    """Reads request bodies into StepRequests and writes response bodies.

    The methods may be called on any thread. `encoding` is the form of tensors in responses, and
    `non_finite` is the form of NaN and infinities. Every `read_…` raises InvalidArgumentError if
    the body has another form or a value does not fit the graph, and the session's error if a name
    or a handle is unknown.
    """

    media_type = "application/json"

    def __init__(self, encoding: Encoding, non_finite: str) -> None:
        self._encoding = encoding
        self._non_finite = non_finite

    def bytes_to_read(self, body: bytes, _: str) -> int:
        """Return how many bytes are decoded."""
        return len(body)

    def read_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a `:run` body into `step`.

        A priority in the body overrides `step.priority`.
        """
        _read_step(body, _RUN_KEYS, _fill_run, step, session)

    def read_partial_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read a part of a partial run from a `:partialRun` body into `step`."""
        _read_step(body, _PARTIAL_RUN_KEYS, _fill_partial_run, step, session)

    def read_run_callable(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a `:runCallable` body, in which `feeds` is a list, into `step`."""
        _read_step(body, _RUN_CALLABLE_KEYS, _fill_run_callable, step, session)

    def write_run(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write `{"outputs": {name: tensor}}`, with the names as the client spelled them."""
        if _are_large(values):
            return self._write_large_run(step, values)
        outputs = {}
        for name, value, data_type in zip(step.fetches, values, step.fetch_types, strict=True):
            outputs[name] = write_tensor(
                value, data_type, encoding=self._encoding, non_finite=self._non_finite
            )
        answer: dict[str, Any] = {"outputs": outputs}
        if step.metadata is not None:
            answer["run_metadata"] = json_format.MessageToDict(
                step.metadata, preserving_proto_field_name=True
            )
        return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)

    def write_run_callable(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write `{"outputs": [tensor, …]}`, in the order of the callable's fetches."""
        if _are_large(values):
            tensors = zip(values, step.fetch_types, strict=True)
            parts = [(b",", *self._parts(*tensor)) for tensor in tensors]
            return _joined(b'{"outputs":[', parts, b"]}")
        outputs = []
        for value, data_type in zip(values, step.fetch_types, strict=True):
            outputs.append(
                write_tensor(value, data_type, encoding=self._encoding, non_finite=self._non_finite)
            )
        return orjson.dumps({"outputs": outputs}, option=orjson.OPT_SERIALIZE_NUMPY)

    def _write_large_run(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write the same as `write_run`, in parts."""
        tensors = zip(values, step.fetch_types, strict=True)
        parts = [
            (b",", to_json(name), b":", *self._parts(*tensor))
            for name, tensor in dict(zip(step.fetches, tensors, strict=True)).items()
        ]
        end = b"}}"
        if step.metadata is not None:
            report = json_format.MessageToDict(step.metadata, preserving_proto_field_name=True)
            end = b'},"run_metadata":%s}' % to_json(report)
        return _joined(b'{"outputs":{', parts, end)

    def _parts(self, value: Any, data_type: DataType) -> Iterator[bytes]:
        return tensor_parts(value, data_type, encoding=self._encoding, non_finite=self._non_finite)


def _are_large(values: Sequence[Any]) -> bool:
    """Return whether arrays have to be written in parts; strings are longer than pointers."""
    size = sum(content_bytes(value) << 4 * (value.dtype == object) for value in values)
    return bool(size >= LARGE_ANSWER_BYTES)


def _joined(start: bytes, members: Sequence[Sequence[bytes]], end: bytes) -> bytes:
    """Join members of which each begins with a comma, which the first one must not have."""
    parts = list(itertools.chain.from_iterable(members))[1:]
    return b"".join([start, *parts, end])


def read_feeds(feeds: Mapping[str, Any], tensor_info: TensorInfo) -> dict[str, np.ndarray]:
    """Read the arrays of a body's feeds; return them by the names that the client used.

    Raises the error of `tensor_info` if a name is unknown, and InvalidArgumentError if a value does
    not fit the graph.
    """
    arrays = {}
    for index, (name, value) in enumerate(feeds.items()):
        data_type, shape = tensor_info(name)
        if data_type in PROCESS_ONLY:
            raise not_feedable(name, data_type)
        arrays[name] = array = read_tensor(value, name, data_type)
        check_feed(array, index, name, data_type, shape)
    return arrays


def _read_step(
    body: bytes, known: frozenset[str], fill: _Fill, step: StepRequest, session: StepSession
) -> None:
    """Parse a body and set the step with `fill`.

    This is done twice if large feeds of numbers that were read in slices do not fit the graph: the
    error then names the faulty element.
    """
    if len(body) >= LARGE_BODY_BYTES:
        sliced = parse_sliced_object(body, known, "feeds")
        if sliced is not None:
            try:
                fill(step, session, sliced)
                return
            except OpError:
                del sliced  # the arrays, before others are made
        fill(step, session, parse_large_object(body, known, "feeds"))
        return
    fill(step, session, parse_object(body, known))


def _fill_run(step: StepRequest, session: StepSession, value: dict[str, Any]) -> None:
    feeds = _feeds_and_names(value)
    step.fetches, step.targets = value["fetches"], value["targets"]
    named = value.get("options", {})
    if named != {}:
        options = read_json_proto(named, "options", pb.RunOptions)
        set_options(step, options, pool_is_chosen=not _POOL_KEYS.isdisjoint(named))
    priority = value.get("priority")
    if priority is not None and not isinstance(priority, str):
        raise InvalidArgumentError(f"priority must be a string, got {type_name(priority)}")
    step.priority = priority or step.priority
    step.feeds = read_feeds(feeds, session.tensor_info)
    step.fetch_types = fetch_types(step.fetches, session.tensor_info)


def _fill_partial_run(step: StepRequest, session: StepSession, value: dict[str, Any]) -> None:
    feeds = _feeds_and_names(value)
    handle = value.get("partial_run_handle")
    if not isinstance(handle, str):
        raise InvalidArgumentError(f"partial_run_handle must be a string, got {type_name(handle)}")
    step.partial_run_handle = handle
    step.fetches = value["fetches"]
    step.fetch_types = fetch_types(step.fetches, session.tensor_info)
    step.feeds = read_feeds(feeds, session.tensor_info)


def _fill_run_callable(step: StepRequest, session: StepSession, value: dict[str, Any]) -> None:
    handle, feeds = value.get("handle"), value.get("feeds", [])
    is_list = isinstance(feeds, list | NumberArray | LargeList)
    if type(handle) is not int or not is_list:
        raise InvalidArgumentError(
            f"Expected an integer handle and a list of feeds, got {type_name(handle)} "
            f"and {type_name(feeds)}"
        )
    prepared = session.session.callable(handle)
    options = prepared.options
    step.compiled = prepared.compiled
    step.fetches, step.targets = options.fetch, options.target
    if isinstance(feeds, NumberArray):
        feeds = feeds.rows(len(options.feed))
    elif isinstance(feeds, LargeList):
        feeds = feeds.elements()
    step.feeds = read_feeds(prepared.by_name(feeds), session.tensor_info)
    step.fetch_types = fetch_types(options.fetch, session.tensor_info)
    run_options = options.run_options
    set_options(step, run_options, pool_is_chosen=run_options.inter_op_thread_pool != 0)


def _feeds_and_names(value: dict[str, Any]) -> dict[str, Any]:
    """Check `feeds`, `fetches` and `targets`, and return the feeds.

    If `fetches` or `targets` is missing, it is set to an empty list.
    """
    feeds = value.get("feeds", {})
    if not isinstance(feeds, dict):
        raise InvalidArgumentError(f"feeds must be an object, got {type_name(feeds)}")
    for key in ("fetches", "targets"):
        names = value.setdefault(key, [])
        if not isinstance(names, list) or not {str}.issuperset(map(type, names)):
            raise InvalidArgumentError(f"{key} must be a list of strings, got {names!r:.80}")
    return feeds
