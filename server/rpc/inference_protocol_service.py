"""The Open Inference Protocol's `inference.GRPCInferenceService`, with Triton's extensions.

Descriptions have the same fields as the protocol's JSON, so that messages are made from that.

Source: Open Inference Protocol (gRPC); Triton's grpc_service.proto
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

import protos as pb
from runtime.errors import InvalidArgumentError, OpError, UnimplementedError
from server.codec.inference_protocol.message_infer import (
    infer_response,
    read_infer_message,
    write_infer_response,
)
from server.inference_protocol.service import SHARED_MEMORY, InferenceProtocol
from server.rpc.call import CallContext, Method, Reply, Stream
from server.steps.step_request import StepRequest
from server.steps.step_runner import BY_ELEMENT, OFF_LOOP_BYTES

NAME = "inference.GRPCInferenceService"
FINAL = "triton_final_response"  # a parameter; each request of a stream has one response
M = TypeVar("M", bound=Message)


class InferenceProtocolService:
    """The service of one server."""

    def __init__(self, service: InferenceProtocol) -> None:
        self._service = service

    def methods(self) -> dict[str, Method | Stream]:
        """Return the methods of the service by name."""
        api = pb.inference
        return {
            "ServerLive": Method(api.ServerLiveRequest.FromString, self.server_live),
            "ServerReady": Method(api.ServerReadyRequest.FromString, self.server_ready),
            "ModelReady": Method(api.ModelReadyRequest.FromString, self.model_ready),
            "ServerMetadata": Method(api.ServerMetadataRequest.FromString, self.server_metadata),
            "ModelMetadata": Method(api.ModelMetadataRequest.FromString, self.model_metadata),
            "ModelInfer": Method(api.ModelInferRequest.FromString, self.model_infer),
            "ModelStreamInfer": Stream(api.ModelInferRequest.FromString, self.model_stream_infer),
            "ModelConfig": Method(api.ModelConfigRequest.FromString, self.model_config),
            "ModelStatistics": Method(api.ModelStatisticsRequest.FromString, self.model_statistics),
            "RepositoryIndex": Method(api.RepositoryIndexRequest.FromString, self.repository_index),
            "RepositoryModelLoad": Method(
                api.RepositoryModelLoadRequest.FromString, self.repository_load
            ),
            "RepositoryModelUnload": Method(
                api.RepositoryModelUnloadRequest.FromString, self.repository_unload
            ),
            "TraceSetting": Method(api.TraceSettingRequest.FromString, self.trace_setting),
            "LogSettings": Method(api.LogSettingsRequest.FromString, self.log_settings),
            **_shared_memory_methods(),
        }

    # --- inference ----------------------------------------------------------------------------

    async def model_infer(
        self, request: pb.inference.ModelInferRequest, context: CallContext
    ) -> Reply:
        """Run a signature on the tensors of the request."""
        received = read_infer_message(request)
        name, version = request.model_name, request.model_version
        may_be_short = context.may_be_short and _body_bytes(request) < OFF_LOOP_BYTES
        answer = (
            self._service.infer_now(name, version, received, write_infer_response, "GRPC")
            if may_be_short
            else None
        )
        if answer is None:
            answer = self._service.infer(
                name,
                version,
                received,
                _step(request, context),
                write_infer_response,
                "GRPC",
                is_new=not may_be_short,
            )
        content = answer if isinstance(answer, bytes) else await answer
        return Reply(len(content), bytes, (content,))

    async def model_stream_infer(
        self, requests: AsyncIterator[pb.inference.ModelInferRequest], context: CallContext
    ) -> AsyncGenerator[pb.inference.ModelStreamInferResponse, None]:
        """Run the requests of a stream one after the other; an error does not end the stream."""
        async for request in requests:
            reply = pb.inference.ModelStreamInferResponse()
            try:
                response = await self._service.infer(
                    request.model_name,
                    request.model_version,
                    read_infer_message(request),
                    _step(request, context),
                    infer_response,
                    "GRPC",
                )
                response.parameters[FINAL].bool_param = True
                reply.infer_response.MergeFrom(response)
            except OpError as error:
                reply.error_message = context.caller.shown_text(error.message)
                reply.infer_response.id = request.id
            yield reply

    # --- descriptions -------------------------------------------------------------------------

    async def server_live(self, request: Message, context: CallContext) -> Message:
        """Return that the process is alive."""
        return pb.inference.ServerLiveResponse(live=True)

    async def server_ready(self, request: Message, context: CallContext) -> Message:
        """Return whether the server is ready for requests."""
        return pb.inference.ServerReadyResponse(ready=self._service.is_ready())

    async def model_ready(
        self, request: pb.inference.ModelReadyRequest, context: CallContext
    ) -> Message:
        """Return whether a model serves."""
        is_ready = self._service.is_model_ready(request.name, request.version)
        return pb.inference.ModelReadyResponse(ready=is_ready)

    async def server_metadata(self, request: Message, context: CallContext) -> Message:
        """Return the name, version and extensions of the server."""
        return _filled(pb.inference.ServerMetadataResponse(), self._service.server_metadata())

    async def model_metadata(
        self, request: pb.inference.ModelMetadataRequest, context: CallContext
    ) -> Message:
        """Return the tensors of a model."""
        found = self._service.model_metadata(request.name, request.version)
        return _filled(pb.inference.ModelMetadataResponse(), found)

    async def model_config(
        self, request: pb.inference.ModelConfigRequest, context: CallContext
    ) -> Message:
        """Return the configuration of a model."""
        found = self._service.model_config(request.name, request.version)
        return _filled(pb.inference.ModelConfigResponse(), {"config": found})

    async def model_statistics(
        self, request: pb.inference.ModelStatisticsRequest, context: CallContext
    ) -> Message:
        """Return the counts and times of inference requests."""
        found = self._service.statistics(request.name, request.version)
        return _filled(pb.inference.ModelStatisticsResponse(), found)

    # --- administration -----------------------------------------------------------------------

    async def repository_index(
        self, request: pb.inference.RepositoryIndexRequest, context: CallContext
    ) -> Message:
        """Return the known versions of all models, with their states."""
        index = self._service.repository_index(context.caller, ready_only=request.ready)
        return _filled(pb.inference.RepositoryIndexResponse(), {"models": index})

    async def repository_load(
        self, request: pb.inference.RepositoryModelLoadRequest, context: CallContext
    ) -> Message:
        """Load a model."""
        await self._service.load(request.model_name, request.parameters, context.caller)
        return pb.inference.RepositoryModelLoadResponse()

    async def repository_unload(
        self, request: pb.inference.RepositoryModelUnloadRequest, context: CallContext
    ) -> Message:
        """Unload a model."""
        await self._service.unload(request.model_name, context.caller)
        return pb.inference.RepositoryModelUnloadResponse()

    async def trace_setting(
        self, request: pb.inference.TraceSettingRequest, context: CallContext
    ) -> Message:
        """Return the settings of traces; refuse to switch traces on."""
        changes = {name: list(value.value) for name, value in request.settings.items()}
        if changes:
            found = self._service.change_trace_settings(request.model_name, changes, context.caller)
        else:
            found = self._service.trace_settings(request.model_name)
        response = pb.inference.TraceSettingResponse()
        for name, value in found.items():
            items = value if isinstance(value, list) else [value]
            response.settings[name].value.extend(items)
        return response

    async def log_settings(
        self, request: pb.inference.LogSettingsRequest, context: CallContext
    ) -> Message:
        """Return what is logged, after the changes of the request."""
        changes = _log_changes(request.settings)
        if changes:
            found = self._service.change_log_settings(changes, context.caller)
        else:
            found = self._service.log_settings()
        response = pb.inference.LogSettingsResponse()
        for name, value in found.items():
            setting = response.settings[name]
            if isinstance(value, bool):
                setting.bool_param = value
            elif isinstance(value, int):
                setting.uint32_param = value
            else:
                setting.string_param = value
        return response


def _step(request: pb.inference.ModelInferRequest, context: CallContext) -> StepRequest:
    step = context.step()
    step.body_bytes = _body_bytes(request)
    return step


def _body_bytes(request: pb.inference.ModelInferRequest) -> int:
    return request.ByteSize() * (1 if request.raw_input_contents else BY_ELEMENT)


def _filled(message: M, fields: dict[str, Any]) -> M:
    """Return `message` with the fields of a JSON object, which must all exist."""
    return ParseDict(fields, message)


def _log_changes(
    settings: Mapping[str, pb.inference.LogSettingsRequest.SettingValue],
) -> dict[str, Any]:
    changes = {}
    for name, setting in settings.items():
        kind = setting.WhichOneof("parameter_choice")
        if kind is None:
            raise InvalidArgumentError(f"Setting {name!r:.80} has no value")
        changes[name] = getattr(setting, kind)
    return changes


def _shared_memory_methods() -> dict[str, Method]:
    """Return the methods for regions of shared memory, of which there are none."""
    api = pb.inference

    async def refuse(request: Message, context: CallContext) -> Message:
        raise UnimplementedError(SHARED_MEMORY)

    def empty(message: type[Message]) -> Any:
        async def answer(request: Message, context: CallContext) -> Message:
            return message()

        return answer

    methods = {}
    for kind in ("SystemSharedMemory", "CudaSharedMemory"):
        for verb in ("Status", "Register", "Unregister"):
            name = kind + verb
            answer = refuse if verb == "Register" else empty(getattr(api, f"{name}Response"))
            methods[name] = Method(getattr(api, f"{name}Request").FromString, answer)
    return methods
