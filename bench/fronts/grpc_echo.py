"""A bare grpc.aio server that returns the bytes of the request: the limit of the gRPC server.

    python -m bench.fronts.grpc_echo [unix:PATH]  # prints its address, serves until it is killed

It answers every method, on the event loop that Runstep has.
"""

from __future__ import annotations

import asyncio
import sys

import grpc
import grpc.aio
import uvloop


class Echo(grpc.GenericRpcHandler):
    """Answers any method with the request."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of any method."""
        return grpc.unary_unary_rpc_method_handler(echo)


async def echo(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
    """Return the request."""
    return data


async def serve(address: str | None) -> None:
    """Serve until the process is killed."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_insecure_port(address or "127.0.0.1:0")
    await server.start()
    print(address or f"127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1] if len(sys.argv) > 1 else None))
