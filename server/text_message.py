"""Read messages in protobuf's text format from files, as TensorFlow Serving's configurations are.

TF: tensorflow_serving/util/proto_util.h (ParseProtoTextFile)
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from runtime.errors import InvalidArgumentError, NotFoundError

M = TypeVar("M", bound=Message)


def read_text_message(path: str | Path, message: M) -> M:
    """Read a file into `message`, and return it.

    Raises NotFoundError if the file cannot be read, and InvalidArgumentError if it does not parse.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"Invalid protobuf file: '{path}' is not text") from None
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"Invalid protobuf file: '{path}': {error}") from None
    return message
