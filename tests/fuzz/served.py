"""A server in a child, without sockets: its ASGI application, its answers at once, its gRPC calls.

The calls of one child come one after the other, from one event loop.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import tempfile
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import protos as pb
from runtime.errors import Code
from server.app import Services, create_app, lifespan, make_services
from server.connections.plain_requests import LateContent, ResponseNow
from server.errors import HTTP_STATUS
from server.settings import Settings

T = TypeVar("T")
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "saved_models"
TENSOR_BYTES = 64 << 20
STEP_SECONDS = 2.0
_SETTINGS: dict[str, Any] = {
    "rest": {"host": "0.0.0.0", "max_body_bytes": 1 << 20, "max_answer_bytes": TENSOR_BYTES},
    "grpc": {"port": "free", "max_message_bytes": 4 << 20},
    "thread_pools": [
        {"name": "online", "num_threads": 2},
        {"name": "background", "num_threads": 1, "low_priority": True, "own_process": False},
    ],
    "sessions": {
        "max_tensor_bytes": TENSOR_BYTES,
        "max_step_seconds": STEP_SECONDS,
        "call_timeout_ms": 60_000,  # the machine may be busy
        "max_graph_nodes": 10_000,
    },
    "clusters": "off",
}
# What a client may do wrong, and what it may have to wait for; never 500.
_CODES = {name: HTTP_STATUS[code] for name, code in Code.__members__.items()}
STATUSES = frozenset({200, 201, 405, 410, 413, 431, *_CODES.values()} - {500})


class Answer(NamedTuple):
    """A response; `status` 0 means that there was none."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class GrpcAnswer(NamedTuple):
    """The code of a call by name, and the bytes of its response or the details of its error."""

    code: str
    content: bytes


class Served:
    """A started server; made in a child."""

    def __init__(self, models: Sequence[str] = ()) -> None:
        self._folder = tempfile.mkdtemp(prefix="fuzz")
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        settings = Settings(models=self._link(models), **_SETTINGS)
        self.services: Services = make_services(settings)
        self.app: Any = create_app(self.services)
        self._lifespan = lifespan(self.services)  # ends with the child
        self.do(self._lifespan.__aenter__())
        assert self.services.models.wait_until_settled(60)
        self._grpc: Any = None

    def _link(self, models: Sequence[str]) -> list[dict[str, str]]:
        for name in models:
            folder = pathlib.Path(self._folder, name)
            folder.mkdir()
            (folder / "1").symlink_to(FIXTURES / name)
        return [{"name": name, "base_path": f"{self._folder}/{name}"} for name in models]

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self.loop.run_until_complete(work)

    def request(
        self, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        """Return the application's answer to a request."""
        return self.do(_request(self.app, method, path, headers, body))

    def answer_now(
        self, path: str, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> Answer | None:
        """Return what the protocol answers at once, or None; `more` are further headers."""
        headers = {b"content-type": b"application/json", b"content-length": b"%d" % len(body)}
        answer = self.app.answer_now(path, {**headers, **dict(more)}, body)
        if isinstance(answer, LateContent):
            late = self.do(answer.content)
            return Answer(200, {}, late if isinstance(late, bytes) else late.body)
        if not isinstance(answer, ResponseNow):
            return None
        head, _, content = answer.text.partition(b"\r\n\r\n")
        lines = [line.partition(b": ") for line in head.split(b"\r\n")]
        return Answer(answer.status, {name: value for name, _, value in lines}, content)

    def json(self, method: str, path: str, document: object = None) -> Any:
        """Return the answer to a request that must succeed."""
        body = b"" if document is None else json.dumps(document).encode()
        answer = self.request(method, path, [], body)
        assert answer.status in (200, 201), answer
        return json.loads(answer.body)

    def grpc(self, method: str, data: bytes) -> GrpcAnswer:
        """Return the answer to a call, by its path or by its name in the master service."""
        if self._grpc is None:
            self._grpc = self._grpc_methods()
        path = method if "/" in method else f"/tensorflow.MasterService/{method}"
        return self.do(_grpc(self._grpc[path], data))

    def _grpc_methods(self) -> dict[str, Any]:
        from server.rpc.call import Method
        from server.rpc.grpc_server import GrpcServer
        from server.rpc.services import rpc_services

        services = self.services

        async def made() -> dict[str, Any]:
            server = GrpcServer(services)
            return {
                path: server._listener._handle(path, method)
                for service in rpc_services(services)
                for name, method in service.methods.items()
                if isinstance(method, Method)
                for path in [f"/{service.name}/{name}"]
            }

        return self.do(made())

    def until_idle(self) -> None:
        """Wait until the kernels of all steps have ended; the parent limits how long."""

        while True:
            pools = self.json("GET", "/v1/threadpools")["thread_pools"]
            if not any(pool["queued"] + pool["running"] for pool in pools):
                return
            self.do(asyncio.sleep(0.001))


async def _request(
    app: Any, method: str, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> Answer:
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "query_string": query.encode(errors="replace"),
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-length", b"%d" % len(body)), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    messages = [{"type": "http.request", "body": body}]
    sent: list[Any] = []

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await asyncio.get_running_loop().create_future()  # the client stays
        raise AssertionError("the future is never done")

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return Answer(0, {}, b"")
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], dict(sent[0]["headers"]), content)


class _AbortedError(Exception):
    pass


class _Call:
    """The context of a call: no deadline, no metadata."""

    def __init__(self) -> None:
        self.answer = GrpcAnswer("OK", b"")

    def time_remaining(self) -> None:
        return None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def abort(self, code: Any, details: str, _: object = ()) -> NoReturn:
        self.answer = GrpcAnswer(code.name, details.encode())
        raise _AbortedError


async def _grpc(handle: Any, data: bytes) -> GrpcAnswer:
    call = _Call()
    try:
        return GrpcAnswer("OK", await handle(data, call))
    except _AbortedError:
        return call.answer


def wrong(answer: Answer) -> str:
    """Return what is wrong about an answer of the server, or nothing."""
    if answer.status not in STATUSES:
        return f"STATUS {answer.status} {answer.body[:300]!r}"
    if b"json" not in answer.headers.get(b"content-type", b"") and answer.status < 400:
        return ""
    try:
        document = json.loads(answer.body)
    except ValueError as error:
        return f"BODY {answer.status} is no JSON ({error}): {answer.body[:100]!r}"
    if answer.status < 400:
        return ""
    if not isinstance(document.get("error"), str) or "Traceback" in document["error"]:
        return f"BODY {answer.status} has no error: {answer.body[:300]!r}"
    code = document.get("code")
    specific = answer.status in (405, 410, 413)
    if "code" in document and _CODES.get(code) != answer.status and not specific:
        return f"CODE {code} with status {answer.status}"
    return ""


def graph_of_types() -> pb.GraphDef:
    """Return a graph of a placeholder and an Identity for every type that can be fed."""
    graph = pb.GraphDef()
    for number in pb.DataType.values():
        if number in (0, pb.DT_RESOURCE, pb.DT_VARIANT) or number > 100:
            continue
        fed = graph.node.add(name=f"in_{number}", op="Placeholder")
        fed.attr["dtype"].type = number
        read = graph.node.add(name=f"out_{number}", op="Identity", input=[fed.name])
        read.attr["T"].type = number
    return graph
