"""The calls that run steps: `:run`, the partial runs and the callables.

A large body is read, and a large answer written, on another thread (`step_requests.off_loop`), so
that the event loop goes on answering others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import protos as pb
from runtime.api import DataType
from runtime.errors import InvalidArgumentError
from server.codec.json_body import parse_object, to_json, type_name
from server.codec.json_tensor_writer import write_tensor
from server.codec.session_tensors import fetch_types, read_feeds, write_outputs
from server.rest.bodies import asked_encoding, is_protobuf, json_response, request_body
from server.rest.disconnect import DisconnectWatch
from server.rest.protobuf_steps import ProtobufSteps
from server.rest.session_bodies import (
    PARTIAL_RUN_KEYS,
    RUN_CALLABLE_KEYS,
    RUN_KEYS,
    MakeCallableBody,
    PartialRunSetupBody,
    ReleaseCallableBody,
    read_body,
    read_json_proto,
    read_priority,
    read_run_body,
    write_json_proto,
)
from server.rest.step_requests import (
    check_answer_bytes,
    metadata_if_asked,
    off_loop,
    request_parts,
)
from server.sessions.open_session import OpenSession
from server.sessions.requests import StepRequest
from server.sessions.service import SessionService
from server.settings import Settings

_POOL_KEYS = ("inter_op_thread_pool", "interOpThreadPool")  # proto JSON knows both spellings


@dataclasses.dataclass(frozen=True, slots=True)
class _Run:
    """A step that has been read, and what is needed to write its answer."""

    step: StepRequest
    types: list[DataType]


class SessionSteps:
    """One method a call; each is a plain Starlette endpoint."""

    def __init__(self, service: SessionService, settings: Settings) -> None:
        self._service = service
        self._non_finite = settings.rest.non_finite
        self._max_answer_bytes = settings.rest.max_answer_bytes
        self._protobuf = ProtobufSteps(
            service, settings.sessions.max_tensor_bytes, self._max_answer_bytes
        )
        self._max_body_bytes = settings.rest.max_body_bytes

    async def run_session(self, request: Request) -> Response:
        """Run one step."""
        opened = self._service.get(request.path_params["session_id"])
        encoding = asked_encoding(request)
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.run_session(request, body)
        run = await off_loop(len(body), lambda: self._read_run(request, opened, body))
        step = run.step
        with DisconnectWatch(request.receive, step.cancellation):
            values = await self._service.run(opened.id, step)
        size = check_answer_bytes(values, self._max_answer_bytes)
        return await off_loop(size, lambda: self._write_run(step, values, run.types, encoding))

    def _read_run(self, request: Request, opened: OpenSession, body: bytes) -> _Run:
        value = read_run_body(body, RUN_KEYS)
        named = value.get("options", {})
        options = read_json_proto(named, "options", pb.RunOptions) if named != {} else None
        fetches = value["fetches"]
        step = StepRequest(
            feeds=read_feeds(value["feeds"], opened.tensor_info),
            fetches=fetches,
            targets=value["targets"],
            options=options,
            pool_is_chosen=any(key in named for key in _POOL_KEYS),
            priority=read_priority(value.get("priority")) or request.headers.get("x-priority"),
            metadata=metadata_if_asked(options),
            **request_parts(request),
        )
        return _Run(step, fetch_types(fetches, opened.tensor_info))

    def _write_run(
        self, step: StepRequest, values: Sequence[Any], types: list[DataType], encoding: Any
    ) -> Response:
        answer: dict[str, Any] = {
            "outputs": write_outputs(step.fetches, values, types, encoding, self._non_finite)
        }
        if step.metadata is not None:
            answer["run_metadata"] = write_json_proto(step.metadata)
        return Response(to_json(answer), media_type="application/json")

    async def _body(self, request: Request) -> bytes:
        return await request_body(request, self._max_body_bytes)

    # --- partial runs -------------------------------------------------------------------------

    async def partial_run_setup(self, request: Request) -> Response:
        """Begin a step that is fed and fetched in parts."""
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.partial_run_setup(request, body)
        asked = read_body(body, PartialRunSetupBody)
        handle = await self._service.partial_run_setup(
            request.path_params["session_id"], asked.feeds, asked.fetches, asked.targets
        )
        return json_response({"partial_run_handle": handle})

    async def partial_run(self, request: Request) -> Response:
        """Feed and fetch a part of a step."""
        opened = self._service.get(request.path_params["session_id"])
        encoding = asked_encoding(request)
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.partial_run(request, body)
        value = read_run_body(body, PARTIAL_RUN_KEYS)
        handle = value.get("partial_run_handle")
        if not isinstance(handle, str):
            raise InvalidArgumentError(
                f"partial_run_handle must be a string, got {type_name(handle)}"
            )
        types = fetch_types(value["fetches"], opened.tensor_info)
        step = StepRequest(
            feeds=read_feeds(value["feeds"], opened.tensor_info),
            fetches=value["fetches"],
            targets=(),
            **request_parts(request),
        )
        with DisconnectWatch(request.receive, step.cancellation):
            values = await self._service.partial_run(opened.id, handle, step)
        size = check_answer_bytes(values, self._max_answer_bytes)
        return await off_loop(size, lambda: self._write_run(step, values, types, encoding))

    # --- callables ----------------------------------------------------------------------------

    async def make_callable(self, request: Request) -> Response:
        """Prepare a step with fixed feeds, fetches and targets."""
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.make_callable(request, body)
        asked = read_body(body, MakeCallableBody)
        options = read_json_proto(asked.options, "options", pb.CallableOptions)
        handle = await self._service.make_callable(request.path_params["session_id"], options)
        return json_response({"handle": handle})

    async def run_callable(self, request: Request) -> Response:
        """Run a prepared step: feeds and outputs are lists, in the order of its options."""
        opened = self._service.get(request.path_params["session_id"])
        encoding = asked_encoding(request)
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.run_callable(request, body)
        value = parse_object(body, RUN_CALLABLE_KEYS)
        handle, feeds = value.get("handle"), value.get("feeds", [])
        if type(handle) is not int or not isinstance(feeds, list):
            raise InvalidArgumentError(
                f"Expected an integer handle and a list of feeds, got {type_name(handle)} "
                f"and {type_name(feeds)}"
            )
        options = opened.callable_options(handle)
        if len(feeds) != len(options.feed):
            raise InvalidArgumentError(
                f"Expected {len(options.feed)} feed tensors, but got {len(feeds)}"
            )
        named = dict(zip(options.feed, feeds, strict=True))
        arrays = list(read_feeds(named, opened.tensor_info).values())
        types = fetch_types(options.fetch, opened.tensor_info)
        step = StepRequest(
            feeds={},
            fetches=list(options.fetch),
            targets=(),
            options=options.run_options,
            pool_is_chosen=options.run_options.inter_op_thread_pool != 0,
            priority=request.headers.get("x-priority"),
            metadata=metadata_if_asked(options.run_options),
            **request_parts(request),
        )
        with DisconnectWatch(request.receive, step.cancellation):
            values = await self._service.run_callable(opened.id, handle, arrays, step)
        check_answer_bytes(values, self._max_answer_bytes)
        outputs = [
            write_tensor(value, data_type, encoding=encoding, non_finite=self._non_finite)
            for value, data_type in zip(values, types, strict=True)
        ]
        return json_response({"outputs": outputs})

    async def release_callable(self, request: Request) -> Response:
        """Forget a prepared step."""
        body = await self._body(request)
        if is_protobuf(request):
            return await self._protobuf.release_callable(request, body)
        asked = read_body(body, ReleaseCallableBody)
        await self._service.release_callable(request.path_params["session_id"], asked.handle)
        return json_response({})
