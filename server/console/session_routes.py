"""The console's calls on sessions: GET and POST of JSON below `console/api/sessions`.

Who may use a session is decided before, by `server/access`, as for `/v1/sessions`: the owner with
authentication, and without it whoever knows the id. What is long is made on other threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import protos as pb
from runtime.api import CancellationManager
from runtime.errors import InvalidArgumentError, OpError
from server.codec.session.json_steps import JsonSteps
from server.codec.session.step_parts import set_options
from server.console.session_data import (
    graph_json,
    histogram_json,
    listed_session,
    one_session,
    resources_json,
    session_signatures,
)
from server.console.step_trace import trace_json
from server.models.manager import ModelManager
from server.rest.disconnect import DisconnectWatch
from server.rest.http_messages import caller_of, json_response, read_body, step_request
from server.sessions.open_session import OpenSession
from server.sessions.service import SessionService
from server.settings import Settings
from server.steps.pool_calls import submit
from server.steps.priorities import Priorities
from server.steps.step_runner import off_loop
from server.steps.step_waiter import wait_for_step

PREFIX = "/console/api/sessions"
HISTOGRAM_SECONDS = 10.0  # the longest that a histogram takes, with its wait for normal steps
CALL_SECONDS = 30.0  # the longest that any other call takes
T = TypeVar("T")


def session_routes(
    service: SessionService, models: ModelManager, priorities: Priorities, settings: Settings
) -> list[Route]:
    """Return the routes; histograms are computed on the pool on which models are loaded."""
    calls = SessionCalls(service, models, priorities, settings)
    one = f"{PREFIX}/{{session_id:session}}"
    return [
        Route(PREFIX, calls.list, methods=["GET"]),
        Route(one, calls.one, methods=["GET"]),
        Route(f"{one}/graph", calls.graph, methods=["GET"]),
        Route(f"{one}/signatures", calls.signatures, methods=["GET"]),
        Route(f"{one}/resources", calls.resources, methods=["GET"]),
        Route(f"{one}/histogram", calls.histogram, methods=["GET"]),
        Route(f"{one}/trace", calls.trace, methods=["POST"]),
    ]


class SessionCalls:
    """The endpoints."""

    def __init__(
        self,
        service: SessionService,
        models: ModelManager,
        priorities: Priorities,
        settings: Settings,
    ) -> None:
        self._service = service
        self._models = models
        self._default_pool = priorities.default.pool.name
        self._low_priority = priorities.load_pool
        self._max_body_bytes = settings.rest.max_body_bytes
        self._json = JsonSteps("json", settings.rest.non_finite)

    def _opened(self, request: Request) -> OpenSession:
        return self._service.get(request.path_params["session_id"])

    async def list(self, request: Request) -> Response:
        """Return the sessions that the caller may see, oldest first."""
        caller = caller_of(request.scope)
        opened = self._service.open_sessions(caller)
        return json_response({"sessions": [listed_session(each, caller) for each in opened]})

    async def one(self, request: Request) -> Response:
        """Return a session with the steps that run and those that ended last."""
        return json_response(one_session(self._opened(request), self._default_pool))

    async def graph(self, request: Request) -> Response:
        """Return the summary of a session's graph."""
        opened = self._opened(request)
        graph_def, version = await self._service.graph_def(opened.id)
        return _json(await asyncio.to_thread(graph_json, graph_def, version))

    async def signatures(self, request: Request) -> Response:
        """Return the signatures of a session's model; none if it has no served model."""
        model = self._opened(request).model or {}
        name, version = model.get("name"), model.get("version")
        if name is None:
            return json_response(session_signatures({}))
        served = None
        with contextlib.suppress(OpError):  # it has been unloaded
            served = self._models.find(name, version)
        return json_response(session_signatures({} if served is None else served.signatures))

    async def resources(self, request: Request) -> Response:
        """Return the variables, queues and other resources of a session."""
        opened = self._opened(request)
        return _json(await self._call(opened, lambda: resources_json(opened.session)))

    async def histogram(self, request: Request) -> Response:
        """Return the histogram of `?variable=NAME`."""
        opened = self._opened(request)
        name = request.query_params.get("variable")
        if not name:
            raise InvalidArgumentError("Expected ?variable=NAME")
        cancellation = CancellationManager()
        deadline = time.monotonic() + HISTOGRAM_SECONDS
        with opened.using(), DisconnectWatch(request.receive, cancellation):
            counting = submit(
                self._low_priority,
                lambda: histogram_json(opened.session, name),
                opened.queue_owner,
                cancellation.error,
            )
            return _json(await wait_for_step(counting, cancellation, deadline))

    async def trace(self, request: Request) -> Response:
        """Run a step, whose body is that of `:run`, and return its trace in place of its values."""
        opened, scope = self._opened(request), request.scope
        headers = dict(reversed(scope["headers"]))
        step = step_request(scope, headers, request.receive)
        body = await read_body(request.receive, headers, self._max_body_bytes)
        opened.check_open()
        step.body_bytes = len(body)
        await off_loop(len(body), self._json.read_run, body, step, opened)
        options = pb.RunOptions()
        if step.options is not None:
            options.CopyFrom(step.options)
        options.trace_level = pb.RunOptions.FULL_TRACE
        set_options(step, options, pool_is_chosen=step.pool_is_chosen)
        await self._service.runner.run(opened.session, step, opened)
        metadata = step.metadata or pb.RunMetadata()
        return _json(await asyncio.to_thread(trace_json, metadata.step_stats))

    async def _call(self, opened: OpenSession, work: Callable[[], T]) -> T:
        return await self._service.runner.call(work, CALL_SECONDS, opened.queue_owner)


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
