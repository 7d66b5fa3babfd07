"""The features that a model's graph reads from serialized examples, with values that fit them.

TF: tensorflow/core/ops/parsing_ops.cc (ParseExample, ParseExampleV2)
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import protos as pb
from runtime.api import DataType, as_bytes, dtypes, shape_from_proto, tensor_from_proto

MAX_FEATURES = 1000
MAX_VALUES = 4096  # of one feature
Features = dict[str, list[Any]]  # values by the name of a feature


def required_features(graph_def: pb.GraphDef) -> Features:
    """Return values for the dense features, which an example must have unless they have a default.

    They are those of all nodes that parse examples, in functions too. Sparse features may be
    missing in an example. What is not constant in the graph is left out.
    """
    bodies = [graph_def.node, *(function.node_def for function in graph_def.library.function)]
    found = itertools.chain.from_iterable(map(_features, bodies))
    return dict(itertools.islice(found, MAX_FEATURES))


def serialized_example(features: Mapping[str, list[Any]]) -> dict[str, str]:
    """Return a serialized example of these features as JSON writes bytes."""
    example = pb.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        if values and isinstance(values[0], str):
            feature.bytes_list.value.extend(map(as_bytes, values))
        elif values and isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            feature.float_list.value.extend(values)
    return {"b64": base64.b64encode(example.SerializeToString()).decode()}


def _features(nodes: Iterable[pb.NodeDef]) -> Iterator[tuple[str, list[Any]]]:
    by_name: dict[str, pb.NodeDef] | None = None
    nodes = list(nodes)
    for node in nodes:
        if node.op not in ("ParseExample", "ParseExampleV2"):
            continue
        if by_name is None:
            by_name = {each.name: each for each in nodes}
        shapes = node.attr["dense_shapes"].list.shape
        for key, kind, shape in zip(
            _dense_keys(node, by_name), node.attr["Tdense"].list.type, shapes, strict=False
        ):
            data_type, _ = dtypes.from_number(kind)
            sizes = shape_from_proto(shape) or ()
            count = math.prod(max(size, 1) for size in sizes)
            if count <= MAX_VALUES:
                yield key, [_value(data_type)] * count


def _value(data_type: DataType) -> Any:
    if data_type is DataType.STRING:
        return ""
    return 1.0 if data_type.is_floating else 0


def _dense_keys(node: pb.NodeDef, by_name: Mapping[str, pb.NodeDef]) -> list[str]:
    """Return the names of the dense features; an empty list if they are not constant."""
    if node.op == "ParseExampleV2":  # serialized, names, sparse_keys, dense_keys, …
        inputs = node.input[3:4]
    else:  # serialized, names, each sparse key, each dense key, …
        first = 2 + node.attr["Nsparse"].i
        inputs = node.input[first : first + node.attr["Ndense"].i]
    keys: list[str] = []
    for name in inputs:
        constant = by_name.get(name.partition(":")[0])
        if constant is None or constant.op != "Const":
            return []
        values = np.asarray(tensor_from_proto(constant.attr["value"].tensor)).ravel()
        keys += [as_bytes(each).decode("utf-8", "replace") for each in values]
    return keys
