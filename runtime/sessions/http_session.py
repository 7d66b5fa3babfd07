"""HttpSession: a session on a Runstep server over HTTP, with protobuf bodies.

Calls are sent again only where that is safe: when the connection could not be made, so that the
server has seen nothing. A step's deadline travels as `X-Timeout-Ms`; a step that is cancelled here
is cancelled in the server by its request id.

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
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx
from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    Code,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    UnimplementedError,
    error_for_code,
)
from runtime.framework.cancellation import CancellationManager
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.master_messages import fetched_values, run_step_request, timeout_seconds
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_options import SessionOptions

_PROTOBUF = "application/x-protobuf"
_CONNECT_RETRIES = 2
_GRACE_SECONDS = 5.0  # the server answers at the deadline; the wire gets this much more
_MAX_PARALLEL_STEPS = 16  # of one session, in threads of this process
_CANCEL_SECONDS = 5.0  # for telling the server that a step is not wanted any more
_CODE_BY_STATUS = {
    400: Code.INVALID_ARGUMENT, 401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND, 409: Code.ABORTED, 410: Code.CANCELLED, 413: Code.RESOURCE_EXHAUSTED,
    429: Code.RESOURCE_EXHAUSTED, 499: Code.CANCELLED, 501: Code.UNIMPLEMENTED,
    503: Code.UNAVAILABLE, 504: Code.DEADLINE_EXCEEDED,
}  # fmt: skip
M = TypeVar("M", bound=Message)


class HttpSession(RuntimeSession):
    """A session whose graph and steps are a Runstep server's."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self._client = httpx.Client(
            base_url=options.target.rstrip("/"),
            transport=httpx.HTTPTransport(retries=_CONNECT_RETRIES),
        )
        self._lock = threading.Lock()
        self._id = ""
        self._is_closed = False
        self._threads = concurrent.futures.ThreadPoolExecutor(
            _MAX_PARALLEL_STEPS, thread_name_prefix="http_session"
        )
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
        response = self._post("/v1/sessions", request, pb.CreateSessionResponse)
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
        with self._cancelling(request.cancellation, request_id):
            response = self._call(
                "run",
                message,
                pb.RunStepResponse,
                seconds=self._seconds_left(request),
                headers={"X-Request-Id": request_id},
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
    def _cancelling(self, cancellation: CancellationManager | None, request_id: str) -> Any:
        """Tell the server when the step is cancelled here."""
        if cancellation is None:
            yield
            return
        token = cancellation.add_callback(lambda: self._threads.submit(self._cancel, request_id))
        cancellation.check()
        try:
            yield
        finally:
            cancellation.remove_callback(token)

    def _cancel(self, request_id: str) -> None:
        with contextlib.suppress(httpx.HTTPError):
            self._client.post(
                f"/v1/sessions/{self._id}:cancel",
                json={"request_id": request_id},
                timeout=_CANCEL_SECONDS,
            )

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step in parts in the server."""
        request = pb.PartialRunSetupRequest(feed=feeds, fetch=fetches, target=targets)
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
        return self._call("makeCallable", request, pb.MakeCallableResponse).handle

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step."""
        request = pb.RunCallableRequest(
            handle=handle, feed=[tensor_to_proto(value) for value in feeds]
        )
        response = self._call("runCallable", request, pb.RunCallableResponse)
        if metadata is not None:
            metadata.MergeFrom(response.metadata)
        return [tensor_from_proto(tensor) for tensor in response.fetch]

    def release_callable(self, handle: int) -> None:
        """Forget a prepared step."""
        request = pb.ReleaseCallableRequest(handle=handle)
        self._call("releaseCallable", request, pb.ReleaseCallableResponse)

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The server's devices, the client device first."""
        answer = self._send("GET", f"/v1/sessions/{self._open_id('ListDevices')}/devices")
        return [
            pb.DeviceAttributes(
                name=device["name"],
                device_type=device["device_type"],
                memory_limit=device["memory_limit"],
            )
            for device in json.loads(answer)["devices"]
        ]

    def close(self) -> None:
        """Close the server's session. Closing again changes nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        try:
            if self._id:
                self._send("DELETE", f"/v1/sessions/{self._id}")
        finally:
            self._threads.shutdown(wait=False)
            self._client.close()

    def _call(
        self,
        verb: str,
        request: Message,
        response_type: type[M],
        *,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> M:
        path = f"/v1/sessions/{self._open_id(verb)}:{verb}"
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
            seconds = timeout_seconds(None, self.options.config)
        data = self._send("POST", path, request.SerializeToString(), seconds, headers)
        return response_type.FromString(data)

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The answer's body, or the OpError that it tells of."""
        sent = {"Content-Type": _PROTOBUF, **(headers or {})}
        if seconds is not None:
            sent["X-Timeout-Ms"] = str(max(1, int(seconds * 1000)))
        timeout = None if seconds is None else seconds + _GRACE_SECONDS
        try:
            answer = self._client.request(
                method, path, content=content, headers=sent, timeout=timeout
            )
        except httpx.TimeoutException as error:
            raise DeadlineExceededError(f"{method} {path}: no answer in {timeout} s") from error
        except httpx.HTTPError as error:
            raise UnavailableError(f"{method} {path}: {error}") from error
        if answer.is_error:
            raise _error_of(answer)
        return answer.content

    def _open_id(self, what: str) -> str:
        self._check_open()
        if not self._id:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}()!")
        return self._id

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")


def _error_of(answer: httpx.Response) -> OpError:
    """The OpError of an error answer: by its code, else by its status."""
    code = _CODE_BY_STATUS.get(answer.status_code, Code.UNKNOWN)
    message = answer.text
    with contextlib.suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict):
            message = str(body.get("error", message))
            code = Code.__members__.get(str(body.get("code")), code)
    return error_for_code(code, message)


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Sessions over REST share no containers, so there is nothing to clear."""
    raise UnimplementedError(f"{options.target}: sessions over HTTP share no resources to reset")
