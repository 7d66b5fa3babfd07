"""MapDefun, which calls a function for each slice of its arguments, and FakeParam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case
from tests.node_builder import build_node_def

F32, I64, STRING = DataType.FLOAT, DataType.INT64, DataType.STRING
_SIX = np.arange(6, dtype=np.float32).reshape(3, 2)


def _function(g: Graph, op: str, types: Sequence[DataType], output: str, **attrs: Any) -> Any:
    """Add a function whose body is one op on all its arguments."""
    arguments = [(f"x{index}", kind) for index, kind in enumerate(types)]
    node = build_node_def(op, "body", arguments, attrs)
    definition = pb.FunctionDef(node_def=[node], ret={"y": f"body:{output}:0"})
    definition.signature.name = "mapped"
    for name, kind in arguments:
        definition.signature.input_arg.add(name=name, type=int(kind))
    definition.signature.output_arg.add(name="y", type=int(attrs.get("T", types[0])))
    g.graph_def.library.function.append(definition)
    return NameAttrList("mapped")


def _case(
    name: str,
    op: str,
    output: str,
    arguments: Sequence[np.ndarray],
    captured: Sequence[np.ndarray] = (),
    shape: Any = None,
    kind: DataType | None = None,
    message: bool = True,
    **attrs: Any,
) -> Case:
    g = Graph()
    feeds: dict[str, np.ndarray] = {}

    def feed(value: np.ndarray) -> Any:
        fed = DataType.STRING if value.dtype == object else None
        found = g.placeholder(fed or _type(value), f"input_{len(feeds)}")
        feeds[found[0]] = value
        return found

    given = [feed(each) for each in arguments]
    closed = [feed(each) for each in captured]
    types = [kind for _, kind in (*given, *closed)]
    function = _function(g, op, types, output, **attrs)
    g.add(
        "MapDefun", given, closed, name="result", f=function,
        output_types=(kind or types[0],), output_shapes=(shape,),
    )  # fmt: skip
    return Case(name, g.graph_def, (Step(feeds, ("result:0",)),), message=message)


def _type(value: np.ndarray) -> DataType:
    return {"float32": F32, "int64": I64}[value.dtype.name]


def _words(*values: bytes) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


CASES = (
    _case("negated", "Neg", "y", [_SIX]),
    _case("with_shape", "Neg", "y", [_SIX], shape=(2,)),
    _case("with_part_of_a_shape", "Neg", "y", [_SIX], shape=(-1,)),
    _case("captured", "AddV2", "z", [_SIX], [np.float32(10)]),
    _case("two_arguments", "AddV2", "z", [_SIX, _SIX[:, :1]]),
    _case("scalars", "Neg", "y", [np.arange(4)], shape=()),
    _case("words", "StringUpper", "output", [_words(b"a", b"", b"cd")]),
    _case("none_with_shape", "Neg", "y", [_SIX[:0]], shape=(2,)),
    _case("none_of_unknown_shape", "Neg", "y", [_SIX[:0]], message=False),
    _case("ranges", "Range", "output", [np.arange(3)], [np.int64(5), np.int64(1)], message=False),
    _case("same_ranges", "Range", "output", [np.zeros(2, np.int64)], [np.int64(5), np.int64(2)]),
    _case("rank_0", "Neg", "y", [np.float32(1)]),
    _case("first_dimensions", "AddV2", "z", [_SIX, _SIX[:2]]),
    _case("another_shape", "Neg", "y", [_SIX], shape=(3,), message=False),
    _case("another_type", "Neg", "y", [_SIX], kind=I64, message=False),
    _case("failing", "FloorDiv", "z", [np.arange(3)], [np.int64(0)], message=False),
    *(
        case(
            "FakeParam", name=f"fake_{kind.tf_name}_{number}", dtype=kind, shape=shape,
            shape_only=kind is not STRING,
        )
        for kind in (
            F32, I64, STRING, DataType.BOOL, DataType.BFLOAT16, DataType.COMPLEX64, DataType.QINT8,
            DataType.HALF, DataType.DOUBLE, DataType.INT32, DataType.UINT8,
        )
        for number, shape in enumerate(((2, -1, 3), None, (2,)))
    ),
)  # fmt: skip
