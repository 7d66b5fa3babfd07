"""The Open Inference Protocol's calls, which HTTP and gRPC translate.

An inference request runs a signature by the inference service, so that priority, deadline, limits
and metrics are those of every other front. Descriptions are in the form of the protocol's JSON.

Guarantees: used from one event loop.

Source: Open Inference Protocol; Triton's extensions
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import numpy as np

from runtime.errors import InvalidArgumentError, OpError, UnimplementedError
from server.access.caller import Caller
from server.codec.inference_protocol.infer_request import (
    InferReply,
    InferRequest,
    text,
)
from server.inference_protocol.descriptions import (
    EXTENSIONS,
    metadata,
    model_config,
    repository_index,
    signature_of,
)
from server.inference_protocol.infer_call import InferCall, has_schedule, set_schedule
from server.inference_protocol.log_settings import (
    TRACE,
    change_log_settings,
    change_trace_settings,
    log_settings,
)
from server.inference_protocol.statistics import InferTimes, Statistics
from server.lifecycle import Lifecycle, Phase
from server.models.administration import Administration
from server.models.inference_service import InferenceService, Prediction
from server.models.measured_request import measured
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.package import package_version
from server.runtime_metrics import exhausted_pools
from server.steps.step_request import StepRequest
from server.steps.step_runner import OFF_LOOP_BYTES, ShortAnswer, off_loop

T = TypeVar("T")
SERVER_NAME = "runstep"
_API = "Predict"  # the API in the metrics: what runs is a signature on tensors
_MAX_VERSION = (1 << 63) - 1
SHARED_MEMORY = (
    "This server does not use shared memory; send and request binary data instead: "
    "its regions would be memory of another process, which could change while a step reads it"
)


class InferenceProtocol:
    """The service of one server; `others_not_ready` says why its other processes are not ready."""

    def __init__(
        self,
        inference: InferenceService,
        lifecycle: Lifecycle,
        administration: Administration,
        others_not_ready: Callable[[], list[str]] = list,
    ) -> None:
        self._inference = inference
        self._manager = inference.manager
        self._lifecycle = lifecycle
        self._administration = administration
        self._others_not_ready = others_not_ready
        self._statistics = Statistics()

    # --- inference ----------------------------------------------------------------------------

    async def infer(
        self,
        name: str,
        version: str,
        request: InferRequest,
        step: StepRequest,
        write: Callable[[InferReply], T],
        entrypoint: str,
        *,
        is_new: bool = True,
    ) -> T:
        """Run a request, and return what `write` makes of its response.

        `version` is "" for the latest one. `entrypoint` is REST or GRPC, for the metrics. `is_new`
        is whether `infer_now` has not been called with the request. Raises InvalidArgumentError if
        the request does not fit the model, UnimplementedError for what the protocol cannot express
        or sequences, and the errors of `InferenceService.predict`.
        """
        answer = self._infer(name, version, InferCall(request, is_new), step, write)
        return await measured(self._inference, name, _API, entrypoint, answer)

    async def _infer(
        self,
        name: str,
        version: str,
        call: InferCall,
        step: StepRequest,
        write: Callable[[InferReply], T],
    ) -> T:
        started = time.perf_counter_ns()
        served = self._find(name, version)
        return await self._counted(
            served, call, started, self._predict(served, version, call, step), write
        )

    async def _counted(
        self,
        served: ModelVersion,
        call: InferCall,
        started: int,
        predicted: Awaitable[Prediction],
        write: Callable[[InferReply], T],
    ) -> T:
        """Write the response of a prediction, and count the request; it began at `started`."""
        times = call.times
        try:
            prediction = await predicted
            ended = time.perf_counter_ns()
            reply = call.reply(served.name, prediction)
            content = await off_loop(reply.size, write, reply)
        except OpError:
            self._failed(served, started)
            raise
        self._succeeded(served, prediction.version, times, started, ended)
        return content

    def _failed(self, served: ModelVersion, started: int) -> None:
        self._statistics.failed(served.name, served.version, time.perf_counter_ns() - started)

    def _succeeded(
        self, served: ModelVersion, version: int, times: InferTimes, started: int, ended: int
    ) -> None:
        """Count a request that began at `started`, whose step ended at `ended`."""
        now = time.perf_counter_ns()
        times.infer_ns = ended - started - times.input_ns
        times.output_ns = now - ended
        self._statistics.succeeded(served.name, version, times, now - started)

    async def _predict(
        self, served: ModelVersion, version: str, call: InferCall, step: StepRequest
    ) -> Prediction:
        request = call.request
        set_schedule(step, request)
        signature = signature_of(served, text(request.parameters, "signature_name"))
        if _may_be_short(step) and served.acquire():
            try:
                answer = self._short_answer(served, signature, call)
                if answer is not None:
                    return await self._inference.prediction(served, signature, answer[0])
            finally:
                served.release()
        return await self._inference.predict(
            served.name,
            _version_number(version),
            None,
            signature.name,
            call.inputs,
            step,
            [output.name for output in request.outputs],
        )

    def _short_answer(
        self, served: ModelVersion, signature: Signature, call: InferCall
    ) -> ShortAnswer | None:
        """Run the step if it is short; return None, without having run anything, otherwise."""
        short = self._inference.short_step(served, signature.name, is_new=call.is_new)
        if short is None:
            return None
        arrays = call.inputs(signature)
        inputs = [arrays[alias] for alias in signature.inputs]
        return self._inference.predict_short(served.name, short, inputs)

    def infer_now(
        self,
        name: str,
        version: str,
        request: InferRequest,
        write: Callable[[InferReply], T],
        entrypoint: str,
    ) -> T | Coroutine[Any, Any, T] | None:
        """Run a request with the default deadline at once, in this thread.

        Returns None, without having run anything, if `infer` must be used, and a coroutine that
        writes the response if that is large. Raises the errors of `infer`.
        """
        started = time.perf_counter_ns()
        if has_schedule(request):
            return None
        try:
            served = self._manager.acquire(name, _version_number(version), None)
        except OpError:
            return None
        call = InferCall(request)
        metrics = self._inference.metrics
        try:
            signature = signature_of(served, text(request.parameters, "signature_name"))
            answer = self._short_answer(served, signature, call)
            if answer is None:
                return None
            values, is_small, _ = answer
            if not is_small:
                predicted = self._inference.prediction(served, signature, values)
                late = self._counted(served, call, started, predicted, write)
                return measured(self._inference, name, _API, entrypoint, late)
            ended = time.perf_counter_ns()
            outputs = dict(zip(signature.outputs, map(np.asarray, values), strict=True))
            content = write(call.reply(name, Prediction(outputs, 0, served.version)))
        except OpError as error:
            self._failed(served, started)
            metrics.request_failed(name, error.code.name)
            raise
        finally:
            served.release()
        self._succeeded(served, served.version, call.times, started, ended)
        metrics.requests(name, _API, entrypoint).add((time.perf_counter_ns() - started) / 1000)
        return content

    # --- descriptions -------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Return whether the server is ready for requests, as `/readyz` does."""
        return self._lifecycle.phase is Phase.SERVING and not (
            self._lifecycle.not_ready()
            or self._manager.not_ready()
            or exhausted_pools()
            or self._others_not_ready()
        )

    def is_model_ready(self, name: str, version: str) -> bool:
        """Return whether a model or version serves.

        Raises NotFoundError if there is no such model or version.
        """
        number = _version_number(version)
        try:
            self._manager.find(name, number)
        except OpError:
            if not self._manager.is_configured(name) or number is not None:
                self._manager.statuses(name, number)
            return False
        return True

    def server_metadata(self) -> dict[str, Any]:
        """Return the name and version of the server, and the extensions that it has."""
        return {"name": SERVER_NAME, "version": package_version(), "extensions": list(EXTENSIONS)}

    def model_metadata(
        self, name: str, version: str, signature: str | None = None
    ) -> dict[str, Any]:
        """Return the tensors of a signature of a model, and the versions that serve.

        Raises NotFoundError if the version does not serve, and InvalidArgumentError if there is no
        such signature.
        """
        return metadata(self._find(name, version), signature, self._manager)

    def model_config(self, name: str, version: str, signature: str | None = None) -> dict[str, Any]:
        """Return the configuration of a model; raise the errors of `model_metadata`."""
        policies = {config.name: config.policy for config in self._manager.configs()}
        return model_config(self._find(name, version), signature, policies.get(name))

    def statistics(self, name: str, version: str) -> dict[str, Any]:
        """Return the statistics of a version, of all that serve of a model, or of all models.

        Raises NotFoundError if the model or version does not serve.
        """
        found: list[tuple[str, int]] = [
            (served.name, served.version)
            for served in self._manager.available_versions()
            if not name or (served.name == name and version in ("", str(served.version)))
        ]
        if name and not found:
            self._find(name, version)
        return {"model_stats": [self._statistics.described(*each) for each in sorted(found)]}

    def repository_index(self, caller: Caller, *, ready_only: bool) -> list[dict[str, str]]:
        """Return the known versions of all models, with their states."""
        return repository_index(self._manager, caller, ready_only=ready_only)

    # --- administration -----------------------------------------------------------------------

    async def load(self, name: str, parameters: Mapping[str, Any], caller: Caller) -> None:
        """Load a model, or its newer versions; return when it serves.

        Raises PermissionDeniedError unless the caller may, UnimplementedError if the request brings
        a configuration or files, and the errors of `Administration.load`.
        """
        self._administration.check(caller)
        brought = [each for each in parameters if each == "config" or each.startswith("file:")]
        if brought:
            raise UnimplementedError(
                f"Parameter {brought[0]:.80}: a model is loaded from its folder with the server's "
                "own configuration; requests cannot bring either"
            )
        await self._administration.load(name)

    async def unload(self, name: str, caller: Caller) -> None:
        """Unload a model; requests that use it are finished first.

        Raises PermissionDeniedError unless the caller may, and NotFoundError if it is not served.
        """
        self._administration.check(caller)
        await self._administration.unload(name)

    def log_settings(self) -> dict[str, Any]:
        """Return what is logged."""
        return log_settings()

    def change_log_settings(self, changes: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Change what is logged; raise PermissionDeniedError unless the caller may."""
        self._administration.check(caller)
        return change_log_settings(changes)

    def trace_settings(self, name: str) -> dict[str, Any]:
        """Return the settings of traces; raise NotFoundError if the model is unknown."""
        if name:
            self._find(name, "")
        return dict(TRACE)

    def change_trace_settings(
        self, name: str, changes: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        """Check a change of the settings; raise PermissionDeniedError unless the caller may."""
        self._administration.check(caller)
        self.trace_settings(name)
        return change_trace_settings(changes)

    def _find(self, name: str, version: str) -> ModelVersion:
        return self._manager.find(name, _version_number(version))


def _may_be_short(step: StepRequest) -> bool:
    """Return whether a step may run at once: it is small, usual and not too late."""
    usage = step.caller.usage
    return (
        not step.priority
        and step.body_bytes < OFF_LOOP_BYTES
        and (usage is None or usage.allows_short_step)
        and (not step.timeout_ms or time.monotonic() < step.received_at + step.timeout_ms / 1000)
    )


def _version_number(version: str) -> int | None:
    if not version:
        return None
    if not (version.isascii() and version.isdigit() and int(version[:20]) <= _MAX_VERSION):
        raise InvalidArgumentError(f"The version must be a number, got {version!r:.80}")
    return int(version[:20])
