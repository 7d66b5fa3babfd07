"""Graphs: names, scopes, devices, control dependencies, lookup, collections."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.client import (
    Graph,
    OperatorNotAllowedInGraphError,
    TensorShape,
    add_to_collection,
    constant,
    control_dependencies,
    device,
    float32,
    get_collection,
    get_default_graph,
    identity,
    name_scope,
    no_op,
    placeholder,
    reset_default_graph,
)


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


def test_names_are_made_unique(graph):
    names = [constant(1, name=name).op.name for name in ("c", "c", "C", "c")]
    assert names == ["c", "c_1", "C_2", "c_3"]
    assert constant(1).name == "Const:0"
    assert graph.unique_name("c", mark_as_used=False) == "c_4"
    assert graph.unique_name("c") == "c_4"


def test_names_stand_under_scopes(graph):
    with name_scope("s") as scope:
        assert scope == "s/"
        assert constant(1, name="c").name == "s/c:0"
        with name_scope("t"):
            assert constant(1).name == "s/t/Const:0"
        for root in (None, ""):
            with name_scope(root):
                assert "/" not in constant(1).name
        with pytest.raises(ValueError, match="Duplicate node name in graph: 'c'"):
            constant(1, name="c/")
            constant(1, name="c/")
    with name_scope("s") as scope:
        assert scope == "s_1/"
    with name_scope("s/"):
        assert constant(1).name == "s/Const:0"
        assert graph.get_name_scope() == "s"


def test_names_that_are_none(graph):
    with pytest.raises(ValueError) as error, name_scope("_q"):
        pass
    assert str(error.value) == (
        "'_q' is not a valid root scope name. A root scope name has to match the following "
        "pattern: ^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$"
    )
    with pytest.raises(ValueError) as error:
        graph.create_op("NoOp", name="_x")
    assert str(error.value) == (
        "`_x` is not a valid node name. Accepted names conform to Regex "
        "/re.compile('^[A-Za-z0-9.][A-Za-z0-9_.\\\\\\\\/>-]*$')/"
    )


def test_devices_merge_from_outside_in(graph):
    with device("/cpu:0"):
        assert constant(1).device == "/device:CPU:0"
        with device("/job:worker"):
            assert constant(1).device == "/job:worker/device:CPU:0"
        with device("/GPU:1"):
            assert constant(1).device == "/device:GPU:1"
        with device(None):
            assert constant(1).device == ""
    with device(lambda operation: "/cpu:3" if operation.type == "Const" else None):
        assert constant(1).device == "/cpu:3"
        assert no_op().device == ""
    with device("/job:worker"), device(lambda _: "/gpu:1"):
        assert constant(1).device == "/job:worker/device:GPU:1"
    with pytest.raises(ValueError, match="while parsing the device spec: '/foo'"), device("/foo"):
        pass


def test_control_dependencies(graph):
    a, b = constant(1.0, name="a"), constant(2.0, name="b")
    with control_dependencies([a]):
        inner = constant(3.0)
        assert inner.op.control_inputs == [a.op]
        assert identity(a).op.control_inputs == []  # `a` is its data input
        assert identity(inner).op.control_inputs == []  # its input waits for `a`
        with control_dependencies([b.op, "a"]):
            assert no_op().control_inputs == [a.op, b.op]
        with control_dependencies(None):
            assert no_op().control_inputs == []
        with control_dependencies([]):
            assert no_op().control_inputs == [a.op]
    with pytest.raises(TypeError, match="Can not convert a int into a Tensor or Operation"):
        graph.control_dependencies([1]).__enter__()


def test_operations_and_tensors_by_name(graph):
    a = constant(2.0, name="a")
    assert graph.get_operation_by_name("a") is a.op
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.as_graph_element("a:0") is a
    form = 'Tensor names must be of the form "<op_name>:<output_index>".'
    nowhere = "refers to an Operation not in the graph."
    for call, kind, message in (
        (lambda: graph.get_operation_by_name("zz"), KeyError, f"The name 'zz' {nowhere}"),
        (
            lambda: graph.get_operation_by_name("a:0"),
            ValueError,
            "Name 'a:0' appears to refer to a Tensor, not a Operation.",
        ),
        (
            lambda: graph.get_operation_by_name(1),
            TypeError,
            "Operation names are strings (or similar), not int.",
        ),
        (
            lambda: graph.get_tensor_by_name(None),
            TypeError,
            "Tensor names are strings (or similar), not NoneType.",
        ),
        (
            lambda: graph.get_tensor_by_name("zz"),
            ValueError,
            f"The name 'zz' looks like an (invalid) Operation name, not a Tensor. {form}",
        ),
        (
            lambda: graph.get_tensor_by_name("a"),
            ValueError,
            f"The name 'a' refers to an Operation, not a Tensor. {form}",
        ),
        (
            lambda: graph.as_graph_element(a, allow_tensor=False),
            TypeError,
            "Can not convert a Tensor into a Operation.",
        ),
        (
            lambda: graph.as_graph_element("a", False, False),
            ValueError,
            "allow_tensor and allow_operation can't both be False.",
        ),
    ):
        with pytest.raises(kind) as error:
            call()
        assert error.value.args[0] == message


def test_how_tensors_and_operations_print(graph):
    x = placeholder(float32, [None, 3], name="x")
    assert str(x) == 'Tensor("x:0", shape=(None, 3), dtype=float32)'
    assert repr(x) == "<tf.Tensor 'x:0' shape=(None, 3) dtype=float32>"
    assert repr(x.op) == "<tf.Operation 'x' type=Placeholder>"
    assert str(placeholder(float32, name="any")) == 'Tensor("any:0", dtype=float32)'
    assert str(no_op(name="grp")) == 'name: "grp"\nop: "NoOp"\n'


def test_shapes_are_added_to(graph):
    x = placeholder(float32, [None, 3])
    x.set_shape([2, None])
    assert x.shape == (2, 3)
    with pytest.raises(ValueError) as error:
        x.set_shape([3, 3])
    assert str(error.value) == (
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,3]."
    )
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        x.set_shape([3])
    assert TensorShape([None, 3]).as_list() == [None, 3]
    assert TensorShape(None).rank is None
    assert TensorShape([2, 3]).num_elements() == 6
    assert not TensorShape([2, None]).is_fully_defined()


def test_what_needs_a_value(graph):
    one = constant(1.0, name="one")
    for call, kind, message in (
        (lambda: bool(one), OperatorNotAllowedInGraphError, "as a Python `bool` is not allowed"),
        (lambda: list(one), OperatorNotAllowedInGraphError, "Iterating over a symbolic"),
        (lambda: len(one), TypeError, "len is not well defined for a symbolic Tensor"),
        (lambda: np.array(one), NotImplementedError, "Cannot convert a symbolic tf.Tensor"),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert one != constant(1.0)
    assert {one: 1}[one] == 1


def test_collections(graph):
    a, b = constant(1, name="a"), constant(2, name="x/b")
    add_to_collection("k", a)
    graph.add_to_collections(["k", "l"], b)
    assert get_collection("k") == [a, b]
    assert get_collection("k", scope="x/") == [b]
    get_collection("k").append(1)
    assert get_collection("k") == [a, b]
    graph.get_collection_ref("k").append("c")
    assert get_collection("k") == [a, b, "c"]
    assert graph.get_all_collection_keys() == ["k", "l"]
    graph.clear_collection("k")
    assert get_collection("k") == []


def test_parts_of_the_graph_as_messages(graph):
    constant(1.0, name="a")
    before = graph.version
    placeholder(float32, [None, 2], name="b")
    part = graph.as_graph_def(from_version=before, add_shapes=True)
    assert [node.name for node in part.node] == ["b"]
    assert part.node[0].attr["_output_shapes"].list.shape[0].dim[1].size == 2
    assert part.versions.producer == 2474


def test_the_default_graph_is_not_reset_while_another_is_entered(graph):
    with pytest.raises(AssertionError, match="to clear nested graphs"):
        reset_default_graph()


def test_the_default_graph_is_reset_at_the_top():
    before = get_default_graph()
    reset_default_graph()
    assert get_default_graph() is not before


def test_consumers_of_a_tensor(graph):
    a = constant(1.0)
    reader = identity(a).op
    assert a.consumers() == [reader]
    assert reader.inputs == (a,)
    assert reader.get_attr("T") is float32
    with pytest.raises(ValueError, match="has no attr named 'zz'"):
        reader.get_attr("zz")
