"""The gRPC calls of models that are replicas of Ray Serve.

Fronts have a gRPC port of their own, because Ray Serve's gRPC proxy can't carry these services: it
routes by the last part of a method's name, which services share (`SessionRun`, `Check`), wants its
own metadata from clients, passes on no deadline, and turns what an actor raises into INTERNAL. On
the port of a front, codes, metadata, deadlines, cancellation, streams and credentials are those of
every server.

Guarantees: used from one event loop; requests and responses are passed on as they are, unless they
are lists of models.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from google.protobuf.message import DecodeError, Message

import protos as pb
from runtime.errors import OpError
from server.codec.message_fields import bytes_fields
from server.host import Host
from server.ray_models.model_handle import ModelHandle
from server.ray_models.serve_host import ServeHost
from server.rpc import inference_protocol_service
from server.rpc.call import CallContext, Method, Reply, Service, Stream
from server.rpc.passed_metadata import passed_metadata

_LIST_SECONDS = 5.0
_PROTOCOL = inference_protocol_service.NAME
_INFER = f"/{_PROTOCOL}/ModelInfer"
_NameOf = Callable[[bytes], str]


def _named(data: bytes) -> str:
    """Return the name of a message whose field 1 is the name of a model."""
    *_, name = (b"", *bytes_fields(data, 1))
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise DecodeError("The name of the model is not UTF-8") from None


def _specified(data: bytes) -> str:
    """Return the name of a message whose field 1 is a ModelSpec."""
    return pb.serving.ModelSpec.FromString(b"".join(bytes_fields(data, 1))).name


def _of_task(data: bytes) -> str:
    """Return the name of a MultiInferenceRequest: all its tasks are for one model."""
    first = next(bytes_fields(data, 1), b"")
    return pb.serving.InferenceTask.FromString(first).model_spec.name


# How a method names its model, by the service and the method.
_NAMES: dict[str, dict[str, _NameOf]] = {
    "tensorflow.serving.PredictionService": {
        "Predict": _specified,
        "Classify": _specified,
        "Regress": _specified,
        "GetModelMetadata": _specified,
        "MultiInference": _of_task,
    },
    "tensorflow.serving.ModelService": {"GetModelStatus": _specified},
    "tensorflow.serving.SessionService": {"SessionRun": _specified},
    _PROTOCOL: {
        "ModelReady": _named,
        "ModelMetadata": _named,
        "ModelInfer": _named,
        "ModelConfig": _named,
        "ModelStatistics": _named,
        "RepositoryIndex": lambda _: "",
    },
}
# The methods that run no step, so that they may be asked again of another replica.
_READS = frozenset(
    {
        "GetModelMetadata", "GetModelStatus", "ModelReady", "ModelMetadata", "ModelConfig",
        "ModelStatistics", "RepositoryIndex",
    }
)  # fmt: skip
# The methods that, without a model, are about all, and their responses.
_OF_ALL: dict[str, type[Message]] = {
    f"/{_PROTOCOL}/ModelStatistics": pb.inference.ModelStatisticsResponse,
    f"/{_PROTOCOL}/RepositoryIndex": pb.inference.RepositoryIndexResponse,
}


def passed_to_replicas(host: Host, service: Service) -> Service:
    """Return a service whose calls on models of the application go to their replicas."""
    assert isinstance(host, ServeHost)
    names = _NAMES.get(service.name, {})
    methods: dict[str, Method | Stream] = dict(service.methods)
    for name, method in service.methods.items():
        path = f"/{service.name}/{name}"
        if isinstance(method, Stream):
            if path == f"/{_PROTOCOL}/ModelStreamInfer":
                stream = functools.partial(_answer_stream, host, method)
                methods[name] = Stream(method.read, stream, method.is_work)
            continue
        if name in names:
            call = functools.partial(_answer, host, path, method, names[name])
            methods[name] = Method(bytes, call, method.frees_memory)
    return Service(service.name, methods)


async def _answer(
    host: ServeHost, path: str, own: Method, name_of: _NameOf, data: bytes, context: CallContext
) -> Message | Reply:
    """Pass a call on; one whose model is not of the application is answered as `own` says."""
    try:
        name = name_of(data)
    except DecodeError:
        name = path  # no model's: whoever parses the whole request says what is wrong
    model = host.model(name)
    if model is None:
        if not name and path in _OF_ALL:
            return await _merged(host, path, data, context)
        return await own.answer(own.read(data), context)
    reads = path.rpartition("/")[2] in _READS
    content = await model.rpc(
        path, data, passed_metadata(context), context.seconds_left, reads=reads
    )
    return Reply(len(content), bytes, (content,))


async def _merged(host: ServeHost, path: str, data: bytes, context: CallContext) -> Message:
    """Merge what a replica of each model says; what does not answer is left out."""
    merged = _OF_ALL[path]()
    told = await asyncio.gather(*(_told(model, path, data, context) for model in host.models()))
    for content in told:
        merged.MergeFromString(content)
    return merged


async def _told(model: ModelHandle, path: str, data: bytes, context: CallContext) -> bytes:
    try:
        return await model.rpc(path, data, passed_metadata(context), _LIST_SECONDS, reads=True)
    except OpError:
        return b""


async def _answer_stream(
    host: ServeHost, own: Stream, requests: AsyncIterator[Any], context: CallContext
) -> AsyncGenerator[Message | Reply, None]:
    """Pass the requests of a stream on, one after the other; an error does not end the stream."""
    async for request in requests:
        model = host.model(request.model_name)
        if model is None:
            async for answered in own.answer(_only(request), context):
                yield answered
            continue
        reply = pb.inference.ModelStreamInferResponse()
        try:
            content = await model.rpc(
                _INFER, request.SerializeToString(), passed_metadata(context), context.seconds_left
            )
            reply.infer_response.MergeFromString(content)
            reply.infer_response.parameters[inference_protocol_service.FINAL].bool_param = True
        except OpError as error:
            reply.error_message = context.caller.shown_text(error.message)
            reply.infer_response.id = request.id
        yield reply


async def _only(request: Any) -> AsyncIterator[Any]:
    yield request
