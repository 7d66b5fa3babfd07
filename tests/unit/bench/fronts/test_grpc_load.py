"""The gRPC load generator against the bare echo."""

from __future__ import annotations

import asyncio

import grpc.aio

from bench.fronts.grpc_echo import Echo
from bench.fronts.grpc_load import load


def test_calls_are_answered_one_after_the_other_for_each_caller() -> None:
    async def run() -> list[float]:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Echo(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            return await load(f"127.0.0.1:{port}", "/any/Method", b"request", 2, 0.2)
        finally:
            await server.stop(None)

    times = asyncio.run(run())
    assert len(times) >= 2
    assert all(0 < each < 10 for each in times)
