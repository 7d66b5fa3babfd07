"""The descriptors of our messages under TensorFlow's names, for clients that know only reflection.

The proto packages of this project are `runstep…`, so that TensorFlow can be in the same process; on
the wire they are TensorFlow's. Here the files are renamed, and described services are added, in a
descriptor pool of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

import protos as pb
from protos import master_pb2

# Our package, and the name on the wire; a file may have another one.
_PACKAGES = {
    "runstep": "tensorflow",
    "runstep.serving": "tensorflow.serving",
    "runstep.inference": "inference",
}
_FILE_PACKAGES = {"protos/error_codes.proto": "tensorflow.error"}
_STREAMS = frozenset({"ModelStreamInfer"})  # of requests and of responses
# (method, name of the request, name of the response), in the package of the service
MethodTypes = tuple[str, str, str]


def _same(*names: str) -> tuple[MethodTypes, ...]:
    return tuple((name, f"{name}Request", f"{name}Response") for name in names)


class DescribedService(NamedTuple):
    """A service by its full name, in a file named `file` that imports what `messages` defines."""

    name: str
    file: str
    messages: FileDescriptor
    methods: Sequence[MethodTypes]


SERVICES = (
    DescribedService(
        "tensorflow.MasterService",
        "tensorflow/core/protobuf/master_service.proto",
        master_pb2.DESCRIPTOR,
        _same(
            "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession",
            "ListDevices", "Reset", "MakeCallable", "RunCallable", "ReleaseCallable",
        ),
    ),
    DescribedService(
        "tensorflow.serving.PredictionService",
        "tensorflow_serving/apis/prediction_service.proto",
        pb.serving.DESCRIPTOR,
        (
            ("Classify", "ClassificationRequest", "ClassificationResponse"),
            ("Regress", "RegressionRequest", "RegressionResponse"),
            *_same("Predict", "MultiInference", "GetModelMetadata"),
        ),
    ),
    DescribedService(
        "tensorflow.serving.ModelService",
        "tensorflow_serving/apis/model_service.proto",
        pb.serving.DESCRIPTOR,
        (
            *_same("GetModelStatus"),
            ("HandleReloadConfigRequest", "ReloadConfigRequest", "ReloadConfigResponse"),
        ),
    ),
    DescribedService(
        "tensorflow.serving.SessionService",
        "tensorflow_serving/apis/session_service.proto",
        pb.serving.DESCRIPTOR,
        _same("SessionRun"),
    ),
    DescribedService(
        "inference.GRPCInferenceService",
        "grpc_service.proto",
        pb.inference.DESCRIPTOR,
        (
            *_same(
                "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata",
                "ModelInfer", "ModelConfig", "ModelStatistics", "RepositoryIndex",
                "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus",
                "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister",
                "CudaSharedMemoryStatus", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister",
                "TraceSetting", "LogSettings",
            ),
            ("ModelStreamInfer", "ModelInferRequest", "ModelStreamInferResponse"),
        ),
    ),
)  # fmt: skip


def wire_pool(
    services: Iterable[DescribedService] = SERVICES, others: Iterable[FileDescriptor] = ()
) -> descriptor_pool.DescriptorPool:
    """Return a pool with the services and all their messages; `others` keep their names."""
    pool = descriptor_pool.DescriptorPool()
    services = tuple(services)
    files: dict[str, FileDescriptor] = {}
    for file in (*(service.messages for service in services), *others):
        _collect(file, files)
    names = {
        old: new for file in files.values() for old, new in _renamed(file, _wire_package(file))
    }
    for file in files.values():  # dependencies come first
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        proto.package = _wire_package(file)
        for message in proto.message_type:
            _rename_types(message, names)
        pool.Add(proto)
    for service in services:
        pool.Add(_service_file(service))
    return pool


def _collect(file: FileDescriptor, files: dict[str, FileDescriptor]) -> None:
    """Add a file to `files`, after all files that it imports."""
    if file.name not in files:
        for dependency in file.dependencies:
            _collect(dependency, files)
        files[file.name] = file


def _wire_package(file: FileDescriptor) -> str:
    return _FILE_PACKAGES.get(file.name) or _PACKAGES.get(file.package, file.package)


def _renamed(file: FileDescriptor, package: str) -> Iterable[tuple[str, str]]:
    """Yield the old and new full names of all types of a file, nested ones too."""
    pending = [*file.message_types_by_name.values(), *file.enum_types_by_name.values()]
    while pending:
        found = pending.pop()
        name = found.full_name
        yield f".{name}", f".{package}{name[len(file.package) :]}"
        pending += getattr(found, "nested_types", ())
        pending += getattr(found, "enum_types", ())


def _rename_types(message: DescriptorProto, names: Mapping[str, str]) -> None:
    for field in message.field:
        if field.type_name:
            field.type_name = names[field.type_name]
    for nested in message.nested_type:
        _rename_types(nested, names)


def _service_file(service: DescribedService) -> FileDescriptorProto:
    package, _, name = service.name.rpartition(".")
    proto = FileDescriptorProto(
        name=service.file, package=package, syntax="proto3", dependency=[service.messages.name]
    )
    described = proto.service.add(name=name)
    for method, request, response in service.methods:
        described.method.add(
            name=method,
            input_type=f".{package}.{request}",
            output_type=f".{package}.{response}",
            client_streaming=method in _STREAMS,
            server_streaming=method in _STREAMS,
        )
    return proto
