"""Which graphs have work that the sizes of the feeds bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from runtime.executors import steady_work as tables
from runtime.executors.steady_work import has_steady_work
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import prune
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.loops.recurrent_graphs import X, graph_of, lstm

FLOATS, INTS, TEXT = DataType.FLOAT, DataType.INT32, DataType.STRING


def is_steady(build: Callable[[Graph], object]) -> bool:
    """Whether the graph is steady if its placeholders are fed; `y` is fetched."""
    graph = Graph()
    build(graph)
    feeds = [node.name for node in graph.graph_def.node if node.op == "Placeholder"]
    made = extend_graph(RuntimeGraph(), graph.graph_def)
    return has_steady_work(prune(made, feeds, ["y:0"], []))


def x_of(graph: Graph, dtype: DataType = FLOATS) -> tuple[str, DataType]:
    return graph.placeholder(dtype, f"x{len(graph.graph_def.node)}")


@pytest.mark.parametrize(
    "build",
    [
        lambda g: g.add("MatMul", x_of(g), x_of(g), name="y"),
        lambda g: g.add("Fill", np.int32([3]), x_of(g), name="y"),
        lambda g: g.add("Fill", g.add("Shape", x_of(g))[0], np.float32(0), name="y"),
        lambda g: g.add("Tile", x_of(g), np.int32([3]), name="y"),
        lambda g: g.add("AddV2", x_of(g, INTS), x_of(g, INTS), name="y"),
        lambda g: g.add(
            "OneHot", x_of(g, INTS), np.int32(3), np.float32(1), np.float32(0), name="y"
        ),
        lambda g: g.add("RandomStandardNormal", np.int32([2]), dtype=FLOATS, name="y"),
        lambda g: g.add("StringLower", x_of(g, TEXT), name="y"),
    ],
)
def test_steady(build: Callable[[Graph], object]):
    assert is_steady(build)


@pytest.mark.parametrize(
    "build",
    [
        lambda g: g.add("Fill", x_of(g, INTS), np.float32(0), name="y"),
        lambda g: g.add("Fill", g.add("Neg", x_of(g, INTS))[0], np.float32(0), name="y"),
        lambda g: g.add("Range", x_of(g), x_of(g), x_of(g), name="y"),
        lambda g: g.add("Tile", x_of(g), x_of(g, INTS), name="y"),
        lambda g: g.add(
            "OneHot", x_of(g, INTS), x_of(g, INTS), np.float32(1), np.float32(0), name="y"
        ),
        lambda g: g.add("DecodePng", x_of(g, TEXT), name="y"),
        lambda g: g.add("RandomPoissonV2", np.int32([2]), x_of(g), name="y"),
        lambda g: g.add("RandomStandardNormal", x_of(g, INTS), dtype=FLOATS, name="y"),
        lambda g: g.add("Print", x_of(g), [x_of(g)], name="y"),
    ],
)
def test_unsteady(build: Callable[[Graph], object]):
    assert not is_steady(build)


def test_a_value_read_from_a_variable_is_given():
    def build(graph: Graph) -> None:
        handle = graph.add("VarHandleOp", dtype=INTS, shape=None, name="v")[0]
        dims = graph.add("ReadVariableOp", handle, dtype=INTS)[0]
        graph.add("Fill", dims, np.float32(0), name="y")

    assert not is_steady(build)


def test_the_tables_name_ops():
    named = (
        tables._SHAPE_OPS
        | tables.STEADY_OPS
        | tables._STEADY_STATE
        | tables._STEADY_INPUTS.keys()
        | tables.ITERATIVE_OPS
    )
    assert [op for op in sorted(named) if op_def_registry.find(op) is None] == []


def test_a_loop_that_a_model_was_written_for_is_steady():
    """Its lists bound it; what reads its values is judged as in any other graph."""
    graph, (stacked, *_) = graph_of(lstm)
    made = extend_graph(RuntimeGraph(), graph)
    step = prune(made, [X], [stacked], [])
    lists = {node for node in step.nodes if node.op.startswith("TensorList")}
    loops = {node for node in step.nodes if node.op in ("While", "StatelessWhile")}
    assert lists and loops
    assert has_steady_work(step, lists | loops)
    assert not has_steady_work(step, loops)
    assert not has_steady_work(step, lists)
    assert not has_steady_work(step)


def test_what_depends_on_the_values_of_a_loop_is_not_steady():
    graph, (stacked, *_) = graph_of(lstm)
    tail = Graph()
    lowest = tail.add("Min", (stacked, FLOATS), np.int32([0, 1, 2]))[0]
    tail.add("Range", lowest, lowest, lowest, name="y")
    graph.node.extend(tail.graph_def.node)
    step = prune(extend_graph(RuntimeGraph(), graph), [X], ["y:0"], [])
    assert not has_steady_work(step, {node for node in step.nodes if node.op != "Range"})
