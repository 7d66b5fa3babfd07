"""Bytes on a connection: every response is one of HTTP, no 500, and every connection ends."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator

import uvicorn
from uvicorn.server import ServerState

from server.connections.http_protocol import HttpProtocol
from server.rest.session_docs import half_plus_two_graph
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.served import STATUSES, Served
from tests.fuzz.target import Target
from tests.integration.rest_server import encoded

_BODY = b'{"instances": [1.0, 2.0]}'
_PREDICT = b"POST /v1/models/half_plus_two:predict HTTP/1.1\r\nHost: a\r\n"
_PLAIN = (
    _PREDICT + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
)
_SEEDS = (
    _PLAIN,
    _PLAIN + _PLAIN,
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /v1/models/half_plus_two/metadata HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    _PREDICT + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + _BODY[:5] + b"\r\n14;x=y\r\n"
    + _BODY[5:] + b"\r\n0\r\nTrailer: x\r\n\r\n",
    _PREDICT + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY,
    _PREDICT + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    b"HEAD /docs HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    b"OPTIONS /v1/models HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n",
    b"GET /v1/sessions?x=%20&y HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc\r\n"
    b"X-Timeout-Ms: 10\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"POST /v1/sessions/KEPT:run HTTP/1.1\r\nHost: a\r\nX-Priority: low\r\n"
    b'Content-Length: 43\r\n\r\n{"feeds": {"x": [1.5]}, "fetches": ["y:0"]}',
    b"DELETE /v1/sessions/x HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n\r\n",
)  # fmt: skip
_TOKENS = (
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b":", b"\0", b"\xff", b"%00", b"%2f"),
    *(b"%zz", b"*", b"http://b/", b"//", b"/../", b"?", b"#", b"/v1/", b"a" * 5000),
    *(b"HTTP/2.0", b"HTTP/1.0", b"CONNECT ", b"GET ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    *(b"ffffffff\r\n", b"0\r\n\r\n", b"X: y\r\n" * 200, b"X-Timeout-Ms: x\r\n", b"Host: b\r\n"),
    *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 0\r\n"),
    *(b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(b"Transfer-Encoding: gzip, chunked\r\n", b"Connection: close\r\n", b"X-Priority: low\r\n"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\nConnection: Upgrade\r\n"),
)  # fmt: skip
_PIECES = 0.25  # of the inputs come in several pieces
_QUIET_SECONDS = 0.004  # without a byte, after which the client has sent all and ends
_CLOSED_SECONDS = 20.0  # until the server must have closed its half
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class HttpHeads(Target):
    """Mutated requests on connections of the server's protocol."""

    name = "http_heads"
    inputs_a_child = 2000

    def start(self) -> None:
        self._served = Served(["half_plus_two"])
        document = {"graph_def": encoded(half_plus_two_graph())}
        self._kept = self._served.json("POST", "/v1/sessions", document)["session"].encode()
        self._state = ServerState()
        self._served.do(self._listen())

    async def _listen(self) -> None:
        config = uvicorn.Config(
            self._served.app, http=HttpProtocol, lifespan="off", log_config=None,
            access_log=False, server_header=False,
        )  # fmt: skip
        config.load()
        server = await asyncio.get_running_loop().create_server(
            lambda: HttpProtocol(config=config, server_state=self._state, app_state={}),
            "127.0.0.1",
            0,
        )
        self._port = server.sockets[0].getsockname()[1]
        self._server = server

    def make(self, random_state: random.Random) -> bytes:
        data = random_state.choice(_SEEDS)
        if random_state.random() < 0.2:
            data += random_state.choice(_SEEDS)
        if random_state.random() < 0.97:
            data = mutated_bytes(data, random_state, _TOKENS)
        if random_state.random() < _PIECES and len(data) > 2:
            at = random_state.randrange(1, len(data))
            return join_frames([data[:at], data[at:]])
        return join_frames([data])

    def run(self, data: bytes) -> str:
        pieces = [piece.replace(b"KEPT", self._kept) for piece in split_frames(data)]
        return self._served.do(self._sent(pieces))

    def smaller(self, data: bytes) -> Iterator[bytes]:
        pieces = split_frames(data)
        if len(pieces) > 1:
            yield join_frames([b"".join(pieces)])
        for at, piece in enumerate(pieces):
            for each in smaller_bytes(piece):
                yield join_frames([*pieces[:at], each, *pieces[at + 1 :]])

    async def _sent(self, pieces: list[bytes]) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        received = b""
        try:
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            while True:
                part = await asyncio.wait_for(reader.read(1 << 16), _QUIET_SECONDS)
                received += part
                if not part:
                    break
        except TimeoutError:
            writer.write_eof()
            try:
                received += await asyncio.wait_for(reader.read(), _CLOSED_SECONDS)
            except TimeoutError:
                return f"OPEN after {received[:100]!r}"
            except ConnectionError:
                pass
        except ConnectionError:
            pass
        finally:
            writer.close()
        for _ in range(1000):
            if not self._state.connections and not self._state.tasks:
                break
            await asyncio.sleep(0.002)
        else:
            return f"LEFT {len(self._state.connections)} connections {len(self._state.tasks)} tasks"
        return _outcome(received)


def _outcome(received: bytes) -> str:
    """Return the status of the first response; one is wrong if it is none of HTTP, or a 500."""
    if not received:
        return "none"
    first = _STATUS.match(received)
    if first is None:
        return f"RESPONSE {received[:100]!r}"
    for found in _STATUS.finditer(received):
        status = int(found[1])
        if status not in STATUSES and status != 100:
            return f"STATUS {status} {received[found.start() : found.start() + 300]!r}"
    return first[1].decode()
