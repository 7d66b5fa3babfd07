"""Inference requests and responses over gRPC: ModelInferRequest and ModelInferResponse.

Elements are in `raw_input_contents`, one item for each input, or in the typed `contents` of the
inputs. The response has the form of the request, unless its parameter `binary_data_output` says
otherwise; FP16 and BF16 have only the raw form.

Source: Open Inference Protocol (gRPC)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

import protos as pb
from runtime.api import DataType, dtypes
from runtime.errors import InvalidArgumentError
from server.codec.inference_protocol.datatypes import DATA_TYPES
from server.codec.inference_protocol.infer_request import (
    InferReply,
    InferRequest,
    Parameters,
    ReadElements,
    ReceivedInput,
    flag,
    raw_elements,
    refuse_shared_memory,
    requested_output,
)
from server.codec.session.tensor_writer import to_bytes

# The field of InferTensorContents that has the elements of a datatype.
_FIELDS: dict[DataType, str] = {
    DataType.BOOL: "bool_contents",
    DataType.INT8: "int_contents",
    DataType.INT16: "int_contents",
    DataType.INT32: "int_contents",
    DataType.INT64: "int64_contents",
    DataType.UINT8: "uint_contents",
    DataType.UINT16: "uint_contents",
    DataType.UINT32: "uint_contents",
    DataType.UINT64: "uint64_contents",
    DataType.FLOAT: "fp32_contents",
    DataType.DOUBLE: "fp64_contents",
    DataType.STRING: "bytes_contents",
}


def read_infer_message(message: pb.inference.ModelInferRequest) -> InferRequest:
    """Read a request; elements are read later, with the types of the model.

    Raises InvalidArgumentError if the raw contents do not belong to the inputs, and
    UnimplementedError if it uses shared memory.
    """
    parameters = _parameters(message.parameters)
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise InvalidArgumentError(
            f"Expected raw_input_contents for each of {len(message.inputs)} inputs, got {len(raw)}"
        )
    inputs = []
    for index, received in enumerate(message.inputs):
        refuse_shared_memory(received.name, received.parameters)
        read: ReadElements
        if not raw:
            read = functools.partial(_read_contents, received.contents)
        elif received.HasField("contents"):
            raise InvalidArgumentError(
                f"Input {received.name}: expected either contents or raw_input_contents, got both"
            )
        else:
            read = raw_elements(raw[index])
        inputs.append(ReceivedInput(received.name, received.datatype, list(received.shape), read))
    is_binary = flag(parameters, "binary_data_output")
    return InferRequest(
        message.id,
        parameters,
        inputs,
        [requested_output(each.name, _parameters(each.parameters)) for each in message.outputs],
        (bool(raw) or not inputs) if is_binary is None else is_binary,
    )


def _parameters(given: Mapping[str, pb.inference.InferParameter]) -> Parameters:
    values: dict[str, Any] = {}
    for name, parameter in given.items():
        kind = parameter.WhichOneof("parameter_choice")
        if kind is not None:
            values[name] = getattr(parameter, kind)
    return values


def _read_contents(
    contents: pb.inference.InferTensorContents, data_type: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the elements of the typed contents of an input."""
    field = _FIELDS.get(data_type)
    if field is None:
        raise InvalidArgumentError(
            f"Elements of {data_type.name_on_wire} must be in raw_input_contents"
        )
    others = [each.name for each, _ in contents.ListFields() if each.name != field]
    if others:
        raise InvalidArgumentError(f"Expected elements in contents.{field}, got {others[0]}")
    items = getattr(contents, field)
    if len(items) != math.prod(shape):
        raise InvalidArgumentError(
            f"Expected {math.prod(shape)} elements for shape {list(shape)}, got {len(items)}"
        )
    if data_type is DataType.STRING:
        array = np.empty(len(items), object)
        array[:] = list(items)
        return array.reshape(shape)
    if data_type in dtypes.INTEGER:
        wide = np.array(items, np.uint64 if field == "uint64_contents" else np.int64)
        _check_range(wide, data_type)
        return wide.astype(data_type.numpy).reshape(shape)
    return np.array(items, data_type.numpy).reshape(shape)


def _check_range(array: np.ndarray, data_type: DataType) -> None:
    info = ml_dtypes.iinfo(data_type.numpy)  # type: ignore[no-untyped-call]
    low, high = int(info.min), int(info.max)
    wrong = [int(edge) for edge in (array.min(initial=low), array.max(initial=low))]
    wrong = [item for item in wrong if not low <= item <= high]
    if wrong:
        raise InvalidArgumentError(
            f"{wrong[0]} is out of range for {data_type.name_on_wire}: {low} to {high}"
        )


def infer_response(reply: InferReply) -> pb.inference.ModelInferResponse:
    """Return the message of a response."""
    message = pb.inference.ModelInferResponse(
        model_name=reply.model_name, model_version=reply.model_version, id=reply.id or ""
    )
    data_types = [DATA_TYPES[output.datatype] for output in reply.outputs]
    is_raw = any(
        output.is_binary or data_type not in _FIELDS
        for output, data_type in zip(reply.outputs, data_types, strict=True)
    )
    for output, data_type in zip(reply.outputs, data_types, strict=True):
        array = output.array
        tensor = message.outputs.add(
            name=output.name, datatype=output.datatype, shape=list(array.shape)
        )
        if is_raw:
            message.raw_output_contents.append(to_bytes(array, data_type))
        else:
            items = getattr(tensor.contents, _FIELDS[data_type])
            flat = array.reshape(-1).tolist()
            if data_type is DataType.STRING:
                flat = [each.encode() if isinstance(each, str) else each for each in flat]
            items.extend(flat)
    return message


def write_infer_response(reply: InferReply) -> bytes:
    """Return the serialized message of a response."""
    return infer_response(reply).SerializeToString()
