"""Convert a feed_dict: its keys to tensors, its values to arrays of the tensors' types.

TF: tensorflow/python/client/session.py (BaseSession._run)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from runtime.client.framework.argument_types import ElementLike, FeedDict, Structure
from runtime.client.framework.conversion import TensorConvertible
from runtime.client.framework.graph import Graph
from runtime.client.framework.operation import Tensor
from runtime.client.ops.sparse_values import SparseTensor
from runtime.framework.dtypes import DataType
from runtime.framework.partial_shapes import is_compatible
from runtime.framework.tensor_value import TensorValue


def read_feeds(graph: Graph, feed_dict: FeedDict | None) -> dict[Tensor, TensorValue]:
    """Convert a feed_dict to {tensor: array}.

    A key is a tensor, the name of a tensor, or a nested tuple of tensors and names. Raises
    TypeError and ValueError with TensorFlow's messages.
    """
    if feed_dict is None:
        return {}
    if not isinstance(feed_dict, Mapping):
        raise TypeError(
            "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type object, "
            f"instead of '{type(feed_dict).__name__}'."
        )
    feeds: dict[Tensor, TensorValue] = {}
    for key, value in feed_dict.items():
        if type(key) is Tensor and key.graph is graph:
            feeds[key] = feed_value(graph, key, value)
            continue
        for single_key, single_value in _flatten_item(key, value):
            for part, part_value in _parts(single_key, single_value):
                tensor = feed_tensor(graph, part)
                feeds[tensor] = feed_value(graph, tensor, part_value)
    return feeds


def feed_tensor(graph: Graph, key: ElementLike) -> Tensor:
    """Return the tensor that a key of a feed_dict refers to.

    Raises TypeError if `key` does not refer to a tensor of `graph`.
    """
    try:
        tensor = graph.as_graph_element(key, allow_operation=False)
    except (KeyError, TypeError, ValueError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
    assert isinstance(tensor, Tensor)
    return tensor


def feed_value(graph: Graph, tensor: Tensor, value: object) -> TensorValue:
    """Convert `value` to an array of the type of `tensor`, and check that it may be fed.

    Raises TypeError if `value` is a tensor, ValueError if the static shape of `tensor` does not
    allow the shape of `value` or if `tensor` must not be fed.
    """
    if isinstance(value, Tensor | TensorConvertible):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the "
            f"tensor object was {value} which was passed to the argument `feed_dict` with key "
            f"{tensor}."
        )
    converted: Any = convert_feed(tensor, value)  # `np.shape` accepts any object
    sizes, shape = tensor.shape.sizes, np.shape(converted)
    if sizes != shape and not is_compatible(sizes, shape):
        raise ValueError(
            f"Cannot feed value of shape {np.shape(converted)} for Tensor {tensor.name}, which "
            f"has shape {tensor.shape}"
        )
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor.name} may not be fed.")
    return converted


def convert_feed(tensor: Tensor, value: object) -> TensorValue:
    """Convert `value` to an array of the type of `tensor`, by numpy's rules.

    Raises TypeError if `value` is a Python int that does not fit the type, and what numpy raises.
    """
    if tensor.dtype in (DataType.RESOURCE, DataType.VARIANT) and not isinstance(value, list):
        return value
    dtype = tensor.dtype.numpy
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    if isinstance(value, int) and dtype.kind in "iu" and not _fits(value, dtype):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            f"type {dtype.type}. Try explicitly setting the type of the feed tensor to a larger "
            "type (e.g. int64)."
        )
    if tensor.dtype is DataType.STRING and isinstance(value, bytes | str):
        return np.array(value, object)
    return np.asarray(value, dtype=dtype)


def runtime_value(value: object) -> TensorValue:
    """Encode the str elements of an array as UTF-8 bytes, which the runtime requires."""
    if not isinstance(value, np.ndarray) or value.dtype != object:
        return value
    if not any(isinstance(item, str) for item in value.ravel()):
        return value
    encoded = np.empty(value.size, object)
    encoded[:] = [item.encode() if isinstance(item, str) else item for item in value.ravel()]
    return encoded.reshape(value.shape)


def _fits(value: int, dtype: np.dtype) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)


def _parts(key: Structure, value: Structure) -> Iterable[tuple[Structure, Structure]]:
    """Return the (key, value) pairs to feed: one pair, or three for a sparse tensor."""
    if not isinstance(key, SparseTensor):
        return [(key, value)]
    return zip(key.parts, value, strict=True)


def _flatten_item(key: Structure, value: Structure) -> list[tuple[Structure, Structure]]:
    """Return the (key, value) pairs of an item; nested tuples are paired in order."""
    if not isinstance(key, tuple):
        return [(key, value)]
    keys, values = list(_flatten(key)), list(_flatten(value))
    if len(keys) != len(values):
        raise ValueError(
            f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
            f"{len(values)} elements. Key: {keys}, value: {values}."
        )
    return list(zip(keys, values, strict=True))


def _flatten(structure: Structure) -> Iterable[Structure]:
    if isinstance(structure, list | tuple):
        for each in structure:
            yield from _flatten(each)
    else:
        yield structure
