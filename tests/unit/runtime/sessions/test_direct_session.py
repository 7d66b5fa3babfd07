"""DirectSession against the facts of TensorFlow's: graphs, feeds, fetches, targets, life cycle."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    AlreadyExistsError,
    CancelledError,
    Code,
    DeadlineExceededError,
    DirectSession,
    InvalidArgumentError,
    OpError,
    RunRequest,
    SessionOptions,
    new_session,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.resources.queues import Queue
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import (
    FLOAT,
    X,
    direct_session,
    g1,
    graph_of,
    in_caller,
    neg,
    node,
    queue_graph,
)


def error_of(call: Callable[[], object]) -> OpError:
    with pytest.raises(OpError) as caught:
        call()
    return caught.value


# --- feeds, fetches, targets ----------------------------------------------------------------------


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
    assert session.run({"x": X}, ["n"]) == [-6]  # and the session is as usable as before


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
    for _ in range(4):  # listed first, generated later: the same text
        error = error_of(lambda: session.run({"x": np.zeros(2, np.float32)}, ["ad"]))
        assert error.message == "Incompatible shapes: [2] vs. [3]\n\t [[{{node ad}}]]"
        assert error.code is Code.INVALID_ARGUMENT
    assert session.run({"x": X}, ["ad"])[0].tolist() == [3, 3, 3]


# --- graphs ---------------------------------------------------------------------------------------


def test_runs_before_a_graph() -> None:
    session = direct_session()
    for call, text in (
        (lambda: session.run({}, ["m"]), "Session was not created with a graph before Run()!"),
        (
            lambda: session.partial_run_setup([], ["m"]),
            "Session was not created with a graph before PRunSetup()!",
        ),
    ):
        error = error_of(call)
        assert (error.code, error.message) == (Code.INVALID_ARGUMENT, text)


def test_create_twice_and_create_empty() -> None:
    session = direct_session()
    session.create(pb.GraphDef())  # no-op
    session.create(g1())
    with pytest.raises(AlreadyExistsError, match="A Graph has already been created"):
        session.create(g1())


def test_extend_on_an_empty_session_creates() -> None:
    session = direct_session()
    session.extend(g1())
    assert session.graph_version == 0
    assert session.run({"x": X}, ["m"]) == [6]


def test_extend_adds_on_top_and_counts_versions() -> None:
    session = direct_session(g1())
    session.extend(graph_of(node("Neg", "nn", ("n:0", FLOAT))))
    assert session.graph_version == 1
    assert session.run({"x": X}, ["nn"]) == [6]


def bare(name: str, op: str = "NoOp", *inputs: str) -> pb.NodeDef:
    return pb.NodeDef(name=name, op=op, input=inputs)


def function(name: str, op: str) -> pb.FunctionDef:
    body = pb.FunctionDef(ret={"y": "r:y:0"})
    body.signature.name = name
    body.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    body.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    inner = body.node_def.add(name="r", op=op, input=["x"])
    inner.attr["T"].type = pb.DT_FLOAT
    return body


def placed(device: str) -> pb.NodeDef:
    return pb.NodeDef(name="p", op="NoOp", device=device)


BAD_EXTENSIONS: list[tuple[str, pb.GraphDef, Code, str]] = [
    ("already there", graph_of(bare("a")), Code.INVALID_ARGUMENT,
     "GraphDef argument to Extend includes node 'a', which was created by a previous call"),
    ("not unique", graph_of(bare("b"), bare("b")), Code.INVALID_ARGUMENT, "Node 'b' is not unique"),
    ("unknown input", graph_of(neg("q", "nope")), Code.INVALID_ARGUMENT,
     "Node 'q': Unknown input node 'nope'"),
    ("unknown control input", graph_of(neg("q", "a", "^nope")), Code.INVALID_ARGUMENT,
     "Node 'q': Unknown input node '^nope'"),
    ("bad output", graph_of(neg("q2", "a:3")), Code.INVALID_ARGUMENT,
     "Node 'q2': Connecting to invalid output 3 of source node a which has 1 outputs."),
    ("unknown op", graph_of(bare("u", "NoSuchOp"), bare("v", "NorThis")), Code.NOT_FOUND,
     "Op type not registered 'NoSuchOp'"),
    ("leading underscore", graph_of(bare("_x")), Code.INVALID_ARGUMENT,
     "Node '_x': Node name contains invalid characters"),
    ("empty name", graph_of(bare("")), Code.INVALID_ARGUMENT,
     "Node '': Node name contains invalid characters"),
    ("missing attr", graph_of(pb.NodeDef(name="z", op="Neg", input=["a"])), Code.NOT_FOUND,
     "No attr named 'T' in NodeDef: [[{{node z}}]]"),
    ("wrong type", graph_of(node("Neg", "z", ("a:0", DataType.INT32))), Code.INVALID_ARGUMENT,
     "Input 0 of node z was passed float from a:0 incompatible with expected int32."),
    ("too many inputs", graph_of(neg("z", "a", "a")), Code.INVALID_ARGUMENT,
     "Input 1 of node z does not exist. Node only has 1 inputs."),
    ("control first", graph_of(neg("z", "^x", "a")), Code.INVALID_ARGUMENT,
     "Node 'z': Control dependencies must come after regular dependencies"),
    ("cycle", graph_of(neg("c1", "c2"), neg("c2", "c1")), Code.INVALID_ARGUMENT,
     "2 nodes in a cycle"),
    ("too new", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(min_consumer=99999)),
     Code.INVALID_ARGUMENT, "GraphDef min consumer version 99999 above current version 2474"),
    ("too old", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(producer=-5)),
     Code.INVALID_ARGUMENT, "GraphDef producer version -5 below min producer 0"),
    ("bad consumer", pb.GraphDef(node=[bare("b")], versions=pb.VersionDef(bad_consumers=[2474])),
     Code.INVALID_ARGUMENT, "GraphDef disallows consumer version 2474."),
    ("no such device", graph_of(placed("/device:GPU:0")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p: {{node p}} was explicitly assigned to "
     "/device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]."),
    ("other task", graph_of(placed("/job:worker/task:3")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p"),
    ("small letters", graph_of(placed("/device:cpu:0")), Code.INVALID_ARGUMENT,
     "Cannot assign a device for operation p"),
    ("function with an op's name",
     pb.GraphDef(library=pb.FunctionDefLibrary(function=[function("Neg", "Abs")])),
     Code.INVALID_ARGUMENT,
     "Cannot add function 'Neg' because an op with the same name already exists."),
    ("malformed device", graph_of(placed("garbage")), Code.INVALID_ARGUMENT,
     "Malformed device specification 'garbage' in node"),
    ("other function", pb.GraphDef(library=pb.FunctionDefLibrary(function=[function("f", "Abs")])),
     Code.INVALID_ARGUMENT,
     "Cannot add function 'f' because a different function with the same name already exists."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("extension", "code", "message"),
    [row[1:] for row in BAD_EXTENSIONS],
    ids=[row[0] for row in BAD_EXTENSIONS],
)
def test_a_refused_extend_changes_nothing(extension: pb.GraphDef, code: Code, message: str) -> None:
    graph = g1()
    graph.library.function.append(function("f", "Neg"))
    session = direct_session(graph)
    before = session.graph_def()
    error = error_of(lambda: session.extend(extension))
    assert error.code is code
    assert error.message.startswith(message), error.message
    assert (session.graph_def(), session.graph_version) == (before, 0)
    assert session.run({"x": X}, ["n"]) == [-6]
    session.extend(graph_of(neg("after", "n")))
    assert session.run({"x": X}, ["after"]) == [6]


def test_all_unknown_ops_are_listed_with_their_nodes() -> None:
    graph = graph_of(bare("u", "NoSuchOp"), bare("w", "NoSuchOp"), bare("v", "NorThis"))
    message = error_of(lambda: direct_session(graph)).message
    assert "NoSuchOp (nodes u, w); NorThis (nodes v)" in message


def test_soft_placement_takes_the_cpu() -> None:
    config = pb.ConfigProto(allow_soft_placement=True)
    direct_session(graph_of(placed("/device:GPU:0")), config).run({}, [], ["p"])
    with pytest.raises(InvalidArgumentError, match=r"^Cannot assign a device for operation p"):
        direct_session(graph_of(placed("/job:worker/device:GPU:0")), config)


def test_a_node_with_too_few_inputs_fails_only_the_steps_that_reach_it() -> None:
    session = direct_session(g1())
    session.extend(graph_of(neg("z")))
    assert error_of(lambda: session.run({}, ["z"])).message.startswith(
        "Incomplete graph, missing 1 inputs for z"
    )
    assert session.run({"x": X}, ["m"]) == [6]


def test_functions_are_called_like_ops_and_through_partitioned_call() -> None:
    graph = g1()
    graph.library.function.append(function("f", "Neg"))
    graph.node.add(name="direct", op="f", input=["m"])
    call = graph.node.add(name="call", op="PartitionedCall", input=["m"])
    call.attr["f"].func.name = "f"
    call.attr["Tin"].list.type.append(pb.DT_FLOAT)
    call.attr["Tout"].list.type.append(pb.DT_FLOAT)
    assert direct_session(graph).run({"x": X}, ["direct", "call"]) == [-6, -6]


def test_extend_during_runs() -> None:
    session = direct_session(g1())
    stop = threading.Event()
    seen: list[object] = []

    def run_on() -> None:
        while not stop.is_set():
            seen.append(session.run({"x": X}, ["n"])[0])

    threads = [threading.Thread(target=run_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for index in range(10):
        session.extend(graph_of(neg(f"e{index}", "n" if index == 0 else f"e{index - 1}")))
    stop.set()
    for thread in threads:
        thread.join()
    assert set(seen) == {-6}
    assert session.run({"x": X}, ["e9"]) == [-6]


# --- deadlines, cancellation, close ---------------------------------------------------------------


def test_a_deadline_ends_one_step_only() -> None:
    session = direct_session(queue_graph())
    options = pb.RunOptions(timeout_in_ms=50)
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        session.run({}, ["deq"], (), options)
    session.run({"value": X}, [], ["enq"])
    assert session.run({}, ["deq"]) == [3]


def test_the_configured_timeout_holds_unless_the_options_say_otherwise() -> None:
    session = direct_session(queue_graph(), pb.ConfigProto(operation_timeout_in_ms=30))
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        session.run({}, ["deq"])
    assert time.monotonic() - started < 5


def test_a_step_that_waits_holds_no_thread_of_its_pool() -> None:
    config = pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
    session = direct_session(queue_graph(), config)
    waiting = session.run_async(RunRequest({}, ["deq"]))
    session.run({"value": X}, [], ["enq"])
    assert waiting.result(timeout=30) == [3]
    session.destroy()


def test_close_cancels_what_waits_and_refuses_the_rest() -> None:
    session = direct_session(queue_graph())
    waiting = [session.run_async(RunRequest({}, ["deq"])) for _ in range(3)]
    session.close()
    for future in waiting:
        with pytest.raises(CancelledError) as cancelled:
            future.result(timeout=30)
        assert cancelled.value.message in (
            "Dequeue operation was cancelled\n\t [[{{node deq}}]]",
            "Run call was cancelled",  # its pool had not come to it yet
        )
    session.close()
    for call in (
        lambda: session.run({}, ["size"]),
        lambda: session.extend(g1()),
        lambda: session.create(g1()),
        lambda: session.partial_run_setup([], ["size"]),
        lambda: session.make_callable(pb.CallableOptions(fetch=["size"])),
        lambda: session.run_callable(1, []),
        lambda: session.list_devices(),
    ):
        error = error_of(call)
        assert (error.code, error.message) == (Code.CANCELLED, "Session has been closed.")


@pytest.mark.parametrize(
    ("filled", "targets", "verb"), [(0, "deq", "Dequeue"), (2, "enq", "Enqueue")]
)
@pytest.mark.parametrize("index", [0, -1])
def test_a_queue_operation_that_waits_says_that_it_was_cancelled(
    filled: int, targets: str, verb: str, index: int
) -> None:
    session = direct_session(queue_graph())
    for _ in range(filled):
        session.run({"value": X}, [], ["enq"])
    options = pb.RunOptions(inter_op_thread_pool=index)
    request = RunRequest({"value": X}, [], [targets], options=options)
    session.run_async(RunRequest({}, ["size"])).result(30)
    with concurrent.futures.ThreadPoolExecutor() as callers:
        waiting = callers.submit(lambda: session.run_async(request).result())
        (queue,) = (each for _, _, each in session.resources if isinstance(each, Queue))
        while not (queue._dequeues or queue._enqueues):
            time.sleep(0)  # another thread's turn
        session.close()
        with pytest.raises(CancelledError) as cancelled:
            waiting.result(timeout=30)
    assert cancelled.value.message == (
        f"{verb} operation was cancelled\n\t [[{{{{node {targets}}}}}]]"
    )


def test_a_step_that_does_not_wait_hears_that_its_run_was_cancelled() -> None:
    entered, left = threading.Event(), threading.Event()

    def slow(x: object) -> object:
        entered.set()
        left.wait(30)
        return x

    kernel = KernelDef("Neg", slow, {"T": (DataType.FLOAT,)})
    session = new_session(SessionOptions(kernels=[kernel]))
    session.create(g1())
    running = session.run_async(RunRequest({"x": X}, ["n"]))
    assert entered.wait(30)
    session.close()
    with pytest.raises(CancelledError) as cancelled:
        running.result(timeout=30)
    assert cancelled.value.message == "Run call was cancelled"
    left.set()


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


# --- callables ------------------------------------------------------------------------------------


def test_callables() -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["m", "n"]))
    assert session.run_callable(handle, [X]) == [6, -6]
    message = error_of(lambda: session.run_callable(handle, [])).message
    assert message == "Expected 1 feed tensors, but got 0"
    session.release_callable(handle)
    assert error_of(lambda: session.run_callable(handle, [X])).message == (
        "Attempted to run callable after handle was released"
    )
    assert error_of(lambda: session.run_callable(99, [X])).message == "No such callable handle"


def connected(source: str, target: str, **options: object) -> pb.CallableOptions:
    connection = pb.TensorConnection(from_tensor=source, to_tensor=target)
    return pb.CallableOptions(tensor_connection=[connection], **options)  # type: ignore[arg-type]


def test_a_connection_puts_one_output_in_place_of_another() -> None:
    session = direct_session(g1())
    handle = session.make_callable(connected("a:0", "x:0", fetch=["n"]))
    assert session.run_callable(handle, []) == [-4]
    assert session.run({"x": X}, ["n"]) == [-6]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (connected("n:0", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "would create a cycle."),
        (connected("zz:0", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "unknown node"),
        (connected("a:9", "x:0", fetch=["n"]), Code.INVALID_ARGUMENT, "unknown edge"),
        (connected("a:0", "zz:0", fetch=["n"]), Code.NOT_FOUND, "unable to find feed output"),
        (
            connected("a:0", "x:0", fetch=["n"], feed=["x:0"]),
            Code.INVALID_ARGUMENT,
            "fed more than once",
        ),
        (
            pb.CallableOptions(
                tensor_connection=[
                    pb.TensorConnection(from_tensor=source, to_tensor="x:0")
                    for source in ("a:0", "a:0")
                ],
                fetch=["n"],
            ),
            Code.INVALID_ARGUMENT,
            "fed more than once",
        ),
    ],
)
def test_refused_connections(options: pb.CallableOptions, code: Code, text: str) -> None:
    error = error_of(lambda: direct_session(g1()).make_callable(options))
    assert error.code is code
    assert text in error.message


# --- partial runs ---------------------------------------------------------------------------------


def partial_graph() -> pb.GraphDef:
    graph = Graph()
    p1 = graph.placeholder("float32", "p1")
    p2 = graph.placeholder("float32", "p2")
    i1 = graph.add("Neg", p1, name="i1")[0]
    graph.add("Mul", i1, p2, name="i2")
    return graph.graph_def


def test_partial_run_in_parts() -> None:
    session = direct_session(partial_graph())
    handle = session.partial_run_setup(["p1", "p2"], ["i1:0", "i2:0"])
    assert handle.startswith("p1,p2->i1:0,i2:0//1/;")
    assert session.partial_run(handle, {"p1": X}, ["i1:0"]) == [-3]
    refused = [
        ({"p1": X}, [], "The feed p1 has already been fed."),
        ({}, ["i1:0"], "The fetch i1:0 has already been fetched."),
        (
            {},
            ["i2:0"],
            "Fetch i2:0 can't be computed from the feeds that have been fed so far.",
        ),
        ({"zz": X}, [], "The feed zz was not specified in partial_run_setup."),
        ({}, ["zz:0"], "The fetch zz:0 was not specified in partial_run_setup."),
    ]
    for feeds, fetches, text in refused:
        error = error_of(lambda f=feeds, o=fetches: session.partial_run(handle, f, o))
        assert (error.code, error.message) == (Code.INVALID_ARGUMENT, text)
    assert session.partial_run(handle, {"p2": X}, ["i2:0"]) == [-9]
    assert error_of(lambda: session.partial_run(handle, {}, [])).message == (
        "Must run 'setup' before performing partial runs!"
    )


def test_an_error_ends_a_partial_run() -> None:
    graph = Graph()
    p1 = graph.placeholder("float32", "p1")
    graph.add("AddV2", p1, np.zeros(3, np.float32), name="i1")
    session = direct_session(graph.graph_def)
    handle = session.partial_run_setup(["p1"], ["i1:0"])
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        session.partial_run(handle, {"p1": np.zeros(2, np.float32)}, ["i1:0"])
    assert "Must run 'setup'" in error_of(lambda: session.partial_run(handle, {}, [])).message


# --- what a run reports ---------------------------------------------------------------------------


def run_reporting(session: DirectSession, **options: object) -> pb.RunMetadata:
    metadata = pb.RunMetadata()
    session.run({"x": X}, ["m"], (), pb.RunOptions(**options), metadata)  # type: ignore[arg-type]
    return metadata


def test_a_trace_lists_every_node() -> None:
    metadata = run_reporting(direct_session(g1()), trace_level=pb.RunOptions.FULL_TRACE)
    (device,) = metadata.step_stats.dev_stats
    names = {stats.node_name for stats in device.node_stats}
    assert names == {"_SOURCE", "_arg_x_0_0", "a", "m", "_retval_m_0_0"}
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"


def test_no_trace_reports_nothing() -> None:
    assert run_reporting(direct_session(g1())) == pb.RunMetadata()


def test_partition_graphs() -> None:
    metadata = run_reporting(direct_session(g1()), output_partition_graphs=True)
    (graph,) = metadata.partition_graphs
    assert {n.name: n.op for n in graph.node} == {
        "_arg_x_0_0": "_Arg",
        "a": "Const",
        "m": "Mul",
        "_retval_m_0_0": "_Retval",
    }


def test_costs_come_every_nth_step() -> None:
    config = pb.ConfigProto()
    config.graph_options.build_cost_model = 3
    session = direct_session(g1(), config)
    has_costs = [run_reporting(session).HasField("cost_graph") for _ in range(6)]
    assert has_costs == [False, False, True, False, False, True]
