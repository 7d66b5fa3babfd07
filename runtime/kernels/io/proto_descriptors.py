"""Descriptors of protocol buffers for the ops that decode and encode them.

TF: tensorflow/core/util/proto/descriptors.cc, proto_utils.cc (IsCompatibleType)
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import pkgutil
from collections.abc import Iterable

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext
from runtime.kernels.io.files import read_whole_file

_LINKED_IN = ("", "local://")
_IN_ATTRIBUTE = "bytes://"
_OWN_PACKAGE, _PACKAGE = "runstep", "tensorflow"
_WELL_KNOWN = (
    any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2,
    wrappers_pb2,
)  # fmt: skip

_F = FieldDescriptor
_D = DataType
# Types of fields → element types that a tensor of their values may have.
COMPATIBLE: dict[int, tuple[DataType, ...]] = {
    _F.TYPE_DOUBLE: (_D.DOUBLE,),
    _F.TYPE_FLOAT: (_D.FLOAT, _D.DOUBLE),
    _F.TYPE_BOOL: (_D.BOOL,),
    _F.TYPE_ENUM: (_D.INT32,),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), (_D.INT64,)),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), (_D.UINT64,)),
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), (_D.INT32, _D.INT64)),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), (_D.UINT32, _D.UINT64)),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE, _F.TYPE_GROUP), (_D.STRING,)),
}
# As C++'s descriptors name them.
TYPE_NAMES: dict[int, str] = {
    getattr(_F, name): name.removeprefix("TYPE_").lower()
    for name in dir(_F)
    if name.startswith("TYPE_")
}
CPP_TYPE_NAMES: dict[int, str] = {
    getattr(_F, name): name.removeprefix("CPPTYPE_").lower()
    for name in dir(_F)
    if name.startswith("CPPTYPE_")
}


@functools.cache
def _linked_in() -> DescriptorPool:
    """Return the messages that TensorFlow has in its binary, as far as this project has them."""
    pool = DescriptorPool()
    for module in _WELL_KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    names = [each.name for each in pkgutil.iter_modules(pb.__path__) if each.name.endswith("_pb2")]
    files = {}
    for name in names:
        found = importlib.import_module(f"{pb.__name__}.{name}").DESCRIPTOR
        file = descriptor_pb2.FileDescriptorProto.FromString(found.serialized_pb)
        if file.package == _OWN_PACKAGE:  # others are not TensorFlow's
            files[file.name] = _renamed(file)
    for file in _in_order(files):
        pool.Add(file)
    return pool


def _renamed(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """Change the package of a file to TensorFlow's, also where its types are named."""
    file.package = _PACKAGE
    waiting = list(file.message_type)
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        for field in message.field:
            if field.type_name.startswith(f".{_OWN_PACKAGE}."):
                field.type_name = f".{_PACKAGE}" + field.type_name.removeprefix(f".{_OWN_PACKAGE}")
    return file


def _in_order(
    files: dict[str, descriptor_pb2.FileDescriptorProto],
) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    """Yield each file after those that it imports."""
    while files:
        ready = [
            name
            for name, file in files.items()
            if not any(each in files for each in file.dependency)
        ]
        for name in ready:
            yield files.pop(name)


def _pool_of(data: bytes, source: str) -> DescriptorPool:
    """Return the pool of a serialized FileDescriptorSet.

    Raises InvalidArgumentError if it is damaged, or if its files are not valid or not in order.
    """
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except DecodeError:
        raise _no_descriptors(source) from None
    pool = DescriptorPool()
    for file in files:
        try:
            pool.Add(file)
            pool.FindFileByName(file.name)
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidArgumentError(
                f"Failed to load FileDescriptorProto: {file.name}: {error}"
            ) from None
    return pool


def _no_descriptors(source: str) -> InvalidArgumentError:
    shown = source if len(source) <= 200 else source[:200] + "…"
    return InvalidArgumentError(
        "Source does not represent serialized file descriptor set proto. This may be due to a "
        'missing dependency on the file containing REGISTER_DESCRIPTOR_POOL("'
        f'{shown.encode("utf-8", "backslashreplace").decode()}", ...);'
    )


def descriptor_pool(context: OpKernelContext, source: str) -> DescriptorPool:
    """Return the pool that the attribute `descriptor_source` names.

    It is "" or "local://" for messages that are linked in, "bytes://" with a serialized
    FileDescriptorSet, or the path of a file with one.

    Raises InvalidArgumentError if there are no valid descriptors; PermissionDeniedError if the step
    may not read the file.
    """
    if source in _LINKED_IN:
        return _linked_in()
    if source.startswith(_IN_ATTRIBUTE):
        data = source.removeprefix(_IN_ATTRIBUTE).encode("utf-8", "surrogateescape")
        return _pool_of(data, source)
    context.step.files.check_read(source)
    if not os.path.isfile(source):
        raise _no_descriptors(source)
    try:
        return _pool_of(read_whole_file(source), source)
    except NotFoundError:
        raise _no_descriptors(source) from None


def message_descriptor(pool: DescriptorPool, message_type: str) -> Descriptor:
    """Return the descriptor of a message; raise InvalidArgumentError if the pool has none."""
    try:
        return pool.FindMessageTypeByName(message_type)
    except (KeyError, ValueError, UnicodeError):
        raise InvalidArgumentError(f"No descriptor found for message type {message_type}") from None


def field_descriptor(
    pool: DescriptorPool, message: Descriptor, name: str, with_extensions: bool
) -> FieldDescriptor:
    """Return the field `name` of a message, or the extension of that full name.

    Raises InvalidArgumentError if there is none.
    """
    found = message.fields_by_name.get(name)
    if found is None and with_extensions:
        extensions = {each.full_name: each for each in pool.FindAllExtensions(message)}
        found = extensions.get(name)
    if found is None:
        raise InvalidArgumentError(f"Unknown field: {name} in message type {message.full_name}")
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """What decoding and encoding need of a field."""

    number: int
    type: int
    is_repeated: bool
    data_type: DataType
    default: object
