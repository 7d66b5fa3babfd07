"""TensorFlow Serving's REST API: predict, classify, regress, status, metadata, and a list of ours.

One plain ASGI application: its URLs are matched as TensorFlow Serving matches them, which no
router does (see `model_paths`), and a predict request must cost next to nothing.

With `strict`, answers and errors are TensorFlow Serving's byte for byte, and small integers wrap.

TF: tensorflow_serving/model_servers/http_rest_api_handler.cc, http_server.cc
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.api import CancellationManager
from runtime.errors import Code, InvalidArgumentError, OpError
from server.codec.pretty_json import PrettyWriter
from server.codec.serving_examples_json import examples_tensor
from server.codec.serving_json import Document, parse_document, predict_inputs, signature_name
from server.codec.serving_json_writer import (
    NonFinite,
    write_classify_response,
    write_predict_response,
    write_regress_response,
)
from server.errors import as_op_error, error_response, http_status
from server.models.example_signatures import (
    INPUTS,
    OUTPUTS,
    check_classify_signature,
    check_regress_signature,
    classifications,
    classify_aliases,
    find_example_signature,
    regressions,
)
from server.models.inference_service import InferenceService, StepContext
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.rest.disconnect import DisconnectWatch
from server.rest.model_information import write_metadata, write_model_list, write_status
from server.rest.model_paths import ModelPath, parse_model_path
from server.rest.request_body import read_body
from server.rest.step_requests import check_answer_bytes
from server.sessions.step_waiter import wait_for_step

T = TypeVar("T")
OFFLOAD_BYTES = 1 << 18  # larger bodies are read, and larger answers written, on another thread
_JSON = [(b"content-type", b"application/json")]
_CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST, GET"),
    (b"access-control-allow-headers", b"Content-Type"),
]
_V1 = re.compile(r"/v1/", re.IGNORECASE)
_V1_MODELS = re.compile(r"/v1/models(?:[/:]|$)", re.IGNORECASE)
# What TensorFlow Serving does not have; the router answers for it by 404 and 405.
_V1_OF_OURS = re.compile(r"/v1/(?:sessions|threadpools)(?:[/:]|$)")
_HTTP_ORIGIN = re.compile(rb"https?://")


@dataclasses.dataclass(frozen=True, slots=True)
class ModelsOptions:
    """Settings of the API. `timeout_ms` 0: no deadline unless a request brings one."""

    timeout_ms: int = 30000
    max_body_bytes: int = 64 << 20
    max_answer_bytes: int = 1 << 30
    strict: bool = False
    non_finite: NonFinite = NonFinite.TOKEN
    cors: bool = False


@dataclasses.dataclass(slots=True)
class _Call:
    """One request: what it asks for and where it comes from."""

    target: ModelPath
    scope: Scope
    headers: dict[bytes, bytes]
    receive: Receive


class ModelsFront:
    """Middleware that answers the models' URLs itself and hands on everything else.

    In front of the router, since what stands around that takes as long as a small prediction.
    """

    def __init__(self, app: ASGIApp, api: ModelsApi) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_ours = scope["type"] == "http" and _V1_MODELS.match(scope["path"])
        await (self._api if is_ours else self._app)(scope, receive, send)


class MalformedRoute(BaseRoute):
    """The route behind all others: what is left below `/v1`, whatever the method."""

    name = "malformed"

    def __init__(self, api: ModelsApi) -> None:
        self._api = api

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Full for `/v1/…`: such a request is malformed, not a path that does not exist."""
        path = scope["path"]
        if scope["type"] == "http" and _V1.match(path) and not _V1_OF_OURS.match(path):
            return Match.FULL, {"endpoint": self._api}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        await self._api(scope, receive, send)


class ModelsApi:
    """The API of one server."""

    __name__ = "models"  # until the URL has been read, for metrics

    def __init__(self, service: InferenceService, options: ModelsOptions | None = None) -> None:
        self._service = service
        self._manager = service.manager
        self._options = options or ModelsOptions()
        self._form: dict[str, Any] = {
            "strict": self._options.strict,
            "non_finite": self._options.non_finite,
        }
        self._endpoints: dict[str, Callable[[_Call], Awaitable[bytes]]] = {
            "predict": self.predict,
            "classify": self.classify,
            "regress": self.regress,
            "status": self.model_status,
            "metadata": self.model_metadata,
            "list": self.list_models,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["endpoint"] = self
        try:
            if scope["method"] == "OPTIONS":
                status, content = _preflight(dict(scope["headers"])), b""
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
        target = parse_model_path(scope["method"], path.decode("latin-1"))
        endpoint = self._endpoints[target.call]
        scope["endpoint"] = endpoint
        return await endpoint(_Call(target, scope, dict(scope["headers"]), receive))

    def _error_response(self, error: OpError, scope: Scope) -> Response:
        if not self._options.strict:
            return error_response(error, scope)  # type: ignore[arg-type] # a dict
        writer = PrettyWriter()
        writer.start_object()
        writer.string("error")
        writer.string(error.message)
        writer.end_object()
        return Response(writer.text(), http_status(error), media_type="application/json")

    # Information.

    async def model_status(self, call: _Call) -> bytes:
        """The states of a model's versions; a label asks for all of them, as there."""
        target = call.target
        return write_status(
            self._manager.statuses(target.name, target.version), self._options.strict
        )

    async def model_metadata(self, call: _Call) -> bytes:
        """The signatures of a version."""
        target = call.target
        version = self._manager.find(target.name, target.version, target.label)
        return write_metadata(version, self._options.strict)

    async def list_models(self, call: _Call) -> bytes:
        """The configured models; TensorFlow Serving has no such list."""
        if self._options.strict:
            raise InvalidArgumentError("Missing model name in request.")
        return write_model_list(self._manager)

    # Inference.

    async def predict(self, call: _Call) -> bytes:
        """Run a signature on the tensors of the body."""
        return await self._measured(call, "Predict", self._predict)

    async def classify(self, call: _Call) -> bytes:
        """Classes and scores for the examples of the body."""
        return await self._measured(call, "Classify", self._classify)

    async def regress(self, call: _Call) -> bytes:
        """A value for each example of the body."""
        return await self._measured(call, "Regress", self._regress)

    async def _measured(
        self, call: _Call, api: str, answer: Callable[[_Call, Document], Awaitable[bytes]]
    ) -> bytes:
        """Read the body, answer, and count the request under its outcome."""
        started = time.perf_counter()
        code = Code.UNKNOWN
        try:
            encoding = call.headers.get(b"content-encoding", b"")
            body = await read_body(call.receive, encoding, self._options.max_body_bytes)
            document = await _off_loop(len(body), lambda: parse_document(body))
            content = await answer(call, document)
            code = Code.OK
            return content
        except OpError as error:
            code = error.code
            raise
        except asyncio.CancelledError:
            code = Code.CANCELLED
            raise
        finally:
            name = call.target.name
            if self._manager.is_configured(name):  # no label for what clients make up
                seconds = time.perf_counter() - started
                self._service.metrics.request_finished(name, api, code.name, seconds)

    async def _predict(self, call: _Call, document: Document) -> bytes:
        name = signature_name(document)
        target = call.target
        version = self._manager.acquire(target.name, target.version, target.label)
        try:
            signature = version.signature(name)
            inputs = await _off_loop(
                document.size,
                lambda: predict_inputs(
                    document, signature.input_types, name, strict=self._options.strict
                ),
            )
            aliases = signature.output_aliases
            outputs = await self._run(
                call, "Predict", document, version, signature, inputs.tensors, aliases
            )
        finally:
            version.release()
        return await _off_loop(
            check_answer_bytes(outputs, self._options.max_answer_bytes),
            lambda: write_predict_response(
                dict(zip(aliases, outputs, strict=True)), inputs.format, **self._form
            ),
        )

    async def _classify(self, call: _Call, document: Document) -> bytes:
        outputs, count = await self._run_examples(
            call, "Classify", document, check_classify_signature, classify_aliases
        )
        return write_classify_response(classifications(outputs, count), **self._form)

    async def _regress(self, call: _Call, document: Document) -> bytes:
        outputs, count = await self._run_examples(
            call, "Regress", document, check_regress_signature, lambda _: (OUTPUTS,)
        )
        return write_regress_response(regressions(outputs[OUTPUTS], count), **self._form)

    async def _run_examples(
        self,
        call: _Call,
        api: str,
        document: Document,
        check: Callable[[Signature], None],
        choose_aliases: Callable[[Signature], tuple[str, ...]],
    ) -> tuple[dict[str, np.ndarray], int]:
        """The outputs for the body's examples by alias, and how many examples there are."""
        name = signature_name(document)
        examples = await _off_loop(document.size, lambda: examples_tensor(document))
        target = call.target
        self._service.metrics.examples_received(target.name, len(examples))
        version = self._manager.acquire(target.name, target.version, target.label)
        try:
            signature = find_example_signature(version, name, check)
            aliases = choose_aliases(signature)
            outputs = await self._run(
                call, api, document, version, signature, {INPUTS: examples}, aliases
            )
        finally:
            version.release()
        return dict(zip(aliases, outputs, strict=True)), len(examples)

    async def _run(
        self,
        call: _Call,
        api: str,
        document: Document,
        version: ModelVersion,
        signature: Signature,
        tensors: dict[str, np.ndarray],
        aliases: Sequence[str],
    ) -> list[np.ndarray]:
        """The outputs of `aliases`; the step is cancelled when its client goes away."""
        context = StepContext(
            _priority(document, call.headers),
            self._deadline(call),
            CancellationManager(),
        )
        started = time.perf_counter()
        future = self._service.start(version, signature, tensors, aliases, context)
        if future.done():
            outputs = future.result()
        else:
            with DisconnectWatch(call.receive, context.cancellation):
                outputs = await wait_for_step(future, context.cancellation, context.deadline)
        self._service.metrics.step_finished(version.name, api, time.perf_counter() - started)
        return [np.asarray(output) for output in outputs]

    def _deadline(self, call: _Call) -> float | None:
        """The monotonic instant by which the answer is due, counted from receipt."""
        timeout_ms = _header_timeout_ms(call.headers) or self._options.timeout_ms
        if not timeout_ms:
            return None
        received: float = call.scope.get("received_at") or time.monotonic()
        return received + timeout_ms / 1000


def _priority(document: Document, headers: dict[bytes, bytes]) -> str | None:
    """The body's `priority`, else the header's."""
    asked = document.members.get("priority")
    if asked is None:
        header = headers.get(b"x-priority")
        return None if header is None else header.decode("latin-1")
    if not isinstance(asked, str):
        raise InvalidArgumentError(f"priority must be a string, got {asked!r:.80}")
    return asked


def _header_timeout_ms(headers: dict[bytes, bytes]) -> int | None:
    text = headers.get(b"x-timeout-ms")
    if text is None:
        return None
    if not (text.isdigit() and 0 < int(text) < 1 << 53):
        raise InvalidArgumentError(
            f"X-Timeout-Ms must be a positive integer, got {text.decode('latin-1')!r:.80}"
        )
    return int(text)


def _preflight(headers: dict[bytes, bytes]) -> int:
    """The status for OPTIONS: fine from a web page, whether or not CORS is enabled."""
    return 200 if _HTTP_ORIGIN.search(headers.get(b"origin", b"")) else 400


async def _off_loop(size: int, work: Callable[[], T]) -> T:
    """Do `work` here when it is small, else on another thread."""
    return work() if size < OFFLOAD_BYTES else await asyncio.to_thread(work)
