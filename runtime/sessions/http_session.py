"""HttpSession: a session on a Runstep server over HTTP, with protobuf bodies.

A step's deadline travels as `X-Timeout-Ms`; a step that is cancelled here is cancelled in the
server by its request id.

Guarantees: every method may be called from any thread; `_lock` guards the session's id and the
graph's version, and orders extends.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from runtime.framework.cancellation import CancellationManager
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.http_transport import HttpTransport
from runtime.sessions.master_messages import (
    fetched_values,
    partial_run_setup_request,
    run_step_request,
    timeout_seconds,
)
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

RUNTIME_TYPE = "HTTP_SESSION"
_PATH = "/v1/sessions"
_CALLED = {"run": "Run", "partialRunSetup": "PRunSetup", "partialRun": "PRun",
           "makeCallable": "MakeCallable", "runCallable": "RunCallable",
           "releaseCallable": "ReleaseCallable", "extend": "Extend"}  # fmt: skip
_MAX_PARALLEL_STEPS = 16  # of `run_async` of one session, in threads of this process
M = TypeVar("M", bound=Message)


class HttpSession(RuntimeSession):
    """A session whose graph and steps are a Runstep server's."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self._transport = HttpTransport(options.target)
        self._lock = threading.Lock()
        self._id = ""
        self._is_closed = False
        self._threads = concurrent.futures.ThreadPoolExecutor(
            _MAX_PARALLEL_STEPS, thread_name_prefix="http_session"
        )
        # Handle → seconds that its steps have; single operations on a dict are atomic.
        self._callable_seconds: dict[int, float | None] = {}
        self.graph_version = 0

    @property
    def session_handle(self) -> str:
        """The server's id; empty before the first graph."""
        return self._id

    def create(self, graph_def: pb.GraphDef) -> None:
        """Create the session in the server; an empty graph changes nothing."""
        if not graph_def.node:
            return
        with self._lock:
            self._check_open()
            if self._id:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._create(graph_def)

    def _create(self, graph_def: pb.GraphDef) -> None:
        request = pb.CreateSessionRequest(graph_def=graph_def, config=self.options.config)
        response = self._post(_PATH, request, pb.CreateSessionResponse)
        self._id, self.graph_version = response.session_handle, response.graph_version

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes; ABORTED when somebody else has extended meanwhile."""
        with self._lock:
            self._check_open()
            if not self._id:
                self._create(graph_def)
                return
            request = pb.ExtendSessionRequest(
                graph_def=graph_def, current_graph_version=self.graph_version
            )
            response = self._call("extend", request, pb.ExtendSessionResponse)
            self.graph_version = response.new_graph_version

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step in this thread."""
        return self._run(RunRequest(feeds, fetches, targets, options, metadata))

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Run one step in a thread of this session's."""
        try:
            self._check_open()
            return self._threads.submit(self._run, request)
        except OpError as error:
            failed: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
            failed.set_exception(error)
            return failed

    def _run(self, request: RunRequest) -> list[Tensor]:
        message = run_step_request(
            "", request.feeds, request.fetches, request.targets, request.options
        )
        request_id = secrets.token_hex(8)
        seconds = self._seconds_left(request)
        with self._cancelling(request.cancellation, request_id):
            response = self._call(
                "run", message, pb.RunStepResponse, seconds, {"X-Request-Id": request_id}
            )
        return fetched_values(response, request.fetches, request.metadata)

    def _seconds_left(self, request: RunRequest) -> float | None:
        if request.deadline is None:
            return timeout_seconds(request.options, self.options.config)
        left = request.deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError("Timed out waiting for notification")
        return left

    @contextlib.contextmanager
    def _cancelling(
        self, cancellation: CancellationManager | None, request_id: str
    ) -> Iterator[None]:
        """Tell the server when the step is cancelled here."""
        if cancellation is None:
            yield
            return
        answered = threading.Event()

        def tell() -> None:  # not in a thread of the steps: they may all be waiting
            arguments = (f"{_PATH}/{self._id}", request_id, answered)
            threading.Thread(target=self._transport.cancel_step, args=arguments).start()

        token = cancellation.add_callback(tell)
        cancellation.check()
        try:
            yield
        finally:
            answered.set()
            cancellation.remove_callback(token)

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step in parts in the server."""
        request = partial_run_setup_request("", feeds, fetches, targets)
        response = self._call("partialRunSetup", request, pb.PartialRunSetupResponse)
        return response.partial_run_handle

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed and fetch a part."""
        message = run_step_request("", feeds, fetches, partial_run_handle=handle)
        return fetched_values(self._call("partialRun", message, pb.RunStepResponse), fetches, None)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step in the server."""
        request = pb.MakeCallableRequest(options=options)
        handle = self._call("makeCallable", request, pb.MakeCallableResponse).handle
        self._callable_seconds[handle] = timeout_seconds(options.run_options, self.options.config)
        return handle

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step."""
        request = pb.RunCallableRequest(
            handle=handle, feed=[tensor_to_proto(value) for value in feeds]
        )
        seconds = self._callable_seconds.get(handle)
        response = self._call("runCallable", request, pb.RunCallableResponse, seconds)
        if metadata is not None:
            metadata.MergeFrom(response.metadata)
        return [tensor_from_proto(tensor) for tensor in response.fetch]

    def release_callable(self, handle: int) -> None:
        """Forget a prepared step."""
        request = pb.ReleaseCallableRequest(handle=handle)
        self._call("releaseCallable", request, pb.ReleaseCallableResponse)
        self._callable_seconds.pop(handle, None)

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The server's devices, the client device first."""
        path = f"{_PATH}/{self._open_id('ListDevices')}/devices"
        answer = self._transport.send("GET", path, seconds=self._default_seconds())
        return [
            pb.DeviceAttributes(
                name=device["name"],
                device_type=device["device_type"],
                memory_limit=device["memory_limit"],
            )
            for device in json.loads(answer)["devices"]
        ]

    def close(self) -> None:
        """Close the server's session. Closing again changes nothing, nor does one that expired."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        session_counts.session_closed(RUNTIME_TYPE)
        try:
            if self._id:
                with contextlib.suppress(NotFoundError):  # it expired so long ago
                    path = f"{_PATH}/{self._id}"
                    self._transport.send("DELETE", path, seconds=self._default_seconds())
        finally:
            self._threads.shutdown(wait=False)
            self._transport.close()

    def _call(
        self,
        verb: str,
        request: Message,
        response_type: type[M],
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> M:
        path = f"{_PATH}/{self._open_id(_CALLED[verb])}:{verb}"
        return self._post(path, request, response_type, seconds, headers)

    def _post(
        self,
        path: str,
        request: Message,
        response_type: type[M],
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> M:
        if seconds is None:
            seconds = self._default_seconds()
        data = self._transport.send("POST", path, request.SerializeToString(), seconds, headers)
        return response_type.FromString(data)

    def _default_seconds(self) -> float | None:
        return timeout_seconds(None, self.options.config)

    def _open_id(self, what: str) -> str:
        self._check_open()
        if not self._id:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}()!")
        return self._id

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Sessions over REST share no containers, so there is nothing to clear."""
    raise UnimplementedError(f"{options.target}: sessions over HTTP share no resources to reset")
