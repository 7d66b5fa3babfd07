"""Requests of the calls as httpx's: addresses, time limits and credentials of a client."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import httpx

from runstep.client.exchange import Answer, Request, Retries
from runtime.errors import InvalidArgumentError

# Beyond a call's timeout, so that the server's own answer, 504, arrives.
_GRACE_SECONDS = 5.0
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """How a client reaches its server.

    Attributes:
        url: `http://host:port`, with the path of a proxy if there is one.
        api_key: A key of the server's `access.keys_file`.
        token: A bearer token (JWT).
        user: (name, password), sent as Basic.
        timeout: Seconds that a call may take if it names no timeout of its own, all attempts
            and the pauses in between included.
        retries: How often a request is sent.
        verify: As httpx's: False, or an `ssl.SSLContext`, also for a client certificate.
    """

    url: str = "http://localhost:8501"
    api_key: str | None = None
    token: str | None = None
    user: tuple[str, str] | None = None
    timeout: float = 60.0
    retries: Retries = dataclasses.field(default_factory=Retries)
    verify: Any = True

    def arguments(self) -> dict[str, Any]:
        """Return what an httpx client is made with; raise InvalidArgumentError if it is wrong."""
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise InvalidArgumentError(f"{self.url!r} is no address: {error}") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidArgumentError(f"expected http://host:port, got {self.url!r}")
        return {
            "base_url": url,
            "headers": self._headers(),
            "verify": self.verify,
        }

    def _headers(self) -> dict[str, str]:
        given = [each for each in (self.api_key, self.token, self.user) if each is not None]
        if len(given) > 1:
            raise InvalidArgumentError("expected one of api_key, token and user")
        if self.api_key is not None:
            return {"X-API-Key": self.api_key}
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user is not None:
            pair = base64.b64encode(":".join(self.user).encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def seconds_left(self, request: Request, elapsed: float) -> float:
        """Return the rest of a call's time, `elapsed` seconds after the call began."""
        return (self.timeout if request.timeout is None else request.timeout) - elapsed

    def request(self, request: Request, elapsed: float) -> dict[str, Any]:
        """Return the arguments of httpx's `request`."""
        seconds = max(self.seconds_left(request, elapsed), 0.001)
        headers = dict(request.headers)
        arguments: dict[str, Any] = {
            "method": request.method,
            "url": request.path.lstrip("/"),
            "content": request.content,
            "headers": headers,
            "timeout": seconds + _GRACE_SECONDS,
        }
        if request.timeout is not None:
            headers["X-Timeout-Ms"] = str(max(1, round(1000 * seconds)))
        return arguments


def answer_of(response: httpx.Response) -> Answer:
    """Return an httpx response whose body was read."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, response.content)
