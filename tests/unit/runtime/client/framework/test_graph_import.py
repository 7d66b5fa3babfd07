"""Import of GraphDefs into a graph: names, mapped inputs, and the messages of refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from runtime.api import NotFoundError, SessionOptions, load_saved_model
from runtime.client import (
    Graph,
    Session,
    cond,
    constant,
    device,
    float32,
    identity,
    import_graph_def,
    import_meta_graph,
    ops,
    placeholder,
)


def negation():
    """p: Placeholder, q: Neg(p)."""
    with Graph().as_default() as graph:
        ops.Neg(placeholder(float32, name="p"), name="q")
    return graph.as_graph_def()


def test_nodes_come_under_a_scope(graph):
    operation, tensor = import_graph_def(negation(), return_elements=["q", "q:0"])
    assert (operation.name, tensor.name) == ("import/q", "import/q:0")
    assert import_graph_def(negation()) is None
    assert graph.get_operation_by_name("import_1/q").inputs[0].name == "import_1/p:0"
    assert import_graph_def(negation(), name="m", return_elements=["p"])[0].name == "m/p"
    names = [
        import_graph_def(negation(), name="", return_elements=[b"q:0"])[0].name for _ in range(2)
    ]
    assert names == ["q:0", "q_1:0"]
    assert graph.get_operation_by_name("q_1").inputs[0].name == "p_1:0"


def test_inputs_are_mapped(graph):
    a = constant([1.0, 2.0], name="a")
    q, p = import_graph_def(negation(), {"p:0": a}, ["q:0", "p:0"])
    assert q.op.inputs == (a,)
    assert p is a
    assert Session().run(q).tolist() == [-1, -2]
    with device("/cpu:0"):
        assert import_graph_def(negation(), {"p": a}, ["q"])[0].device == "/device:CPU:0"


def with_node(**node):
    graph_def = negation()
    graph_def.node.add(**node)
    return graph_def


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: import_graph_def(1),
            TypeError,
            "Argument `graph_def` must be a GraphDef proto.",
        ),
        (
            lambda: import_graph_def(negation(), [1]),
            TypeError,
            "Argument `input_map` must be a dictionary. Obtained list",
        ),
        (
            lambda: import_graph_def(negation(), return_elements=[1]),
            TypeError,
            "Argument `return_elements` must be a list of strings. Obtained [1].",
        ),
        (
            lambda: import_graph_def(pb.GraphDef(node=negation().node[1:])),
            ValueError,
            "Node 'q': Unknown input node 'p'",
        ),
        (
            lambda: import_graph_def(negation(), return_elements=["w:0"]),
            ValueError,
            "Requested return tensor 'w:0' not found in graph def",
        ),
        (
            lambda: import_graph_def(negation(), return_elements=["q:4"]),
            ValueError,
            "Invalid return output 4 of node 'q', which has 1 output(s)",
        ),
        (
            lambda: import_graph_def(negation(), {"p:0": constant(1.0).op}),
            TypeError,
            "Can not convert a Operation into a Tensor.",
        ),
        (
            lambda: import_graph_def(negation(), {"zz:0": constant(1.0)}),
            ValueError,
            "Attempted to map inputs that were not found in graph_def: [zz:0]",
        ),
        (
            lambda: import_graph_def(negation(), {"p:0": constant(1, name="one")}),
            ValueError,
            "Input 0 of node import/q was passed int32 from one:0 incompatible with expected "
            "float.",
        ),
        (
            lambda: import_graph_def(with_node(name="q", op="NoOp")),
            ValueError,
            "Node 'q' is not unique",
        ),
        (
            lambda: import_graph_def(with_node(name="r", op="NoOp", input=["p"])),
            ValueError,
            "NodeDef expected inputs '' do not match 1 inputs specified; Op<name=NoOp>; NodeDef: "
            "{{node import/r}}",
        ),
    ],
)
def test_what_can_not_be_imported(graph, call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
    assert not [each for each in graph.get_operations() if each.type == "Neg"]


def test_unknown_ops(graph):
    with pytest.raises(NotFoundError, match="Op type not registered 'Nope' in binary running on"):
        import_graph_def(with_node(name="r", op="Nope"))


def test_loops_of_version_1_are_imported(graph):
    """Enter → Merge ⇄ NextIteration, which has a back edge."""
    from tests.saved_model_corpus import FIXTURES

    meta_graph = load_saved_model(
        SessionOptions(), None, str(FIXTURES / "v1_while_cond"), {"serve"}
    ).meta_graph_def
    import_meta_graph(meta_graph)
    assert graph.as_graph_def().node == meta_graph.graph_def.node


UNARY = ("Neg", "Square", "Abs", "Identity")
BINARY = ("AddV2", "Sub", "Mul", "Maximum")


@st.composite
def programs(draw):
    """A random graph over one placeholder: (op, operands by index) of each node."""
    nodes = []
    for count in range(1, draw(st.integers(2, 9))):
        operands = st.integers(0, count - 1)
        if draw(st.booleans()):
            nodes.append((draw(st.sampled_from(UNARY)), [draw(operands)]))
        else:
            nodes.append((draw(st.sampled_from(BINARY)), [draw(operands), draw(operands)]))
    return nodes


def build(nodes):
    with Graph().as_default() as graph:
        tensors = [placeholder(float32, [2], name="x")]
        for op, operands in nodes:
            tensors.append(getattr(ops, op)(*(tensors[index] for index in operands)))
        branch = cond(ops.Sum(tensors[-1], 0) > 0, lambda: tensors[-1] + 1, lambda: tensors[-1])
        identity(branch, name="result")
    return graph


@settings(max_examples=25, deadline=None)
@given(programs())
def test_a_graph_that_was_imported_is_the_graph(nodes):
    original = build(nodes)
    with Graph().as_default() as copy:
        import_graph_def(pb.GraphDef.FromString(original.as_graph_def().SerializeToString()),
                         name="")  # fmt: skip
    assert copy.as_graph_def() == original.as_graph_def()
    value = np.array([0.5, -1.5], np.float32)
    results = [Session(graph=graph).run("result:0", {"x:0": value}) for graph in (original, copy)]
    np.testing.assert_array_equal(*results)
