"""What every call that runs a step has in common, whatever its body is written in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request

import protos as pb
from runtime.api import CancellationManager
from runtime.errors import ResourceExhaustedError
from server.rest.bodies import header_timeout_ms

T = TypeVar("T")
OFFLOAD_BYTES = 1 << 18  # about 3 ms of JSON


def request_parts(request: Request) -> dict[str, Any]:
    """The parts of a StepRequest that come with every HTTP request."""
    return {
        "received_at": request.scope["received_at"],
        "request_id": request.scope["request_id"],
        "cancellation": CancellationManager(),
        "timeout_ms": header_timeout_ms(request),
    }


def metadata_if_asked(options: pb.RunOptions | None) -> pb.RunMetadata | None:
    """An empty RunMetadata to fill when the options ask for some."""
    if options is None:
        return None
    asked = options.trace_level != pb.RunOptions.NO_TRACE or options.output_partition_graphs
    return pb.RunMetadata() if asked else None


def bytes_of(values: Sequence[Any]) -> int:
    """Bytes of the arrays among `values`, those of their strings included."""
    return sum(map(_bytes_of_array, values))


def _bytes_of_array(value: Any) -> int:
    if not isinstance(value, np.ndarray):
        return 0
    if value.dtype != object:
        return value.nbytes
    return value.nbytes + sum(len(item) for item in value.flat if isinstance(item, bytes))


def check_answer_bytes(values: Sequence[Any], limit: int) -> int:
    """The bytes of an answer's tensors; ResourceExhaustedError, before it is written, if too many.

    As JSON text they take a few times as much.
    """
    size = bytes_of(values)
    if size > limit:
        raise ResourceExhaustedError(
            f"The tensors of the answer have {size} bytes; rest.max_answer_bytes is {limit}"
        )
    return size


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do `work` here when its `size` in bytes is small, else on another thread."""
    return work() if size < OFFLOAD_BYTES else await asyncio.to_thread(work)
