"""Which ops of a signature have an effect or a state; reading counts as none."""

from __future__ import annotations

import pathlib

import pytest

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.saved_model.saved_model_files import find_meta_graph, read_saved_model
from runtime.saved_model.stateful_ops import stateful_ops
from tests.conformance.case import Graph
from tests.unit.runtime.saved_model.test_inspection import signature

ROOT = pathlib.Path(__file__).parents[4]
FIXTURES = ROOT / "tests" / "fixtures" / "saved_models"


def of_model(path: pathlib.Path) -> dict[str, list[str]]:
    return stateful_ops(find_meta_graph(read_saved_model(str(path)), ["serve"]))


@pytest.mark.parametrize("name", ["mlp_small", "string_lookup", "lstm_small", "simple_save_ref"])
def test_models_that_read_variables_and_tables_have_none(name: str) -> None:
    found = of_model(FIXTURES / name)
    assert found["serving_default"] == []


def test_a_counter_assigns() -> None:
    found = of_model(ROOT / "examples" / "models" / "counter" / "1")
    assert "Assign" in " ".join(found["incr_counter"])
    assert found["get_counter"] == []


def test_randomness_is_a_state_also_inside_a_function() -> None:
    graph = Graph()
    x = graph.placeholder(DataType.FLOAT, "x")
    graph.add("RandomUniform", [2], name="noise", dtype=DataType.FLOAT)
    graph.add("AddV2", x, ("noise:0", DataType.FLOAT), name="y")
    graph.add("Neg", x, name="z")
    function = graph.graph_def.library.function.add()
    function.signature.name = "noisy"
    function.signature.output_arg.add(name="value", type=DataType.FLOAT)
    shape = function.node_def.add(name="shape", op="Const")
    shape.attr["dtype"].type = DataType.INT32
    random = function.node_def.add(name="random", op="RandomUniform", input=["shape:output:0"])
    random.attr["dtype"].type = DataType.FLOAT
    function.ret["value"] = "random:output:0"
    call = graph.graph_def.node.add(name="call", op="StatefulPartitionedCall")
    call.attr["f"].func.name = "noisy"
    definitions = {
        "noisy": signature(["x:0"], ["y:0"]),
        "plain": signature(["x:0"], ["z:0"]),
        "fed": signature(["x:0", "noise:0"], ["y:0"]),
        "called": signature(["x:0"], ["call:0"]),
    }
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def, signature_def=definitions)
    assert stateful_ops(meta_graph) == {
        "noisy": ["RandomUniform"],
        "plain": [],
        "fed": [],
        "called": ["RandomUniform"],
    }


def test_an_op_that_nobody_knows_may_do_anything() -> None:
    graph = pb.GraphDef()
    graph.node.add(name="y", op="NobodyKnowsThis")
    meta_graph = pb.MetaGraphDef(graph_def=graph, signature_def={"s": signature([], ["y:0"])})
    assert stateful_ops(meta_graph) == {"s": ["NobodyKnowsThis"]}
