"""RemoteSession: what sessions have in common whose graph and steps are a server's.

A subclass sends the messages of TensorFlow's master service over its wire. No call is made before
the first graph or step.

Guarantees: every method may be called from any thread. `_graph_lock` orders `create` and `extend`
and is held while they wait for the server. `_lock` guards the handle, the call that creates the
session and whether the session is closed; no wait happens under it. So `close` never waits for
another call, only CLOSE_SECONDS for its own (the operation timeout, if the config has one).

TF: tensorflow/core/distributed_runtime/rpc/grpc_session.cc
"""

from __future__ import annotations

import abc
import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
)
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.remote.master_messages import (
    fetched_values,
    full_name,
    partial_run_setup_request,
    run_step_request,
    timeout_seconds,
    unique_fetches,
)
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

CLOSED = "Session has been closed."
# For the server's close when the config has no operation timeout: it ends the session's steps.
CLOSE_SECONDS = 10.0
Response = TypeVar("Response", bound=Message)


@dataclasses.dataclass(frozen=True, slots=True)
class Method(Generic[Response]):
    """A call on a session that has a graph.

    `rpc` is its name in TensorFlow's master service, `verb` the one in a Runstep server's URL;
    `called` is what the error names when there is no graph.
    """

    rpc: str
    verb: str
    called: str
    response: type[Response]


EXTEND = Method("ExtendSession", "extend", "Extend", pb.ExtendSessionResponse)
RUN = Method("RunStep", "run", "Run", pb.RunStepResponse)
PARTIAL_RUN_SETUP = Method(
    "PartialRunSetup", "partialRunSetup", "PRunSetup", pb.PartialRunSetupResponse
)
PARTIAL_RUN = Method("RunStep", "partialRun", "PRun", pb.RunStepResponse)
MAKE_CALLABLE = Method("MakeCallable", "makeCallable", "MakeCallable", pb.MakeCallableResponse)
RUN_CALLABLE = Method("RunCallable", "runCallable", "RunCallable", pb.RunCallableResponse)
RELEASE_CALLABLE = Method(
    "ReleaseCallable", "releaseCallable", "ReleaseCallable", pb.ReleaseCallableResponse
)


class Creation(Protocol):
    """The call that creates a session in the server."""

    def result(self) -> pb.CreateSessionResponse:
        """Wait for the answer; an OpError when there is none."""

    def cancel(self) -> object:
        """Let `result` end as soon as the wire can; a session may have been made all the same."""


class RemoteSession(RuntimeSession):
    """A session whose graph and steps are a server's."""

    runtime_type: str  # its name in the counts of sessions

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self._graph_lock = threading.Lock()
        self._lock = threading.Lock()
        self._handle = ""
        self._creation: Creation | None = None  # in flight
        self._is_closed = False
        # Handle → (seconds that its steps have, place of each fetch in the answer); single
        # operations on a dict are atomic.
        self._callables: dict[int, tuple[float | None, list[int]]] = {}
        self.graph_version = 0

    # What a wire does.

    @abc.abstractmethod
    def _start_creation(self, request: pb.CreateSessionRequest, seconds: float | None) -> Creation:
        """Begin to create the session in the server, without a wait."""

    @abc.abstractmethod
    def _send(
        self, method: Method[Response], handle: str, request: Any, seconds: float | None
    ) -> Response:
        """Send the request of `method` on session `handle` and wait; an error as an OpError."""

    @abc.abstractmethod
    def _close_in_server(self, handle: str, seconds: float) -> None:
        """Close the server's session, if there is a handle, and let go of the connections."""

    # The graph.

    @property
    def session_handle(self) -> str:
        """The server's handle; empty before the first graph and after `close`."""
        return self._handle

    def create(self, graph_def: pb.GraphDef) -> None:
        """Create the session in the server; an empty graph changes nothing."""
        if not graph_def.node:
            return
        with self._graph_lock:
            self._check_open()
            if self._handle:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._create(graph_def)

    def _create(self, graph_def: pb.GraphDef) -> None:
        request = pb.CreateSessionRequest(graph_def=graph_def, config=self.options.config)
        with self._lock:
            self._check_open()
            creation = self._creation = self._start_creation(request, self._default_seconds())
        response = None
        try:
            response = creation.result()
        finally:
            self._end_creation(response)

    def _end_creation(self, response: pb.CreateSessionResponse | None) -> None:
        """Keep the handle; after a `close` that came meanwhile end the session and raise."""
        with self._lock:
            self._creation = None
            if not self._is_closed:
                if response is not None:
                    self._handle = response.session_handle
                    self.graph_version = response.graph_version
                return
        self._close_in_server(
            "" if response is None else response.session_handle, self._close_seconds()
        )
        raise CancelledError(CLOSED)

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes; AbortedError when the server's graph was extended by another caller."""
        with self._graph_lock:
            self._check_open()
            if not self._handle:
                self._create(graph_def)
                return
            request = pb.ExtendSessionRequest(
                graph_def=graph_def, current_graph_version=self.graph_version
            )
            self.graph_version = self._call(EXTEND, request).new_graph_version

    # Steps in parts, and prepared ones.

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step in parts in the server."""
        request = partial_run_setup_request(feeds, fetches, targets)
        return self._call(PARTIAL_RUN_SETUP, request).partial_run_handle

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed and fetch a part."""
        request = run_step_request(feeds, fetches, partial_run_handle=handle)
        return fetched_values(self._call(PARTIAL_RUN, request), fetches, None)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step in the server."""
        request = pb.MakeCallableRequest(options=options)
        fetches, places = unique_fetches(options.fetch)
        request.options.fetch[:] = fetches
        request.options.feed[:] = [full_name(name) for name in options.feed]
        handle = self._call(MAKE_CALLABLE, request).handle
        seconds = timeout_seconds(options.run_options, self.options.config)
        self._callables[handle] = (seconds, places)
        return handle

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step."""
        request = pb.RunCallableRequest(
            handle=handle, feed=[tensor_to_proto(value) for value in feeds]
        )
        seconds, places = self._callables.get(handle, (None, []))
        response = self._call(RUN_CALLABLE, request, seconds)
        if metadata is not None:
            metadata.MergeFrom(response.metadata)
        values = [tensor_from_proto(tensor) for tensor in response.fetch]
        return [values[place] for place in places]

    def release_callable(self, handle: int) -> None:
        """Forget a prepared step."""
        self._call(RELEASE_CALLABLE, pb.ReleaseCallableRequest(handle=handle))
        self._callables.pop(handle, None)

    # The end.

    def close(self) -> None:
        """Close the server's session and end the calls in flight. Closing again changes nothing.

        Raises DeadlineExceededError when the server does not answer in time and UnavailableError
        when it can't be reached; the session is closed here all the same.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            handle, self._handle = self._handle, ""
            creation = self._creation
        session_counts.session_closed(self.runtime_type)
        if creation is None:
            self._close_in_server(handle, self._close_seconds())
        else:
            creation.cancel()  # `_create` goes on; it has the handle if there is one after all

    # Calls.

    def _call(
        self, method: Method[Response], request: Any, seconds: float | None = None
    ) -> Response:
        handle = self._open_handle(method.called)
        return self._send(
            method, handle, request, self._default_seconds() if seconds is None else seconds
        )

    def _seconds_left(self, request: RunRequest) -> float | None:
        """The time that a step has; DeadlineExceededError when it has none."""
        if request.deadline is None:
            return timeout_seconds(request.options, self.options.config)
        left = request.deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError("Timed out waiting for notification")
        return left

    def _default_seconds(self) -> float | None:
        return timeout_seconds(None, self.options.config)

    def _close_seconds(self) -> float:
        seconds = self._default_seconds()
        return CLOSE_SECONDS if seconds is None else seconds

    def _open_handle(self, called: str) -> str:
        with self._lock:
            self._check_open()
            handle = self._handle
        if not handle:
            raise InvalidArgumentError(f"Session was not created with a graph before {called}()!")
        return handle

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError(CLOSED)
