"""The Open Inference Protocol's calls, which HTTP and gRPC translate.

An inference request runs a signature by the inference service, so that priority, deadline, limits
and metrics are those of every other front. Descriptions are in the form of the protocol's JSON.

Guarantees: used from one event loop.

Source: Open Inference Protocol; Triton's extensions
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from runtime.errors import InvalidArgumentError, OpError, UnimplementedError
from server.access.caller import Caller
from server.codec.inference_protocol.datatypes import datatype_of
from server.codec.inference_protocol.infer_request import (
    InferReply,
    InferRequest,
    OutputTensor,
    RequestedOutput,
    text,
    whole_number,
)
from server.inference_protocol.classification import classes
from server.inference_protocol.descriptions import (
    EXTENSIONS,
    metadata,
    model_config,
    repository_index,
    signature_of,
)
from server.inference_protocol.input_arrays import input_arrays
from server.inference_protocol.log_settings import (
    TRACE,
    change_log_settings,
    change_trace_settings,
    log_settings,
)
from server.inference_protocol.statistics import InferTimes, Statistics
from server.lifecycle import Lifecycle, Phase
from server.metrics import exhausted_pools
from server.models.administration import Administration
from server.models.inference_service import InferenceService, Prediction
from server.models.measured_request import measured
from server.models.model_version import ModelVersion
from server.models.signature import Signature
from server.package import package_version
from server.steps.step_request import StepRequest
from server.steps.step_runner import OFF_LOOP_BYTES, off_loop

T = TypeVar("T")
SERVER_NAME = "runstep"
_API = "Predict"  # the API in the metrics: what runs is a signature on tensors
_MAX_VERSION = (1 << 63) - 1
_LONGEST_US = 1 << 53
_SEQUENCES = ("sequence_id", "sequence_start", "sequence_end")
SHARED_MEMORY = (
    "This server does not use shared memory; send and request binary data instead: "
    "its regions would be memory of another process, which could change while a step reads it"
)


@dataclasses.dataclass(slots=True)
class _Call:
    """One inference request while it runs."""

    request: InferRequest
    times: InferTimes = dataclasses.field(default_factory=InferTimes)
    signature: Signature | None = None

    def inputs(self, signature: Signature) -> dict[str, np.ndarray]:
        """Return the inputs, and note what the response needs to know of the signature."""
        started = time.perf_counter_ns()
        arrays = input_arrays(self.request, signature)
        self.signature = signature
        for alias, array in arrays.items():
            spec = signature.inputs[alias]
            if array.ndim and spec.shape is not None and spec.shape[:1] == (-1,):
                self.times.batch_size = len(array)
            break
        self.times.input_ns = time.perf_counter_ns() - started
        return arrays


class InferenceProtocol:
    """The service of one server."""

    def __init__(
        self, inference: InferenceService, lifecycle: Lifecycle, administration: Administration
    ) -> None:
        self._inference = inference
        self._manager = inference.manager
        self._lifecycle = lifecycle
        self._administration = administration
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
    ) -> T:
        """Run a request, and return what `write` makes of its response.

        `version` is "" for the latest one. `entrypoint` is REST or GRPC, for the metrics. Raises
        InvalidArgumentError if the request does not fit the model, UnimplementedError for what the
        protocol cannot express or sequences, and the errors of `InferenceService.predict`.
        """
        answer = self._infer(name, version, request, step, write)
        return await measured(self._inference, name, _API, entrypoint, answer)

    async def _infer(
        self,
        name: str,
        version: str,
        request: InferRequest,
        step: StepRequest,
        write: Callable[[InferReply], T],
    ) -> T:
        started = time.perf_counter_ns()
        served = self._find(name, version)
        call = _Call(request)
        try:
            content, number = await self._run(served, version, call, step, write)
        except OpError:
            self._statistics.failed(name, served.version, time.perf_counter_ns() - started)
            raise
        self._statistics.succeeded(name, number, call.times, time.perf_counter_ns() - started)
        return content

    async def _run(
        self,
        served: ModelVersion,
        version: str,
        call: _Call,
        step: StepRequest,
        write: Callable[[InferReply], T],
    ) -> tuple[T, int]:
        request, times = call.request, call.times
        _set_schedule(step, request)
        signature = signature_of(served, text(request.parameters, "signature_name"))
        started = time.perf_counter_ns()
        prediction = await self._predict_short(served, signature, call, step)
        if prediction is None:
            prediction = await self._inference.predict(
                served.name,
                _version_number(version),
                None,
                signature.name,
                call.inputs,
                step,
                [output.name for output in request.outputs],
            )
        ended = time.perf_counter_ns()
        times.infer_ns = ended - started - times.input_ns
        reply = _reply(served.name, call, prediction)
        content = await off_loop(reply.size, write, reply)
        times.output_ns = time.perf_counter_ns() - ended
        return content, prediction.version

    async def _predict_short(
        self, served: ModelVersion, signature: Signature, call: _Call, step: StepRequest
    ) -> Prediction | None:
        """Run the step at once if it is short and the request is usual.

        Returns None, without having run anything, otherwise.
        """
        usage = step.caller.usage
        is_usual = (
            not step.priority
            and step.body_bytes < OFF_LOOP_BYTES
            and (usage is None or usage.allows_short_step)
            and _is_in_time(step)
        )
        if not is_usual or not served.acquire():
            return None
        try:
            short = self._inference.short_step(served, signature.name)
            if short is None:
                return None
            arrays = call.inputs(signature)
            inputs = [arrays[alias] for alias in signature.inputs]
            answer = self._inference.predict_short(served.name, short, inputs)
            if answer is None:
                return None
            return await self._inference.prediction(served, signature, answer[0])
        finally:
            served.release()

    # --- descriptions -------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Return whether the server is ready for requests, as `/readyz` does."""
        return self._lifecycle.phase is Phase.SERVING and not (
            self._lifecycle.not_ready() or self._manager.not_ready() or exhausted_pools()
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


def _is_in_time(step: StepRequest) -> bool:
    return not step.timeout_ms or time.monotonic() < step.received_at + step.timeout_ms / 1000


def _version_number(version: str) -> int | None:
    if not version:
        return None
    if not (version.isascii() and version.isdigit() and int(version[:20]) <= _MAX_VERSION):
        raise InvalidArgumentError(f"The version must be a number, got {version!r:.80}")
    return int(version[:20])


def _set_schedule(step: StepRequest, request: InferRequest) -> None:
    """Set priority and deadline from the parameters, which take precedence over headers."""
    parameters = request.parameters
    if not parameters:
        return
    for name in _SEQUENCES:
        if parameters.get(name):
            raise UnimplementedError(
                f"Parameter {name}: models keep no state between the requests of a sequence; "
                "a session does"
            )
    priority = parameters.get("priority")
    if priority is not None:
        step.priority = (
            priority if isinstance(priority, str) else whole_number(parameters, "priority")
        )
    timeout = whole_number(parameters, "timeout")
    if timeout:
        step.timeout_ms = -(-min(timeout, _LONGEST_US) // 1000)  # rounded up


def _reply(name: str, call: _Call, prediction: Prediction) -> InferReply:
    asked = call.request.outputs or [RequestedOutput(alias) for alias in prediction.outputs]
    outputs = []
    for each in asked:
        array = prediction.outputs[each.name]
        datatype = datatype_of(array, each.name)
        if each.classes:
            spec = None if call.signature is None else call.signature.outputs[each.name].shape
            is_batch = spec is not None and spec[:1] == (-1,)
            array, datatype = classes(array, each.classes, is_batch=is_batch), "BYTES"
        is_binary = call.request.is_binary if each.is_binary is None else each.is_binary
        outputs.append(OutputTensor(each.name, datatype, array, is_binary))
    return InferReply(name, str(prediction.version), call.request.id, outputs, prediction.size)
