"""Inference requests and responses over HTTP: JSON, and the binary tensor extension.

A body is a JSON object, after which the binary elements of tensors may follow in the order of the
tensors; then the header Inference-Header-Content-Length has the length of the JSON. If that is 0,
the body is the elements of the model's only input.

JSON data is flat or nested; responses have it flat. Strings that are not UTF-8 are
`{"b64": "…"}`, and numbers that are not finite are as the setting `rest.non_finite` says.

Source: Open Inference Protocol (HTTP/REST); Triton's binary tensor data extension
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from runtime.api import DataType
from runtime.errors import InvalidArgumentError
from server.codec.inference_protocol.datatypes import DATA_TYPES
from server.codec.inference_protocol.infer_request import (
    InferReply,
    InferRequest,
    OutputTensor,
    Parameters,
    ReadElements,
    ReceivedInput,
    RequestedOutput,
    flag,
    raw_elements,
    refuse_shared_memory,
    requested_output,
    text,
    whole_number,
)
from server.codec.json_body import (
    parse_json,
    parse_sliced_members,
    to_json,
    type_name,
)
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.large.number_array import NumberArray
from server.codec.serving.tensor_reader import TensorReader
from server.codec.session.tensor_reader import read_tensor
from server.codec.session.tensor_writer import to_bytes, write_data

HEADER_LENGTH = b"inference-header-content-length"
_READER = TensorReader(exact_range=True)
_SHORT_LIST = 1024  # elements, of one level
_NATIVE_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_MAX_TENSORS = 4096  # of one request; the largest models have some hundreds


def read_infer_request(body: bytes, header_length: bytes | None) -> InferRequest:
    """Read the body of a request; `header_length` is the value of HEADER_LENGTH.

    Raises InvalidArgumentError if the body is no such request, and UnimplementedError if it uses
    shared memory. Elements are read later, with the types of the model.
    """
    if header_length is None:
        return _request(body, memoryview(b""))
    if not (header_length.isdigit() and int(header_length) <= len(body)):
        given = header_length.decode("latin-1")
        raise InvalidArgumentError(
            f"Inference-Header-Content-Length must be at most the body's length {len(body)}, "
            f"got {given!r:.80}"
        )
    length = int(header_length)
    if length == 0:
        return InferRequest(is_binary=True, raw_body=body)
    return _request(body[:length], memoryview(body)[length:])


def _parse(content: bytes) -> dict[str, Any]:
    value = None
    if len(content) >= LARGE_BODY_BYTES:
        value = parse_sliced_members(content, "inputs", "data")
    if value is None:
        value = parse_json(content)
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"The body must be a JSON object, got {type_name(value)}")
    return value


def _request(content: bytes, binary: memoryview) -> InferRequest:
    body = _parse(content)
    parameters = _parameters(body, "The request")
    inputs = []
    for index, item in enumerate(_objects(body, "inputs")):
        received, binary = _input(item, index, binary)
        if type(item.get("data")) is NumberArray:
            read = functools.partial(_read_numbers, item["data"], content, index)
            received = received._replace(read=read)
        inputs.append(received)
    if len(binary):
        raise InvalidArgumentError(
            f"The body has {len(binary)} bytes after those of its binary tensors"
        )
    outputs = [_output(item, index) for index, item in enumerate(_objects(body, "outputs"))]
    return InferRequest(
        text(body, "id"),
        parameters,
        inputs,
        outputs,
        bool(flag(parameters, "binary_data_output")),
    )


def _objects(body: Mapping[str, Any], key: str) -> Sequence[Any]:
    items = body.get(key, [])
    if not isinstance(items, list):
        raise InvalidArgumentError(f"{key} must be a list, got {type_name(items)}")
    if len(items) > _MAX_TENSORS:
        raise InvalidArgumentError(f"{key} has over {_MAX_TENSORS} tensors")
    return items


def _named(item: Any, where: str) -> str:
    if not isinstance(item, dict):
        raise InvalidArgumentError(f"{where} must be an object, got {type_name(item)}")
    name = item.get("name")
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{where} must have a name, a string, got {type_name(name)}")
    return name


def _parameters(item: Mapping[str, Any], where: str) -> Parameters:
    parameters = item.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise InvalidArgumentError(
            f"{where}: parameters must be an object, got {type_name(parameters)}"
        )
    return parameters


def _input(item: Any, index: int, binary: memoryview) -> tuple[ReceivedInput, memoryview]:
    """Return an input, and the binary data that remains for those after it."""
    name = _named(item, f"inputs[{index}]")
    parameters = _parameters(item, f"Input {name}")
    refuse_shared_memory(name, parameters)
    datatype = item.get("datatype")
    if not isinstance(datatype, str):
        raise InvalidArgumentError(
            f"Input {name}: datatype must be a string, got {type_name(datatype)}"
        )
    size = whole_number(parameters, "binary_data_size")
    if (size is None) == ("data" not in item):
        both = "neither" if size is None else "both"
        raise InvalidArgumentError(
            f"Input {name}: expected either data or the parameter binary_data_size, got {both}"
        )
    read: ReadElements
    if size is None:
        read = functools.partial(_read_data, item["data"])
    else:
        if size > len(binary):
            raise InvalidArgumentError(
                f"Input {name}: binary_data_size is {size}, but the body has {len(binary)} bytes"
            )
        read, binary = raw_elements(binary[:size]), binary[size:]
    return ReceivedInput(name, datatype, item.get("shape"), read), binary


def _read_data(data: Any, data_type: DataType, shape: tuple[int, ...]) -> np.ndarray:
    if type(data) is list and len(data) <= _SHORT_LIST:
        array = _READER.fast_array(data, data_type)
        if array is not None and (array.shape == shape or array.shape == (math.prod(shape),)):
            return array.reshape(shape)
    try:
        return read_tensor({"shape": list(shape), "data": data}, "", data_type)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(error.message.removeprefix("Tensor : ")) from None


def _read_numbers(
    numbers: NumberArray, content: bytes, index: int, data_type: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Read the data of the input `index` of a body that was read in slices.

    If it is faulty, the whole body is read, so that the error names the faulty element.
    """
    try:
        return _read_data(numbers, data_type, shape)
    except InvalidArgumentError:
        return _read_data(parse_json(content)["inputs"][index]["data"], data_type, shape)


def _output(item: Any, index: int) -> RequestedOutput:
    name = _named(item, f"outputs[{index}]")
    return requested_output(name, _parameters(item, f"Output {name}"))


# --- responses ----------------------------------------------------------------------------------


def write_infer_reply(non_finite: str, reply: InferReply) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON if binary data follows that.

    Raises InvalidArgumentError if an output has a number that is not finite and `non_finite` is
    error.
    """
    body: dict[str, Any] = {"model_name": reply.model_name, "model_version": reply.model_version}
    if reply.id is not None:
        body["id"] = reply.id
    binary: list[bytes] = []
    body["outputs"] = [_written(output, binary, non_finite) for output in reply.outputs]
    header = to_json(body)
    if not any(output.is_binary for output in reply.outputs):
        return header, None
    return b"".join([header, *binary]), len(header)


def _written(output: OutputTensor, binary: list[bytes], non_finite: str) -> dict[str, Any]:
    array, data_type = output.array, DATA_TYPES[output.datatype]
    written: dict[str, Any] = {
        "name": output.name,
        "datatype": output.datatype,
        "shape": list(array.shape),
    }
    if output.is_binary:
        content = to_bytes(array, data_type)
        binary.append(content)
        written["parameters"] = {"binary_data_size": len(content)}
    else:
        written["data"] = _flat_data(array.reshape(-1), data_type, non_finite)
    return written


def _flat_data(array: np.ndarray, data_type: DataType, non_finite: str) -> Any:
    if array.size <= _SHORT_LIST and array.dtype in _NATIVE_FLOATS:
        # To look for non-finite numbers in the array takes numpy longer than to write it.
        text = to_json(np.ascontiguousarray(array))
        if b"null" not in text:
            return orjson.Fragment(text)
    return write_data(array, data_type, non_finite)
