"""The console's calls on models: what a version is made of, and a trace of one of its steps."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import logging
import weakref
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import protos as pb
from runtime.api import DirectSession, RuntimeSession, ThreadPool
from runtime.errors import InvalidArgumentError
from server.access.caller import Caller
from server.codec.serving.requests import (
    Document,
    parse_document,
    predict_inputs,
    signature_name,
)
from server.console.model_data import describe_model, find_unclustered
from server.console.step_trace import trace_json
from server.models.inference_service import InferenceService
from server.models.model_version import ModelVersion
from server.rest.http_messages import caller_of, read_body, step_request
from server.settings import Settings
from server.steps.pool_calls import submit
from server.steps.step_runner import BY_ELEMENT, off_loop

PREFIX = "/console/api/models"
UNCLUSTERED_SECONDS = 10.0  # the longest that the description waits for why nodes aren't clustered
_MAX_VERSION = 1 << 63
_WAITING = [{"op": "", "nodes": 0, "why": "this is still being computed; load the page again"}]
_log = logging.getLogger(__name__)


def model_routes(
    inference: InferenceService, low_priority: ThreadPool, settings: Settings
) -> list[Route]:
    """Return the routes; what takes long is computed on the pool `low_priority`."""
    calls = ModelCalls(inference, low_priority, settings)
    return [
        Route(f"{PREFIX}/{{name}}", calls.one, methods=["GET"]),
        Route(f"{PREFIX}/{{name}}/trace", calls.trace, methods=["POST"]),
    ]


class ModelCalls:
    """The endpoints."""

    def __init__(
        self, inference: InferenceService, low_priority: ThreadPool, settings: Settings
    ) -> None:
        self._inference = inference
        self._manager = inference.manager
        self._low_priority = low_priority
        self._rest = settings.rest
        # What `find_unclustered` finds, or is finding, of each loaded version: it stays the same.
        self._unclustered: weakref.WeakKeyDictionary[
            ModelVersion, concurrent.futures.Future[list[dict[str, Any]]]
        ] = weakref.WeakKeyDictionary()

    async def one(self, request: Request) -> Response:
        """Return a version, by default the latest that serves."""
        text = request.query_params.get("version")
        name, version = request.path_params["name"], None if text is None else _version(text)
        served = self._manager.acquire(name, version, None)
        try:
            unclustered = await self._found_unclustered(served)
            content = await asyncio.to_thread(
                self._describe, served, caller_of(request.scope), unclustered
            )
        finally:
            served.release()
        return Response(content, media_type="application/json")

    def _describe(
        self, served: ModelVersion, caller: Caller, unclustered: list[dict[str, Any]]
    ) -> bytes:
        return orjson.dumps(describe_model(served, self._manager, caller, unclustered))

    async def _found_unclustered(self, served: ModelVersion) -> list[dict[str, Any]]:
        future = self._unclustered.get(served)
        if future is None:
            bundle, is_off = served.bundle, _is_off(served.session)
            future = self._unclustered[served] = submit(
                self._low_priority,
                lambda: find_unclustered(bundle.meta_graph_def, bundle.report, is_off=is_off),
                "console",
            )
        waiting = asyncio.wrap_future(future)
        await asyncio.wait((waiting,), timeout=UNCLUSTERED_SECONDS)
        if not waiting.done():
            return _WAITING
        error = waiting.exception()
        if error is None:
            return waiting.result()
        del self._unclustered[served]
        _log.warning("What may be clustered of %s is not known", served.name, exc_info=error)
        return [{"op": "", "nodes": 0, "why": "this could not be computed; the log says why"}]

    async def trace(self, request: Request) -> Response:
        """Run a signature and return the trace of its step in place of its outputs.

        The body is that of a predict call, and may name a `version`.
        """
        scope, name = request.scope, request.path_params["name"]
        headers = dict(reversed(scope["headers"]))
        step = step_request(scope, headers, request.receive, self._rest.timeout_ms)
        body = await read_body(request.receive, headers, self._rest.max_body_bytes)
        document = await off_loop(len(body) * BY_ELEMENT, parse_document, body)
        step.body_bytes = len(body)
        step.options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
        step.metadata = pb.RunMetadata()
        signature = signature_name(document)
        await self._inference.predict(
            name,
            _version_in(document),
            None,
            signature,
            functools.partial(predict_inputs, document, signature, False),
            step,
        )
        content = await asyncio.to_thread(trace_json, step.metadata.step_stats)
        return Response(content, media_type="application/json")


def _is_off(session: RuntimeSession) -> bool:
    return isinstance(session, DirectSession) and session.options.clusters == "off"


def _version_in(document: Document) -> int | None:
    version = document.members.get("version")
    return None if version is None else _version(version)


def _version(value: object) -> int:
    is_text = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
    number = int(value) if is_text else value  # type: ignore[call-overload] # it is a str
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MAX_VERSION:
        raise InvalidArgumentError(f"version must be an integer, got {value!r:.80}")
    return number
