"""Closing a session on a server that does not answer returns, and ends what waits."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DeadlineExceededError,
    RuntimeSession,
    SessionOptions,
    UnavailableError,
    new_session,
)
from runtime.sessions.remote import grpc_session, remote_session

GRAPH = pb.GraphDef(node=[pb.NodeDef(name="x", op="NoOp")])
# How long a test waits for what should be at once before it fails.
FAIL_AFTER_SECONDS = 30


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that is taken, so that no other process opens it, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the first message has been handed to a gRPC call."""
    event = threading.Event()
    serialize = grpc_session._serialize

    def noting(message: Any) -> bytes:
        event.set()
        return serialize(message)

    monkeypatch.setattr(grpc_session, "_serialize", noting)
    return event


@contextlib.contextmanager
def in_thread(work: Callable[[], Any]) -> Iterator[concurrent.futures.Future[Any]]:
    """`work` in a daemon thread: one that never ends does not hold up the tests."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield future
    thread.join(FAIL_AFTER_SECONDS)


def opened(port: int) -> RuntimeSession:
    return new_session(SessionOptions(target=f"grpc://127.0.0.1:{port}"))


@pytest.mark.parametrize("port_of", [silent_port, closed_port])
def test_close_ends_a_create_that_waits_for_a_server(
    port_of: Callable[[], Any], sent: threading.Event
) -> None:
    with port_of() as port:
        session = opened(port)
        with in_thread(lambda: session.create(GRAPH)) as creating:
            assert sent.wait(FAIL_AFTER_SECONDS)
            with in_thread(session.close) as closing:
                assert closing.result(FAIL_AFTER_SECONDS) is None
            with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
                creating.result(FAIL_AFTER_SECONDS)
        session.close()  # again


@pytest.mark.parametrize("port_of", [silent_port, closed_port])
def test_close_ends_another_call_that_waits_for_a_server(
    port_of: Callable[[], Any], sent: threading.Event
) -> None:
    with port_of() as port:
        session = opened(port)
        with in_thread(session.list_devices) as listing:
            assert sent.wait(FAIL_AFTER_SECONDS)
            with in_thread(session.close) as closing:
                assert closing.result(FAIL_AFTER_SECONDS) is None
            with pytest.raises(CancelledError):
                listing.result(FAIL_AFTER_SECONDS)


class Master:
    """A master service that opens sessions at once; the other calls wait until `end`."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.created = threading.Event()
        self.answers_create = threading.Event()
        self.answers_close = threading.Event()
        self._threads = concurrent.futures.ThreadPoolExecutor(8)
        self._server = grpc.server(self._threads)
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                getattr(self, "_" + name),
                request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, request in (
                ("CreateSession", pb.CreateSessionRequest),
                ("CloseSession", pb.CloseSessionRequest),
                ("ExtendSession", pb.ExtendSessionRequest),
            )
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("tensorflow.MasterService", handlers),)
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self.extending = threading.Event()
        self.ends = threading.Event()
        self._server.start()

    def _CreateSession(self, _: Any, __: Any) -> pb.CreateSessionResponse:
        self.created.set()
        self.answers_create.wait(FAIL_AFTER_SECONDS)
        return pb.CreateSessionResponse(session_handle="one")

    def _CloseSession(self, request: Any, _: Any) -> pb.CloseSessionResponse:
        self.closed.append(request.session_handle)
        self.answers_close.wait(FAIL_AFTER_SECONDS)
        return pb.CloseSessionResponse()

    def _ExtendSession(self, _: Any, __: Any) -> pb.ExtendSessionResponse:
        self.extending.set()
        self.ends.wait(FAIL_AFTER_SECONDS)
        return pb.ExtendSessionResponse()

    def stop(self) -> None:
        for event in (self.answers_create, self.answers_close, self.ends):
            event.set()
        self._server.stop(None).wait()
        self._threads.shutdown()


@pytest.fixture
def master() -> Iterator[Master]:
    service = Master()
    yield service
    service.stop()


def test_close_passes_an_extend_that_is_not_answered(master: Master) -> None:
    master.answers_create.set()
    master.answers_close.set()
    session = opened(master.port)
    session.create(GRAPH)
    more = pb.GraphDef(node=[pb.NodeDef(name="z", op="NoOp")])
    with in_thread(lambda: session.extend(more)) as extending:
        assert master.extending.wait(FAIL_AFTER_SECONDS)
        with in_thread(session.close) as closing:
            assert closing.result(FAIL_AFTER_SECONDS) is None
        with pytest.raises(CancelledError):
            extending.result(FAIL_AFTER_SECONDS)
    assert master.closed == ["one"]


def test_close_waits_a_bounded_time_for_the_server(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_session, "CLOSE_SECONDS", 0.2)
    master.answers_create.set()
    session = opened(master.port)
    session.create(GRAPH)
    with in_thread(session.close) as closing, pytest.raises(DeadlineExceededError):
        closing.result(FAIL_AFTER_SECONDS)
    assert master.closed == ["one"]


def test_close_does_not_wait_for_a_server_that_has_ended(master: Master) -> None:
    master.answers_create.set()
    session = opened(master.port)
    session.create(GRAPH)
    master.stop()
    with in_thread(session.close) as closing, pytest.raises(UnavailableError):
        closing.result(FAIL_AFTER_SECONDS)
    with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
        session.extend(GRAPH)


def test_a_session_that_was_made_while_it_was_closed_is_closed_in_the_server(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to `create` and `close` cross: the answer has come, nothing has read it."""
    master.answers_create.set()
    master.answers_close.set()
    session = opened(master.port)
    result = grpc_session.GrpcMaster.result

    def closed_meanwhile(self: grpc_session.GrpcMaster, call: Any) -> Any:
        answer = result(self, call)
        if not master.closed:
            session.close()
        return answer

    monkeypatch.setattr(grpc_session.GrpcMaster, "result", closed_meanwhile)
    with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
        session.create(GRAPH)
    assert master.closed == ["one"]


class HttpServer(http.server.ThreadingHTTPServer):
    """Makes a session when `answers_create` is set; keeps the paths that it has to delete."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HttpHandler)
        self.creating = threading.Event()
        self.answers_create = threading.Event()
        self.deleted: list[str] = []


class HttpHandler(http.server.BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.creating.set()
        self.server.answers_create.wait(FAIL_AFTER_SECONDS)
        self._answer(pb.CreateSessionResponse(session_handle="one").SerializeToString())

    def do_DELETE(self) -> None:
        self.server.deleted.append(self.path)
        self._answer(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    server = HttpServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.answers_create.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_http_session_that_is_made_while_it_is_closed_is_closed_in_the_server(
    http_server: HttpServer,
) -> None:
    session = new_session(SessionOptions(target=f"http://127.0.0.1:{http_server.server_port}"))
    with in_thread(lambda: session.create(GRAPH)) as creating:
        assert http_server.creating.wait(FAIL_AFTER_SECONDS)
        with in_thread(session.close) as closing:
            assert closing.result(FAIL_AFTER_SECONDS) is None
        assert not http_server.deleted
        http_server.answers_create.set()
        with pytest.raises(CancelledError, match=r"^Session has been closed\.$"):
            creating.result(FAIL_AFTER_SECONDS)
    assert http_server.deleted == ["/v1/sessions/one"]
