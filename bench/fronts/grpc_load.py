"""Load a gRPC server over one connection for each caller, each with one call at a time.

    python -m bench.fronts.grpc_load ADDRESS METHOD FILE CALLERS SECONDS

ADDRESS is host:port or unix:PATH; FILE has the request, which is the same every time. Prints
{"per_second", "p50_ms", "p99_ms", "client"} as JSON; `client` is the part of the time for which
this process computed, of one core.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import sys
import time

import grpc.aio
import uvloop

from bench.measure import percentile

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own for each channel
]
ANSWER_SECONDS = 60


async def caller(address: str, method: str, request: bytes, end: float, times: list[float]) -> None:
    """Call until `end`, and note the seconds of each call that was answered by then."""
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        call = channel.unary_unary(method)
        while (begun := time.perf_counter()) < end:
            await call(request, timeout=ANSWER_SECONDS)
            ended = time.perf_counter()
            if ended < end:
                times.append(ended - begun)


async def load(
    address: str, method: str, request: bytes, callers: int, seconds: float
) -> list[float]:
    """Return the seconds of each call."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    calls = (caller(address, method, request, end, times) for _ in range(callers))
    await asyncio.gather(*calls)
    return times


def main() -> None:
    address, method, file, callers, seconds = sys.argv[1:]
    request = pathlib.Path(file).read_bytes()
    begun, computed = time.perf_counter(), time.process_time()
    times = uvloop.run(load(address, method, request, int(callers), float(seconds)))
    share = (time.process_time() - computed) / (time.perf_counter() - begun)
    figures = {
        "per_second": len(times) / float(seconds),
        "p50_ms": percentile(times, 50) * 1e3,
        "p99_ms": percentile(times, 99) * 1e3,
        "client": share,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
