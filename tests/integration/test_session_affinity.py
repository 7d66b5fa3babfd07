"""Sessions behind a gateway that chooses the server by the header X-Session-Affinity."""

from __future__ import annotations

import asyncio
import collections
import itertools
import zlib
from collections.abc import Iterator

import httpx
import pytest
import yaml

from runstep import AsyncClient, Client
from runstep.client.session_calls import AFFINITY_HEADER
from runtime.sessions.remote.http_transport import AFFINITY
from server.connections.plain_requests import _PLAIN_HEADERS
from tests.integration.server_process import ROOT, ServerProcess

SESSIONS = 12


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two servers that know nothing of each other."""
    model = {"name": "counter", "base_path": f"{ROOT}/examples/models/counter"}
    file = tmp_path_factory.mktemp("affinity") / "server.yaml"
    file.write_text(yaml.safe_dump({"models": [model]}))
    servers = [ServerProcess(f"--config={file}") for _ in range(2)]
    try:
        for server in servers:
            server.wait_for("Serving on")
            while server.client.get("/readyz").status_code == 503:
                pass
        yield [server.http_address for server in servers]
    finally:
        for server in servers:
            server.end()


class Gateway(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests with equal headers to the same server, and those without in turn."""

    def __init__(self, addresses: list[str]) -> None:
        self._urls = [httpx.URL(address) for address in addresses]
        self._turns = itertools.cycle(range(len(addresses)))
        self._blocking, self._async = httpx.HTTPTransport(), httpx.AsyncHTTPTransport()
        self.requests: collections.Counter[int] = collections.Counter()

    def _direct(self, request: httpx.Request) -> httpx.Request:
        key = request.headers.get(AFFINITY_HEADER)
        number = next(self._turns) if key is None else zlib.crc32(key.encode()) % len(self._urls)
        self.requests[number] += 1
        url = self._urls[number]
        request.url = request.url.copy_with(host=url.host, port=url.port)
        return request

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._blocking.handle_request(self._direct(request))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._async.handle_async_request(self._direct(request))

    def close(self) -> None:
        self._blocking.close()

    async def aclose(self) -> None:
        await self._async.aclose()


def test_every_call_of_a_session_reaches_its_server(addresses: list[str]) -> None:
    gateway = Gateway(addresses)
    with Client("http://gateway", transport=gateway) as client:
        sessions = [client.session("counter").open() for _ in range(SESSIONS)]
        for _ in range(2):
            assert {float(session.run("incr_counter")) for session in sessions} in ({1.0}, {2.0})
        for session in sessions:
            session.keep_alive(30)
            assert session.information()["steps"] == 2
            session.close()
    assert len(gateway.requests) == 2  # both servers have some


def test_so_does_every_call_of_the_client_for_asyncio(addresses: list[str]) -> None:
    async def scenario() -> None:
        async with AsyncClient("http://gateway", transport=Gateway(addresses)) as client:
            for _ in range(4):
                async with client.session("counter") as session:
                    assert [float(await session.run("incr_counter")) for _ in range(2)] == [1, 2]

    asyncio.run(scenario())


def test_without_the_header_the_other_server_does_not_know_the_session(
    addresses: list[str],
) -> None:
    with httpx.Client(base_url="http://gateway", transport=Gateway(addresses)) as client:
        session = client.post("/v1/sessions", json={"model": "counter"}).json()["session"]
        run = f"/v1/sessions/{session}:run"
        answers = [client.post(run, json={"fetches": ["incr_counter"]}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [404, 200]
    assert answers[0].json()["error"] == f"Session {session} is not found."


def test_all_call_the_header_the_same_and_it_keeps_a_request_plain() -> None:
    assert AFFINITY_HEADER.lower() == AFFINITY
    assert AFFINITY.encode() in _PLAIN_HEADERS
