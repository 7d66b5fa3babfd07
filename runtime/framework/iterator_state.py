"""Saved iterators as messages: what SerializeIterator gives and a checkpoint holds.

The metadata is JSON in which every tensor is a number, the place in the message's list of tensors.

TF: tensorflow/core/kernels/data/iterator_ops.cc (IteratorVariantSerializer); the contents of the
messages are our own.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.errors import DataLossError, InvalidArgumentError, UnimplementedError
from runtime.framework.allocation import tensor_limit
from runtime.framework.dataset import State
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto

TYPE_NAME = "runstep.IteratorState"


def encode_state(state: State) -> pb.VariantTensorDataProto:
    """The message; UnimplementedError for elements that hold datasets or resources."""
    tensors: list[pb.TensorProto] = []
    structure = _encode(state, tensors)
    return pb.VariantTensorDataProto(
        type_name=TYPE_NAME, metadata=json.dumps(structure).encode(), tensors=tensors
    )


def _encode(value: Any, tensors: list[pb.TensorProto]) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {"dict": {key: _encode(each, tensors) for key, each in value.items()}}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(each, tensors) for each in value]}
    if isinstance(value, np.ndarray) and value.dtype.hasobject and _holds_tensors(value):
        return {"variants": _encode(value.ravel().tolist(), tensors), "shape": list(value.shape)}
    if isinstance(value, np.ndarray | np.generic):
        tensors.append(tensor_to_proto(np.asarray(value)))
        return {"tensor": len(tensors) - 1}
    raise UnimplementedError(f"An iterator with elements of {type(value).__name__} can't be saved")


def _holds_tensors(array: np.ndarray) -> bool:
    return array.size > 0 and not isinstance(array.flat[0], bytes)


def decode_state(message: Any) -> State:
    """The state; InvalidArgumentError when the message is another's, DataLossError if damaged."""
    if not isinstance(message, pb.VariantTensorDataProto) or message.type_name != TYPE_NAME:
        raise InvalidArgumentError("The variant does not hold the state of an iterator")
    try:
        return _decode(json.loads(message.metadata), message.tensors)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataLossError(f"The state of an iterator is damaged: {error}") from None


def _decode(structure: Any, tensors: Any) -> State:
    if not isinstance(structure, dict):
        return structure
    if "dict" in structure:
        return {key: _decode(each, tensors) for key, each in structure["dict"].items()}
    if "list" in structure:
        return [_decode(each, tensors) for each in structure["list"]]
    if "tuple" in structure:
        return tuple(_decode(each, tensors) for each in structure["tuple"])
    if "variants" in structure:
        items = _decode(structure["variants"], tensors)
        array = np.empty(len(items), object)
        array[:] = items
        return array.reshape(structure["shape"])
    return tensor_from_proto(tensors[structure["tensor"]], tensor_limit())
