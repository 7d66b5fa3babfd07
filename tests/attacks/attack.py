"""An attack, and how one reaches a server.

An answer is written `413 INVALID_ARGUMENT` over HTTP, `RESOURCE_EXHAUSTED` over gRPC; `closed` if
the server closed the connection without one, `silence` if it did neither.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import pathlib
import socket
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import grpc

import protos as pb
from server.codec.scalars import encode_base64
from tests.integration.server_process import ServerProcess

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
ANSWER_SECONDS = 100  # for any answer


class Target:
    """The server that is attacked: `http` and `grpc` are `127.0.0.1:PORT`.

    `log` has its lines so far; `models` is the base path of its model `changing`.
    """

    def __init__(self, server: ServerProcess, models: pathlib.Path) -> None:
        self.http = urllib.parse.urlsplit(server.http_address).netloc
        self.grpc = urllib.parse.urlsplit(server.grpc_address).netloc
        self.process_id = server.process.pid
        self.log = server.log
        self.models = models

    def connect(self) -> socket.socket:
        """Return a new connection to the HTTP port."""
        host, port = self.http.split(":")
        return socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)

    def request(
        self,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = JSON,
        method: str = "POST",
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        connection = http.client.HTTPConnection(self.http, timeout=ANSWER_SECONDS)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str] = JSON) -> str:
        """POST and return the answer in words."""
        try:
            return in_words(*self.request(path, body, headers))
        except (OSError, http.client.HTTPException):
            return "closed"

    def call(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a successful answer to a POST of JSON."""
        status, content = self.request(path, json.dumps(body).encode())
        assert status in (200, 201), content
        return json.loads(content)

    def open_session(self, graph: pb.GraphDef) -> str:
        """Open a session and return its path."""
        graph_def = encode_base64(graph.SerializeToString())
        answer = self.call("/v1/sessions", {"graph_def": graph_def})
        return f"/v1/sessions/{answer['session']}"

    def run(self, session: str, step: Mapping[str, Any]) -> str:
        """Run a step and return the answer in words."""
        return self.post(f"{session}:run", json.dumps(step).encode())

    def call_grpc(self, method: str, message: bytes) -> tuple[str, bytes]:
        """Call the master service with these bytes; return the code and the answer."""
        unlimited = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
        ]
        with grpc.insecure_channel(self.grpc, unlimited) as channel:
            call = channel.unary_unary(f"/tensorflow.MasterService/{method}")
            try:
                answer: bytes = call(message, timeout=ANSWER_SECONDS)
            except grpc.RpcError as error:
                return error.code().name, b""
        return "OK", answer


def in_words(status: int, content: bytes) -> str:
    """Return an answer in words."""
    if status < 400:
        return str(status)
    try:
        return f"{status} {json.loads(content)['code']}"
    except (ValueError, KeyError, TypeError):
        return str(status)


# Makes what is sent, for an attack of a size, and returns the attack; that returns the answer.
Prepare = Callable[[Target, Any], Callable[[], str]]


@dataclasses.dataclass(frozen=True)
class Attack:
    """A row of the table.

    Args:
        key: Names it in tests and on the command line.
        input: What is sent; `{}` stands for the size in full.
        outcome: What happens.
        limits: The settings that bound it.
        answers: The answers of which any is right.
        prepare: See Prepare; it gets `small` in tests and `full` in the benchmark.
        settings: What the server of a test needs, by section.
    """

    key: str
    input: str
    outcome: str
    limits: tuple[str, ...]
    answers: tuple[str, ...]
    prepare: Prepare
    small: Any = None
    full: Any = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
