"""RemoteSession: the base class of sessions whose graph and steps are in a server.

A subclass sends the messages of TensorFlow's master service over its protocol. The server is not
called before the first graph or step.

Guarantees: every method may be called from any thread. `_graph_lock` orders `create` and `extend`
and is held while they wait for the server. `_lock` guards `_handle`, `_creation` and `_is_closed`.
No thread waits for a call while it holds `_lock`, so `close` never waits for another call. The call
that `close` makes takes at most CLOSE_SECONDS, or the configuration's operation timeout if it is
set.

TF: tensorflow/core/distributed_runtime/rpc/grpc_session.cc
"""

from __future__ import annotations

import abc
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

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
# The time limit of `close` if no operation timeout is set; the server ends the steps in this time.
CLOSE_SECONDS = 10.0
Response = TypeVar("Response", bound=Message)


@dataclasses.dataclass(frozen=True, slots=True)
class Method(Generic[Response]):
    """A method of the server that needs a session with a graph.

    `rpc` is the name of the method in TensorFlow's master service, `verb` the name in the URLs of a
    Runstep server, and `called` the name in the error that is raised if there is no graph.
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
    """A started call that creates a session in the server."""

    def result(self) -> pb.CreateSessionResponse:
        """Wait for the response and return it; raise the OpError of a failed call."""

    def cancel(self) -> object:
        """Make `result` end as soon as the protocol allows; `result` may still return a session."""


class RemoteSession(RuntimeSession):
    """A session whose graph and steps are in a server."""

    runtime_type: str  # the key under which `session_counts` counts the session

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self._graph_lock = threading.Lock()
        self._lock = threading.Lock()
        self._handle = ""
        self._creation: Creation | None = None  # the creation in progress, if any
        self._is_closed = False
        # Callable handle → (time limit of the steps in seconds, index in the response for each
        # fetch). It needs no lock, because operations on a dict are atomic.
        self._callables: dict[int, tuple[float | None, list[int]]] = {}
        self.graph_version = 0

    # What a subclass implements for its protocol.

    @abc.abstractmethod
    def _start_creation(self, request: pb.CreateSessionRequest, seconds: float | None) -> Creation:
        """Start the creation of the session in the server and return at once."""

    @abc.abstractmethod
    def _send(
        self, method: Method[Response], handle: str, request: Message, seconds: float | None
    ) -> Response:
        """Send a request for session `handle`; return its response or raise its OpError."""

    @abc.abstractmethod
    def _close_in_server(self, handle: str, seconds: float) -> None:
        """Close the session in the server unless `handle` is empty, then close the connections."""

    # The graph.

    @property
    def session_handle(self) -> str:
        """The session's handle in the server; empty before the first graph and after `close`."""
        return self._handle

    def create(self, graph_def: pb.GraphDef) -> None:
        """Create the session in the server; an empty graph changes nothing.

        Raises AlreadyExistsError if there is a graph, and the errors of the server.
        """
        if not graph_def.node:
            return
        with self._graph_lock:
            self._check_open()
            if self._handle:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._create(graph_def)

    def _create(self, graph_def: pb.GraphDef) -> None:
        request = pb.CreateSessionRequest(graph_def=graph_def, config=self.options.config)
        self._create_by(lambda: self._start_creation(request, self._default_seconds()))

    def _create_by(self, start: Callable[[], Creation]) -> None:
        """Start a creation and wait for it. `_graph_lock` must be held."""
        with self._lock:
            self._check_open()
            creation = self._creation = start()
        response = None
        try:
            response = creation.result()
        finally:
            self._end_creation(response)

    def _end_creation(self, response: pb.CreateSessionResponse | None) -> None:
        """Store the handle of the new session.

        If `close` was called in the meantime, close the new session and raise CancelledError.
        """
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
        """Add nodes; raise AbortedError if another client has extended the server's graph."""
        with self._graph_lock:
            self._check_open()
            if not self._handle:
                self._create(graph_def)
                return
            request = pb.ExtendSessionRequest(
                graph_def=graph_def, current_graph_version=self.graph_version
            )
            self.graph_version = self._call(EXTEND, request).new_graph_version

    # Partial runs and callables.

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Start a partial run in the server and return its handle."""
        request = partial_run_setup_request(feeds, fetches, targets)
        return self._call(PARTIAL_RUN_SETUP, request).partial_run_handle

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed some inputs of a partial run and return the values of `fetches`."""
        request = run_step_request(feeds, fetches, partial_run_handle=handle)
        return fetched_values(self._call(PARTIAL_RUN, request), fetches, None)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step in the server and return its handle."""
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
        """Run a prepared step; `feeds` must be in the order of `CallableOptions.feed`."""
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
        """Release a prepared step; its handle becomes invalid."""
        self._call(RELEASE_CALLABLE, pb.ReleaseCallableRequest(handle=handle))
        self._callables.pop(handle, None)

    # The end.

    def close(self) -> None:
        """Close the session in the server and cancel running calls. Closing again has no effect.

        Raises DeadlineExceededError if the server does not respond in time and UnavailableError if
        it can't be reached; this object is closed in both cases.
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
            creation.cancel()  # if the server still creates the session, `_create` closes it

    # Calls.

    def _call(
        self, method: Method[Response], request: Message, seconds: float | None = None
    ) -> Response:
        handle = self._open_handle(method.called)
        return self._send(
            method, handle, request, self._default_seconds() if seconds is None else seconds
        )

    def _seconds_left(self, request: RunRequest) -> float | None:
        """Return the time limit of a step in seconds, or None for no limit.

        Raises DeadlineExceededError if the deadline of the request has passed.
        """
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
