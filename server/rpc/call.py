"""One gRPC call: its deadline and metadata, and how a method reads and responds to it."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

import protos as pb
from server.access.caller import LOCAL, Caller
from server.steps.step_request import StepRequest

PRIORITY_METADATA = "x-priority"
# Between the processes of one server only: how a client was identified.
CERTIFICATE_NAMES = "x-runstep-certificate-names"
FOR_TENSORFLOW = "x-runstep-for-tensorflow"
RETRY_AFTER = "retry-after"  # in the trailers of an error: seconds


class Reply(NamedTuple):
    """A response that is not serialized yet; `write(*arguments)` returns its bytes.

    `size` is the number of bytes of its content. A large response is written on another thread.
    """

    size: int
    write: Callable[..., bytes]
    arguments: tuple[Any, ...] = ()


@dataclasses.dataclass(slots=True)
class CallContext:
    """The deadline, metadata and caller of a call.

    `seconds_left` is None if the call has no deadline. `certificate_names` are those of the client.
    """

    seconds_left: float | None
    metadata: Mapping[str, str]
    caller: Caller = LOCAL
    certificate_names: tuple[str, ...] = ()
    is_for_tensorflow: bool = False  # it came to the port of TensorFlow's clients
    received_at: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def may_be_short(self) -> bool:
        """Whether the call leaves its step the default priority, and the caller may run it here."""
        usage = self.caller.usage
        return PRIORITY_METADATA not in self.metadata and (usage is None or usage.allows_short_step)

    def step(
        self, options: pb.RunOptions | None = None, *, pool_is_chosen: bool = False
    ) -> StepRequest:
        """Make a StepRequest with the priority and deadline of this call; it has no feeds yet.

        There is no report about the step if there are no `options`.
        """
        return StepRequest(
            received_at=self.received_at,
            request_id=secrets.token_hex(8),
            options=options,
            pool_is_chosen=pool_is_chosen,
            priority=None if pool_is_chosen else self.metadata.get(PRIORITY_METADATA),
            timeout_ms=0 if self.seconds_left is None else max(1, int(self.seconds_left * 1000)),
            metadata=None if options is None else pb.RunMetadata(),
            caller=self.caller,
        )


class Method(NamedTuple):
    """A method of a service: `read` parses the request, `answer` handles it.

    `read` runs on another thread if the request is large. Therefore it must not use anything that
    belongs to the event loop.
    """

    read: Callable[[bytes], Any]
    answer: Callable[[Any, CallContext], Awaitable[Message | Reply]]
    frees_memory: bool = False  # it is taken however little memory there is


class Stream(NamedTuple):
    """A method with a stream of requests, of responses, or of both; `read` is as in Method.

    If `is_work`, each request counts as work from its receipt until the next one is awaited: a
    server that drains waits for it and refuses further ones.
    """

    read: Callable[[bytes], Any]
    answer: Callable[[AsyncIterator[Any], CallContext], AsyncGenerator[Message | Reply, None]]
    is_work: bool = True


class Service(NamedTuple):
    """A gRPC service: its full name on the wire, and its methods by name.

    What a call requires of its caller is in `server/access/rpc_rules.py`.
    """

    name: str
    methods: Mapping[str, Method | Stream]
