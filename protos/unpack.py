"""Unpack `google.protobuf.Any` messages that carry TensorFlow's type names."""

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError, Message


def unpack_any(packed: Any, message: Message) -> bool:
    """Parse `packed` into `message` when the last part of the type names agree.

    TensorFlow writes `type.googleapis.com/tensorflow.AssetFileDef`; our descriptor is called
    `runstep.AssetFileDef`, so only the last part can be compared. Returns False, and leaves
    `message` untouched, when the names differ or the bytes do not parse.
    """
    if packed.type_url.rpartition("/")[2].rpartition(".")[2] != message.DESCRIPTOR.name:
        return False
    parsed = type(message)()
    try:
        parsed.ParseFromString(packed.value)
    except DecodeError:
        return False
    message.CopyFrom(parsed)
    return True
