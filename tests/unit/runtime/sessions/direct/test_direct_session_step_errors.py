"""Errors of steps: missing feeds, dead tensors, errors of kernels, and missing kernels."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    InternalError,
    InvalidArgumentError,
    KernelDef,
    NotFoundError,
    OpError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import (
    X,
    direct_session,
    g1,
    in_caller,
    loop_graph,
    switch_graph,
)

OPTIONS = pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()], ids=["pool", "caller"])


@OPTIONS
def test_an_unfed_placeholder_tells_its_shape_when_it_has_one(options: pb.RunOptions) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x", (-1, 3))
    graph.add("Neg", x, name="n")
    session = direct_session(graph.graph_def)
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({}, ["n"], (), options)
    assert caught.value.message == (
        "You must feed a value for placeholder tensor 'x' with dtype float and shape [?,3]"
        "\n\t [[{{node x}}]]"
    )


def test_a_callable_tells_types_in_its_own_words() -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m"]))
    with pytest.raises(InvalidArgumentError) as caught:
        session.run_callable(handle, [np.int32(3)])
    assert caught.value.message == "Type mismatch: actual int32 vs. expect float"


def test_the_shape_of_a_placeholder_is_not_checked() -> None:
    """As in TensorFlow, the front end checks the shape and the runtime does not."""
    graph = Graph()
    x = graph.placeholder("float32", "x", (2,))
    graph.add("Neg", x, name="n")
    session = direct_session(graph.graph_def)
    assert session.run({"x": np.ones(3, np.float32)}, ["n"])[0].tolist() == [-1, -1, -1]


def test_the_untaken_side_of_a_switch_is_dead() -> None:
    session = direct_session(switch_graph())
    feeds = {"value": X, "side": np.bool_(True)}
    assert session.run(feeds, ["yes"]) == [3]
    with pytest.raises(InvalidArgumentError) as caught:
        session.run(feeds, ["no"])
    assert caught.value.message == "Retval[0] does not have value"
    assert session.run(feeds, [], ["no", "yes"]) == []
    assert session.run(feeds, ["merge:0", "merge:1"]) == [3, 1]
    feeds["side"] = np.bool_(False)
    assert session.run(feeds, ["merge:0", "merge:1"]) == [-3, 0]


def test_a_dead_tensor_of_a_partial_run() -> None:
    session = direct_session(switch_graph())
    handle = session.partial_run_setup(["value", "side"], ["no:0"])
    with pytest.raises(InvalidArgumentError) as caught:
        session.partial_run(handle, {"value": X, "side": np.bool_(True)}, ["no:0"])
    assert caught.value.message == "The tensor returned for no:0 was not valid."


def test_a_tensor_inside_of_a_loop_cannot_be_fetched() -> None:
    session = direct_session(loop_graph())
    assert session.run({"start": np.int32(2)}, ["exit"]) == [5]
    with pytest.raises(InternalError) as caught:
        session.run({"start": np.int32(2)}, ["exit", "add"])
    assert "has already been set." in caught.value.message
    assert session.run({"start": np.int32(9)}, ["exit"]) == [9]


def failing(op: str, *inputs: object, **attrs: object) -> pb.GraphDef:
    graph = Graph()
    graph.add(op, *inputs, name="bad", **attrs)
    return graph.graph_def


MATRIX = np.ones((2, 3), np.float32)
KERNEL_ERRORS = [
    (failing("AddV2", np.zeros(2, np.float32), np.zeros(3, np.float32)),
     "Incompatible shapes: [2] vs. [3]"),
    (failing("BatchMatMulV2", MATRIX[0], MATRIX), "In[0] ndims must be >= 2"),
    (failing("MatMul", MATRIX[0], MATRIX), "In[0] and In[1] has different ndims: [3] vs. [2,3]"),
    (failing("MatMul", MATRIX, MATRIX), "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]"),
    (failing("FloorDiv", np.int32(1), np.int32(0)), "Integer division by zero"),
    (failing("Assert", np.bool_(False), [np.int32(5)]), "assertion failed: [5]"),
]  # fmt: skip


@OPTIONS
@pytest.mark.parametrize("level", [pb.OptimizerOptions.L1, pb.OptimizerOptions.L0])
@pytest.mark.parametrize(("graph", "text"), KERNEL_ERRORS, ids=[row[1] for row in KERNEL_ERRORS])
def test_a_kernel_s_error_ends_the_step_and_names_the_node(
    graph: pb.GraphDef, text: str, level: int, options: pb.RunOptions
) -> None:
    config = pb.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level  # type: ignore[assignment]
    session = direct_session(graph, config)
    for _ in range(3):
        with pytest.raises(InvalidArgumentError) as caught:
            session.run({}, (), ["bad"], options)
        assert caught.value.message.startswith(text)
        assert caught.value.message.endswith("\n\t [[{{node bad}}]]")


def test_an_op_without_kernel_fails_only_the_steps_that_reach_it() -> None:
    graph = g1()
    bad = graph.node.add(name="cc", op="TPUReplicatedInput", input=["a"])
    bad.attr["N"].i = 1
    bad.attr["T"].type = pb.DT_FLOAT
    session = direct_session(graph)
    assert session.run({"x": X}, ["n"]) == [-6]
    with pytest.raises(InvalidArgumentError) as caught:
        session.run({}, ["cc"])
    assert caught.value.message.startswith(
        "No OpKernel was registered to support Op 'TPUReplicatedInput' used by {{node cc}} "
        "with these attrs: ["
    )
    assert "]\nRegistered devices: [CPU]\nRegistered kernels:\n  <no registered kernels>" in (
        caught.value.message
    )


def test_the_attributes_of_an_op_without_kernel_are_written_as_tensorflow_writes_them() -> None:
    graph = g1()
    bad = graph.node.add(name="bad", op="EagerPyFunc", input=["a"])
    bad.attr["Tin"].list.type.append(pb.DT_FLOAT)
    bad.attr["Tout"].list.type.extend([pb.DT_INT32, pb.DT_STRING])
    bad.attr["token"].s = b"k"
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph).run({}, (), ["bad"])
    assert (
        "with these attrs: "
        '[Tin=[DT_FLOAT], Tout=[DT_INT32, DT_STRING], is_async=false, token="k"]\n'
    ) in caught.value.message


@OPTIONS
def test_a_constant_whose_value_has_another_type(options: pb.RunOptions) -> None:
    graph = Graph()
    graph.add("Const", name="c", dtype="float32", value=tensor_to_proto(np.int32(1)))
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph.graph_def).run({}, ["c"], (), options)
    assert caught.value.message == (
        "Type mismatch between value (int32) and dtype (float)\n\t [[{{node c}}]]"
    )


def test_an_attribute_value_that_the_op_does_not_allow() -> None:
    node = pb.NodeDef(name="z", op="Neg", input=["a"])
    node.attr["T"].type = pb.DT_BOOL
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(pb.GraphDef(node=[*g1().node, node]))
    assert caught.value.message.startswith(
        "Value for attr 'T' of bool is not in the list of allowed values: bfloat16, half, "
    )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (pb.CallableOptions(feed=["x", "x:0"], fetch=["m"]), InvalidArgumentError,
         'Endpoint "x:0" fed more than once.'),
        (pb.CallableOptions(feed=["zz"], fetch=["m"]), InvalidArgumentError,
         "Tensor zz:0, specified in either feed_devices or fetch_devices was not found in the "
         "Graph"),
        (pb.CallableOptions(fetch=["zz"]), InvalidArgumentError,
         "Tensor zz:0, specified in either feed_devices or fetch_devices was not found in the "
         "Graph"),
        (pb.CallableOptions(feed=["x"], target=["zz"]), NotFoundError,
         "PruneForTargets: Some target nodes not found: zz "),
        (pb.CallableOptions(feed=["x"]), InvalidArgumentError,
         "Must specify at least one target to fetch or execute."),
    ],
)  # fmt: skip
def test_a_callable_is_checked_when_it_is_made(
    options: pb.CallableOptions, error: type[OpError], text: str
) -> None:
    with pytest.raises(error) as caught:
        direct_session(g1()).make_callable(options)
    assert caught.value.message == text


@pytest.mark.parametrize("op", ["PartitionedCall", "RemoteCall"])  # one is inlined, one is called
def test_a_function_with_too_few_arguments(op: str) -> None:
    graph = Graph()
    signature = pb.OpDef(name="body")
    for name in ("x", "y"):
        signature.input_arg.add(name=name, type=DataType.FLOAT.value)
    signature.output_arg.add(name="z", type=DataType.FLOAT.value)
    graph.graph_def.library.function.add(signature=signature, ret={"z": "x"})
    x = graph.placeholder("float32", "x")
    target = [np.array(b"", object)] if op == "RemoteCall" else []
    body = NameAttrList("body", {})
    graph.add(op, *target, [x], f=body, Tout=(DataType.FLOAT,), name="call")
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph.graph_def).run({"x:0": np.float32(1)}, ["call:0"], ())
    assert caught.value.message == (
        "Function body: Function takes 2 argument(s) but 1 argument(s) were passed"
        "\n\t [[{{node call}}]]"
    )


def test_a_kernel_that_asks_a_pools_thread_to_end_the_program_fails() -> None:
    def kernel(x: object) -> object:
        raise SystemExit(2)

    made = KernelDef("Neg", kernel, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(kernels=[made]))
    session.create(g1())
    with pytest.raises(InternalError, match=r"^SystemExit: 2$"):
        session.run_async(RunRequest({"x": X}, ["n"])).result(30)
    with pytest.raises(SystemExit):
        session.run({"x": X}, ["n"], (), in_caller())
