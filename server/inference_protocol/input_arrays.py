"""The inputs of an inference request as arrays, checked against the signature of a model."""

from __future__ import annotations

import math

import numpy as np

from runtime.api import DataType, tensor_from_proto, tensor_limit
from runtime.errors import InvalidArgumentError, OpError
from server.codec.inference_protocol.datatypes import check_datatype, datatype_name
from server.codec.inference_protocol.infer_request import InferRequest, ReceivedInput, read_raw
from server.codec.session.tensor_reader import read_shape
from server.models.signature import Signature, TensorSpec


def input_arrays(request: InferRequest, signature: Signature) -> dict[str, np.ndarray]:
    """Return the inputs of a request by alias.

    Raises InvalidArgumentError if they do not fit the signature or the outputs are unknown or named
    twice, ResourceExhaustedError if a shape requires too much memory, and UnimplementedError if the
    protocol has no datatype for an input.
    """
    _check_outputs(request, signature)
    if request.raw_body is not None:
        return _only_input(request.raw_body, signature)
    names = [each.name for each in request.inputs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"Input {twice!r:.80} is given twice")
    missing = signature.defaults.keys() - set(names)
    signature.check_inputs({*names, *missing})
    arrays = {each.name: _read_input(each, signature.inputs[each.name]) for each in request.inputs}
    for name in missing:
        arrays[name] = tensor_from_proto(signature.defaults[name], tensor_limit())
    return arrays


def _read_input(received: ReceivedInput, spec: TensorSpec) -> np.ndarray:
    try:
        check_datatype(received.datatype, spec.data_type)
        shape = read_shape(received.shape, spec.data_type)
        return received.read(spec.data_type, shape)
    except OpError as error:
        raise type(error)(f"Input {received.name}: {error.message}") from None


def _check_outputs(request: InferRequest, signature: Signature) -> None:
    names = [each.name for each in request.outputs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"Output {twice!r:.80} is requested twice")
    for name in names:
        if name not in signature.outputs:
            known = ", ".join(signature.outputs)
            raise InvalidArgumentError(f"Unknown output {name!r:.80}; known are {known}")


def _only_input(content: bytes, signature: Signature) -> dict[str, np.ndarray]:
    """Return the only input of a model from its bytes alone, as a batch of one.

    A string is the whole body, without a length before it.
    """
    if len(signature.inputs) != 1:
        raise InvalidArgumentError(
            f"A body of raw bytes requires a model with one input; it has {len(signature.inputs)}"
        )
    name, spec = next(iter(signature.inputs.items()))
    if spec.data_type is DataType.STRING:
        array = np.empty(1, object)
        array[0] = content
        if spec.shape is None or all(size in (-1, 1) for size in spec.shape):
            return {name: array.reshape([1] * (1 if spec.shape is None else len(spec.shape)))}
        raise InvalidArgumentError(f"Input {name} of shape {list(spec.shape)} has many elements")
    check_datatype(datatype_name(spec.data_type), spec.data_type)
    return {name: read_raw(content, spec.data_type, _shape_of_raw(name, content, spec))}


def _shape_of_raw(name: str, content: bytes, spec: TensorSpec) -> tuple[int, ...]:
    count = len(content) // spec.data_type.numpy.itemsize
    if spec.shape is None:
        return (count,)
    shape = list(spec.shape)
    if shape.count(-1) > 1 and shape[0] == -1:
        shape[0] = 1
    if shape.count(-1) > 1:
        raise InvalidArgumentError(
            f"Input {name} of shape {list(spec.shape)} has too many variable dimensions "
            "for a body of raw bytes"
        )
    known = math.prod(size for size in shape if size != -1)
    variable = count // known if known else 0
    return read_shape([variable if size == -1 else size for size in shape], spec.data_type)
