"""Read and write steps of sessions as JSON: `:run`, `:partialRun` and `:runCallable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from google.protobuf import json_format

import protos as pb
from runtime.errors import InvalidArgumentError
from server.codec.json_body import parse_object, type_name
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
from server.codec.session.tensor_writer import Encoding, write_tensor
from server.steps.step_request import StepRequest

_RUN_KEYS = frozenset({"feeds", "fetches", "targets", "priority", "options"})
_PARTIAL_RUN_KEYS = frozenset({"partial_run_handle", "feeds", "fetches"})
_RUN_CALLABLE_KEYS = frozenset({"handle", "feeds"})
_POOL_KEYS = frozenset({"inter_op_thread_pool", "interOpThreadPool"})  # the two valid spellings


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

    def read_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a `:run` body into `step`.

        A priority in the body overrides `step.priority`.
        """
        value = _read_object(body, _RUN_KEYS)
        step.fetches, step.targets = value["fetches"], value["targets"]
        named = value.get("options", {})
        if named != {}:
            options = read_json_proto(named, "options", pb.RunOptions)
            set_options(step, options, pool_is_chosen=not _POOL_KEYS.isdisjoint(named))
        priority = value.get("priority")
        if priority is not None and not isinstance(priority, str):
            raise InvalidArgumentError(f"priority must be a string, got {type_name(priority)}")
        step.priority = priority or step.priority
        step.feeds = read_feeds(value["feeds"], session.tensor_info)
        step.fetch_types = fetch_types(step.fetches, session.tensor_info)

    def read_partial_run(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read a part of a partial run from a `:partialRun` body into `step`."""
        value = _read_object(body, _PARTIAL_RUN_KEYS)
        handle = value.get("partial_run_handle")
        if not isinstance(handle, str):
            raise InvalidArgumentError(
                f"partial_run_handle must be a string, got {type_name(handle)}"
            )
        step.partial_run_handle = handle
        step.fetches = value["fetches"]
        step.fetch_types = fetch_types(step.fetches, session.tensor_info)
        step.feeds = read_feeds(value["feeds"], session.tensor_info)

    def read_run_callable(self, body: bytes, step: StepRequest, session: StepSession) -> None:
        """Read the step of a `:runCallable` body, in which `feeds` is a list, into `step`."""
        value = parse_object(body, _RUN_CALLABLE_KEYS)
        handle, feeds = value.get("handle"), value.get("feeds", [])
        if type(handle) is not int or not isinstance(feeds, list):
            raise InvalidArgumentError(
                f"Expected an integer handle and a list of feeds, got {type_name(handle)} "
                f"and {type_name(feeds)}"
            )
        prepared = session.session.callable(handle)
        options = prepared.options
        step.compiled = prepared.compiled
        step.fetches, step.targets = options.fetch, options.target
        step.feeds = read_feeds(prepared.by_name(feeds), session.tensor_info)
        step.fetch_types = fetch_types(options.fetch, session.tensor_info)
        run_options = options.run_options
        set_options(step, run_options, pool_is_chosen=run_options.inter_op_thread_pool != 0)

    def write_run(self, step: StepRequest, values: Sequence[Any]) -> bytes:
        """Write `{"outputs": {name: tensor}}`, with the names as the client spelled them."""
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
        outputs = []
        for value, data_type in zip(values, step.fetch_types, strict=True):
            outputs.append(
                write_tensor(value, data_type, encoding=self._encoding, non_finite=self._non_finite)
            )
        return orjson.dumps({"outputs": outputs}, option=orjson.OPT_SERIALIZE_NUMPY)


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


def _read_object(body: bytes, known: frozenset[str]) -> dict[str, Any]:
    """Parse a body that must be an object, and check `feeds`, `fetches` and `targets`.

    If one of the three keys is missing, it is set to an empty object or list.
    """
    value = parse_object(body, known)
    feeds = value.setdefault("feeds", {})
    if not isinstance(feeds, dict):
        raise InvalidArgumentError(f"feeds must be an object, got {type_name(feeds)}")
    for key in ("fetches", "targets"):
        names = value.setdefault(key, [])
        if not isinstance(names, list) or not {str}.issuperset(map(type, names)):
            raise InvalidArgumentError(f"{key} must be a list of strings, got {names!r:.80}")
    return value
