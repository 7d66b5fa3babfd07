"""The calls that run steps, in protobuf: bodies and answers are the master service's messages.

A failure is answered with its HTTP status and the JSON body of every other error, whatever
`store_errors_in_response_body` says: HTTP's bodies can be as long as a message needs, which gRPC's
trailers cannot. `session_handle` is not read, the URL says which session is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

import protos as pb
from runtime.api import DataType, tensor_to_proto
from runtime.errors import InvalidArgumentError
from server.codec.session_tensors import fetch_types, read_proto_feeds, write_proto_outputs
from server.rest.bodies import proto_response
from server.rest.disconnect import DisconnectWatch
from server.rest.session_bodies import read_proto
from server.rest.step_requests import (
    check_answer_bytes,
    metadata_if_asked,
    off_loop,
    request_parts,
)
from server.sessions.open_session import OpenSession
from server.sessions.requests import StepRequest
from server.sessions.service import SessionService


class ProtobufSteps:
    """One method a call; each takes the request and its body."""

    def __init__(
        self, service: SessionService, max_tensor_bytes: int, max_answer_bytes: int
    ) -> None:
        self._service = service
        self._max_tensor_bytes = max_tensor_bytes
        self._max_answer_bytes = max_answer_bytes

    async def run_session(self, request: Request, body: bytes) -> Response:
        """RunStepRequest in, RunStepResponse out."""
        opened = self._opened(request)
        message, step, types = await off_loop(len(body), lambda: self._read(request, opened, body))
        if message.partial_run_handle:
            raise InvalidArgumentError("A part of a partial run goes to :partialRun")
        with DisconnectWatch(request.receive, step.cancellation):
            values = await self._service.run(opened.id, step)
        return await self._answer(step, values, types)

    async def partial_run_setup(self, request: Request, body: bytes) -> Response:
        """PartialRunSetupRequest in, PartialRunSetupResponse out."""
        asked = read_proto(body, pb.PartialRunSetupRequest)
        handle = await self._service.partial_run_setup(
            self._opened(request).id, list(asked.feed), list(asked.fetch), list(asked.target)
        )
        return proto_response(pb.PartialRunSetupResponse(partial_run_handle=handle))

    async def partial_run(self, request: Request, body: bytes) -> Response:
        """RunStepRequest with a `partial_run_handle` in, RunStepResponse out."""
        opened = self._opened(request)
        message, step, types = await off_loop(len(body), lambda: self._read(request, opened, body))
        if message.target:
            raise InvalidArgumentError(
                f"Targets belong to :partialRunSetup, got {list(message.target)} in a part"
            )
        with DisconnectWatch(request.receive, step.cancellation):
            values = await self._service.partial_run(opened.id, message.partial_run_handle, step)
        return await self._answer(step, values, types)

    async def make_callable(self, request: Request, body: bytes) -> Response:
        """MakeCallableRequest in, MakeCallableResponse out."""
        asked = read_proto(body, pb.MakeCallableRequest)
        handle = await self._service.make_callable(self._opened(request).id, asked.options)
        return proto_response(pb.MakeCallableResponse(handle=handle))

    async def run_callable(self, request: Request, body: bytes) -> Response:
        """RunCallableRequest in, RunCallableResponse out."""
        opened = self._opened(request)
        asked = read_proto(body, pb.RunCallableRequest)
        options = opened.callable_options(asked.handle)
        feeds = await off_loop(len(body), lambda: self._callable_feeds(asked, options, opened))
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
            values = await self._service.run_callable(opened.id, asked.handle, feeds, step)
        size = check_answer_bytes(values, self._max_answer_bytes)
        fetched = await off_loop(size, lambda: _tensors(values, types))
        return proto_response(pb.RunCallableResponse(fetch=fetched, metadata=step.metadata))

    async def release_callable(self, request: Request, body: bytes) -> Response:
        """ReleaseCallableRequest in, ReleaseCallableResponse out."""
        asked = read_proto(body, pb.ReleaseCallableRequest)
        await self._service.release_callable(self._opened(request).id, asked.handle)
        return proto_response(pb.ReleaseCallableResponse())

    async def _answer(
        self, step: StepRequest, values: Sequence[Any], types: list[DataType]
    ) -> Response:
        size = check_answer_bytes(values, self._max_answer_bytes)
        tensors = await off_loop(size, lambda: write_proto_outputs(step.fetches, values, types))
        return proto_response(pb.RunStepResponse(tensor=tensors, metadata=step.metadata))

    def _opened(self, request: Request) -> OpenSession:
        return self._service.get(request.path_params["session_id"])

    def _read(
        self, request: Request, opened: OpenSession, body: bytes
    ) -> tuple[pb.RunStepRequest, StepRequest, list[DataType]]:
        message = read_proto(body, pb.RunStepRequest)
        fetches = list(message.fetch)
        step = StepRequest(
            feeds=read_proto_feeds(message.feed, opened.tensor_info, self._max_tensor_bytes),
            fetches=fetches,
            targets=list(message.target),
            options=message.options,
            pool_is_chosen=message.options.inter_op_thread_pool != 0,
            priority=request.headers.get("x-priority"),
            metadata=metadata_if_asked(message.options),
            **request_parts(request),
        )
        return message, step, fetch_types(fetches, opened.tensor_info)

    def _callable_feeds(
        self, asked: pb.RunCallableRequest, options: pb.CallableOptions, opened: OpenSession
    ) -> list[np.ndarray]:
        if len(asked.feed) != len(options.feed):
            raise InvalidArgumentError(
                f"Expected {len(options.feed)} feed tensors, but got {len(asked.feed)}"
            )
        named = [
            pb.NamedTensorProto(name=name, tensor=tensor)
            for name, tensor in zip(options.feed, asked.feed, strict=True)
        ]
        feeds = read_proto_feeds(named, opened.tensor_info, self._max_tensor_bytes)
        return list(feeds.values())


def _tensors(values: Sequence[Any], types: list[DataType]) -> list[pb.TensorProto]:
    return [
        tensor_to_proto(np.asarray(value), data_type)
        for value, data_type in zip(values, types, strict=True)
    ]
