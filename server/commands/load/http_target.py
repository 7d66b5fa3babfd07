"""A model behind HTTP: TensorFlow Serving's REST, or the Open Inference Protocol's binary form."""

from __future__ import annotations

import ssl
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from google.protobuf import json_format

import protos as pb
from runtime.api import DataType, dtypes
from runtime.errors import InvalidArgumentError, NotFoundError, OpError, UnavailableError
from server.codec.inference_protocol.datatypes import DATA_TYPES, datatype_of
from server.codec.json_body import parse_json
from server.codec.scalars import text_or_base64
from server.codec.session.tensor_writer import to_bytes
from server.commands.load.address import Address
from server.commands.load.example_inputs import (
    InputSpec,
    make_inputs,
    read_file,
    signature_named,
    specs_of,
)
from server.commands.load.http_connection import Answer, HttpConnection
from server.commands.load.target import CallFailed

DEFAULT_SIGNATURE = "serving_default"  # TF: saved_model/signature_constants.h
_OK = 200
_NOT_FOUND = 404
_MAX_MESSAGE = 300  # characters of an error that are printed
_JSON = "Content-Type: application/json"
_BINARY = "Content-Type: application/octet-stream"
_HEADER_LENGTH = "Inference-Header-Content-Length"


class HttpServer:
    """A server's address, with the headers that each request has."""

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        headers: Sequence[str],
        timeout_seconds: float,
    ) -> None:
        self.address = address
        self._tls = tls
        self._headers = tuple(headers)
        self._timeout = timeout_seconds

    def connection(self) -> HttpConnection:
        """Return a new connection."""
        return HttpConnection(self.address.host, self.address.port, self._tls, self._timeout)

    def request(
        self, method: str, path: str, headers: Sequence[str] = (), body: bytes = b""
    ) -> bytes:
        """Return the bytes of a request."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.address.authority}",
            *self._headers,
            *headers,
        ]
        head = "".join(f"{line}\r\n" for line in (*lines, f"Content-Length: {len(body)}"))
        return f"{head}\r\n".encode() + body

    def get(self, path: str) -> Any:
        """Return the JSON of a page of the server; raise OpError if there is none."""
        connection = self.connection()
        try:
            answer = connection.request(self.request("GET", path))
        except CallFailed as failure:
            raise UnavailableError(f"Cannot call {failure.message}") from None
        finally:
            connection.close()
        if answer.status != _OK:
            said = failed(answer)
            error = NotFoundError if answer.status == _NOT_FOUND else UnavailableError
            raise error(f"GET {path} at {self.address.authority}: {said.code}: {said.message}")
        try:
            return parse_json(answer.body)
        except InvalidArgumentError:
            raise UnavailableError(f"GET {path} at {self.address.authority} is no JSON") from None


class HttpTarget:
    """The same request for each call."""

    in_process = False

    def __init__(self, server: HttpServer, request: bytes, description: str) -> None:
        self._server = server
        self._request = request
        self.description = description

    def open(self) -> _HttpCall:
        """Return a connection of one more caller."""
        return _HttpCall(self._server.connection(), self._request)

    def close(self) -> None:
        """Do nothing: connections are their callers'."""


class _HttpCall:
    def __init__(self, connection: HttpConnection, request: bytes) -> None:
        self._connection = connection
        self._request = request

    def __call__(self) -> None:
        answer = self._connection.request(self._request)
        if answer.status != _OK:
            raise failed(answer)

    def close(self) -> None:
        self._connection.close()


def failed(answer: Answer) -> CallFailed:
    """Return what an answer with an error says: Runstep names the code, others the status only."""
    code, message = f"HTTP {answer.status}", answer.body.decode(errors="replace")
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    if isinstance(body, dict):
        code = str(body.get("code", code))
        message = str(body.get("error", message))
    return CallFailed(code, message[:_MAX_MESSAGE])


def rest_target(server: HttpServer, signature: str, batch: int, file: str | None) -> HttpTarget:
    """Return the target of predict; the body is an example, or `file` as it is.

    Raises OpError if the model or the signature is not there.
    """
    path = server.address.model_path
    if file is None:
        found = signature_named(_rest_signatures(server, path), signature, str(server.address))
        inputs = make_inputs(specs_of(found), batch, None)
        body = predict_body(signature, inputs)
    else:
        body = read_file(file)
    request = server.request("POST", f"{path}:predict", [_JSON], body)
    return HttpTarget(server, request, f"REST predict of {server.address}")


def _rest_signatures(server: HttpServer, path: str) -> Mapping[str, pb.SignatureDef]:
    metadata = server.get(f"{path}/metadata")
    try:
        found = metadata["metadata"]["signature_def"]["signature_def"]
        message = json_format.ParseDict(
            {"signature_def": found}, pb.serving.SignatureDefMap(), ignore_unknown_fields=True
        )
    except (KeyError, TypeError, json_format.ParseError) as error:
        raise UnavailableError(f"{path}/metadata says no signatures: {error}") from None
    return message.signature_def


def predict_body(signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """Return the JSON of a predict request, in columns."""
    written = {name: _values(array) for name, array in inputs.items()}
    return orjson.dumps({"signature_name": signature, "inputs": written})


def _values(array: np.ndarray) -> Any:
    if array.dtype == object:
        return _strings(array.tolist())
    if np.issubdtype(array.dtype, np.complexfloating):
        raise InvalidArgumentError("JSON of predict has no complex numbers; use --protocol=grpc")
    if array.dtype.kind not in "biuf":  # of ml_dtypes
        return array.astype(np.float32).tolist()
    return array.tolist()


def _strings(value: Any) -> Any:
    return [_strings(each) for each in value] if isinstance(value, list) else text_or_base64(value)


def inference_target(
    server: HttpServer, signature: str, batch: int, file: str | None
) -> HttpTarget:
    """Return the target of infer; inputs and outputs are binary, or the body is `file` as it is.

    Raises OpError if the model is not there.
    """
    path = server.address.model_path
    if file is None:
        header, content = infer_parts(
            signature, make_inputs(_inference_specs(server, path, signature), batch, None)
        )
        headers = [_BINARY, f"{_HEADER_LENGTH}: {len(header)}"]
        body = header + content
    else:
        headers, body = [_JSON], read_file(file)
    request = server.request("POST", f"{path}/infer", headers, body)
    return HttpTarget(server, request, f"Open Inference Protocol's infer of {server.address}")


def _inference_specs(server: HttpServer, path: str, signature: str) -> dict[str, InputSpec]:
    if signature != DEFAULT_SIGNATURE:  # other servers know no signatures
        path += f"?signature_name={urllib.parse.quote(signature)}"
    try:
        return {
            str(each["name"]): InputSpec(
                DATA_TYPES[each["datatype"]], tuple(int(size) for size in each["shape"])
            )
            for each in server.get(path)["inputs"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UnavailableError(f"{path} says no inputs: {error!r}") from None


def infer_parts(signature: str, inputs: Mapping[str, np.ndarray]) -> tuple[bytes, bytes]:
    """Return the JSON and the binary data of an inference request that wants binary outputs."""
    described, contents = [], []
    for name, array in inputs.items():
        content = to_bytes(array, _data_type(array))
        contents.append(content)
        described.append(
            {
                "name": name,
                "datatype": datatype_of(array, name),
                "shape": list(array.shape),
                "parameters": {"binary_data_size": len(content)},
            }
        )
    parameters: dict[str, Any] = {"binary_data_output": True}
    if signature != DEFAULT_SIGNATURE:
        parameters["signature_name"] = signature
    header = {"inputs": described, "parameters": parameters}
    return orjson.dumps(header), b"".join(contents)


def _data_type(array: np.ndarray) -> DataType:
    return DataType.STRING if array.dtype == object else dtypes.from_numpy(array.dtype)


def model_names(server: HttpServer) -> list[str]:
    """Return the names of the server's models, or none if it does not list them."""
    try:
        listed = server.get(f"{server.address.prefix}/v1/models")
        return sorted(str(each["name"]) for each in listed["models"])
    except (OpError, KeyError, TypeError):
        return []
