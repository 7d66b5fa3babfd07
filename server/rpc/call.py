"""One gRPC call: how its method reads and writes messages, and what it brings besides them."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

import protos as pb
from server.steps.step_request import StepRequest

PRIORITY_METADATA = "x-priority"


class Reply(NamedTuple):
    """An answer that is not written yet: `write(*arguments)` gives its bytes.

    `size` is that of its content; large ones are written on another thread.
    """

    size: int
    write: Callable[..., bytes]
    arguments: tuple[Any, ...] = ()


@dataclasses.dataclass(slots=True)
class CallContext:
    """What a call brings besides its message. `seconds_left` is None without a deadline."""

    seconds_left: float | None
    metadata: Mapping[str, str]
    received_at: float = dataclasses.field(default_factory=time.monotonic)

    def step(self, options: pb.RunOptions, *, pool_is_chosen: bool) -> StepRequest:
        """How the step of this call runs; what it runs is left to be filled in."""
        return StepRequest(
            received_at=self.received_at,
            request_id=secrets.token_hex(8),
            options=options,
            pool_is_chosen=pool_is_chosen,
            priority=None if pool_is_chosen else self.metadata.get(PRIORITY_METADATA),
            timeout_ms=0 if self.seconds_left is None else max(1, int(self.seconds_left * 1000)),
            metadata=pb.RunMetadata(),
        )


class Method(NamedTuple):
    """A method of a service: `read` makes its request of the bytes, `answer` the reply to it.

    `read` runs on another thread when the bytes are many; it may use nothing of the event loop's.
    """

    read: Callable[[bytes], Any]
    answer: Callable[[Any, CallContext], Awaitable[Message | Reply]]
