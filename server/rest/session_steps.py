"""Serve the calls that run steps: `:run`, the partial runs and the callables.

A body is JSON or the matching message of TensorFlow's master service, and the response has the same
form. The response to an error always is its HTTP status and a JSON body, because
`store_errors_in_response_body` is for gRPC, whose trailers cannot have long texts. `session_handle`
is not read, because the URL names the session.
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

import protos as pb
from server.codec.proto_json import read_proto
from server.codec.session.json_steps import JsonSteps
from server.codec.session.proto_steps import ProtoSteps
from server.rest.http_messages import (
    ENCODINGS,
    answer_encoding,
    is_protobuf,
    json_response,
    proto_response,
    read_body,
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
from server.steps.step_runner import off_loop


class _Begun(NamedTuple):
    """A request whose body has been received, and the codec that must read the body."""

    opened: OpenSession
    step: StepRequest
    body: bytes
    codec: JsonSteps | ProtoSteps


class SessionSteps:
    """The endpoints of the calls that run steps, for plain Starlette routes."""

    def __init__(self, service: SessionService, settings: Settings) -> None:
        self._service = service
        self._runner = service.runner
        self._max_body_bytes = settings.rest.max_body_bytes
        self._protobuf = ProtoSteps(settings.sessions.max_tensor_bytes)
        self._json = {name: JsonSteps(name, settings.rest.non_finite) for name in ENCODINGS}

    async def run_session(self, request: Request) -> Response:
        """Run one step."""
        opened, step, body, codec = await self._begin(request)
        await off_loop(len(body), codec.read_run, body, step, opened)
        values, size = await self._runner.run(opened.session, step, opened)
        content = await off_loop(size, codec.write_run, step, values)
        return Response(content, media_type=codec.media_type)

    async def partial_run(self, request: Request) -> Response:
        """Feed and fetch a part of a step."""
        opened, step, body, codec = await self._begin(request)
        await off_loop(len(body), codec.read_partial_run, body, step, opened)
        values, size = await self._runner.run_part(opened.session, step, opened)
        content = await off_loop(size, codec.write_run, step, values)
        return Response(content, media_type=codec.media_type)

    async def run_callable(self, request: Request) -> Response:
        """Run a prepared step.

        Feeds and outputs are lists in the order of the callable's options.
        """
        opened, step, body, codec = await self._begin(request)
        await off_loop(len(body), codec.read_run_callable, body, step, opened)
        values, size = await self._runner.run(opened.session, step, opened)
        content = await off_loop(size, codec.write_run_callable, step, values)
        return Response(content, media_type=codec.media_type)

    async def _begin(self, request: Request) -> _Begun:
        scope = request.scope
        opened = self._service.get(scope["path_params"]["session_id"])
        # The first of several headers of a name counts, as it does for the framework.
        encoding, headers = answer_encoding(scope), dict(reversed(scope["headers"]))
        step = step_request(scope, headers, request.receive)
        body = await read_body(request.receive, headers, self._max_body_bytes)
        if opened.gone:  # meanwhile
            opened.check_open()
        step.body_bytes = len(body)
        codec = self._protobuf if is_protobuf(headers) else self._json[encoding]
        return _Begun(opened, step, body, codec)

    # --- calls that prepare steps --------------------------------------------------------------

    async def partial_run_setup(self, request: Request) -> Response:
        """Begin a step that is fed and fetched in parts."""
        body, session_id = await self._body(request), request.path_params["session_id"]
        if is_protobuf(dict(request.scope["headers"])):
            message = await off_loop(len(body), read_proto, body, pb.PartialRunSetupRequest)
            handle = await self._service.partial_run_setup(
                session_id, list(message.feed), list(message.fetch), list(message.target)
            )
            return proto_response(pb.PartialRunSetupResponse(partial_run_handle=handle))
        names = await off_loop(len(body), read_model, body, PartialRunSetupBody)
        handle = await self._service.partial_run_setup(
            session_id, names.feeds, names.fetches, names.targets
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
