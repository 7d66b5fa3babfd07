"""What a session holds: its graph, compiled steps, tensors and runs; what its limit refuses."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    DirectSession,
    ResourceExhaustedError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, g1, graph_of, neg, node

FLOAT = DataType.FLOAT
MEGABYTE = 1 << 20


def limited(graph: pb.GraphDef, max_bytes: int | None = 4 * MEGABYTE) -> DirectSession:
    session = new_session(SessionOptions(max_session_bytes=max_bytes))
    assert isinstance(session, DirectSession)
    session.create(graph)
    return session


def constant(name: str, shape: tuple[int, ...], *values: float) -> pb.NodeDef:
    """A Const of `shape` with fewer values than the shape has elements."""
    made = pb.NodeDef(name=name, op="Const")
    made.attr["dtype"].type = pb.DT_FLOAT
    tensor = made.attr["value"].tensor
    tensor.dtype = pb.DT_FLOAT
    tensor.float_val.extend(values)
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return made


def handle_graph() -> pb.GraphDef:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("GetSessionHandle", x, name="keep")
    handle = graph.placeholder("string", "handle")
    graph.add("DeleteSessionTensor", handle, name="delete")
    return graph.graph_def


def test_nodes_and_functions_count() -> None:
    session = limited(
        graph_of(*(neg(f"n{i}", f"n{i - 1}" if i else "x") for i in range(0)), *g1().node)
    )
    before = session.bytes_held
    assert before > 4 * 1000
    session.extend(graph_of(*(neg(f"e{i}", "n") for i in range(100))))
    assert 100_000 < session.bytes_held - before < 500_000


def test_an_extend_above_the_limit_leaves_the_graph_as_it_was() -> None:
    session = limited(g1())
    nodes = [neg(f"e{i}", "n") for i in range(10_000)]
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes") as caught:
        session.extend(graph_of(*nodes))
    assert caught.value.message.startswith("The nodes, functions and constants of the graph need ")
    assert session.graph_version == 0
    assert len(session.graph_def().node) == 4
    assert session.run({"x": X}, ["n"]) == [-6]
    session.extend(graph_of(*nodes[:100]))
    assert session.run({"x": X}, ["e99"]) == [6]


def test_a_first_graph_above_the_limit_is_refused() -> None:
    with pytest.raises(ResourceExhaustedError, match="the session has 100 left"):
        limited(g1(), max_bytes=100)


@pytest.mark.parametrize("values", [(), (7.0,)])
def test_constants_of_one_value_take_no_memory(values: tuple[float, ...]) -> None:
    size = 1 << 28  # elements, 1 GiB
    graph = graph_of(*(constant(f"c{i}", (size,), *values) for i in range(60)))
    graph.node.append(node("Shape", "shape", ("c59", FLOAT), out_type=DataType.INT64))
    session = limited(graph)
    kept = [session.run({}, [f"c{i}"])[0] for i in range(60)]
    assert {array.nbytes for array in kept} == {1 << 30}
    assert {float(array[-1]) for array in kept} == {sum(values)}
    assert session.run({}, ["shape"])[0].tolist() == [size]
    assert session.bytes_held < 4 * MEGABYTE


def test_constants_with_more_values_count_by_their_shapes() -> None:
    session = limited(g1())
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes"):
        session.extend(graph_of(constant("c", (1 << 28,), 1, 2)))
    before = session.bytes_held
    session.extend(graph_of(constant("c", (1 << 18,), 1, 2)))
    assert MEGABYTE < session.bytes_held - before < MEGABYTE + 10_000
    assert session.run({}, ["c"])[0][-1] == 2


def test_a_constant_of_a_function_counts() -> None:
    session = limited(g1())
    definition = pb.FunctionDef()
    definition.signature.name = "large"
    definition.node_def.append(constant("c", (1 << 28,), 1, 2))
    graph = graph_of()
    graph.library.function.append(definition)
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes"):
        session.extend(graph)


def test_compiled_steps_count_and_the_oldest_go() -> None:
    chain = graph_of(*g1().node, *(neg(f"e{i}", f"e{i - 1}" if i else "n") for i in range(100)))
    for each in chain.node[4:]:
        each.op = "Tanh"
    session = limited(chain, max_bytes=16 * MEGABYTE)
    before = session.bytes_held
    session.run({"x": X}, ["e99"])
    one = session.bytes_held - before
    assert 100_000 < one < 2 * MEGABYTE
    for i in range(100):
        session.run({"x": X}, ["e99", f"e{i}"])
    assert 3 < len(session.executor_cache) < 50
    assert session.bytes_held < 6 * MEGABYTE
    misses = session.executor_cache.misses
    session.run({"x": X}, ["e99", "e99"])  # the newest is found
    assert session.executor_cache.misses == misses


def test_a_step_is_evicted_with_all_its_spellings() -> None:
    session = limited(g1(), max_bytes=MEGABYTE)
    cache = session.executor_cache
    name = "m:0"
    for _ in range(100):  # each spelling has its own entry
        session.run({"x": X}, [name] * (100 + len(cache._spelled)))
    assert cache.bytes_held <= MEGABYTE // 4
    before = cache.bytes_held
    session.run({"x": X}, ["n"])
    cache._max_bytes = 0
    session.run({"x": X}, ["m", "n"])
    assert len(cache) == 1 and len(cache._spelled) == 1
    assert cache.bytes_held < before
    assert {step.sorted_key for step in cache._spelled.values()} == set(cache._sorted)


def test_callables_count_until_they_are_released() -> None:
    session = limited(g1())
    session.run({"x": X}, ["n"])
    before = session.bytes_held
    options = pb.CallableOptions(feed=["x"], fetch=["n"])
    handles = [session.make_callable(options) for _ in range(100)]
    assert session.bytes_held - before > 100 * 1000
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes is 4194304"):
        for _ in range(10_000):
            session.make_callable(options)
    for handle in handles:
        session.release_callable(handle)
    session.make_callable(options)


def test_a_callable_with_connections_has_a_plan_of_its_own() -> None:
    session = limited(g1())
    before = session.bytes_held
    options = pb.CallableOptions(fetch=["n"])
    options.tensor_connection.add(from_tensor="a:0", to_tensor="x:0")
    handle = session.make_callable(options)
    assert session.bytes_held - before > 5000
    session.release_callable(handle)
    assert session.bytes_held == before


def test_what_a_partial_run_was_fed_counts_until_it_ends() -> None:
    session = limited(g1(), max_bytes=None)
    before = session.bytes_held
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    empty = session.bytes_held
    session.partial_run(handle, {"x": np.ones(MEGABYTE, np.float32)}, ["m:0"])
    assert empty > before
    assert 4 * MEGABYTE <= session.bytes_held - empty < 17 * MEGABYTE
    session.partial_run(handle, {}, ["n:0"])
    assert session.bytes_held == before


def test_partial_runs_are_refused_above_the_limit() -> None:
    session = limited(g1())
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes is 4194304"):
        for _ in range(2000):
            session.partial_run_setup(["x"], ["m:0", "n:0"])
    session.close()
    assert session.bytes_held < MEGABYTE


def test_tensors_under_handles_count_until_they_are_deleted() -> None:
    session = limited(handle_graph())
    value = np.ones(1000, np.float32)

    def keep() -> bytes:
        kept: bytes = session.run({"x": value.copy()}, ["keep:0"])[0].item()
        return kept

    session.run({"handle": np.array(keep(), object)}, [], ["delete"])
    before = session.bytes_held
    handle = keep()
    assert 4000 < session.bytes_held - before < 6000
    session.run({"handle": np.array(handle, object)}, [], ["delete"])
    assert session.bytes_held == before
    with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_session_bytes is 4194304"):
        for _ in range(2000):
            keep()
    assert session.resources.bytes_held < 5 * MEGABYTE


def test_closing_gives_everything_back() -> None:
    session = limited(handle_graph(), max_bytes=100 * MEGABYTE)
    value = np.ones(1000, np.float32)
    traces = [weakref.ref(value)]
    session.run_async(RunRequest({"x": value}, ["keep:0"], gives_feeds=True)).result()
    handle = session.partial_run_setup(["x", "handle"], ["keep:0"], ["delete"])
    other = value + 1
    traces.append(weakref.ref(other))
    session.partial_run_async(handle, {"x": other}, ["keep:0"]).result()
    traces += [weakref.ref(session), weakref.ref(session.resources)]
    del value, other
    gc.collect()
    assert [trace() is None for trace in traces] == [False] * 4
    session.destroy()
    assert session.resources.bytes_held == 0
    del session
    gc.collect()
    assert [trace() for trace in traces] == [None] * 4


def test_a_session_of_a_template_counts_only_what_it_adds() -> None:
    origin = limited(g1(), max_bytes=None)
    origin.run({"x": X}, ["n"])
    template = origin.freeze_template()
    session = DirectSession(
        SessionOptions(max_session_bytes=4 * MEGABYTE),
        origin._devices,
        origin._pools,
        origin._kernels,
        template,
        template.resources.fork() if template.resources is not None else None,
    )
    assert session.bytes_held == 0
    session.run({"x": X}, ["m"])
    assert session.bytes_held == 0  # compiled into the template's cache
    session.extend(graph_of(neg("e", "n")))
    session.run({"x": X}, ["e"])
    assert 1000 < session.bytes_held < 100_000
