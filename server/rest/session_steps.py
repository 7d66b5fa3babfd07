"""Serve the calls that run steps: `:run`, the partial runs and the callables.

A body is JSON or the matching message of TensorFlow's master service, and the response has the same
form. The response to an error always is its HTTP status and a JSON body, because
`store_errors_in_response_body` is for gRPC, whose trailers cannot have long texts. `session_handle`
is not read, because the URL names the session.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

import protos as pb
from runtime.errors import OpError
from server.codec.body_process import LARGE_BYTES, BodyProcess, BodyProcesses, named_priority
from server.codec.proto_json import read_proto
from server.codec.session.json_steps import JsonSteps
from server.codec.session.proto_steps import ProtoSteps
from server.codec.session.short_run import ShortRun, read_short_body
from server.codec.session.step_parts import fetch_types
from server.connections.large_body import Body
from server.connections.plain_requests import ContentNow, is_plain
from server.memory_in_flight import COUNTED_BYTES, TIMES_BODY, hold
from server.rest.http_messages import (
    ENCODINGS,
    answer_encoding,
    bytes_of,
    caller_of,
    is_protobuf,
    json_response,
    proto_response,
    read_large_body,
    request_body,
    step_request,
)
from server.rest.session_bodies import (
    PartialRunSetupBody,
    ReleaseCallableBody,
    read_callable_options,
    read_model,
)
from server.sessions.open_session import OpenSession
from server.sessions.service import SessionService
from server.settings import Settings
from server.steps.step_request import StepRequest
from server.steps.step_runner import deadline_of, off_loop, read_in_time

STEPS_PATH = re.compile(r"/v1/sessions/([^/:]+):(run|partialRun|runCallable)\Z")
_RUN_PATH = re.compile(r"/v1/sessions/([A-Za-z0-9_-]+):run\Z")


class _Begun(NamedTuple):
    """A request whose body has been received, and the codec that must read the body."""

    opened: OpenSession
    step: StepRequest
    body: Body
    codec: JsonSteps | ProtoSteps


async def _read(
    codec: JsonSteps | ProtoSteps,
    call: str,
    received: Body,
    step: StepRequest,
    opened: OpenSession,
    elsewhere: BodyProcess | None = None,
) -> None:
    """Read the body of a call, on another thread or `elsewhere` if it or what it claims is large.

    If `elsewhere` is set, the body is JSON.
    """
    if elsewhere is not None:
        deadline = deadline_of(step, opened)
        if await elsewhere.read_run(received, step, opened.known_tensors, deadline):
            return
    body = await bytes_of(received)
    size = codec.bytes_to_read(body, call)
    if size > TIMES_BODY * len(body) and size >= COUNTED_BYTES:
        hold(size)
    step.body_bytes = max(step.body_bytes, size)
    read = getattr(codec, f"read_{call}")
    await read_in_time(size, step, opened, read, body, step, opened)


class StepCalls:
    """The calls that run a step as an ASGI application, in place of the framework's layers.

    These take as long as a small step. Any other request below the path is for `app`, which also
    has the routes of these calls.
    """

    def __init__(self, steps: SessionSteps, app: ASGIApp) -> None:
        self._app = app
        self._endpoints = {
            "run": steps.run_session,
            "partialRun": steps.partial_run,
            "runCallable": steps.run_callable,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        match = STEPS_PATH.match(scope["path"])
        if match is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {"session_id": match[1]}
        endpoint = scope["endpoint"] = self._endpoints[match[2]]
        response = await endpoint(Request(scope, receive))
        await response(scope, receive, send)


class SessionSteps:
    """The endpoints of the calls that run steps, for plain Starlette routes."""

    def __init__(self, service: SessionService, settings: Settings, bodies: BodyProcesses) -> None:
        self._service = service
        self._runner = service.runner
        self._bodies = bodies
        self._max_body_bytes = settings.rest.max_body_bytes
        self._protobuf = ProtoSteps(settings.sessions.max_tensor_bytes)
        self._json = {name: JsonSteps(name, settings.rest.non_finite) for name in ENCODINGS}

    def run_now(self, path: str, _: Mapping[bytes, bytes], body: bytes) -> ContentNow:
        """Respond at once to a plain POST of a step that is short; raise the step's error."""
        match = _RUN_PATH.match(path)
        if match is None:
            return None
        try:
            opened = self._service.get(match[1])
        except OpError:
            return None
        return self._run_short(opened, body)

    def _run_short(self, opened: OpenSession, body: bytes) -> ContentNow:
        request = read_short_body(body)
        run = None if request is None else opened.short_run(request[0])
        if request is None or run is None or not run.step.may_run:
            return None
        feeds = run.read(request[1])
        if feeds is None:
            return None
        try:
            opened.check_may_run()
        except OpError:
            return None
        started = time.perf_counter()
        try:
            answer = self._runner.run_short(run.step, feeds)
        except OpError as error:
            opened.note_short_run(run.names, time.perf_counter() - started, error.code)
            raise
        if answer is None:
            return None
        values, is_small, seconds = answer
        opened.note_short_run(run.names, seconds)
        content = run.write(values) if is_small else None
        return content or self._write_fetched(opened, run, values)

    async def _write_fetched(self, opened: OpenSession, run: ShortRun, values: list[Any]) -> bytes:
        fetches = run.names.fetches
        step = StepRequest(fetches=fetches, fetch_types=fetch_types(fetches, opened.tensor_info))
        _, size = await self._runner.limited(values)
        return await off_loop(size, self._json["json"].write_run, step, values)

    async def run_session(self, request: Request) -> Response:
        """Run one step."""
        opened, step, body, codec = await self._begin(request)
        if (
            codec is self._json["json"]
            and isinstance(body, bytes)
            and self._is_plain(request, len(body), step, opened)
        ):
            content = self._run_short(opened, body)
            if content is not None:
                content = content if isinstance(content, bytes) else await content
                return Response(content, media_type=codec.media_type)
        elsewhere = None
        if codec is not self._protobuf and len(body) >= LARGE_BYTES:
            has_child = self._runner.has_child(step, named_priority(body))
            elsewhere = self._bodies.of_body(len(body), has_child=has_child)
        await _read(codec, "run", body, step, opened, elsewhere)
        values, size = await self._runner.run(opened.session, step, opened)
        content = await off_loop(size, codec.write_run, step, values)
        return Response(content, media_type=codec.media_type)

    async def partial_run(self, request: Request) -> Response:
        """Feed and fetch a part of a step."""
        opened, step, body, codec = await self._begin(request)
        await _read(codec, "partial_run", body, step, opened)
        values, size = await self._runner.run_part(opened.session, step, opened)
        content = await off_loop(size, codec.write_run, step, values)
        return Response(content, media_type=codec.media_type)

    async def run_callable(self, request: Request) -> Response:
        """Run a prepared step.

        Feeds and outputs are lists in the order of the callable's options.
        """
        opened, step, body, codec = await self._begin(request)
        await _read(codec, "run_callable", body, step, opened)
        values, size = await self._runner.run(opened.session, step, opened)
        content = await off_loop(size, codec.write_run_callable, step, values)
        return Response(content, media_type=codec.media_type)

    @staticmethod
    def _is_plain(request: Request, size: int, step: StepRequest, opened: OpenSession) -> bool:
        deadline = deadline_of(step, opened)
        is_in_time = deadline is None or time.monotonic() < deadline
        usage = step.caller.usage
        is_allowed = usage is None or usage.allows_short_step
        return is_in_time and is_allowed and is_plain(dict(request.scope["headers"]), size)

    async def _begin(self, request: Request) -> _Begun:
        scope = request.scope
        opened = self._service.get(scope["path_params"]["session_id"])
        # The first of several headers of a name counts, as it does for the framework.
        encoding, headers = answer_encoding(scope), dict(reversed(scope["headers"]))
        step = step_request(scope, headers, request.receive)
        body = await read_large_body(request.receive, headers, self._max_body_bytes)
        if opened.gone:  # meanwhile
            opened.check_open()
        step.body_bytes = len(body)
        codec = self._protobuf if is_protobuf(headers) else self._json[encoding]
        return _Begun(opened, step, body, codec)

    # --- calls that prepare steps --------------------------------------------------------------

    async def partial_run_setup(self, request: Request) -> Response:
        """Begin a step that is fed and fetched in parts."""
        body, session_id = await self._body(request), request.path_params["session_id"]
        caller = caller_of(request.scope)
        if is_protobuf(dict(request.scope["headers"])):
            message = await off_loop(len(body), read_proto, body, pb.PartialRunSetupRequest)
            handle = await self._service.partial_run_setup(
                session_id, list(message.feed), list(message.fetch), list(message.target), caller
            )
            return proto_response(pb.PartialRunSetupResponse(partial_run_handle=handle))
        names = await off_loop(len(body), read_model, body, PartialRunSetupBody)
        handle = await self._service.partial_run_setup(
            session_id, names.feeds, names.fetches, names.targets, caller
        )
        return json_response({"partial_run_handle": handle})

    async def make_callable(self, request: Request) -> Response:
        """Prepare a step with fixed feeds, fetches and targets."""
        body, session_id = await self._body(request), request.path_params["session_id"]
        if is_protobuf(dict(request.scope["headers"])):
            message = await off_loop(len(body), read_proto, body, pb.MakeCallableRequest)
            handle = await self._service.make_callable(session_id, message.options)
            return proto_response(pb.MakeCallableResponse(handle=handle))
        options = await off_loop(len(body), read_callable_options, body)
        handle = await self._service.make_callable(session_id, options)
        return json_response({"handle": handle})

    async def release_callable(self, request: Request) -> Response:
        """Release a prepared step."""
        body, session_id = await self._body(request), request.path_params["session_id"]
        if is_protobuf(dict(request.scope["headers"])):
            message = read_proto(body, pb.ReleaseCallableRequest)
            await self._service.release_callable(session_id, message.handle)
            return proto_response(pb.ReleaseCallableResponse())
        handle = read_model(body, ReleaseCallableBody).handle
        await self._service.release_callable(session_id, handle)
        return json_response({})

    async def _body(self, request: Request) -> bytes:
        return await request_body(request, self._max_body_bytes)
