"""ProcessCalls: gRPC calls that one process of a server passes on to another, as they are.

They are HTTP requests on the Unix socket of the other process. A second gRPC channel would take the
event loop 1.2 ms for a message of 600 KB; over a socket a thread sends it, and another receives it.

| | |
| --- | --- |
| path | RPC_PREFIX, then that of the method: `/tensorflow.serving.PredictionService/Predict` |
| METADATA_HEADER | a JSON list of the pairs of `passed_metadata` |
| TIMEOUT_HEADER | the seconds that are left to the call; it is missing if there is no limit |
| body | the serialized request |
| response ANSWERED | the serialized response |
| response ENDED | the error, as JSON: `code`, `message` and `retry_after` |

Guarantees: used from one event loop. Ending a call here closes its connection, which ends it there.
A process that does not answer is waited for as `Patience` says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import orjson

from runtime.errors import OpError, error_for_code
from server.passed_calls import Header
from server.processes.process_client import ProcessClient
from server.processes.session_ids import Place
from server.processes.socket_files import http_socket
from server.processes.worker_host import RPC_PREFIX, WorkerHost
from server.rpc.call import CallContext
from server.rpc.passed_metadata import passed_metadata

METADATA_HEADER = b"x-runstep-rpc-metadata"
TIMEOUT_HEADER = b"x-runstep-rpc-seconds"
ANSWERED = 200
ENDED = 422  # the status of a response that has the error of a call, and of no other


class ProcessCalls:
    """The calls of one process."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self._known: dict[int, tuple[Place, ProcessClient]] = {}  # by the slot

    async def call(
        self, place: Place, path: str, data: bytes, context: CallContext
    ) -> bytes | OpError:
        """Return the response of the process at `place`, or the error with which it responds.

        Raises OSError if it does not respond, because it is not there or ends; UnavailableError if
        it hangs; and DeadlineExceededError soon after the deadline of a call to one that hangs.
        """
        left = context.seconds_left
        deadline = None if left is None else context.received_at + left
        calling = asyncio.ensure_future(self._exchange(place, path, data, context))
        status, content = await self._host.patience(place, lambda: deadline).answer_of(calling)
        if status == ANSWERED:
            return content
        if status != ENDED:
            raise ConnectionError(f"Process {place.slot} of the server answers with {status}")
        return _error_in(content)

    async def _exchange(
        self, place: Place, path: str, data: bytes, context: CallContext
    ) -> tuple[int, bytes]:
        """Return the status and the body of a response; raise OSError if there is none."""
        target = f"{RPC_PREFIX}{path}".encode()
        client = self._client_of(place)
        response = await client.send("POST", target, _headers(data, context), _whole(data))
        try:
            return response.status, await response.content()
        finally:
            response.end()

    def _client_of(self, place: Place) -> ProcessClient:
        known = self._known.get(place.slot)
        if known is not None and known[0] == place:
            return known[1]
        if known is not None:
            known[1].close()
        client = ProcessClient(http_socket(self._host.folder, place))
        self._known[place.slot] = place, client
        return client

    def close(self) -> None:
        """Close the connections that have no call."""
        for _, client in self._known.values():
            client.close()


def _headers(data: bytes, context: CallContext) -> list[Header]:
    metadata = json.dumps(passed_metadata(context))  # in ASCII
    headers = [
        (b"host", b"process"),
        (b"content-length", b"%d" % len(data)),
        (METADATA_HEADER, metadata.encode()),
    ]
    if context.seconds_left is not None:
        headers.append((TIMEOUT_HEADER, str(context.seconds_left).encode()))
    return headers


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _error_in(content: bytes) -> OpError:
    """Return the error with which a process has responded."""
    ended = orjson.loads(content)
    error = error_for_code(ended["code"], ended["message"])
    error.retry_after_seconds = ended["retry_after"]
    return error
