"""Export and import of GraphDefs and MetaGraphDefs; SavedModels; timelines."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from runtime.api import DataLossError, NotFoundError, SessionOptions, load_saved_model
from runtime.client import (
    Graph,
    GraphKeys,
    Session,
    SparseTensor,
    Timeline,
    Variable,
    add_to_collection,
    cond,
    constant,
    device,
    export_meta_graph,
    float32,
    get_collection,
    global_variables,
    global_variables_initializer,
    identity,
    import_graph_def,
    import_meta_graph,
    int64,
    ops,
    placeholder,
    saved_model,
    string,
)


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


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


def test_meta_graphs_carry_collections(graph, tmp_path):
    x = placeholder(float32, [2], name="x")
    variable = Variable([1.0, 2.0], name="v")
    reference = Variable([3.0, 4.0], name="r", use_resource=False)
    total = x + variable + reference
    for key, value in (("out", total), ("text", "hello"), ("numbers", 3), ("sizes", 0.5)):
        add_to_collection(key, value)
    add_to_collection("objects", object())
    initializer = global_variables_initializer().name
    path = str(tmp_path / "graph.meta")
    written = export_meta_graph(path, tags=["serve"])
    assert "objects" not in written.collection_def
    with Graph().as_default(), Session() as session:
        import_meta_graph(path, import_scope="copy")
        assert [each.name for each in global_variables()] == ["copy/v:0", "copy/r:0"]
        assert get_collection("trainable_variables") == global_variables()
        assert [get_collection(key) for key in ("text", "numbers", "sizes")] == [
            [b"hello"],
            [3],
            [0.5],
        ]
        session.run(f"copy/{initializer}")
        assert session.run(get_collection("out")[0], {"copy/x:0": [1, 1]}).tolist() == [5, 7]
        assert session.run(global_variables()[0].assign([0, 0])).tolist() == [0, 0]


def test_files_that_are_no_meta_graphs(graph, tmp_path):
    with pytest.raises(NotFoundError, match="No such file or directory"):
        import_meta_graph(str(tmp_path / "missing"))
    (tmp_path / "broken").write_bytes(b"\xff\xff")
    with pytest.raises(DataLossError, match=r"Can't parse .*broken as a MetaGraphDef"):
        import_meta_graph(str(tmp_path / "broken"))


def test_a_saved_model_of_a_session(graph, tmp_path):
    x = placeholder(float32, [None, 2], name="x")
    weights = Variable([[1.0], [2.0]], name="w")
    offset = Variable(0.5, use_resource=False)
    y = cond(weights[0, 0] > 0, lambda: x @ weights + offset, lambda: x @ weights)
    out = tmp_path / "model"
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(weights.assign_add([[1.0], [1.0]]))
        saved_model.simple_save(session, out, {"x": x}, {"y": y})
        assert session.run(y, {x: [[1, 1]]}) == [[5.5]]  # the added nodes do not change it
    bundle = load_saved_model(SessionOptions(), None, str(out), {"serve"})
    signature = bundle.signatures["serving_default"]
    assert signature.inputs["x"].tensor_shape.dim[1].size == 2
    feeds = {signature.inputs["x"].name: np.ones((1, 2), np.float32)}
    assert bundle.session.run(feeds, [signature.outputs["y"].name])[0] == [[5.5]]


def test_a_saved_model_with_a_table_and_its_asset(graph, tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    path = constant(str(tmp_path / "words.txt"))
    add_to_collection(GraphKeys.ASSET_FILEPATHS, path)
    table = ops.HashTableV2(string, int64, shared_name="words")
    fill = ops.InitializeTableFromTextFileV2(table, path, -2, -1)
    words = placeholder(string, [None], name="words")
    found = ops.LookupTableFindV2(table, words, constant(-1, int64), name="found")
    with Session() as session:
        builder = saved_model.Builder(tmp_path / "model")
        signature = saved_model.predict_signature_def({"words": words}, {"found": found})
        builder.add_meta_graph_and_variables(
            session, [saved_model.SERVING], {"serving_default": signature}, main_op=fill
        )
        builder.save()
    (tmp_path / "words.txt").unlink()
    bundle = load_saved_model(SessionOptions(), None, str(tmp_path / "model"), {"serve"})
    values = bundle.session.run({"words:0": np.array([b"b", b"z"], object)}, ["found:0"])
    assert values[0].tolist() == [1, -1]


def test_signatures_are_made_of_tensors(graph):
    sparse = SparseTensor([[0, 0]], [1.0], [1, 1])
    info = saved_model.build_tensor_info(sparse)
    assert info.coo_sparse.values_tensor_name == sparse.values.name
    with pytest.raises(TypeError, match="A signature is made of tensors, got 1"):
        saved_model.build_tensor_info(1)


def test_a_timeline_has_a_process_a_device_and_a_track_a_thread(graph):
    x = placeholder(float32, [None, 2], name="x")
    y = ops.MatMul(x, [[1.0], [2.0]], name="product")
    metadata = pb.RunMetadata()
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    Session().run(y, {x: [[1, 2]]}, options, metadata)
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    names = {event["name"]: event for event in events if event["ph"] == "M"}
    assert names["process_name"]["args"]["name"].endswith("/device:CPU:0")
    span = next(event for event in events if event["name"] == "MatMul")
    assert span["ph"] == "X"
    assert span["pid"] == names["process_name"]["pid"]
    assert span["tid"] == names["thread_name"]["tid"]
    assert span["dur"] > 0
    assert span["args"] == {"name": "product", "op": "MatMul", "output:0": "float32[1,1]"}


def test_messages_and_errors_under_the_names_of_programs():
    import runtime.client as tf

    for name in tf._MESSAGES:
        assert getattr(tf, name) is getattr(pb, name)
    assert tf.raw_ops is tf.ops
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        queue = tf.raw_ops.FIFOQueueV2([tf.float32])
        session.run(tf.raw_ops.QueueCloseV2(queue))
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(tf.raw_ops.QueueDequeueV2(queue, [tf.float32]))
