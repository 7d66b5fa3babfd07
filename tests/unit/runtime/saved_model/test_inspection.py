"""The report on a meta graph's ops: unknown ones, those without kernel, and what reaches them."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.saved_model.initialization import INIT_OP_SIGNATURE_KEY, MAIN_OP_COLLECTION
from runtime.saved_model.inspection import inspect_ops, lacks_kernels, used_ops
from tests.conformance.case import Graph

# Ops without a kernel in these tests, although the runtime may have one.
MISSING = {"Relu", "Tanh"}


def has_kernel(op: str) -> bool:
    return op not in MISSING


def signature(inputs: list[str], outputs: list[str]) -> pb.SignatureDef:
    return pb.SignatureDef(
        inputs={name: pb.TensorInfo(name=name) for name in inputs},
        outputs={name: pb.TensorInfo(name=name) for name in outputs},
    )


def meta_graph_with_relu() -> pb.MetaGraphDef:
    """x → relu → y, and z = -x."""
    graph = Graph()
    x = graph.placeholder(DataType.FLOAT, "x")
    relu = graph.add("Relu", x, name="relu")[0]
    graph.add("Neg", relu, name="y")
    graph.add("Neg", x, name="z")
    return pb.MetaGraphDef(graph_def=graph.graph_def)


def test_lists_ops_with_their_nodes() -> None:
    report = inspect_ops(meta_graph_with_relu(), has_kernel)
    assert report.ops == {"Placeholder": ["x"], "Relu": ["relu"], "Neg": ["y", "z"]}
    assert report.without_kernel == {"Relu": ["relu"]}
    assert report.unknown == {}
    assert report.reached_by == {}


def test_names_the_signatures_that_reach_an_op() -> None:
    meta_graph = meta_graph_with_relu()
    meta_graph.signature_def["good"].CopyFrom(signature(["x:0"], ["z:0"]))
    meta_graph.signature_def["bad"].CopyFrom(signature(["x:0"], ["z:0", "y:0"]))
    meta_graph.signature_def["fed"].CopyFrom(signature(["relu"], ["y:0"]))
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"signature bad": ["Relu"]}


def test_restore_and_init_op_count_the_train_op_does_not() -> None:
    meta_graph = meta_graph_with_relu()
    meta_graph.saver_def.restore_op_name = "y"
    meta_graph.signature_def["__saved_model_train_op"].CopyFrom(signature([], ["y:0"]))
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"restore op": ["Relu"]}
    meta_graph.saver_def.restore_op_name = "z"
    meta_graph.signature_def[INIT_OP_SIGNATURE_KEY].CopyFrom(signature([], ["y"]))
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"init op": ["Relu"]}
    del meta_graph.signature_def[INIT_OP_SIGNATURE_KEY]
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.value.append("y")
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"init op": ["Relu"]}


def test_follows_control_inputs_and_composite_outputs() -> None:
    graph = Graph()
    graph.add("Relu", np.float32(1), name="relu")
    graph.add("NoOp", name="after", control=["relu"])
    graph.add("Const", name="c", dtype=np.float32, value=np.float32(1), control=["after"])
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.signature_def["s"].outputs["o"].coo_sparse.values_tensor_name = "c:0"
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"signature s": ["Relu"]}


def function(name: str, *nodes: pb.NodeDef, ret: str = "") -> pb.FunctionDef:
    return pb.FunctionDef(
        signature=pb.OpDef(name=name), node_def=nodes, ret={"y": ret} if ret else {}
    )


def call(name: str, function_name: str) -> pb.NodeDef:
    node = pb.NodeDef(name=name, op="PartitionedCall")
    node.attr["f"].func.name = function_name
    return node


def test_follows_functions_in_functions() -> None:
    meta_graph = pb.MetaGraphDef()
    inner = function(
        "inner",
        pb.NodeDef(name="t", op="Tanh", input=["x"]),
        pb.NodeDef(name="unused", op="Relu", input=["x"]),
        ret="t:y:0",
    )
    outer = function("outer", pb.NodeDef(name="i", op="inner", input=["x"]), ret="i:y:0")
    meta_graph.graph_def.library.function.extend([inner, outer])
    meta_graph.graph_def.node.append(call("call", "outer"))
    meta_graph.signature_def["s"].CopyFrom(signature([], ["call:0"]))
    report = inspect_ops(meta_graph, has_kernel)
    assert report.ops == {
        "PartitionedCall": ["call"], "Tanh": ["inner/t"], "Relu": ["inner/unused"],
    }  # fmt: skip
    assert report.without_kernel == {"Tanh": ["inner/t"], "Relu": ["inner/unused"]}
    assert report.reached_by == {"signature s": ["Tanh"]}


def test_an_op_of_a_function_may_lack_its_kernel() -> None:
    graph_def = pb.GraphDef()
    graph_def.library.function.append(function("f", pb.NodeDef(name="t", op="Tanh", input=["x"])))
    graph_def.node.append(call("call", "f"))
    graph_def.node.append(pb.NodeDef(name="direct", op="f"))
    assert used_ops(graph_def) == {"PartitionedCall", "Tanh"}
    assert lacks_kernels(graph_def, has_kernel)
    assert not lacks_kernels(graph_def, lambda op: True)


def test_an_unknown_op_lacks_no_kernel() -> None:
    graph_def = pb.GraphDef(node=[pb.NodeDef(name="n", op="NoSuchOp")])
    assert not lacks_kernels(graph_def, lambda op: False)


def test_stateful_nodes_of_a_function_run_unasked() -> None:
    meta_graph = pb.MetaGraphDef()
    print_node = pb.NodeDef(name="p", op="PrintV2")
    meta_graph.graph_def.library.function.append(function("f", print_node))
    meta_graph.graph_def.node.append(call("call", "f"))
    meta_graph.signature_def["s"].CopyFrom(signature([], ["call"]))
    report = inspect_ops(meta_graph, lambda op: op != "PrintV2")
    assert report.reached_by == {"signature s": ["PrintV2"]}


def test_recursion_and_broken_edges_end() -> None:
    meta_graph = pb.MetaGraphDef()
    recursive = function("f", call("again", "f"), ret="again:output:0")
    meta_graph.graph_def.library.function.append(recursive)
    meta_graph.graph_def.node.append(call("call", "f"))
    meta_graph.graph_def.node.append(pb.NodeDef(name="r", op="Relu", input=["call", "nowhere"]))
    meta_graph.signature_def["s"].CopyFrom(signature([], ["r:0"]))
    assert inspect_ops(meta_graph, has_kernel).reached_by == {"signature s": ["Relu"]}


def test_unknown_ops_are_not_those_without_kernel() -> None:
    meta_graph = pb.MetaGraphDef()
    meta_graph.graph_def.node.append(pb.NodeDef(name="n", op="NoSuchOp"))
    report = inspect_ops(meta_graph, lambda op: False)
    assert report.unknown == {"NoSuchOp": ["n"]}
    assert report.without_kernel == {}
