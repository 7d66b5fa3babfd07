"""ModelCalls and ProtocolCalls: the HTTP calls of models that are replicas of Ray Serve.

What names a model of the application goes to one of its replicas; a list of models is made of the
lists of all; everything else, such as a wrong path or an unknown model, is for the application of
the front itself, so that there is one text for each error.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import OpError
from server.host import Host
from server.passed_calls import PassedRequest, PassedResponse, received_body
from server.ray_models.model_handle import ModelHandle
from server.ray_models.serve_host import ServeHost
from server.rest.http_messages import json_response
from server.rest.inference_protocol.paths import parse_path
from server.rest.model_paths import MalformedPathError, parse_model_path
from server.rest.passed_messages import received_request, send_response, unless_disconnected

_GRACE_SECONDS = 0.25  # after a deadline, for the replica's answer that says so
_LIST_SECONDS = 5.0
# Calls on a model that the front refuses itself.
_OF_FRONT = frozenset({"repository_load", "repository_unload"})
_ENCODING = b"accept-encoding"


async def model_call() -> None:
    """Name the calls that are passed on, in the metrics of the front."""


class _Calls:
    def __init__(self, host: Host, app: ASGIApp, timeout_ms: int) -> None:
        assert isinstance(host, ServeHost)
        self._host = host
        self._app = app
        self._timeout_ms = timeout_ms

    async def _pass(self, model: ModelHandle, scope: Scope, receive: Receive, send: Send) -> None:
        scope["endpoint"] = model_call
        request = await received_request(scope, receive)
        call = model.call(request, self._seconds(request))
        await send_response(await unless_disconnected(call, receive), send)

    def _seconds(self, request: PassedRequest) -> float | None:
        """Return how long to wait for a replica; what is wrong with a header is for the replica."""
        told = dict(request.headers).get(b"x-timeout-ms", b"")
        milliseconds = int(told) if told.isdigit() and len(told) < 10 else self._timeout_ms
        return milliseconds / 1000 + _GRACE_SECONDS if milliseconds else None

    async def _from_all(
        self, scope: Scope, receive: Receive
    ) -> tuple[list[tuple[ModelHandle, Any]], PassedResponse | None]:
        """Return each model with what a replica says, None if it does not, and a refusal."""
        scope["endpoint"] = model_call
        request = await received_request(scope, receive)
        plain = [each for each in request.headers if each[0] != _ENCODING]
        request = dataclasses.replace(request, headers=plain)
        models = self._host.models()
        said = await asyncio.gather(*(_said(model, request) for model in models))
        answers = []
        for model, response in zip(models, said, strict=True):
            if response is not None and response.status != 200:
                return [], response
            value = None if response is None else orjson.loads(received_body(response.body))
            answers.append((model, value))
        return answers, None


async def _said(model: ModelHandle, request: PassedRequest) -> PassedResponse | None:
    try:
        return await model.call(request, _LIST_SECONDS)
    except OpError:
        return None


class ModelCalls(_Calls):
    """TensorFlow Serving's REST API; `strict` is whether it has no list of models."""

    def __init__(self, host: Host, app: ASGIApp, timeout_ms: int, *, strict: bool) -> None:
        super().__init__(host, app, timeout_ms)
        self._strict = strict

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        try:
            target = parse_model_path(scope["method"], scope["raw_path"].decode("latin-1"))
        except MalformedPathError:
            await self._app(scope, receive, send)
            return
        model = self._host.model(target.name)
        if model is not None:
            await self._pass(model, scope, receive, send)
        elif target.call == "list" and not self._strict:
            await self._list(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _list(self, scope: Scope, receive: Receive, send: Send) -> None:
        answers, refused = await self._from_all(scope, receive)
        if refused is not None:
            await send_response(refused, send)
            return
        models: list[Any] = []
        for model, told in answers:
            silent = [{"name": model.name, "ready": False, "versions": []}]
            models += silent if told is None else told["models"]
        await json_response({"models": models})(scope, receive, send)


class ProtocolCalls(_Calls):
    """The Open Inference Protocol."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        try:
            target = parse_path(scope["method"], scope["raw_path"].decode("latin-1"))
        except OpError:
            await self._app(scope, receive, send)
            return
        model = self._host.model(target.name)
        if model is not None and target.call not in _OF_FRONT:
            await self._pass(model, scope, receive, send)
        elif target.call == "repository_index":
            await self._index(scope, receive, send)
        elif target.call == "statistics" and not target.name:
            await self._statistics(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _index(self, scope: Scope, receive: Receive, send: Send) -> None:
        answers, refused = await self._from_all(scope, receive)
        if refused is not None:
            await send_response(refused, send)
            return
        index: list[Any] = []
        for model, told in answers:
            silent = {"name": model.name, "version": "", "state": "UNAVAILABLE"}
            index += [silent | {"reason": model.fault}] if told is None else told
        await json_response(index)(scope, receive, send)

    async def _statistics(self, scope: Scope, receive: Receive, send: Send) -> None:
        answers, refused = await self._from_all(scope, receive)
        if refused is not None:
            await send_response(refused, send)
            return
        stats = [each for _, told in answers if told for each in told["model_stats"]]
        await json_response({"model_stats": stats})(scope, receive, send)
