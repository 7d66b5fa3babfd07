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

import orjson

from runtime.errors import OpError, error_for_code
from server.passed_calls import Header
from server.processes.session_ids import Place
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

    async def call(
        self, place: Place, path: str, data: bytes, context: CallContext
    ) -> bytes | OpError:
        """Return the response of the process at `place`, or the error with which it responds.

        Raises OSError if it does not respond, because it is not there or ends; UnavailableError if
        it hangs; and DeadlineExceededError soon after the deadline of a call to one that hangs.
        """
        left = context.seconds_left
        deadline = None if left is None else context.received_at + left
        client, target = self._host.client_of(place), f"{RPC_PREFIX}{path}"
        calling = asyncio.ensure_future(client.exchange("POST", target, data, _headers(context)))
        status, content = await self._host.patience(place, lambda: deadline).answer_of(calling)
        if status == ANSWERED:
            return content
        if status != ENDED:
            raise ConnectionError(f"Process {place.slot} of the server answers with {status}")
        return _error_in(content)


def _headers(context: CallContext) -> list[Header]:
    metadata = json.dumps(passed_metadata(context))  # in ASCII
    headers = [(METADATA_HEADER, metadata.encode())]
    if context.seconds_left is not None:
        headers.append((TIMEOUT_HEADER, str(context.seconds_left).encode()))
    return headers


def _error_in(content: bytes) -> OpError:
    """Return the error with which a process has responded."""
    ended = orjson.loads(content)
    error = error_for_code(ended["code"], ended["message"])
    error.retry_after_seconds = ended["retry_after"]
    return error
