"""The smallest graph of each op that has an emitter, for given element types.

Most ops take tensors of their types only, and get a matrix of small numbers for each. `OPERANDS`
has the inputs of the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from runtime.clusters.op_emitter import FLOATS, OpEmitter
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph

Types = Mapping[str, DataType]  # attribute → element type


@dataclasses.dataclass(frozen=True)
class Example:
    """A graph, its feeds and its fetches."""

    graph: Graph
    feeds: Mapping[str, np.ndarray]
    fetches: tuple[str, ...]


def matrix(dtype: DataType) -> np.ndarray:
    """Return a matrix [2, 3] of small numbers."""
    return np.array([[1, 0, 2], [3, 1, 1]]).astype(dtype.numpy)


def _image(dtype: DataType) -> np.ndarray:
    return np.arange(64).reshape(1, 4, 4, 4).astype(dtype.numpy)


def _reduced(dtype: DataType) -> tuple[Any, ...]:
    """Return the inputs of a reduction that is computed of integers only if they are sizes."""
    if dtype in FLOATS:
        return dtype, AXES
    return np.array([2, 3], dtype.numpy), _integers(0)


def _integers(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


AXIS = np.array(1, np.int32)
AXES = _integers(1)
# op → its inputs, of which arrays become constants and lists the feeds of a list argument. A type
# stands for a fed matrix of it, a tuple of a type and an array for that array, fed.
OPERANDS: dict[str, Callable[[Types], tuple[Any, ...]]] = {
    "All": lambda t: (DataType.BOOL, AXES),
    "Any": lambda t: (DataType.BOOL, AXES),
    "ArgMax": lambda t: (t["T"], AXIS),
    "ArgMin": lambda t: (t["T"], AXIS),
    "BatchToSpaceND": lambda t: (
        (t["T"], np.ones((4, 2, 2, 1), t["T"].numpy)),
        _integers(2, 2),
        np.zeros((2, 2), np.int32),
    ),
    "BiasAdd": lambda t: (t["T"], (t["T"], matrix(t["T"])[0])),
    "BiasAddV1": lambda t: (t["T"], (t["T"], matrix(t["T"])[0])),
    "BroadcastTo": lambda t: (t["T"], _integers(2, 2, 3)),
    "ClipByValue": lambda t: (t["T"], *(np.array(each, t["T"].numpy) for each in (1, 2))),
    "Concat": lambda t: (AXIS, [t["T"], t["T"]]),
    "ConcatV2": lambda t: ([t["T"], t["T"]], AXIS),
    "Cumsum": lambda t: (t["T"], AXIS),
    "DepthToSpace": lambda t: ((t["T"], _image(t["T"])),),
    "ExpandDims": lambda t: (t["T"], AXIS),
    "Fill": lambda t: (_integers(40, 40), (t["T"], np.array(1, t["T"].numpy))),
    "FloorDiv": lambda t: (np.array(7, t["T"].numpy), np.array(-2, t["T"].numpy)),
    "Gather": lambda t: (t["Tparams"], (t["Tindices"], np.array([1, 0], t["Tindices"].numpy))),
    "GatherNd": lambda t: (
        t["Tparams"],
        (t["Tindices"], np.array([[1, 0], [0, 2]], t["Tindices"].numpy)),
    ),
    "GatherV2": lambda t: (
        t["Tparams"],
        (t["Tindices"], np.array([1, 0], t["Tindices"].numpy)),
        AXIS,
    ),
    "IdentityN": lambda t: ([DataType.FLOAT, DataType.INT32],),
    "LogicalAnd": lambda t: (DataType.BOOL, DataType.BOOL),
    "LogicalNot": lambda t: (DataType.BOOL,),
    "LogicalOr": lambda t: (DataType.BOOL, DataType.BOOL),
    "MatrixBandPart": lambda t: (t["T"], np.array(0), np.array(1)),
    "Max": lambda t: (t["T"], AXES),
    "Mean": lambda t: (t["T"], AXES),
    "Min": lambda t: (t["T"], AXES),
    "MirrorPad": lambda t: (t["T"], _integers([0, 0], [1, 1])),
    "OneHot": lambda t: (
        (t["TI"], np.array([1, 2], t["TI"].numpy)),
        np.array(3, np.int32),
        *(np.array(each, t["T"].numpy) for each in (1, 0)),
    ),
    "Pad": lambda t: (t["T"], _integers([0, 0], [1, 1])),
    "PadV2": lambda t: (t["T"], _integers([0, 0], [1, 1]), np.array(1, t["T"].numpy)),
    "Prod": lambda t: _reduced(t["T"]),
    "Range": lambda t: tuple(np.array(each, t["Tidx"].numpy) for each in (1, 7, 2)),
    "Reshape": lambda t: (t["T"], _integers(-1, 2)),
    "ReverseV2": lambda t: (t["T"], AXES),
    "Select": lambda t: (DataType.BOOL, t["T"], t["T"]),
    "SelectV2": lambda t: (DataType.BOOL, t["T"], t["T"]),
    "Slice": lambda t: (t["T"], _integers(0, 1), _integers(-1, 2)),
    "SpaceToBatchND": lambda t: (
        (t["T"], _image(t["T"])),
        _integers(2, 2),
        _integers([0, 0], [1, 1]),
    ),
    "SpaceToDepth": lambda t: ((t["T"], _image(t["T"])),),
    "Split": lambda t: (AXIS, t["T"]),
    "SplitV": lambda t: (t["T"], _integers(1, 2), AXIS),
    "Squeeze": lambda t: ((t["T"], matrix(t["T"])[:, None]),),
    "StridedSlice": lambda t: (t["T"], _integers(0, 1), _integers(2, 3), _integers(1, 1)),
    "Sum": lambda t: _reduced(t["T"]),
    "Tile": lambda t: (t["T"], _integers(1, 2)),
    "TopKV2": lambda t: (t["T"], np.array(2, np.int32)),
    "Transpose": lambda t: (t["T"], _integers(1, 0)),
}
# op → attributes that no input gives
ATTRS: dict[str, dict[str, Any]] = {
    "DepthToSpace": {"block_size": 2},
    "EnsureShape": {"shape": (-1, 3)},
    "LeakyRelu": {"alpha": 0.25},
    "MirrorPad": {"mode": "REFLECT"},
    "Pack": {"axis": 1},
    "PlaceholderWithDefault": {"shape": (-1, 3)},
    "SpaceToDepth": {"block_size": 2},
    "Split": {"num_split": 3},
    "SplitV": {"num_split": 2},
    "Squeeze": {"squeeze_dims": (1,)},
    "TopK": {"k": 2},
    "Unpack": {"num": 3, "axis": 1},
}


def example(row: OpEmitter, types: Types) -> Example:
    """Return a graph with one node of the row's op."""
    graph = Graph()
    feeds: dict[str, np.ndarray] = {}

    def operand(given: Any) -> Any:
        if isinstance(given, list):
            return [operand(each) for each in given]
        if isinstance(given, np.ndarray):
            return given
        dtype, array = given if isinstance(given, tuple) else (given, matrix(given))
        output = graph.placeholder(dtype, f"input_{len(feeds)}")
        feeds[output[0]] = array
        return output

    if row.op in OPERANDS:
        inputs = OPERANDS[row.op](types)
    else:
        arguments = op_def_registry.look_up(row.op).input_arg
        inputs = tuple(
            [types[each.type_attr]] * 2 if each.number_attr else types[each.type_attr]
            for each in arguments
        )
    attrs = {**types, **ATTRS.get(row.op, {})}
    outputs = graph.add(row.op, *map(operand, inputs), name="result", **attrs)
    return Example(graph, feeds, tuple(output for output, _ in outputs))
