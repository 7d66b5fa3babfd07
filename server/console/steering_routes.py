"""The console's calls on the server itself: the reader, logins, live figures, labels, drain."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from runtime.errors import InvalidArgumentError
from server.access.access import Access
from server.access.caller import Role
from server.access.console_logins import COOKIE, is_own_page
from server.codec.json_body import parse_object
from server.console.event_stream import EventStream
from server.models.administration import Administration
from server.package import package_version
from server.rest.http_messages import caller_of, json_response, request_body
from server.settings import Settings

_MAX_BODY_BYTES = 64 << 10
_DRAIN_SECONDS = 0.2  # after the answer, which is then sent
_LABEL = re.compile(r"[\w.-]{1,256}")


class SteeringCalls:
    """The endpoints; `drain` ends the server as a SIGTERM does."""

    def __init__(
        self,
        access: Access,
        administration: Administration,
        events: EventStream,
        settings: Settings,
        drain: Callable[[], object],
    ) -> None:
        self._access, self._administration = access, administration
        self._events, self._settings, self._drain = events, settings, drain

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/console/api/me", self.me, methods=["GET"]),
            Route("/console/api/login", self.login, methods=["POST"]),
            Route("/console/api/logout", self.logout, methods=["POST"]),
            Route("/console/api/events", self.events, methods=["GET"]),
            Route("/console/api/models/{name}:label", self.label, methods=["POST"]),
            Route("/console/api/drain", self.drain, methods=["POST"]),
        ]

    async def me(self, request: Request) -> Response:
        """Return who the caller is, and what it may do."""
        caller = caller_of(request.scope)
        roles = [role for role in Role if caller.has(role)]
        return json_response(
            {
                "authentication": self._settings.is_authenticated,
                "name": caller.owner,
                "roles": [str(role) for role in roles],
                "admin_enabled": self._settings.admin.enabled,
                "version": package_version(),
                "strict": self._settings.rest.strict_tensorflow_serving,
            }
        )

    async def login(self, request: Request) -> Response:
        """Exchange a credential for a cookie, which only this server's page can use."""
        headers = _check_page(request)
        if not self._settings.is_authenticated:
            raise InvalidArgumentError("This server has no keys and no tokens: there is no login")
        credential = (await _body(request, "credential")).get("credential")
        if not isinstance(credential, str) or not credential.strip():
            raise InvalidArgumentError("expected `credential`, a key or a token, as text")
        login_id = self._access.log_in(credential.strip())
        answer = json_response({})
        answer.headers["Cache-Control"] = "no-store"
        answer.set_cookie(COOKIE, login_id, secure=_is_secure(request, headers), **_COOKIE)
        return answer

    async def logout(self, request: Request) -> Response:
        """End the login of the caller."""
        headers = _check_page(request)
        self._access.console_logins.end(headers)
        answer = json_response({})
        answer.delete_cookie(COOKIE, secure=_is_secure(request, headers), **_COOKIE)
        return answer

    async def events(self, request: Request) -> Response:
        """Return the stream of figures; it ends with the login or the key of its reader."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        kind = "text/event-stream"
        if request.method == "HEAD":
            return Response(headers=headers, media_type=kind)
        is_known = self._access.still_known(dict(request.scope["headers"]))
        messages = _while(is_known, self._events.open())
        return StreamingResponse(messages, headers=headers, media_type=kind)

    async def label(self, request: Request) -> Response:
        """Let a label lead to a version, or remove it if the version is null."""
        self._administration.check(caller_of(request.scope))
        body = await _body(request, "label", "version")
        label, version = body.get("label"), body.get("version")
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            raise InvalidArgumentError("expected `label`, of letters, digits and . _ -")
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise InvalidArgumentError("expected `version`, a number or null")
        await self._administration.set_label(request.path_params["name"], label, version)
        return json_response({})

    async def drain(self, request: Request) -> Response:
        """Refuse new work, finish what runs, and end, as at SIGTERM."""
        self._administration.check(caller_of(request.scope))
        asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._drain)
        return json_response({})


_COOKIE: Mapping[str, Any] = {"httponly": True, "samesite": "strict", "path": "/"}


def end_by_signal() -> None:
    """Let the process end as an orchestrator would."""
    signal.raise_signal(signal.SIGTERM)


async def _while(
    is_known: Callable[[], bool], messages: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(messages):
        async for message in messages:
            if not is_known():
                return
            yield message


def _check_page(request: Request) -> Mapping[bytes, bytes]:
    """Return the headers; raise InvalidArgumentError if the console's page did not send them."""
    headers = dict(request.scope["headers"])
    if b"x-runstep-console" not in headers or not is_own_page(headers):
        raise InvalidArgumentError("only the console's page makes this call (X-Runstep-Console)")
    return headers


def _is_secure(request: Request, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the browser's connection is encrypted, if need be by a proxy before this."""
    origin = headers.get(b"origin", b"")
    return request.scope.get("scheme") == "https" or origin.startswith(b"https://")


async def _body(request: Request, *known: str) -> Mapping[str, Any]:
    return parse_object(await request_body(request, _MAX_BODY_BYTES), frozenset(known))
