"""TensorFlow Serving's PredictionService: one method for each call.

Large requests are parsed, and large responses written, on another thread (see `rpc_answers`); so
are the tensors of a large request, once its model and signature are known.

TF: tensorflow_serving/model_servers/prediction_service_impl.cc
"""

from __future__ import annotations

import functools
from collections.abc import Coroutine, Mapping
from typing import Any

import numpy as np
from google.protobuf.message import Message

import protos as pb
from runtime.api import DataType, tensor_from_proto
from runtime.errors import FailedPreconditionError, InvalidArgumentError, OpError
from server.codec.serving.proto_messages import (
    classification_result,
    input_examples,
    read_tensors,
    regression_result,
    write_predict,
)
from server.codec.serving.requests import DEFAULT_SIGNATURE
from server.codec.session.proto_steps import bytes_needed
from server.memory_in_flight import hold
from server.models.inference_service import InferenceService
from server.models.measured_request import measured
from server.models.model_version import UnknownSignatureError
from server.models.multi_inference import MultiInference, Task
from server.models.signature import Signature
from server.rpc.call import CallContext, Method, Reply
from server.rpc.model_specs import Target, read_spec, spec_of, target_of
from server.settings import Settings
from server.steps.step_request import StepRequest
from server.steps.step_runner import BY_ELEMENT, OFF_LOOP_BYTES

_SIGNATURES = "signature_def"  # the one metadata field
_SIGNATURE_MAP = "type.googleapis.com/tensorflow.serving.SignatureDefMap"
_TIMES_VARINTS = 4  # how many times longer writing integers takes than copying their bytes


class PredictionService:
    """The service of one server."""

    def __init__(self, inference: InferenceService, settings: Settings) -> None:
        self._inference = inference
        self._multi_inference = MultiInference(inference)
        self._max_bytes = settings.sessions.max_tensor_bytes
        self._as_content = settings.grpc.tensor_content

    def methods(self) -> dict[str, Method]:
        """Return the methods of the service by name."""
        serving = pb.serving
        return {
            "Predict": Method(serving.PredictRequest.FromString, self.predict),
            "Classify": Method(serving.ClassificationRequest.FromString, self.classify),
            "Regress": Method(serving.RegressionRequest.FromString, self.regress),
            "MultiInference": Method(
                serving.MultiInferenceRequest.FromString, self.multi_inference
            ),
            "GetModelMetadata": Method(
                serving.GetModelMetadataRequest.FromString, self.get_model_metadata
            ),
        }

    async def predict(self, request: pb.serving.PredictRequest, call: CallContext) -> Reply:
        """Run a signature; return its outputs, or those of `output_filter`."""
        return await self._measured(request, "Predict", self._predict(request, call))

    async def classify(self, request: pb.serving.ClassificationRequest, call: CallContext) -> Reply:
        """Return labels and scores for each example."""
        return await self._measured(request, "Classify", self._classify(request, call))

    async def regress(self, request: pb.serving.RegressionRequest, call: CallContext) -> Reply:
        """Return a value for each example."""
        return await self._measured(request, "Regress", self._regress(request, call))

    async def _predict(self, request: pb.serving.PredictRequest, call: CallContext) -> Reply:
        target = target_of(request)
        size = request.ByteSize()
        if call.may_be_short and size < OFF_LOOP_BYTES and not request.output_filter:
            short = await self._predict_short(target, request, size)
            if short is not None:
                return short
        step = _step(call, request)
        needed = bytes_needed(step.body_bytes, request.inputs.values())
        if needed > step.body_bytes:  # its tensors repeat their values
            hold(needed)
            step.body_bytes = needed
        wanted = tuple(request.output_filter)
        types: dict[str, DataType] = {}

        def inputs(signature: Signature) -> Mapping[str, np.ndarray]:
            protos: Mapping[str, pb.TensorProto] = request.inputs
            if signature.defaults:
                protos = {**signature.defaults, **request.inputs}
            signature.check_inputs(protos.keys())
            arrays = read_tensors(protos, self._max_bytes)
            signature.check_outputs(wanted)
            types.update((alias, spec.data_type) for alias, spec in signature.outputs.items())
            return arrays

        try:
            outputs, size, version = await self._inference.predict(
                *target, inputs, step, outputs=wanted
            )
        except UnknownSignatureError as error:
            raise FailedPreconditionError(
                f'Serving signature key "{target.signature}" not found.'
            ) from error
        return self._predicted(
            spec_of(target.name, version, target.signature), outputs, types, size
        )

    async def _predict_short(
        self, target: Target, request: pb.serving.PredictRequest, size: int
    ) -> Reply | None:
        """Run the step at once if it is short; the request has `size` bytes.

        Returns None, without having run anything, otherwise, and for everything that is wrong.
        """
        try:
            served = self._inference.manager.acquire(target.name, target.version, target.label)
        except OpError:
            return None
        try:
            short = self._inference.short_step(served, target.signature)
            if short is None:
                return None
            signature = served.signatures[target.signature]
            inputs = _short_inputs(request, signature, size, self._max_bytes)
            answer = inputs and self._inference.predict_short(served.name, short, inputs)
            if not answer:
                return None
            values, is_small, _ = answer
            if is_small:
                arrays = map(np.asarray, values)
                outputs, written = dict(zip(signature.outputs, arrays, strict=True)), 0
            else:
                outputs, written, _ = await self._inference.prediction(served, signature, values)
        finally:
            served.release()
        spec = spec_of(target.name, served.version, target.signature)
        types = {alias: each.data_type for alias, each in signature.outputs.items()}
        return self._predicted(spec, outputs, types, written)

    def _predicted(
        self,
        spec: pb.serving.ModelSpec,
        outputs: Mapping[str, np.ndarray],
        types: Mapping[str, DataType],
        size: int,
    ) -> Reply:
        """Return the response with outputs of `size` bytes."""
        if not self._as_content and any(array.dtype.kind in "iu" for array in outputs.values()):
            size *= _TIMES_VARINTS
        return Reply(size, write_predict, (spec, outputs, types, self._as_content))

    async def _classify(
        self, request: pb.serving.ClassificationRequest, call: CallContext
    ) -> Reply:
        target = target_of(request)
        examples = functools.partial(input_examples, request.input)
        (labels, scores), size, version = await self._inference.classify(
            *target, examples, _step(call, request)
        )
        spec = spec_of(target.name, version, target.signature)

        def write() -> bytes:
            result = classification_result(labels, scores)
            response = pb.serving.ClassificationResponse(result=result, model_spec=spec)
            return response.SerializeToString()

        return Reply(size * BY_ELEMENT, write)

    async def _regress(self, request: pb.serving.RegressionRequest, call: CallContext) -> Reply:
        target = target_of(request)
        examples = functools.partial(input_examples, request.input)
        values, size, version = await self._inference.regress(
            *target, examples, _step(call, request)
        )
        spec = spec_of(target.name, version, target.signature)

        def write() -> bytes:
            result = regression_result(values)
            response = pb.serving.RegressionResponse(result=result, model_spec=spec)
            return response.SerializeToString()

        return Reply(size * BY_ELEMENT, write)

    async def multi_inference(
        self, request: pb.serving.MultiInferenceRequest, call: CallContext
    ) -> Reply:
        """Classify and regress the same examples by several signatures."""
        specs = [task.model_spec for task in request.tasks]
        first = read_spec(specs[0] if specs else pb.serving.ModelSpec())
        tasks = [
            Task(
                task.model_spec.name,
                task.model_spec.signature_name or DEFAULT_SIGNATURE,
                task.method_name,
            )
            for task in request.tasks
        ]
        results, size, version = await self._multi_inference.run(
            tasks,
            first.version,
            first.label,
            functools.partial(input_examples, request.input),
            _step(call, request),
        )

        def write() -> bytes:
            response = pb.serving.MultiInferenceResponse()
            for task, value in zip(tasks, results, strict=True):
                result = response.results.add(
                    model_spec=spec_of(task.name, version, task.signature)
                )
                if isinstance(value, np.ndarray):
                    result.regression_result.CopyFrom(regression_result(value))
                else:
                    result.classification_result.CopyFrom(classification_result(*value))
            return response.SerializeToString()

        return Reply(size * BY_ELEMENT, write)

    async def get_model_metadata(
        self, request: pb.serving.GetModelMetadataRequest, call: CallContext
    ) -> pb.serving.GetModelMetadataResponse:
        """Return the signatures of a version."""
        if not request.HasField("model_spec"):
            raise InvalidArgumentError("Missing ModelSpec")
        if not request.metadata_field:
            raise InvalidArgumentError(
                "GetModelMetadataRequest must specify at least one metadata_field"
            )
        for field in request.metadata_field:
            if field != _SIGNATURES:
                raise InvalidArgumentError(f"Metadata field {field} is not supported")
        target = target_of(request)
        found = self._inference.manager.find(target.name, target.version, target.label)
        response = pb.serving.GetModelMetadataResponse(
            model_spec=spec_of(found.name, found.version)
        )
        signatures = pb.serving.SignatureDefMap()
        for name, signature in found.bundle.meta_graph_def.signature_def.items():
            signatures.signature_def[name].CopyFrom(signature)
        packed = response.metadata[_SIGNATURES]
        packed.type_url = _SIGNATURE_MAP
        packed.value = signatures.SerializeToString()
        return response

    async def _measured(self, request: Any, api: str, answer: Coroutine[Any, Any, Reply]) -> Reply:
        return await measured(self._inference, request.model_spec.name, api, "GRPC", answer)


def _step(call: CallContext, request: Message) -> StepRequest:
    step = call.step()
    step.body_bytes = request.ByteSize()
    return step


def _short_inputs(
    request: pb.serving.PredictRequest, signature: Signature, size: int, max_bytes: int
) -> list[np.ndarray] | None:
    """Return the inputs in the order of the signature; None if they are wrong, or repeated."""
    protos = request.inputs
    if protos.keys() != signature.inputs.keys():
        return None
    if bytes_needed(size, protos.values()) != size:
        return None
    try:
        return [tensor_from_proto(protos[alias], max_bytes) for alias in signature.inputs]
    except OpError:
        return None
