"""LargeCalls: calls of gRPC with large messages, which a thread sends to the background process.

They are HTTP requests on its Unix socket, as `passed_rpcs.py` says. The event loop writes their
heads; their bodies, and large responses, are moved by `SocketTransfers`.

Guarantees: used from one event loop; a connection has one call at a time. Ending a call here closes
its connection, which ends it there.
"""

from __future__ import annotations

import asyncio
import json
import socket

import numpy as np
import orjson

from runtime.errors import OpError, UnavailableError, error_for_code
from server.background.passed_rpcs import ANSWERED, ENDED, METADATA_HEADER, TIMEOUT_HEADER
from server.connections.socket_transfers import Transfer, transfers
from server.processes.session_ids import Place
from server.processes.socket_files import http_socket
from server.processes.worker_host import RPC_PREFIX, WorkerHost
from server.rpc.call import RETRY_AFTER, CallContext
from server.rpc.passed_metadata import passed_metadata

_END_OF_HEAD = b"\r\n\r\n"
_PART_BYTES = 1 << 16
_CLOSED = "it has closed the connection"


class LargeCalls:
    """The calls of one process to the background process."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self._idle: list[socket.socket] = []  # connections to the process at `_place`
        self._place: Place | None = None

    async def call(
        self, place: Place, path: str, data: bytes, context: CallContext
    ) -> bytes | OpError:
        """Return the response of the process at `place`, or the error with which it responds.

        Raises UnavailableError if it does not respond, because it is not there, ends or hangs, and
        DeadlineExceededError soon after the deadline of a call to a process that hangs.
        """
        left = context.seconds_left
        deadline = None if left is None else context.received_at + left
        calling = asyncio.ensure_future(self._exchange(place, _head(path, data, context), data))
        try:
            status, content = await self._host.patience(place, lambda: deadline).answer_of(calling)
        except OSError as error:
            raise UnavailableError(
                f"Process {place.slot} of the server does not answer: {error}"
            ) from error
        if status == ANSWERED:
            return content
        if status != ENDED:  # it does not answer calls yet, or no more
            raise UnavailableError(f"Process {place.slot} of the server answers with {status}")
        return _error_in(content)

    async def _exchange(self, place: Place, head: bytes, data: bytes) -> tuple[int, bytes]:
        """Return the status and the body of a response; raise OSError if there is none."""
        if place != self._place:
            self.close()
            self._place = place
        connection = self._idle.pop() if self._idle else await self._connected(place)
        is_kept = False
        try:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(connection, head)
            body = np.frombuffer(data, np.uint8)
            if not await transfers.complete(Transfer(connection, body, is_sending=True)):
                raise ConnectionResetError(_CLOSED)
            status, content, is_kept = await _response(connection)
            return status, content
        finally:
            if is_kept and place == self._place:
                self._idle.append(connection)
            else:
                connection.close()

    async def _connected(self, place: Place) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)
            path = str(http_socket(self._host.folder, place))
            await asyncio.get_running_loop().sock_connect(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connections that have no call."""
        while self._idle:
            self._idle.pop().close()


def _head(path: str, data: bytes, context: CallContext) -> bytes:
    lines = [
        f"POST {RPC_PREFIX}{path} HTTP/1.1",
        "host: process",
        f"content-length: {len(data)}",
        f"{METADATA_HEADER.decode()}: {json.dumps(passed_metadata(context))}",  # in ASCII
    ]
    if context.seconds_left is not None:
        lines.append(f"{TIMEOUT_HEADER.decode()}: {context.seconds_left}")
    return "\r\n".join((*lines, "", "")).encode()


async def _response(connection: socket.socket) -> tuple[int, bytes, bool]:
    """Return the status and the body of a response, and whether another request may follow."""
    loop = asyncio.get_running_loop()
    received = b""
    while _END_OF_HEAD not in received:
        part = await loop.sock_recv(connection, _PART_BYTES)
        if not part:
            raise ConnectionResetError(_CLOSED)
        received += part
    head, _, body = received.partition(_END_OF_HEAD)
    first, *lines = head.lower().split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    length = int(headers[b"content-length"])
    if len(body) < length:
        whole = np.empty(length, np.uint8)
        if not await transfers.complete(Transfer(connection, whole, is_sending=False, begin=body)):
            raise ConnectionResetError(_CLOSED)
        body = whole.tobytes()
    return int(first.split()[1]), body, headers.get(b"connection") != b"close"


def _error_in(content: bytes) -> OpError:
    """Return the error in a response of PassedRpcs."""
    ended = orjson.loads(content)
    error = error_for_code(ended["code"], ended["details"])
    for name, value in ended["trailers"]:
        if name == RETRY_AFTER:
            error.retry_after_seconds = float(value)
    return error
