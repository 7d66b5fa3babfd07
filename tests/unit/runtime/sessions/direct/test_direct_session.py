"""DirectSession against the facts of TensorFlow's: feeds, fetches and targets."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import protos as pb
from runtime.api import Code, DataType, InvalidArgumentError
from runtime.clusters.engine_choice import DEFAULT_CHOICE
from runtime.clusters.running import engine
from runtime.framework.dtypes import from_numpy
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, in_caller
from tests.unit.runtime.sessions.session_errors import error_of


def test_a_name_without_index_is_output_zero() -> None:
    session = direct_session(g1())
    assert session.run({"x": X}, ["m"]) == session.run({"x:0": X}, ["m:0"]) == [6]
    assert session.run({"x": X}, ["m:00"]) == [6]


def test_the_same_fetch_twice_and_spelled_otherwise_gives_the_value_each_time() -> None:
    assert direct_session(g1()).run({"x": X}, ["m", "m:0", "m"]) == [6, 6, 6]


def test_values_come_in_the_order_of_the_fetches() -> None:
    session = direct_session(g1())
    assert session.run({"x": X}, ["n", "a", "m"]) == [-6, 2, 6]
    assert session.run({"x": X}, ["a", "m", "n"]) == [2, 6, -6]


def test_any_output_may_be_fed_and_prunes_what_it_needed() -> None:
    session = direct_session(g1())
    assert session.run({"m": X}, ["n"]) == [-3]
    assert session.run({"a": np.float32(5), "x": X}, ["m"]) == [15]


def test_a_feed_that_nothing_needs_is_fine() -> None:
    assert direct_session(g1()).run({"x": X}, ["a"]) == [2]


REFUSED_RUNS: list[tuple[str, dict[str, object], list[str], list[str], Code, str]] = [
    ("unknown fetch", {}, ["zz"], [], Code.INVALID_ARGUMENT,
     "Tensor zz:0, specified in either feed_devices or fetch_devices was not found in the Graph"),
    ("unknown feed", {"zz": X}, ["a"], [], Code.INVALID_ARGUMENT,
     "Tensor zz:0, specified in either feed_devices or fetch_devices was not found in the Graph"),
    ("output too big", {}, ["a:7"], [], Code.OUT_OF_RANGE,
     "Node 'a' (type: 'Const', num of outputs: 1) does not have output 7"),
    ("control fetch", {}, ["^a"], [], Code.OUT_OF_RANGE,
     "Node 'a' (type: 'Const', num of outputs: 1) does not have output -1"),
    ("unknown target", {}, [], ["zz"], Code.NOT_FOUND,
     "PruneForTargets: Some target nodes not found: zz "),
    ("nothing asked for", {"x": X}, [], [], Code.INVALID_ARGUMENT,
     "Must specify at least one target to fetch or execute."),
    ("fed twice", {"x": X, "x:0": X}, ["m"], [], Code.INVALID_ARGUMENT,
     'Endpoint "x:0" fed more than once.'),
    ("fed and fetched", {"x": X}, ["x"], [], Code.INVALID_ARGUMENT, "x is both fed and fetched."),
    ("fed and fetched, spelled otherwise", {"x": X}, ["x:0"], [], Code.INVALID_ARGUMENT,
     "x:0 is both fed and fetched."),
    ("unfed", {}, ["m"], [], Code.INVALID_ARGUMENT,
     "You must feed a value for placeholder tensor 'x' with dtype float\n\t [[{{node x}}]]"),
    ("wrong type", {"x": np.int32(3)}, ["m"], [], Code.INVALID_ARGUMENT,
     "Expects arg[0] to be float but int32 is provided"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("feeds", "fetches", "targets", "code", "message"),
    [row[1:] for row in REFUSED_RUNS],
    ids=[row[0] for row in REFUSED_RUNS],
)
@pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()], ids=["pool", "caller"])
def test_refused_runs(
    feeds: dict[str, object],
    fetches: list[str],
    targets: list[str],
    code: Code,
    message: str,
    options: pb.RunOptions,
) -> None:
    session = direct_session(g1())
    error = error_of(lambda: session.run(feeds, fetches, targets, options))
    assert (error.code, error.message) == (code, message)
    assert session.run({"x": X}, ["n"]) == [-6]  # the session remains usable


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">c8", ">U2", "S2", "U2"])
@pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()], ids=["pool", "caller"])
def test_an_array_has_any_byte_order_and_kind_of_string(dtype: str, options: pb.RunOptions) -> None:
    fed = np.array(["7", "12"]).astype(dtype)
    data_type = from_numpy(fed.dtype)
    graph = Graph()
    graph.add("Identity", graph.placeholder(data_type.name_on_wire, "x"), name="y")
    (value,) = direct_session(graph.graph_def).run({"x": fed}, ["y"], [], options)
    assert value.dtype == data_type.numpy
    assert value.tolist() == ([b"7", b"12"] if value.dtype == object else fed.tolist())


def test_targets_may_be_spelled_as_outputs_and_twice() -> None:
    assert direct_session(g1()).run({"x": X}, [], ["a:0", "a", "n"]) == []


def test_the_target_of_a_fed_node_runs_the_node_itself() -> None:
    error = error_of(lambda: direct_session(g1()).run({"x": X}, ["m"], ["x"]))
    assert "You must feed a value for placeholder tensor 'x'" in error.message


def test_kernel_errors_name_the_node_and_leave_the_session_usable() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    graph.add("AddV2", x, np.zeros(3, np.float32), name="ad")
    session = direct_session(graph.graph_def)
    for _ in range(4):  # the plan is interpreted first, then generated: one text
        error = error_of(lambda: session.run({"x": np.zeros(2, np.float32)}, ["ad"]))
        assert error.message == "Incompatible shapes: [2] vs. [3]\n\t [[{{node ad}}]]"
        assert error.code is Code.INVALID_ARGUMENT
    assert session.run({"x": X}, ["ad"])[0].tolist() == [3, 3, 3]


def test_concurrent_runs_give_right_results() -> None:
    session = direct_session(g1())
    wrong: list[object] = []

    def run_many(seed: int) -> None:
        for step in range(250):
            value = np.float32(seed * 1000 + step)
            if session.run({"x": value}, ["n"]) != [-2 * value]:
                wrong.append(value)

    threads = [threading.Thread(target=run_many, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_value_that_is_fed_is_no_variable_to_assign_to() -> None:
    graph = Graph()
    (ref,) = graph.add("VariableV2", dtype=DataType.FLOAT, shape=[], name="v")
    graph.add("Assign", ref, np.float32(1), name="init")
    graph.add("Identity", ref, name="read")
    session = direct_session(graph.graph_def)
    with pytest.raises(InvalidArgumentError) as error:
        session.run({"v": np.float32(2)}, [], ["init"])
    assert str(error.value) == (
        "Input 0 of node init was passed float from _arg_v_0_0:0 incompatible with expected "
        "float_ref."
    )
    assert session.run({"v": np.float32(2)}, ["read"]) == [2]
    session.run({}, [], ["init"])
    assert session.run({}, ["read"]) == [1]


@pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()])
def test_a_name_instead_of_a_list_of_names(options: pb.RunOptions) -> None:
    session = direct_session(g1())
    with pytest.raises(InvalidArgumentError, match=r"fetches must be a list of names, got 'm'"):
        session.run({"x": X}, "m", (), options)
    with pytest.raises(InvalidArgumentError, match=r"targets must be a list of names, got 'm'"):
        session.run({"x": X}, (), "m", options)


@pytest.mark.parametrize(
    ("clusters", "level"), [("off", pb.OptimizerOptions.L1), ("auto", pb.OptimizerOptions.L0)]
)
def test_a_session_without_clusters_has_no_engine_even_if_another_one_has_wanted_it(
    clusters: str, level: pb.OptimizerOptions.Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(engine._found, DEFAULT_CHOICE, None)
    config = pb.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level
    assert direct_session(g1()).engine() is not None
    assert direct_session(g1(), config, clusters).engine() is None
