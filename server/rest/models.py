"""TensorFlow Serving's REST API: predict, classify, regress, status and metadata; a list of models.

The API is a plain ASGI application, because no router matches URLs as TensorFlow Serving does
(`model_paths`), and because a router takes as long as a small prediction.

If `strict` is true, responses and errors are equal to TensorFlow Serving's byte for byte, and
integers of 8 and 16 bits wrap.

TF: tensorflow_serving/model_servers/http_rest_api_handler.cc, http_server.cc
"""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from runtime.errors import Code, InvalidArgumentError, OpError
from server.codec.body_process import LARGE_BYTES, BodyProcess, BodyProcesses, named_priority
from server.codec.scalars import NonFinite
from server.codec.serving.answers import (
    write_classify_response,
    write_predict_response,
    write_regress_response,
)
from server.codec.serving.examples import examples_tensor
from server.codec.serving.pretty_json import PrettyWriter
from server.codec.serving.requests import (
    Document,
    PredictFormat,
    parse_document,
    predict_inputs,
    quick_document,
    signature_name,
)
from server.codec.serving.short_predict import read_short, short_inputs, write_short
from server.connections.large_body import Body
from server.connections.plain_requests import ContentNow, is_plain
from server.errors import as_op_error, error_response, http_status
from server.metrics import Tally
from server.models.inference_service import InferenceService
from server.models.measured_request import measured
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.rest.http_messages import bytes_of, caller_of, read_large_body, step_request
from server.rest.model_information import write_metadata, write_model_list, write_status
from server.rest.model_paths import MalformedPathError, ModelPath, parse_model_path
from server.steps.step_request import StepRequest
from server.steps.step_runner import (
    BY_ELEMENT,
    OFF_LOOP_BYTES,
    deadline_of,
    off_loop,
    read_in_time,
)

_JSON = [(b"content-type", b"application/json")]
_CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST, GET"),
    (b"access-control-allow-headers", b"Content-Type"),
]
_V1 = re.compile(r"/v1/", re.IGNORECASE)
# The paths that ModelsApi serves.
MODELS_PATH = re.compile(r"/v1/models(?:[/:]|$)", re.IGNORECASE)
# Paths that TensorFlow Serving does not have. The router responds to wrong ones with 404 or 405.
_V1_OF_OURS = re.compile(r"/v1/(?:sessions|threadpools)(?:[/:]|$)")
# The label API of the calls that run a step, in TensorFlow Serving's metrics; others have none.
_APIS = {call: call for call in ("predict", "classify", "regress")}
_HTTP_ORIGIN = re.compile(rb"https?://")

# The name of the signature, the function that gives its inputs, and the form of the response.
_ReadPredict = tuple[str, Callable[[Signature], Mapping[str, np.ndarray]], PredictFormat]


@dataclasses.dataclass(frozen=True, slots=True)
class ModelsOptions:
    """Options of the API.

    `timeout_ms` is the deadline if there is no X-Timeout-Ms header; 0 means no deadline.
    """

    timeout_ms: int = 30000
    max_body_bytes: int = 64 << 20
    strict: bool = False
    non_finite: NonFinite = NonFinite.TOKEN
    cors: bool = False


@dataclasses.dataclass(slots=True)
class _Call:
    """One request: its parsed URL, and the ASGI connection."""

    target: ModelPath
    scope: Scope
    headers: dict[bytes, bytes]
    receive: Receive


class MalformedRoute(BaseRoute):
    """The last route, for requests of any method below `/v1` that no other route has matched."""

    name = "malformed"

    def __init__(self, api: ModelsApi) -> None:
        self._api = api

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match any path below `/v1/`: such a request is malformed, not an unknown path."""
        path = scope["path"]
        if scope["type"] == "http" and _V1.match(path) and not _V1_OF_OURS.match(path):
            return Match.FULL, {"endpoint": self._api}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to the request."""
        await self._api(scope, receive, send)


class ModelsApi:
    """The TensorFlow Serving API of one server, as an ASGI application."""

    __name__ = "models"  # the name in metrics until the URL has been parsed

    def __init__(
        self,
        service: InferenceService,
        options: ModelsOptions | None = None,
        bodies: BodyProcesses | None = None,
    ) -> None:
        self._service = service
        self._bodies = bodies
        self._manager = service.manager
        self._options = options or ModelsOptions()
        self._form = (self._options.strict, self._options.non_finite)
        self._answered_now: dict[str, Tally] = {}  # of the metrics, by model
        self._endpoints: dict[str, Callable[[_Call], Awaitable[bytes]]] = {
            "predict": self.predict,
            "classify": self.classify,
            "regress": self.regress,
            "status": self.model_status,
            "metadata": self.model_metadata,
            "list": self.list_models,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        scope["endpoint"] = self
        try:
            if scope["method"] == "OPTIONS":
                status, content = self._preflight(dict(scope["headers"])), b""
            else:
                status, content = 200, await self._answer(scope, receive)
        except Exception as error:
            response = self._error_response(as_op_error(error), scope)
            for name, value in _CORS if self._options.cors else ():
                response.headers[name.decode()] = value.decode()
            await response(scope, receive, send)
            return
        headers = [*_JSON, (b"content-length", b"%d" % len(content))]
        if self._options.cors:
            headers += _CORS
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        path = scope.get("raw_path") or scope["path"].encode()
        try:
            target = parse_model_path(scope["method"], path.decode("latin-1"))
        except MalformedPathError as error:
            self._service.metrics.request_failed(error.name, error.code.name)
            raise
        endpoint = self._endpoints[target.call]
        scope["endpoint"] = endpoint
        answer = endpoint(_Call(target, scope, dict(scope["headers"]), receive))
        return await self._measured(target, answer)

    def _preflight(self, headers: dict[bytes, bytes]) -> int:
        """Return the status for OPTIONS: 200 if `Origin` is an HTTP origin, else 400.

        The status does not depend on whether CORS is enabled.
        """
        if _HTTP_ORIGIN.search(headers.get(b"origin", b"")):
            self._service.metrics.requests("", "", "REST").add(0)
            return 200
        self._service.metrics.request_failed("", Code.FAILED_PRECONDITION.name)
        return 400

    def _error_response(self, error: OpError, scope: Scope) -> Response:
        if not self._options.strict:
            return error_response(error, scope)  # type: ignore[arg-type] # a dict
        writer = PrettyWriter()
        writer.start_object()
        writer.string("error")
        writer.string(error.message)
        writer.end_object()
        return Response(writer.text(), http_status(error), media_type="application/json")

    # Information about models.

    async def model_status(self, call: _Call) -> bytes:
        """Return the states of a model's versions.

        A label in the URL is ignored, as in TensorFlow Serving.
        """
        target = call.target
        statuses = self._manager.statuses(target.name, target.version)
        return write_status(statuses, self._options.strict, caller_of(call.scope))

    async def model_metadata(self, call: _Call) -> bytes:
        """Return the signatures of a version."""
        target = call.target
        version = self._manager.find(target.name, target.version, target.label)
        return write_metadata(version, self._options.strict)

    async def list_models(self, call: _Call) -> bytes:
        """Return the configured models; TensorFlow Serving has no such list."""
        if self._options.strict:
            raise InvalidArgumentError("Missing model name in request.")
        return write_model_list(self._manager, caller_of(call.scope))

    # Inference.

    async def predict(self, call: _Call) -> bytes:
        """Run a signature on the tensors of the body."""
        step, body = await self._receive(call)
        target = call.target
        usage = step.caller.usage
        may_be_short = not self._options.strict and (usage is None or usage.allows_short_step)
        if (
            may_be_short
            and isinstance(body, bytes)
            and is_plain(call.headers, len(body))
            and _is_in_time(step)
        ):
            content = self._predict_short(target, body)
            if content is not None:
                return content if isinstance(content, bytes) else await content
        process = self._process_of(step, body)
        read = process and await self._read_elsewhere(process, target, step, body)
        name, inputs, form = read or await self._read_predict(step, body)
        outputs, size, _ = await self._service.predict(
            target.name, target.version, target.label, name, inputs, step
        )
        if process is not None and not self._options.strict:
            non_finite = self._options.non_finite.value
            written = await process.write_predictions(outputs, form.value, non_finite)
            if written is not None:
                return written
        return await self._write_predictions(form, outputs, size)

    async def _read_predict(self, step: StepRequest, body: Body) -> _ReadPredict:
        document, name = await self._read(step, body)
        inputs = functools.partial(predict_inputs, document, name, self._options.strict)
        return name, inputs, document.predict_format

    def _process_of(self, step: StepRequest, body: Body) -> BodyProcess | None:
        """Return the child process that is to read a body; None if this one must."""
        if self._bodies is None or len(body) < LARGE_BYTES:
            return None
        has_child = self._service.has_child(step, named_priority(body))
        return self._bodies.of_body(len(body), has_child=has_child)

    async def _read_elsewhere(
        self, process: BodyProcess, target: ModelPath, step: StepRequest, body: Body
    ) -> _ReadPredict | None:
        """Let a child process read a predict request.

        Returns None if `_read_predict` must be used.
        """
        strict = self._options.strict
        try:
            served = self._manager.find(target.name, target.version, target.label)
        except OpError:
            return None
        types = {name: each.input_types for name, each in served.signatures.items()}
        deadline = deadline_of(step, None)
        found = await process.read_predict(body, types, deadline, strict=strict)
        if found is None:
            return None
        said, arrays = found
        name = said["signature"]
        if said["priority"] is not None:
            step.priority = said["priority"]
        if not self._service.has_child(step, None):
            step.body_bytes = len(body)  # so that the step does not run in the loop's thread

        def inputs(signature: Signature) -> Mapping[str, np.ndarray]:
            if signature.input_types == types[name]:
                return arrays
            document = parse_document(bytes(body))
            return predict_inputs(document, name, strict, signature)  # a new version

        return name, inputs, PredictFormat(said["form"])

    async def _measured(self, target: ModelPath, answer: Awaitable[bytes]) -> bytes:
        return await measured(
            self._service, target.name, _APIS.get(target.call, ""), "REST", answer
        )

    def predict_now(self, path: str, _: Mapping[bytes, bytes], body: bytes) -> ContentNow:
        """Respond at once to a plain POST of a predict request whose step is short.

        `path` is percent-encoded. Raises the step's error.
        """
        started = time.perf_counter()
        try:
            target = parse_model_path("POST", path)
        except InvalidArgumentError:
            return None
        metrics = self._service.metrics
        try:
            content = self._predict_short(target, body, is_new=True)
        except Exception as error:
            code = error.code if isinstance(error, OpError) else Code.UNKNOWN
            metrics.request_failed(target.name, code.name)
            raise
        if isinstance(content, bytes):
            microseconds = (time.perf_counter() - started) * 1e6
            tally = self._answered_now.get(target.name)
            if tally is None:
                tally = metrics.requests(target.name, "predict", "REST")
                self._answered_now[target.name] = tally
            tally.add(microseconds)
            return content
        return content and self._measured(target, content)

    def _predict_short(self, target: ModelPath, body: bytes, *, is_new: bool = False) -> ContentNow:
        request = read_short(body)
        if request is None or target.call != "predict":
            return None
        name, form, value = request
        try:
            served = self._manager.acquire(target.name, target.version, target.label)
        except OpError:
            return None
        try:
            step = self._service.short_step(served, name, is_new=is_new)
            if step is None:
                return None
            signature = served.signatures[name]
            inputs = short_inputs(form, value, signature.input_types)
            if not inputs:
                return None
            answer = self._service.predict_short(served.name, step, inputs)
        finally:
            served.release()
        if answer is None:
            return None
        values, is_small, _ = answer
        content = write_short(form, values) if is_small else None
        return content or self._write_fetched(form, served, signature, values)

    async def _write_fetched(
        self, form: PredictFormat, served: ModelVersion, signature: Signature, values: list[Any]
    ) -> bytes:
        outputs, size, _ = await self._service.prediction(served, signature, values)
        return await self._write_predictions(form, outputs, size)

    async def _write_predictions(
        self, form: PredictFormat, outputs: Mapping[str, np.ndarray], size: int
    ) -> bytes:
        if self._options.strict or (form is PredictFormat.ROW and len(outputs) > 1):
            size *= BY_ELEMENT
        return await off_loop(size, write_predict_response, outputs, form, *self._form)

    async def classify(self, call: _Call) -> bytes:
        """Return classes and scores for each example of the body."""
        step, body = await self._receive(call)
        document, name = await self._read(step, body)
        target = call.target
        (labels, scores), size, _ = await self._service.classify(
            target.name,
            target.version,
            target.label,
            name,
            functools.partial(examples_tensor, document),
            step,
        )
        size *= BY_ELEMENT
        return await off_loop(size, write_classify_response, labels, scores, *self._form)

    async def regress(self, call: _Call) -> bytes:
        """Return a value for each example of the body."""
        step, body = await self._receive(call)
        document, name = await self._read(step, body)
        target = call.target
        values, size, _ = await self._service.regress(
            target.name,
            target.version,
            target.label,
            name,
            functools.partial(examples_tensor, document),
            step,
        )
        if self._options.strict:
            size *= BY_ELEMENT
        return await off_loop(size, write_regress_response, values, *self._form)

    async def _receive(self, call: _Call) -> tuple[StepRequest, Body]:
        """Return the step as the headers describe it, and the body.

        A large body is not parsed if there is nothing to run, as while a model is being loaded.
        TensorFlow Serving would report a fault of the body first.
        """
        options, target = self._options, call.target
        step = step_request(call.scope, call.headers, call.receive, options.timeout_ms)
        body = await read_large_body(call.receive, call.headers, options.max_body_bytes)
        if len(body) >= OFF_LOOP_BYTES and not options.strict:
            self._manager.find(target.name, target.version, target.label)
        return step, body

    async def _read(self, step: StepRequest, received: Body) -> tuple[Document, str]:
        """Return the parsed body and the signature that it names.

        A priority in the body overrides the priority in the header.
        """
        body = await bytes_of(received)
        document = quick_document(body) if len(body) < OFF_LOOP_BYTES else None
        if document is None:
            size = len(body) * BY_ELEMENT
            document = await read_in_time(size, step, None, parse_document, body)
        name = signature_name(document)
        priority = document.members.get("priority")
        if priority is not None:
            if not isinstance(priority, str):
                raise InvalidArgumentError(f"priority must be a string, got {priority!r:.80}")
            step.priority = priority
        step.body_bytes = document.size
        return document, name


def _is_in_time(step: StepRequest) -> bool:
    return not step.timeout_ms or time.monotonic() < step.received_at + step.timeout_ms / 1000
