"""Graphs that ask for more memory than there is, each as small as an attacker would write it.

A builder gets the size of what the graph makes, in bytes, and returns the graph and its step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph

Step = dict[str, Any]
Built = tuple[pb.GraphDef, Step]
Builder = Callable[[int], Built]
Output = tuple[str, DataType]
FLOAT, INT64 = np.float32, np.int64
ZERO = np.float32(0)


def fill(graph: Graph, shape: list[int], value: Any = ZERO, name: str = "") -> Output:
    """Add a Fill of this shape, which reaches the kernel as an input."""
    return graph.add("Fill", np.int64(shape), value, name=name)[0]


def size_of(graph: Graph, value: Output) -> Step:
    """Add a Size of the value, so that the answer is small, and return its step."""
    graph.add("Size", value, name="size", out_type=DataType.INT64)
    return {"fetches": ["size"]}


def fed_fill(graph: Graph, size: int) -> tuple[Output, Step]:
    """Add a Fill of `size` bytes whose shape is fed; return it and a step with the feed.

    A Fill of a constant shape may be folded to one constant that all runs share.
    """
    shape = graph.placeholder(DataType.INT64, "shape", (1,))
    return graph.add("Fill", shape, ZERO)[0], {"feeds": {"shape:0": [size // 4]}}


def stage(size: int) -> Built:
    graph = Graph()
    value, step = fed_fill(graph, size)
    graph.add("Stage", [value], name="stage", dtypes=[DataType.FLOAT])
    return graph.graph_def, {**step, "targets": ["stage"]}


def constants(size: int) -> Built:
    """60 constants of one value each, of `size` bytes in all."""
    graph, values = Graph(), []
    for index in range(60):
        tensor = pb.TensorProto(dtype=pb.DT_FLOAT, float_val=[1.0])
        tensor.tensor_shape.dim.add(size=size // 240)
        values.append(graph.add("Const", name=f"c{index}", dtype=DataType.FLOAT, value=tensor)[0])
    shifted = [graph.add("Neg", value)[0] for value in values]
    return graph.graph_def, size_of(graph, graph.add("ConcatV2", shifted, np.int32(0))[0])


def add_of_fills(size: int) -> Built:
    """60 Fills that are added up, of `size` bytes in all."""
    graph = Graph()
    values = [fill(graph, [size // 240]) for _ in range(60)]
    return graph.graph_def, size_of(graph, graph.add("AddN", values)[0])


def joined_strings(size: int) -> Built:
    """A string that is joined to itself until it has `size` bytes."""
    graph = Graph()
    value: Any = np.array(b"x" * 1024, object)
    for _ in range((size // 1024).bit_length()):
        value = graph.add("StringJoin", [value, value])[0]
    graph.add("StringLength", value, name="size")
    return graph.graph_def, {"fetches": ["size"]}


def doubling_loop(size: int) -> Built:
    """A loop whose tensor doubles with each iteration; `size` bounds nothing: it never ends."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=2474))
    start = pb.TensorProto(dtype=pb.DT_FLOAT, float_val=[1.0])
    start.tensor_shape.dim.add(size=1024)
    _add_loop(graph, "StatelessWhile", start, "for_ever", "doubled")

    for_ever = graph.library.function.add()
    for_ever.signature.name = "for_ever"
    for_ever.signature.input_arg.add(name="value", type=pb.DT_FLOAT)
    for_ever.signature.output_arg.add(name="goes_on", type=pb.DT_BOOL)
    true = for_ever.node_def.add(name="true", op="Const")
    true.attr["dtype"].type = pb.DT_BOOL
    true.attr["value"].tensor.CopyFrom(pb.TensorProto(dtype=pb.DT_BOOL, bool_val=[True]))
    for_ever.ret["goes_on"] = "true:output:0"

    doubled = graph.library.function.add()
    doubled.signature.name = "doubled"
    doubled.signature.input_arg.add(name="value", type=pb.DT_FLOAT)
    doubled.signature.output_arg.add(name="twice", type=pb.DT_FLOAT)
    _scalar(doubled, "axis", 0)
    both = doubled.node_def.add(
        name="both", op="ConcatV2", input=["value", "value", "axis:output:0"]
    )
    both.attr["N"].i = 2
    both.attr["T"].type = pb.DT_FLOAT
    both.attr["Tidx"].type = pb.DT_INT32
    doubled.ret["twice"] = "both:output:0"
    graph.node.add(name="size", op="Size", input=["loop"]).attr["T"].type = pb.DT_FLOAT
    graph.node[-1].attr["out_type"].type = pb.DT_INT64
    return graph, {"fetches": ["size"]}


def _add_loop(graph: pb.GraphDef, op: str, start: pb.TensorProto, cond: str, body: str) -> None:
    """Add the node "loop", whose one value is `start` at first."""
    first = graph.node.add(name="start", op="Const")
    first.attr["dtype"].type = start.dtype
    first.attr["value"].tensor.CopyFrom(start)
    loop = graph.node.add(name="loop", op=op, input=["start"])
    loop.attr["T"].list.type.append(start.dtype)
    loop.attr["cond"].func.name = cond
    loop.attr["body"].func.name = body
    loop.attr["output_shapes"].list.SetInParent()
    loop.attr["parallel_iterations"].i = 1


def counted_loop(count: int, body: Callable[[pb.FunctionDef], str]) -> tuple[pb.GraphDef, Step]:
    """Return a loop of `count` iterations; `body` adds a node to each and returns its name."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=2474))
    start = pb.TensorProto(dtype=pb.DT_INT32, int_val=[0])
    start.tensor_shape.SetInParent()
    _add_loop(graph, "While", start, "goes_on", "next")

    goes_on = graph.library.function.add()
    goes_on.signature.name = "goes_on"
    goes_on.signature.input_arg.add(name="index", type=pb.DT_INT32)
    goes_on.signature.output_arg.add(name="less", type=pb.DT_BOOL)
    _scalar(goes_on, "end", count)
    less = goes_on.node_def.add(name="less", op="Less", input=["index", "end:output:0"])
    less.attr["T"].type = pb.DT_INT32
    goes_on.ret["less"] = "less:z:0"

    following = graph.library.function.add()
    following.signature.name = "next"
    following.signature.input_arg.add(name="index", type=pb.DT_INT32)
    following.signature.output_arg.add(name="sum", type=pb.DT_INT32)
    _scalar(following, "one", 1)
    control = f"^{body(following)}"
    both = ["index", "one:output:0", control]
    following.node_def.add(name="sum", op="AddV2", input=both).attr["T"].type = pb.DT_INT32
    following.ret["sum"] = "sum:z:0"
    return graph, {"fetches": ["loop"]}


def _scalar(function: pb.FunctionDef, name: str, value: int) -> None:
    node = function.node_def.add(name=name, op="Const")
    node.attr["dtype"].type = pb.DT_INT32
    node.attr["value"].tensor.CopyFrom(pb.TensorProto(dtype=pb.DT_INT32, int_val=[value]))
    node.attr["value"].tensor.tensor_shape.SetInParent()


def variable(size: int) -> Built:
    """A variable `v` of `size` bytes that is assigned from a Fill."""
    graph = Graph()
    handle = graph.add(
        "VarHandleOp", name="v", dtype=DataType.FLOAT, shape=None, shared_name="attack"
    )[0]
    value, step = fed_fill(graph, size)
    graph.add("AssignVariableOp", handle, value, name="assign", dtype=DataType.FLOAT)
    return graph.graph_def, {**step, "targets": ["assign"]}


# --- operations whose output is larger than their inputs ---------------------------------------

# op → makes from half the limit of one tensor (`size` bytes) an output of more than `size` bytes
Growth = Callable[[Graph, int], Output]


def _half(graph: Graph, size: int, value: Any = ZERO) -> Output:
    item = np.asarray(value).dtype.itemsize
    return fill(graph, [size * 3 // 4 // item], value)


def _square(graph: Graph, op: str, size: int, shape: Callable[[int], list[int]]) -> Output:
    edge = int((size / 4) ** 0.5) * 2
    wide = fill(graph, shape(edge))
    return graph.add(op, wide, full_matrices=True)[{"Svd": 2, "Qr": 0}[op]]


def _text(size: int) -> np.ndarray:
    return np.array(b"x" * size, object)


GROWTHS: dict[str, Growth] = {
    "Fill": lambda graph, size: fill(graph, [size]),
    "ConcatV2": lambda graph, size: graph.add(
        "ConcatV2", [_half(graph, size), _half(graph, size)], np.int32(0)
    )[0],
    "Pack": lambda graph, size: graph.add("Pack", [_half(graph, size), _half(graph, size)])[0],
    "Where": lambda graph, size: graph.add("Where", fill(graph, [size // 4], np.True_))[0],
    "Svd": lambda graph, size: _square(graph, "Svd", size, lambda edge: [1, edge]),
    "Qr": lambda graph, size: _square(graph, "Qr", size, lambda edge: [edge, 1]),
    "Cast": lambda graph, size: graph.add(
        "Cast", _half(graph, size, np.int8(1)), DstT=DataType.COMPLEX128
    )[0],
    "Tile": lambda graph, size: graph.add(
        "Tile", np.zeros(1024, FLOAT), np.int32([size // 2048])
    )[0],
    "BroadcastTo": lambda graph, size: graph.add(
        "Neg", graph.add("BroadcastTo", np.zeros(1, FLOAT), np.int64([size]))[0]
    )[0],
    "OneHot": lambda graph, size: graph.add(
        "OneHot", np.zeros(1024, INT64), np.int32(size // 1024), FLOAT(1), FLOAT(0)
    )[0],
    "MatrixDiagV3": lambda graph, size: graph.add(
        "MatrixDiagV3", np.zeros(int(size**0.5), FLOAT), np.int32(0), np.int32(-1), np.int32(-1),
        FLOAT(0),
    )[0],
    "Range": lambda graph, size: graph.add("Range", np.int32(0), np.int32(size), np.int32(1))[0],
    "RandomUniform": lambda graph, size: graph.add(
        "RandomUniform", np.int64([size]), dtype=DataType.FLOAT
    )[0],
    "OuterAdd": lambda graph, size: graph.add(
        "AddV2", np.zeros((int(size**0.5), 1), FLOAT), np.zeros(int(size**0.5), FLOAT)
    )[0],
    "MatMul": lambda graph, size: graph.add(
        "MatMul", np.zeros((int(size**0.5), 1), FLOAT), np.zeros((1, int(size**0.5)), FLOAT)
    )[0],
    "ExtractImagePatches": lambda graph, size: graph.add(
        "ExtractImagePatches", np.zeros((1, int(size**0.5) // 32, int(size**0.5) // 32, 1), FLOAT),
        ksizes=[1, 64, 64, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME",
    )[0],
    "UnicodeDecode": lambda graph, size: graph.add(
        "UnicodeDecode", _joined(graph, size // 2), input_encoding="UTF-8"
    )[1],
    "DecodeRaw": lambda graph, size: graph.add(
        "Cast",
        graph.add("DecodeRaw", _joined(graph, size // 2), out_type=DataType.INT8)[0],
        DstT=DataType.INT64,
    )[0],
    "TensorArrayGatherV3": lambda graph, size: _gathered_array(graph, size),
    "Bincount": lambda graph, size: graph.add(
        "Bincount", np.zeros(1, np.int32), np.int32(size), np.zeros(0, FLOAT)
    )[0],
    "SparseToDense": lambda graph, size: graph.add(
        "SparseToDense", np.zeros(1, INT64), np.int64([size]), FLOAT(1), FLOAT(0)
    )[0],
    "ResizeBilinear": lambda graph, size: graph.add(
        "ResizeBilinear", np.zeros((1, 2, 2, 1), FLOAT), np.int32([size // 64, 64])
    )[0],
}  # fmt: skip

TEXT_GROWTHS: dict[str, Growth] = {
    "StringJoin": lambda graph, size: graph.add("StringJoin", [_joined(graph, size)] * 2)[0],
    "ReduceJoin": lambda graph, size: graph.add(
        "ReduceJoin", _texts(graph, size), np.int32(0), separator="xxxxxxxx"
    )[0],
    "Substr": lambda graph, size: graph.add(
        "Substr",
        _joined(graph, size // 8),
        fill(graph, [64], np.int32(0)),
        fill(graph, [64], np.int32(size // 8)),
    )[0],
    "EncodeBase64": lambda graph, size: graph.add(
        "EncodeBase64", graph.add("StringJoin", [_joined(graph, size)] * 2)[0]
    )[0],
    "RegexReplace": lambda graph, size: graph.add(
        "RegexReplace", _joined(graph, size // 512), np.array(b"x", object), _text(1024)
    )[0],
    "AsString": lambda graph, size: graph.add("AsString", fill(graph, [size // 64]), width=1000)[0],
}


def _joined(graph: Graph, size: int) -> Output:
    """Add a string of about `size` bytes, made of one of 1024 bytes."""
    copies = max(size // 1024, 1)
    texts = graph.add("Fill", np.int32([copies]), _text(1024))[0]
    return graph.add("ReduceJoin", texts, np.int32(0))[0]


def _texts(graph: Graph, size: int) -> Output:
    return graph.add("Fill", np.int64([size // 8]), _text(8))[0]


def _gathered_array(graph: Graph, size: int) -> Output:
    count = 16
    handle, flow = graph.add(
        "TensorArrayV3", np.int32(count), dtype=DataType.FLOAT, identical_element_shapes=True
    )
    value = fill(graph, [size // 4 // count * 2])
    for index in range(count):
        flow = graph.add("TensorArrayWriteV3", handle, np.int32(index), value, flow)[0]
    indices = np.arange(count, dtype=np.int32)
    return graph.add("TensorArrayGatherV3", handle, indices, flow, dtype=DataType.FLOAT)[0]


def growth(op: str) -> Builder:
    """Return the builder of a graph in which the output of `op` is larger than `size`."""

    def build(size: int) -> Built:
        graph = Graph()
        made = {**GROWTHS, **TEXT_GROWTHS}[op](graph, size)
        return graph.graph_def, size_of(graph, made)

    return build
