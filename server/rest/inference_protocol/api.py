"""The Open Inference Protocol over HTTP, as a plain ASGI application: `/v2/…`.

Errors are `{"error": "<message>"}` alone.

Source: Open Inference Protocol (HTTP/REST); Triton's extensions
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from runtime.errors import InvalidArgumentError, OpError, UnavailableError
from server.codec.inference_protocol.infer_request import flag
from server.codec.inference_protocol.json_infer import (
    HEADER_LENGTH,
    read_infer_request,
    write_infer_reply,
)
from server.codec.json_body import parse_json, to_json, type_name
from server.connections.plain_requests import ContentWithHeaders, is_plain
from server.errors import as_op_error, error_response
from server.inference_protocol.service import SHARED_MEMORY, InferenceProtocol
from server.rest.content_encoding import compression_of
from server.rest.http_messages import caller_of, read_body, step_request
from server.rest.inference_protocol.compression import (
    MIN_COMPRESSED_BYTES,
    accepted_encoding,
    compress,
)
from server.rest.inference_protocol.paths import Target, parse_path
from server.settings_sections.ports import RestSettings
from server.steps.step_runner import off_loop, read_in_time

T = TypeVar("T")
PROTOCOL_PATH = re.compile(r"/v2(?:/|\Z)")
_JSON = (b"content-type", b"application/json")
_BINARY = (b"content-type", b"application/octet-stream")
_PARAMETERS_TAKE_BYTES = 1 << 20  # of the body of a call that is no inference


class _Answer(NamedTuple):
    """A response: its body, its status, and the length of the JSON before binary data."""

    content: bytes
    status: int = 200
    header_length: int | None = None


class _Call(NamedTuple):
    """One request: what its path means, and the ASGI connection."""

    target: Target
    scope: Scope
    headers: Mapping[bytes, bytes]
    receive: Receive


class InferenceProtocolApi:
    """The API of one server."""

    __name__ = "inference_protocol"  # the name in metrics until the URL has been parsed

    def __init__(self, service: InferenceProtocol, settings: RestSettings) -> None:
        self._service = service
        self._timeout_ms = settings.timeout_ms
        self._max_bytes = settings.max_body_bytes
        self._write = functools.partial(write_infer_reply, settings.non_finite)
        self._endpoints: dict[str, Callable[[_Call], Awaitable[_Answer]]] = {
            "infer": self.infer,
            "server_metadata": self.server_metadata,
            "server_live": self.server_live,
            "server_ready": self.server_ready,
            "model_metadata": self.model_metadata,
            "model_ready": self.model_ready,
            "model_config": self.model_config,
            "statistics": self.model_statistics,
            "repository_index": self.repository_index,
            "repository_load": self.repository_load,
            "repository_unload": self.repository_unload,
            "trace_settings": self.trace_settings,
            "change_trace_settings": self.change_trace_settings,
            "log_settings": self.log_settings,
            "change_log_settings": self.change_log_settings,
            "shared_memory_status": self.shared_memory_status,
            "shared_memory_register": self.shared_memory_register,
            "shared_memory_unregister": self.shared_memory_unregister,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        scope["endpoint"] = self
        try:
            headers = dict(scope["headers"])
            path = scope.get("raw_path") or scope["path"].encode()
            target = parse_path(scope["method"], path.decode("latin-1"))
            endpoint = scope["endpoint"] = self._endpoints[target.call]
            answer = await endpoint(_Call(target, scope, headers, receive))
            content, sent = answer.content, [_JSON] if answer.content else []
            if answer.header_length is not None:
                sent = _binary(answer.header_length)
            if len(content) >= MIN_COMPRESSED_BYTES:
                content, sent = await _compressed(content, sent, headers)
        except Exception as error:
            response = error_response(as_op_error(error), scope)  # type: ignore[arg-type] # a dict
            await response(scope, receive, send)
            return
        sent = [*sent, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": content})

    # --- inference ----------------------------------------------------------------------------

    async def infer(self, call: _Call) -> _Answer:
        """Run a signature on the tensors of the body."""
        headers, target = call.headers, call.target
        step = step_request(call.scope, headers, call.receive, self._timeout_ms)
        body = await self._body(call, self._max_bytes)
        step.body_bytes = len(body)
        length_of_json = headers.get(HEADER_LENGTH)
        request = await read_in_time(
            len(body), step, None, read_infer_request, body, length_of_json
        )
        content, length = await self._service.infer(
            target.name,
            target.version,
            request,
            step,
            self._write,
            "REST",
            is_new=not is_plain(headers, len(body)),
        )
        return _Answer(content, header_length=length)

    def infer_now(
        self, path: str, headers: Mapping[bytes, bytes], body: bytes
    ) -> ContentWithHeaders | bytes | Coroutine[Any, Any, ContentWithHeaders] | None:
        """Respond at once to a plain POST of an inference request whose step is short.

        `path` is percent-encoded. Raises the step's error.
        """
        try:
            target = parse_path("POST", path)
            if target.call != "infer":
                return None
            request = read_infer_request(body, headers.get(HEADER_LENGTH))
        except OpError:
            return None
        answer = self._service.infer_now(target.name, target.version, request, self._write, "REST")
        if answer is None:
            return None
        if not isinstance(answer, tuple):
            return self._late(answer, headers)
        content, length = answer
        if len(content) >= MIN_COMPRESSED_BYTES and b"accept-encoding" in headers:
            return self._late(_value(answer), headers)
        return content if length is None else ContentWithHeaders(content, _binary(length))

    async def _late(
        self, answer: Awaitable[tuple[bytes, int | None]], headers: Mapping[bytes, bytes]
    ) -> ContentWithHeaders:
        content, length = await answer
        sent = [_JSON] if length is None else _binary(length)
        if len(content) >= MIN_COMPRESSED_BYTES:
            content, sent = await _compressed(content, sent, headers)
        return ContentWithHeaders(content, sent)

    # --- descriptions -------------------------------------------------------------------------

    async def server_metadata(self, call: _Call) -> _Answer:
        """Return the name, version and extensions of the server."""
        return _json(self._service.server_metadata())

    async def server_live(self, call: _Call) -> _Answer:
        """Respond with 200 as long as the process is alive."""
        return _json({"live": True})

    async def server_ready(self, call: _Call) -> _Answer:
        """Respond with 200 if the server is ready for requests, else with 503."""
        is_ready = self._service.is_ready()
        return _json({"ready": is_ready}, 200 if is_ready else 503)

    async def model_ready(self, call: _Call) -> _Answer:
        """Respond with 200 if a model serves, else with 503."""
        is_ready = self._service.is_model_ready(call.target.name, call.target.version)
        return _json({"name": call.target.name, "ready": is_ready}, 200 if is_ready else 503)

    async def model_metadata(self, call: _Call) -> _Answer:
        """Return the tensors of a signature, which `?signature_name=` may choose."""
        _, name, version = call.target
        return _json(self._service.model_metadata(name, version, _signature(call.scope)))

    async def model_config(self, call: _Call) -> _Answer:
        """Return the configuration of a model."""
        _, name, version = call.target
        return _json(self._service.model_config(name, version, _signature(call.scope)))

    async def model_statistics(self, call: _Call) -> _Answer:
        """Return the counts and times of inference requests."""
        return _json(self._service.statistics(call.target.name, call.target.version))

    # --- administration -----------------------------------------------------------------------

    async def repository_index(self, call: _Call) -> _Answer:
        """Return the known versions of all models, with their states."""
        body = await self._object(call)
        ready_only = bool(flag(body, "ready"))
        return _json(self._service.repository_index(caller_of(call.scope), ready_only=ready_only))

    async def repository_load(self, call: _Call) -> _Answer:
        """Load a model."""
        parameters = (await self._object(call)).get("parameters") or {}
        if not isinstance(parameters, dict):
            raise InvalidArgumentError(f"parameters must be an object, got {type_name(parameters)}")
        await self._service.load(call.target.name, parameters, caller_of(call.scope))
        return _Answer(b"")

    async def repository_unload(self, call: _Call) -> _Answer:
        """Unload a model."""
        await self._object(call)
        await self._service.unload(call.target.name, caller_of(call.scope))
        return _Answer(b"")

    async def log_settings(self, call: _Call) -> _Answer:
        """Return what is logged."""
        return _json(self._service.log_settings())

    async def change_log_settings(self, call: _Call) -> _Answer:
        """Change what is logged."""
        changes = await self._object(call)
        return _json(self._service.change_log_settings(changes, caller_of(call.scope)))

    async def trace_settings(self, call: _Call) -> _Answer:
        """Return the settings of traces, which are off."""
        return _json(self._service.trace_settings(call.target.name))

    async def change_trace_settings(self, call: _Call) -> _Answer:
        """Refuse to switch traces on."""
        changes = await self._object(call)
        caller = caller_of(call.scope)
        return _json(self._service.change_trace_settings(call.target.name, changes, caller))

    # --- shared memory ------------------------------------------------------------------------

    async def shared_memory_status(self, call: _Call) -> _Answer:
        """Return the registered regions: none."""
        return _json([])

    async def shared_memory_register(self, call: _Call) -> _Answer:
        """Refuse a region of shared memory."""
        raise UnavailableError(SHARED_MEMORY)  # 503, as of a Triton in which it is off

    async def shared_memory_unregister(self, call: _Call) -> _Answer:
        """Forget a region; clients begin with this call, and there is none."""
        return _Answer(b"")

    # --- bodies -------------------------------------------------------------------------------

    async def _body(self, call: _Call, max_bytes: int) -> bytes:
        """Return the body, inflated if it is compressed."""
        compression_of(call.headers.get(b"content-encoding", b""), is_strict=True)
        return await read_body(call.receive, call.headers, max_bytes)

    async def _object(self, call: _Call) -> dict[str, Any]:
        """Return the JSON object of a body; an empty body is an empty object."""
        body = await self._body(call, min(self._max_bytes, _PARAMETERS_TAKE_BYTES))
        if len(body) > _PARAMETERS_TAKE_BYTES:
            raise InvalidArgumentError(
                f"The body of this call may have {_PARAMETERS_TAKE_BYTES} bytes, got {len(body)}"
            )
        value = parse_json(body)
        if not isinstance(value, dict):
            raise InvalidArgumentError(f"The body must be a JSON object, got {type_name(value)}")
        return value


async def _value(value: T) -> T:
    return value


def _binary(header_length: int) -> list[tuple[bytes, bytes]]:
    return [_BINARY, (HEADER_LENGTH, b"%d" % header_length)]


def _json(value: Any, status: int = 200) -> _Answer:
    return _Answer(to_json(value), status)


def _signature(scope: Scope) -> str | None:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("signature_name", [None])[-1] if query else None


async def _compressed(
    content: bytes, sent: list[tuple[bytes, bytes]], headers: Mapping[bytes, bytes]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the body and headers of a response in the encoding that the client accepts."""
    accept = headers.get(b"accept-encoding")
    encoding = None if accept is None else accepted_encoding(accept.decode("latin-1"))
    if encoding is None:
        return content, sent
    compressed = await off_loop(len(content), compress, content, encoding)
    return compressed, [
        *sent,
        (b"content-encoding", encoding.encode()),
        (b"vary", b"accept-encoding"),
    ]
