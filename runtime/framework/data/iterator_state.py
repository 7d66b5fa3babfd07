"""Encoding of saved iterators as messages, for SerializeIterator and checkpoints.

The message's metadata is the state as JSON, in which each tensor is replaced by its index in the
message's list of tensors.

TF: tensorflow/core/kernels/data/iterator_ops.cc (IteratorVariantSerializer); the format of the
metadata is not TensorFlow's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import DataLossError, InvalidArgumentError, UnimplementedError
from runtime.framework.allocation import tensor_limit
from runtime.framework.data.dataset import Dataset, State
from runtime.framework.data.optional import Optional
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto

TYPE_NAME = "runstep.IteratorState"
# Parsed JSON: numbers, text, and dicts and lists of these. A damaged message may hold any JSON.
Structure = Any


def encode_state(
    state: State, graph_of: Callable[[Dataset], pb.GraphDef]
) -> pb.VariantTensorDataProto:
    """Encode the state of an iterator as a message.

    If an element contains a dataset, the dataset is encoded as the graph that `graph_of` returns
    for it. Raises UnimplementedError if an element contains a resource.
    """
    tensors: list[pb.TensorProto] = []
    structure = _encode(state, tensors, graph_of)
    return pb.VariantTensorDataProto(
        type_name=TYPE_NAME, metadata=json.dumps(structure).encode(), tensors=tensors
    )


def _encode(
    value: object, tensors: list[pb.TensorProto], graph_of: Callable[[Dataset], pb.GraphDef]
) -> Structure:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {"dict": {key: _encode(each, tensors, graph_of) for key, each in value.items()}}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(each, tensors, graph_of) for each in value]}
    if isinstance(value, np.ndarray) and value.dtype.hasobject and _holds_tensors(value):
        return {
            "variants": _encode(value.ravel().tolist(), tensors, graph_of),
            "shape": list(value.shape),
        }
    if isinstance(value, Dataset):
        tensors.append(_string(graph_of(value).SerializeToString(deterministic=True)))
        return {"dataset": len(tensors) - 1}
    if isinstance(value, Optional):
        return {"optional": _encode(value.components, tensors, graph_of)}
    if isinstance(value, np.ndarray | np.generic):
        tensors.append(tensor_to_proto(np.asarray(value)))
        return {"tensor": len(tensors) - 1}
    raise UnimplementedError(f"An iterator with elements of {type(value).__name__} can't be saved")


def _string(value: bytes) -> pb.TensorProto:
    return tensor_to_proto(np.array(value, object))


def _holds_tensors(array: np.ndarray) -> bool:
    return array.size > 0 and not isinstance(array.item(0), bytes)


def decode_state(message: object, dataset_of: Callable[[pb.GraphDef], Dataset]) -> State:
    """Decode the state of an iterator from a message.

    If an element contains a dataset, `dataset_of` is called to create the dataset from its graph.
    Raises InvalidArgumentError if the message does not hold an iterator's state, DataLossError if
    the message is damaged.
    """
    if not isinstance(message, pb.VariantTensorDataProto) or message.type_name != TYPE_NAME:
        raise InvalidArgumentError("The variant does not hold the state of an iterator")
    try:
        return _Decoder(message.tensors, dataset_of).decode(json.loads(message.metadata))
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        DecodeError,
    ) as error:
        raise DataLossError(f"The state of an iterator is damaged: {error}") from None


class _Decoder:
    """Decodes values from the JSON structure of a message and its tensors."""

    def __init__(
        self, tensors: Sequence[pb.TensorProto], dataset_of: Callable[[pb.GraphDef], Dataset]
    ) -> None:
        self._tensors = tensors
        self._dataset_of = dataset_of

    def decode(self, structure: Structure) -> State:
        if not isinstance(structure, dict):
            return structure
        for kind, decode in self._KINDS.items():
            if kind in structure:
                return decode(self, structure[kind], structure)
        raise ValueError(f"no value is written as {sorted(structure)}")

    def _dict(self, values: Structure, structure: Structure) -> State:
        return {key: self.decode(each) for key, each in values.items()}

    def _list(self, values: Structure, structure: Structure) -> State:
        return [self.decode(each) for each in values]

    def _tuple(self, values: Structure, structure: Structure) -> State:
        return tuple(self.decode(each) for each in values)

    def _variants(self, values: Structure, structure: Structure) -> State:
        items = self.decode(values)
        array = np.empty(len(items), object)
        array[:] = items
        return array.reshape(structure["shape"])

    def _tensor(self, index: int, structure: Structure) -> State:
        return tensor_from_proto(self._tensors[index], tensor_limit())

    def _dataset(self, index: int, structure: Structure) -> State:
        graph = tensor_from_proto(self._tensors[index], tensor_limit()).item()
        return self._dataset_of(pb.GraphDef.FromString(graph))

    def _optional(self, components: Structure, structure: Structure) -> State:
        return Optional(self.decode(components))

    _KINDS: ClassVar[dict[str, Callable[[_Decoder, Structure, Structure], State]]] = {
        "dict": _dict,
        "list": _list,
        "tuple": _tuple,
        "variants": _variants,
        "tensor": _tensor,
        "dataset": _dataset,
        "optional": _optional,
    }
