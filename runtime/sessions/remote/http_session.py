"""HttpSession: a session on a Runstep server over HTTP, with protobuf bodies.

The time limit of a step is sent in the header `X-Timeout-Ms`. To cancel a step, the session sends
the request id of the step to the server's `:cancel` endpoint.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import CancelledError, NotFoundError, OpError, UnimplementedError
from runtime.framework.cancellation import CancellationManager
from runtime.sessions.remote.http_transport import HttpTransport
from runtime.sessions.remote.master_messages import fetched_values, run_step_request
from runtime.sessions.remote.remote_session import CLOSED, RUN, Method, RemoteSession, Response
from runtime.sessions.runtime_session import RunRequest, Tensor
from runtime.sessions.session_options import SessionOptions

_PATH = "/v1/sessions"
_MAX_PARALLEL_STEPS = 16  # steps of `run_async` in one session; each blocks a thread


class _Creation:
    """A request that creates a session; the thread that calls `result` sends it."""

    def __init__(self, send: Callable[[], bytes]) -> None:
        self._send = send

    def result(self) -> pb.CreateSessionResponse:
        return pb.CreateSessionResponse.FromString(self._send())

    def cancel(self) -> None:
        """Do nothing, because only the response contains the handle that closes the session."""


def _failed(error: OpError) -> concurrent.futures.Future[list[Tensor]]:
    future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
    future.set_exception(error)
    return future


class HttpSession(RemoteSession):
    """A session on a Runstep server."""

    runtime_type = "HTTP_SESSION"

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._transport = HttpTransport(options.target)
        self._threads = concurrent.futures.ThreadPoolExecutor(
            _MAX_PARALLEL_STEPS, thread_name_prefix="http_session"
        )

    def _start_creation(self, request: pb.CreateSessionRequest, seconds: float | None) -> _Creation:
        content = request.SerializeToString()
        return _Creation(lambda: self._transport.send("POST", _PATH, content, seconds))

    def _send(
        self,
        method: Method[Response],
        handle: str,
        request: Message,
        seconds: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        path = f"{_PATH}/{handle}:{method.verb}"
        content = request.SerializeToString()
        return method.response.FromString(
            self._transport.send("POST", path, content, seconds, headers)
        )

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step, wait for its end and return the fetched values."""
        return self._run(RunRequest(feeds, fetches, targets, options, metadata))

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step in a thread of this session and return its future."""
        try:
            self._check_open()
            return self._threads.submit(self._run, request)
        except OpError as error:
            return _failed(error)
        except RuntimeError:  # `close` has shut down `_threads` since the check
            return _failed(CancelledError(CLOSED))

    def _run(self, request: RunRequest) -> list[Tensor]:
        message = run_step_request(request.feeds, request.fetches, request.targets, request.options)
        handle = self._open_handle(RUN.called)
        request_id = secrets.token_hex(8)
        seconds = self._seconds_left(request)
        with self._cancelling(request.cancellation, handle, request_id):
            response = self._send(RUN, handle, message, seconds, {"X-Request-Id": request_id})
        return fetched_values(response, request.fetches, request.metadata)

    @contextlib.contextmanager
    def _cancelling(
        self, cancellation: CancellationManager | None, handle: str, request_id: str
    ) -> Iterator[None]:
        """Cancel the step in the server if `cancellation` is cancelled while the block runs."""
        if cancellation is None:
            yield
            return
        answered = threading.Event()

        def cancel() -> None:  # uses a new thread, because steps may block all `_threads`
            arguments = (f"{_PATH}/{handle}", request_id, answered)
            threading.Thread(target=self._transport.cancel_step, args=arguments).start()

        token = cancellation.add_callback(cancel)
        try:
            cancellation.check()
            yield
        finally:
            answered.set()
            cancellation.remove_callback(token)

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """Return the server's devices, the client device first."""
        path = f"{_PATH}/{self._open_handle('ListDevices')}/devices"
        answer = self._transport.send("GET", path, seconds=self._default_seconds())
        return [
            pb.DeviceAttributes(
                name=device["name"],
                device_type=device["device_type"],
                memory_limit=device["memory_limit"],
            )
            for device in json.loads(answer)["devices"]
        ]

    def _close_in_server(self, handle: str, seconds: float) -> None:
        try:
            if handle:
                with contextlib.suppress(NotFoundError):  # the session's lease has expired
                    self._transport.send("DELETE", f"{_PATH}/{handle}", seconds=seconds)
        finally:
            self._threads.shutdown(wait=False)
            self._transport.close()


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Raise UnimplementedError, because sessions over REST share no resource containers."""
    raise UnimplementedError(f"{options.target}: sessions over HTTP share no resources to reset")
