"""Sender: one thread's connections to a server, and a call for each front that checks its answer.

A call yields once for each right answer, and raises Failed or WrongAnswer.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import grpc
import numpy as np

import protos as pb
from bench.fronts.requests import (
    JSON,
    HttpRequest,
    RpcRequest,
    binary_outputs,
    infer_binary,
    infer_json,
    infer_rpc,
    predict_json,
    predict_rpc,
)
from bench.soak.client import check_equal, failure, is_ended
from bench.soak.record import Failed
from runtime.api import tensor_from_proto

ANSWER_SECONDS = 60  # no request of a mixed load may take longer
RUNS = 3  # of a session
HALF = "half_plus_two"
FIRST = np.float32([1, 2, 5])


class Address(NamedTuple):
    """The ports of a server: `http://host:port` and `host:port`."""

    http: str
    grpc: str


class Sender:
    """The connections of one thread to one server."""

    def __init__(self, address: Address) -> None:
        self._netloc = urllib.parse.urlsplit(address.http).netloc
        self._connection: http.client.HTTPConnection | None = None
        self._channel = grpc.insecure_channel(address.grpc)
        self.model = HALF
        self.x = FIRST

    def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            self._connection.close()
        self._channel.close()

    def predict(self) -> Iterator[list[float]]:
        """Predict over REST; yield y."""
        _, content = self.request("POST", predict_json(self.model, {"x": self.x}))
        yield json.loads(content)["predictions"]

    def infer(self) -> Iterator[list[float]]:
        """Infer over REST with JSON; yield y."""
        _, content = self.request("POST", infer_json(self.model, {"x": self.x}))
        yield json.loads(content)["outputs"][0]["data"]

    def infer_binary(self) -> Iterator[list[float]]:
        """Infer over REST with binary data; yield y."""
        headers, content = self.request("POST", infer_binary(self.model, {"x": self.x}))
        length = int(headers["Inference-Header-Content-Length"])
        yield binary_outputs(content, length)["y"].tolist()

    def predict_rpc(self) -> Iterator[list[float]]:
        """Predict over gRPC; yield y."""
        content = self._rpc(predict_rpc(self.model, {"x": self.x}))
        answer = pb.serving.PredictResponse.FromString(content)
        yield tensor_from_proto(answer.outputs["y"]).tolist()

    def infer_rpc(self) -> Iterator[list[float]]:
        """Infer over gRPC; yield y."""
        content = self._rpc(infer_rpc(self.model, {"x": self.x}))
        answer = pb.inference.ModelInferResponse.FromString(content)
        yield np.frombuffer(answer.raw_output_contents[0], np.float32).tolist()

    def session(self) -> Iterator[None]:
        """Open a session of the counter model, run it, and close it."""
        opened = HttpRequest("/v1/sessions", b'{"model": "counter"}', JSON)
        _, content = self.request("POST", opened)
        path = f"/v1/sessions/{json.loads(content)['session']}"
        yield
        for count in range(1, RUNS + 1):
            run = HttpRequest(f"{path}:run", b'{"fetches": ["incr_counter"]}', JSON)
            _, content = self.request("POST", run)
            check_equal(json.loads(content)["outputs"]["incr_counter"]["data"], count, "a counter")
            yield
        self.request("DELETE", HttpRequest(path, b"", {}))
        yield

    def request(self, method: str, request: HttpRequest) -> tuple[Mapping[str, str], bytes]:
        """Return the headers and the body of an answer; raise Failed unless it is a 2xx."""
        if self._connection is not None and is_ended(self._connection):
            self._connection.close()  # the server ends connections that are idle
            self._connection = None
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._netloc, timeout=ANSWER_SECONDS)
        code = "NOT_SENT"  # in full, so that no server can have begun it
        try:
            self._connection.request(method, request.path, request.body, dict(request.headers))
            code = "NO_ANSWER"
            answer = self._connection.getresponse()
            content = answer.read()
        except ConnectionRefusedError as error:
            self._connection = None
            raise Failed("REFUSED", f"{request.path}: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            raise Failed(code, f"{request.path}: {type(error).__name__} {error}") from None
        if answer.status // 100 != 2:
            raise failure(answer.status, content, request.path)
        return answer.headers, content

    def _rpc(self, request: RpcRequest) -> bytes:
        try:
            content: bytes = self._channel.unary_unary(request.method)(
                request.message, timeout=ANSWER_SECONDS
            )
        except grpc.RpcError as error:
            raise Failed(error.code().name, f"{request.method}: {error.details()}") from None
        return content


Call = Callable[[Sender], Iterator[list[float] | None]]
# The fronts whose calls yield an output y of `model` for `x`, and the others.
PREDICTIONS: dict[str, Call] = {
    "REST predict": Sender.predict,
    "v2 infer, JSON": Sender.infer,
    "v2 infer, binary": Sender.infer_binary,
    "gRPC Predict": Sender.predict_rpc,
    "gRPC ModelInfer": Sender.infer_rpc,
}
SESSIONS = "sessions"
