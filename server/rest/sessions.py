"""Serve the REST resource of sessions by means of the session service.

Calls that run steps have plain Starlette routes; the other calls have FastAPI routes. Every call
takes JSON. A call that TensorFlow's master service also has takes its message too, as
`application/x-protobuf`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from fastapi import APIRouter
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import protos as pb
from server.access.caller import Caller
from server.codec.proto_json import read_proto
from server.codec.scalars import encode_base64
from server.host import ALONE, Host
from server.rest.http_messages import (
    caller_of,
    is_protobuf,
    json_response,
    proto_response,
    request_body,
)
from server.rest.session_bodies import (
    CancelBody,
    KeepAliveBody,
    read_create_request,
    read_extend_body,
    read_model,
)
from server.rest.session_docs import SESSION_DOCS
from server.rest.session_steps import SessionSteps
from server.sessions.clock import rfc3339
from server.sessions.open_session import OpenSession
from server.sessions.requests import CreateRequest
from server.sessions.service import SessionService
from server.steps.step_runner import off_loop

PREFIX = "/v1/sessions"


class _SessionIdConvertor(StringConvertor):
    """Matches a session id, which ends at the colon before the verb.

    Otherwise `GET …/id:run` would be an unknown id, but it must be a wrong method.
    """

    regex = "[^/:]+"


register_url_convertor("session", _SessionIdConvertor())
# (method, path below PREFIX, name of the method of SessionResource)
_ROUTES: tuple[tuple[str, str, str], ...] = (
    ("POST", "", "create_session"),
    ("GET", "", "list_sessions"),
    ("POST", "/{session_id:session}:extend", "extend_session"),
    ("POST", "/{session_id:session}:close", "close_session"),
    ("POST", "/{session_id:session}:keepAlive", "keep_session_alive"),
    ("POST", "/{session_id:session}:cancel", "cancel_step"),
    ("GET", "/{session_id:session}/graph", "get_session_graph"),
    ("GET", "/{session_id:session}/devices", "get_session_devices"),
    ("GET", "/{session_id:session}", "get_session"),
    ("DELETE", "/{session_id:session}", "delete_session"),
)
# Calls that run steps have plain routes, which call the endpoint without FastAPI's layers.
_STEP_ROUTES: tuple[tuple[str, str], ...] = (
    ("run", "run_session"),
    ("partialRunSetup", "partial_run_setup"),
    ("partialRun", "partial_run"),
    ("makeCallable", "make_callable"),
    ("runCallable", "run_callable"),
    ("releaseCallable", "release_callable"),
)


def step_routes(steps: SessionSteps) -> list[Route]:
    """Return the plain routes of the calls that run steps, `:run` first."""
    return [
        Route(f"{PREFIX}/{{session_id:session}}:{verb}", getattr(steps, name), methods=["POST"])
        for verb, name in _STEP_ROUTES
    ]


def session_router(resource: SessionResource) -> APIRouter:
    """Return the routes of all calls that run no step."""
    router = APIRouter(prefix=PREFIX, tags=["sessions"])
    for method, path, name in _ROUTES:
        router.add_api_route(
            path,
            getattr(resource, name),
            methods=[method],
            response_class=Response,
            operation_id=name,
            **SESSION_DOCS[name],
        )
        if not path:  # a slash at the end names the same resource
            router.add_api_route(
                "/",
                getattr(resource, name),
                methods=[method],
                response_class=Response,
                include_in_schema=False,
            )
    return router


class SessionResource:
    """The endpoints of the calls that run no step."""

    def __init__(self, service: SessionService, max_body_bytes: int, host: Host = ALONE) -> None:
        self._service = service
        self._max_body_bytes = max_body_bytes
        self._host = host

    async def _body(self, request: Request) -> bytes:
        return await request_body(request, self._max_body_bytes)

    async def create_session(self, request: Request) -> Response:
        """Open a session on a served model, on a SavedModel on disk, on a graph, or empty."""
        body = await self._body(request)
        as_protobuf = is_protobuf(dict(request.scope["headers"]))
        if as_protobuf:
            message = await off_loop(len(body), read_proto, body, pb.CreateSessionRequest)
            creation = CreateRequest(graph_def=message.graph_def, config=message.config)
        else:
            creation = await off_loop(len(body), read_create_request, body)
        creation = dataclasses.replace(creation, caller=caller_of(request.scope))
        opened = await self._service.create(creation)
        headers = {"Location": f"{PREFIX}/{opened.id}"}
        if as_protobuf:
            answer = pb.CreateSessionResponse(
                session_handle=opened.id, graph_version=opened.graph_version
            )
            return proto_response(answer, 201, headers)
        return json_response(_describe_new(opened), 201, headers)

    async def extend_session(self, request: Request, session_id: str) -> Response:
        """Add nodes to the session's graph."""
        body = await self._body(request)
        if is_protobuf(dict(request.scope["headers"])):
            message = await off_loop(len(body), read_proto, body, pb.ExtendSessionRequest)
            version = await self._service.extend(
                session_id, message.graph_def, message.current_graph_version
            )
            return proto_response(pb.ExtendSessionResponse(new_graph_version=version))
        graph_def, expected = await off_loop(len(body), read_extend_body, body)
        version = await self._service.extend(session_id, graph_def, expected)
        return json_response({"graph_version": version})

    async def close_session(self, request: Request, session_id: str) -> Response:
        """Close the session at once; its running steps respond with 499."""
        await self._service.close(session_id)
        if is_protobuf(dict(request.scope["headers"])):
            return proto_response(pb.CloseSessionResponse())
        return json_response({})

    async def delete_session(self, session_id: str) -> Response:
        """Close the session, as `:close` does."""
        await self._service.close(session_id)
        return json_response({})

    async def keep_session_alive(self, request: Request, session_id: str) -> Response:
        """Renew the lease."""
        fields = read_model(await self._body(request), KeepAliveBody)
        opened = self._service.keep_alive(session_id, fields.lease_seconds)
        return json_response({"expires_at": _expires_at(opened)})

    async def cancel_step(self, request: Request, session_id: str) -> Response:
        """Cancel the step of a request; the session remains open."""
        fields = read_model(await self._body(request), CancelBody)
        self._service.cancel(session_id, fields.request_id)
        return json_response({})

    async def list_sessions(self, request: Request) -> Response:
        """List the open sessions that the caller may see, oldest first in each process.

        The ids of sessions that are not the caller's own are masked.
        """
        caller = caller_of(request.scope)
        sessions = described_sessions(self._service, caller)
        for others in await self._host.ask("sessions", caller):
            sessions += others
        return json_response({"sessions": sessions})

    async def get_session(self, session_id: str) -> Response:
        """Describe one open session."""
        return json_response(describe_session(self._service.get(session_id), session_id))

    async def get_session_graph(self, session_id: str) -> Response:
        """Return the session's graph as it is now."""
        graph_def, version = await self._service.graph_def(session_id)
        return await off_loop(graph_def.ByteSize(), _graph_response, graph_def, version)

    async def get_session_devices(self, session_id: str) -> Response:
        """Return the session's devices, the client device first."""
        return json_response({"devices": _describe_devices(self._service.get(session_id))})


def _graph_response(graph_def: pb.GraphDef, version: int) -> Response:
    text = encode_base64(graph_def.SerializeToString())
    return json_response({"graph_def": text, "graph_version": version})


def _describe_new(opened: OpenSession) -> dict[str, Any]:
    return {
        "session": opened.id,
        "graph_version": opened.graph_version,
        "devices": _describe_devices(opened),
        "thread_pools": [name for name, _ in opened.thread_pools()],
        "expires_at": _expires_at(opened),
    }


def described_sessions(service: SessionService, caller: Caller) -> list[dict[str, Any]]:
    """Return what a listing says of the sessions that a caller may see, oldest first."""
    return [
        describe_session(opened, caller.shown_id(opened.id, opened.owner))
        for opened in service.open_sessions(caller)
    ]


def describe_session(opened: OpenSession, shown_id: str) -> dict[str, Any]:
    """Return what a listing says of a session; `shown_id` takes the place of its id."""
    return {
        "session": shown_id,
        "state": "RUNNING" if opened.is_running else "IDLE",
        "name": opened.name,
        "model": opened.model,
        "graph_version": opened.graph_version,
        "steps": opened.steps,
        "last_used_at": rfc3339(opened.last_used_at),
        "expires_at": _expires_at(opened),
        "thread_pools": [name for name, _ in opened.thread_pools(shown_id)],
        "bytes_held": opened.session.bytes_held,
        "shared_weights": opened.shared_weights,
    }


def _describe_devices(opened: OpenSession) -> list[dict[str, Any]]:
    return [
        {
            "name": device.name,
            "device_type": device.device_type,
            "memory_limit": device.memory_limit,
        }
        for device in opened.session.list_devices()
    ]


def _expires_at(opened: OpenSession) -> str:
    clock = opened.clock
    return rfc3339(clock.wall_at(opened.lease.expires_at(clock.monotonic())))
