"""Which nodes of a graph look at memory."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.executors.memory_checks import (
    LEAST_LARGE_BYTES,
    MOST_LARGE_BYTES,
    MemoryCheck,
    large_bytes,
    memory_checks,
)
from runtime.framework.broadcast_memory import broadcast_need
from runtime.framework.dtypes import DataType
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import prune
from tests.conformance.case import Graph

F32 = DataType.FLOAT
LARGE = 1000


def no_kernel(*values: TensorValue) -> TensorValue:
    raise AssertionError("only compiled")


def fill_need(dims: np.ndarray, value: TensorValue) -> int:
    return int(np.prod(dims)) * 4


KERNELS = KernelRegistry(
    [
        KernelDef("AddV2", no_kernel, memory=broadcast_need),
        KernelDef("Fill", no_kernel, memory=fill_need),
        KernelDef("Neg", no_kernel, memory=2),
        KernelDef("ConcatV2", no_kernel, memory=1),
        KernelDef("AddN", no_kernel, memory=1),
        KernelDef("Stage", no_kernel, memory=0),
        KernelDef("Unstage", no_kernel, memory=0),
        KernelDef("Reshape", no_kernel, memory=1),
        KernelDef("Sigmoid", no_kernel),  # of a program that says nothing
    ]
)


def checks_of(
    graph: Graph, fetch: str, feeds: tuple[str, ...] = ("x:0",), *, in_order: bool = True
) -> dict[str, MemoryCheck]:
    whole = extend_graph(RuntimeGraph(), graph.graph_def)
    step = prune(whole, feeds, [fetch], [])
    found = memory_checks(step, KERNELS, LARGE, in_order=in_order)
    return {node.name: check for node, check in found.items()}


def looks(check: MemoryCheck) -> bool:
    return bool(
        check.is_grower
        or check.joined
        or check.sources
        or check.string_sources
        or check.looks_after
        or check.keeps
    )


def test_a_chain_of_small_operations_looks_once() -> None:
    graph = Graph()
    value = graph.placeholder(F32, "x")
    for index in range(50):
        value = graph.add("AddV2", value, np.float32([1, 2]), name=f"n{index}")[0]
    checks = checks_of(graph, value[0])
    assert [name for name, check in checks.items() if looks(check)] == ["n0"]
    assert checks["n0"].is_grower and checks["n0"].is_broadcast


def test_scalars_and_residuals_grow_nothing() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    half = graph.add("AddV2", x, np.float32(1), name="scalar")[0]
    negative = graph.add("Neg", half, name="neg")[0]
    graph.add("AddV2", negative, x, name="residual")
    checks = checks_of(graph, "residual:0")
    assert not checks["residual"].is_grower
    assert not checks["scalar"].is_grower
    assert checks["scalar"].sources == (0,)  # the first reader of the feed
    assert checks["residual"].sources == ()  # not the second one
    assert checks["neg"].multiple == 2


def test_every_reader_looks_at_a_feed_if_nodes_run_in_any_order() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    first = graph.add("Neg", x, name="first")[0]
    second = graph.add("Neg", x, name="second")[0]
    graph.add("AddN", [first, second], name="sum")
    checks = checks_of(graph, "sum:0", in_order=False)
    assert checks["first"].sources == checks["second"].sources == (0,)


def test_operations_on_two_shapes_grow() -> None:
    graph = Graph()
    x, y = graph.placeholder(F32, "x"), graph.placeholder(F32, "y")
    outer = graph.add("AddV2", x, y, name="outer")[0]
    graph.add("AddV2", graph.add("Neg", outer)[0], y, name="again")
    checks = checks_of(graph, "again:0", ("x:0", "y:0"))
    assert checks["outer"].is_grower
    assert checks["outer"].is_of_shapes and checks["outer"].varying == (0, 1)
    assert not checks["again"].is_grower  # has the shape of both already


def test_a_bound_is_called_before_the_kernel() -> None:
    graph = Graph()
    dims = graph.placeholder(DataType.INT32, "x")
    graph.add("Fill", dims, np.float32(0), name="fill")
    check = checks_of(graph, "fill:0")["fill"]
    assert check.is_grower and check.looks_after and not check.is_of_shapes
    assert check.need is not None and check.need(np.int32([10, 10]), np.float32(0)) == 400


def test_operations_that_join_look_at_all_inputs() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    graph.add("ConcatV2", [x, x], np.int32(0), name="twice")
    assert checks_of(graph, "twice:0")["twice"].joined == (0, 1)
    graph = Graph()
    x = graph.placeholder(F32, "x")
    graph.add("AddN", [x, x], name="sum")
    assert checks_of(graph, "sum:0")["sum"].joined == ()


def test_large_constants_are_looked_at_and_small_ones_are_not() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    small = graph.add("Neg", np.zeros(10, np.float32), name="small")[0]
    large = graph.add("Neg", np.zeros(1000, np.float32), name="large")[0]
    graph.add("AddN", [x, small, large], name="sum")
    checks = checks_of(graph, "sum:0")
    assert checks["small"].sources == ()
    assert checks["large"].sources == (0,)


def test_a_reader_looks_through_an_op_that_returns_its_input() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    flat = graph.add("Reshape", x, np.int32([-1]), name="flat")[0]
    graph.add("Neg", flat, name="neg")
    checks = checks_of(graph, "neg:0")
    assert checks["neg"].sources == (0,)
    assert not checks["flat"].makes


def test_what_comes_out_of_state_is_looked_at_and_what_goes_in_is_noted() -> None:
    graph = Graph()
    x = graph.placeholder(F32, "x")
    graph.add("Stage", [x], dtypes=[F32], name="stage")
    taken = graph.add("Unstage", dtypes=[F32], name="taken", control=["stage"])[0]
    graph.add("Neg", taken, name="neg")
    checks = checks_of(graph, "neg:0")
    assert checks["stage"].keeps
    assert checks["taken"].looks_after and not checks["taken"].keeps


def test_a_kernel_without_a_bound_is_looked_at() -> None:
    graph = Graph()
    graph.add("Sigmoid", graph.placeholder(F32, "x"), name="own")
    assert checks_of(graph, "own:0")["own"].looks_after


@pytest.mark.parametrize(
    ("width", "large"),
    [(0, MOST_LARGE_BYTES), (64, MOST_LARGE_BYTES), (128, 1 << 17), (1 << 20, LEAST_LARGE_BYTES)],
)
def test_what_is_large_depends_on_how_many_values_there_are(width: int, large: int) -> None:
    assert large_bytes(width) == large
