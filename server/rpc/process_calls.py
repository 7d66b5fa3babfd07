"""ProcessCalls: gRPC calls that one process of a server passes on to another, as they are.

Guarantees: used from one event loop. Ending a call here ends it there. A process that does not
answer is waited for as `Patience` says.
"""

from __future__ import annotations

import asyncio

import grpc

from server.processes.session_ids import Place
from server.processes.worker_host import WorkerHost
from server.rpc.call import CallContext
from server.rpc.passed_metadata import passed_metadata

_UNLIMITED = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
)


class ProcessCalls:
    """The calls of one process."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self._channels: dict[int, tuple[Place, grpc.aio.Channel]] = {}

    async def call(self, place: Place, path: str, data: bytes, context: CallContext) -> bytes:
        """Return the response of the process at `place` to a request.

        Raises grpc.aio.AioRpcError with the status of any other answer, and of none, and
        UnavailableError if the process hangs.
        """
        call = self._channel(place).unary_unary(path)(
            data, timeout=context.seconds_left, metadata=passed_metadata(context)
        )
        return await self._host.patience(place).answer_of(asyncio.ensure_future(_content(call)))

    def _channel(self, place: Place) -> grpc.aio.Channel:
        known = self._channels.get(place.slot)
        if known is not None and known[0] == place:
            return known[1]
        path = self._host.rpc_socket_path(place)
        channel = grpc.aio.insecure_channel(f"unix:{path}", options=_UNLIMITED)
        self._channels[place.slot] = place, channel
        return channel


async def _content(call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> bytes:
    content: bytes = await call
    return content
