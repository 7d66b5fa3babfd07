"""Health is answered without the framework, and any other method by the framework."""

from __future__ import annotations

import asyncio
import json

import pytest

from runtime.errors import UnavailableError
from server.lifecycle import Lifecycle
from server.rest.health import HEALTH_PATH, Health, HealthCalls


def health(*missing: str, serves: bool = True) -> Health:
    lifecycle = Lifecycle()
    if serves:
        lifecycle.begin_serving()
    return Health(lifecycle, lambda: missing)


async def framework(scope, receive, send):
    await send({"type": "http.response.start", "status": 405, "headers": []})


def call(health: Health, method: str, path: str) -> list[dict]:
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path}
    asyncio.run(HealthCalls(health, framework)(scope, None, send))
    return sent


@pytest.mark.parametrize(
    ("path", "text"), [("/healthz", {"status": "alive"}), ("/readyz", {"status": "ready"})]
)
def test_a_server_that_serves_says_so(path, text):
    start, body = call(health(), "GET", path)
    assert start["status"] == 200 and json.loads(body["body"]) == text


def test_what_is_not_ready_is_named():
    with pytest.raises(UnavailableError, match=r"^Not ready: digits, the pool$"):
        call(health("digits", "the pool"), "GET", "/readyz")
    with pytest.raises(UnavailableError, match=r"^The server is starting$"):
        call(health(serves=False), "GET", "/readyz")
    assert call(health("digits", serves=False), "GET", "/healthz")[0]["status"] == 200


def test_load_balancers_may_send_head():
    assert call(health(), "HEAD", "/readyz")[0]["status"] == 200
    with pytest.raises(UnavailableError, match=r"^The server is starting$"):
        call(health(serves=False), "HEAD", "/readyz")


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_other_methods_are_the_frameworks(method):
    assert call(health(), method, "/healthz")[0]["status"] == 405


@pytest.mark.parametrize("path", ["/healthz/", "/healthz\n", "/v1/healthz", "/readyzz"])
def test_other_paths_do_not_match(path):
    assert HEALTH_PATH.match(path) is None
