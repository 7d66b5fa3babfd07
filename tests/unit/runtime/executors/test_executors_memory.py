"""Steps that ask for more memory than their session has: they end, and the session lives on.

The budgets are a few MiB, so that nothing large is ever allocated.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    DirectSession,
    InvalidArgumentError,
    ResourceExhaustedError,
    ResourceManager,
    SessionOptions,
    UnimplementedError,
    new_session,
)
from runtime.executors import step_plan
from runtime.framework.allocation import set_tensor_limit, tensor_limit
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.memory_account import process_account
from tests.conformance.case import Graph
from tests.conformance.cases.control.loops import LoopGraph
from tests.node_builder import build_node_def

MIB = 1 << 20
BUDGET = 8 * MIB
F32, I32 = DataType.FLOAT, DataType.INT32
ONE = np.int32([256, 1024])  # the shape of 1 MiB of float32
EXECUTORS = ("INTERPRETED", "GENERATED", "DATAFLOW")
# The graph of an attack, and what to fetch.
Attack = Callable[[], tuple[Graph, list[str], list[str]]]


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(step_plan, "GENERATE_AT_RUN", 1 if request.param == "GENERATED" else 99)
    return "DATAFLOW" if request.param == "DATAFLOW" else "DEFAULT"


def session_of(graph: Graph, executor: str = "DEFAULT", **limits: int) -> DirectSession:
    config = pb.ConfigProto(inter_op_parallelism_threads=-1)
    config.experimental.executor_type = executor
    config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    limits = limits or {"max_session_bytes": BUDGET}
    session = new_session(SessionOptions(config=config, **limits))
    assert isinstance(session, DirectSession)
    graph.add("Neg", graph.placeholder(F32, "small"), name="alive")
    session.create(graph.graph_def)
    return session


def fill(graph: Graph, shape: np.ndarray = ONE) -> tuple[str, DataType]:
    return graph.add("Fill", shape, np.float32(1))[0]


def one_large_fill() -> tuple[Graph, list[str], list[str]]:
    graph = Graph()
    return graph, [fill(graph, np.int32([3000, 1000]))[0]], []


def sum_of_fills() -> tuple[Graph, list[str], list[str]]:
    graph = Graph()
    total = graph.add("AddN", [fill(graph) for _ in range(60)])[0]
    return graph, [total[0]], []


def staged_fills() -> tuple[Graph, list[str], list[str]]:
    """Stage 60 tensors of 1 MiB one after the other."""
    graph = Graph()
    before: list[str] = []
    for index in range(60):
        dims = graph.add("Identity", ONE, control=before)[0]
        value = graph.add("Fill", dims, np.float32(1))[0]
        graph.add("Stage", [value], name=f"stage{index}", dtypes=[F32])
        before = [f"stage{index}"]
    return graph, [], before


def doubling(op: str) -> tuple[Graph, list[str], list[str]]:
    graph = Graph()
    if op == "StringJoin":
        value = graph.add("Identity", np.array(b"x" * 1024, object))[0]
    else:
        value = graph.add("Identity", np.ones((1, 256), np.float32))[0]
    for _ in range(40):
        if op == "StringJoin":
            value = graph.add(op, [value, value])[0]
        elif op == "Pack":
            value = graph.add("Reshape", graph.add(op, [value, value])[0], np.int32([-1]))[0]
        else:
            value = graph.add(op, [value, value], np.int32(0))[0]
    return graph, [value[0]], []


def outer_sums() -> tuple[Graph, list[str], list[str]]:
    """[48, 1] + [1, 48], and the same with the result: 21 MB."""
    graph = Graph()
    value = graph.add("Identity", np.ones(48, np.float32))[0]
    for _ in range(2):
        column = graph.add("Reshape", value, np.int32([-1, 1]))[0]
        row = graph.add("Reshape", value, np.int32([1, -1]))[0]
        value = graph.add("AddV2", column, row)[0]
    return graph, [value[0]], []


def loop_of_version_1() -> tuple[Graph, list[str], list[str]]:
    graph = LoopGraph()
    axis, limit = graph.constant(np.int32(0), "l"), graph.constant(np.int32(40), "l")
    one = graph.constant(np.int32(1), "l")
    exits = graph.while_loop(
        "l",
        [np.int32(0), np.ones(256, np.float32)],
        lambda values: graph.one("Less", values[0], limit),
        lambda values: [
            graph.one("Add", values[0], one),
            graph.one("ConcatV2", [values[1], values[1]], axis),
        ],
        shape_invariants=(),
    )
    return graph, [exits[1][0]], []


def loop_over_functions() -> tuple[Graph, list[str], list[str]]:
    graph = Graph()
    for name, nodes, returned in (
        ("cond", [("Less", "n", ["i", "limit"], {})], {"y0": "n:z:0"}),
        (
            "body",
            [
                ("AddV2", "next", ["i", "one"], {}),
                ("ConcatV2", "twice", [["x", "x"], "zero"], {}),
            ],
            {"y0": "next:z:0", "y1": "twice:output:0"},
        ),
    ):
        function = graph.graph_def.library.function.add()
        function.signature.name = name
        for each, kind in (("i", I32), ("x", F32)):
            function.signature.input_arg.add(name=each, type=int(kind))
        for each, value in (("limit", 40), ("one", 1), ("zero", 0)):
            function.node_def.append(constant(each, value))
        for op, node, inputs, attrs in nodes:
            function.node_def.append(build_node_def(op, node, _typed(inputs), attrs))
        for result, source in returned.items():
            kind = DataType.BOOL if name == "cond" else F32 if result == "y1" else I32
            function.signature.output_arg.add(name=result, type=int(kind))
            function.ret[result] = source
    loop = graph.add(
        "While",
        [np.int32(0), np.ones(256, np.float32)],
        cond=NameAttrList("cond"),
        body=NameAttrList("body"),
    )
    return graph, [loop[1][0]], []


def constant(name: str, value: int) -> pb.NodeDef:
    node = pb.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = int(I32)
    node.attr["value"].tensor.dtype = int(I32)
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.int_val.append(value)
    return node


def _typed(names: list[object]) -> list[object]:
    kinds = {"i": I32, "x": F32}
    texts = {"limit": "limit:output:0", "one": "one:output:0", "zero": "zero:output:0"}
    return [
        [(each, kinds[each]) for each in name]
        if isinstance(name, list)
        else (texts.get(str(name), str(name)), kinds.get(str(name), I32))
        for name in names
    ]


# By the account of the step, which counts arrays, or by the resources, which count what they keep.
BY_STEP = (
    r"OOM: \d+ more bytes are needed; the session has \d+ bytes, "
    r"the limit is 8388608 \(sessions\.max_session_bytes\)"
)
BY_RESOURCES = (
    r"The resources of the session would hold \d+ bytes; sessions\.max_session_bytes is 8388608"
)
ATTACKS: dict[str, Attack] = {
    "one Fill": one_large_fill,
    "AddN of 60 Fills": sum_of_fills,
    "Stage of Fills": staged_fills,
    "StringJoin": lambda: doubling("StringJoin"),
    "ConcatV2": lambda: doubling("ConcatV2"),
    "Pack": lambda: doubling("Pack"),
    "outer sums": outer_sums,
    "loop of version 1": loop_of_version_1,
    "loop over functions": loop_over_functions,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_step_that_needs_too_much_ends_and_its_session_lives(attack: str, executor: str) -> None:
    graph, fetches, targets = ATTACKS[attack]()
    refused = BY_RESOURCES if attack == "Stage of Fills" else BY_STEP
    session = session_of(graph, executor)
    account = session.memory
    assert account is not None
    for _ in range(2):
        with pytest.raises(ResourceExhaustedError, match=refused):
            session.run({}, fetches, targets)
        assert session.run({"small:0": np.float32([3])}, ["alive:0"])[0] == [-3]
        if attack == "Stage of Fills":
            assert account.used > BUDGET // 2  # what is staged stays
        else:
            gc.collect()
            assert account.used == 0
        gc.collect()  # what an error's traceback refers to
        assert account.left == BUDGET - account.used  # nothing stays set aside
    session.close()
    session.destroy()
    gc.collect()
    assert account.used == 0


def test_what_is_fetched_counts_until_it_is_dropped(executor: str) -> None:
    graph = Graph()
    made = fill(graph)
    session = session_of(graph, executor)
    assert session.memory is not None
    kept = [session.run({}, [made[0]])[0] for _ in range(6)]
    assert session.memory.used == 6 * MIB
    views = [each[:1] for each in kept]
    del kept
    assert session.memory.used == 6 * MIB
    del views
    assert session.memory.used == 0


def test_a_step_has_a_limit_of_its_own(executor: str) -> None:
    graph = Graph()
    pair = [fill(graph), fill(graph)]
    total = graph.add("AddN", pair)[0]
    session = session_of(graph, executor, max_step_bytes=3 * MIB - 1)
    with pytest.raises(ResourceExhaustedError, match=r"the step has .*sessions\.max_step_bytes"):
        session.run({}, [total[0], *(each[0] for each in pair)])
    kept = [session.run({}, [pair[0][0]]) for _ in range(6)]
    assert len(kept) == 6  # no limit of the session


def test_values_that_are_read_are_not_counted(executor: str) -> None:
    """What a session has not made is not its own: feeds, and the variables of its model."""
    graph = Graph()
    x = graph.placeholder(F32, "x")
    flat = graph.add("Reshape", x, np.int32([-1]))[0]
    session = session_of(graph, executor)
    assert session.memory is not None
    (value,) = session.run({"x:0": np.zeros((1024, 4096), np.float32)}, [flat[0]])
    assert value.nbytes == 2 * BUDGET
    assert session.memory.used == 0


def staging_loop() -> tuple[Graph, str]:
    """Return a loop that stages 5,000 tensors of 64 KiB, and what to fetch."""
    graph = LoopGraph()
    one, limit = graph.constant(np.int32(1), "l"), graph.constant(np.int32(5000), "l")
    size = graph.constant(np.int32([16384]), "l")
    number = graph.constant(np.float32(1), "l")
    stage = lambda value: graph.add("Stage", [value], dtypes=[F32], name="stage")  # noqa: E731

    def body(values: list[tuple[str, DataType]]) -> list[tuple[str, DataType]]:
        filled = graph.one("Fill", size, number)
        stage(filled)
        following = graph.add("Add", values[0], one, control=["stage"])[0]
        return [following]

    exits = graph.while_loop(
        "l", [np.int32(0)], lambda values: graph.one("Less", values[0], limit), body
    )
    return graph, exits[0][0]


def test_lists_of_small_tensors_are_counted_in_a_loop(executor: str) -> None:
    graph, fetch = staging_loop()
    session = session_of(graph, executor)
    with pytest.raises(ResourceExhaustedError, match=BY_RESOURCES):
        session.run({}, [fetch])


def test_what_kernels_keep_is_counted_now_and_then(executor: str) -> None:
    graph, fetch = staging_loop()
    session = session_of(graph, executor, max_session_bytes=64 * MIB)
    assert session.memory is not None
    session.memory.count_kept = lambda: 65 * MIB  # what resources say
    expected = (
        r"OOM: 0 more bytes are needed; the session has 68157440 bytes, "
        r"the limit is 67108864 \(sessions\.max_session_bytes\)"
    )
    with pytest.raises(ResourceExhaustedError, match=expected):
        session.run({}, [fetch])


def test_sessions_that_share_variables_share_a_budget() -> None:
    manager = ResourceManager()
    sessions = []
    for name in ("a", "b"):
        graph = Graph()
        handle = graph.add("VarHandleOp", name="v", shared_name=name, dtype=F32, shape=None)[0]
        value = graph.add("Fill", np.int32([1250, 1024]), np.float32(1))[0]
        graph.add("AssignVariableOp", handle, value, name="assign", dtype=F32)
        graph.add("DestroyResourceOp", handle, name="end")
        config = pb.ConfigProto(inter_op_parallelism_threads=-1)
        config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
        session = new_session(
            SessionOptions(config=config, resources=manager, max_session_bytes=BUDGET)
        )
        session.create(graph.graph_def)
        sessions.append(session)
    sessions[0].run({}, (), ["assign"])
    with pytest.raises(ResourceExhaustedError, match="sessions that share their variables has"):
        sessions[1].run({}, (), ["assign"])
    sessions[0].close()
    with pytest.raises(ResourceExhaustedError, match="sessions that share their variables has"):
        sessions[1].run({}, (), ["assign"])
    manager.clear()  # as Reset does
    sessions[1].run({}, (), ["assign"])


def test_the_process_has_a_limit_too(executor: str) -> None:
    graph = Graph()
    made = fill(graph)
    process_account.set_limits(4 * MIB, None)
    try:
        sessions = [session_of(graph_of(graph), executor, is_counted=True) for _ in range(2)]
        kept = [session.run({}, [made[0]]) for session in sessions]
        kept += [session.run({}, [made[0]]) for session in sessions]
        assert process_account.used == 4 * MIB
        for session in sessions:
            with pytest.raises(ResourceExhaustedError, match=r"memory\.max_process_bytes"):
                kept.append(session.run({}, [made[0]]))
        kept.clear()
        gc.collect()
        assert process_account.used == 0
        assert sessions[0].run({}, [made[0]])[0].nbytes == MIB
    finally:
        process_account.remove_limits()


def graph_of(graph: Graph) -> Graph:
    copy = Graph()
    copy.graph_def.CopyFrom(graph.graph_def)
    return copy


def test_a_session_without_a_limit_has_no_account() -> None:
    graph = Graph()
    made = fill(graph)
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    assert isinstance(session, DirectSession)
    assert session.run({}, [made[0]])[0].nbytes == MIB
    assert session.memory is None


@pytest.fixture
def tensor_mib() -> Iterator[None]:
    """Let a tensor have at most 1 MiB."""
    before = tensor_limit()
    set_tensor_limit(MIB)
    yield
    set_tensor_limit(before)


def joined(op: str, inputs: list[object], *others: object, **attrs: object) -> Attack:
    """Return the graph of a node "large" of `op`, the attributes `attrs`, and a list of inputs."""

    def attack() -> tuple[Graph, list[str], list[str]]:
        graph = Graph()
        values = [graph.add("Identity", each)[0] for each in inputs]
        made = graph.add(op, values, *others, name="large", **attrs)[0]
        last = graph.add("Identity", made)[0]
        return graph, [graph.add("Size", last)[0][0]], []

    return attack


def grown(op: str, *inputs: object) -> Attack:
    """Return the graph of a node "large" of `op`."""

    def attack() -> tuple[Graph, list[str], list[str]]:
        graph = Graph()
        first = graph.add("Identity", inputs[0])[0]
        made = graph.add(op, first, *inputs[1:], name="large")[0]
        last = graph.add("Identity", made)[0]
        return graph, [graph.add("Size", last)[0][0]], []

    return attack


# Each makes a little more than 1 MiB from inputs that have less.
PART = np.arange(3 << 16, dtype=np.float32)  # 0.75 MiB
TEXT, LETTER = np.array(b"x" * (3 << 18), object), np.array(b"x", object)
LARGE_OUTPUTS: dict[str, tuple[Attack, str]] = {
    "ConcatV2": (joined("ConcatV2", [PART, PART], np.int32(0)), "[393216] and type float32"),
    "Pack": (joined("Pack", [PART, PART]), "[2,196608] and type float32"),
    "StringJoin": (joined("StringJoin", [TEXT, TEXT]), "[] and type object"),
    "RegexReplace": (
        grown("RegexReplace", np.array(b"x" * 2048, object), LETTER, np.array(b"y" * 1024, object)),
        "[] and type object",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("tensor_mib")
@pytest.mark.parametrize("op", LARGE_OUTPUTS)
def test_no_kernel_makes_a_tensor_above_the_limit(op: str, executor: str) -> None:
    attack, shape = LARGE_OUTPUTS[op]
    graph, fetches, targets = attack()
    session = session_of(graph, executor, max_session_bytes=64 * MIB)
    expected = (
        rf"OOM when allocating tensor with shape{re.escape(shape)}: \d+ bytes needed, "
        r"the limit is 1048576\n.*node large"
    )
    for _ in range(2):
        with pytest.raises(ResourceExhaustedError, match=expected):
            session.run({}, fetches, targets)
        assert session.run({"small:0": np.float32([3])}, ["alive:0"])[0] == [-3]


@pytest.mark.usefixtures("tensor_mib")
def test_a_tensor_of_the_limit_is_made(executor: str) -> None:
    graph = Graph()
    half = graph.add("Identity", np.arange(1 << 17, dtype=np.float32))[0]
    whole = graph.add("ConcatV2", [half, half], np.int32(0))[0]
    session = session_of(graph, executor, max_session_bytes=64 * MIB)
    assert session.run({}, [whole[0]])[0].nbytes == MIB


def test_what_is_only_read_may_be_larger(executor: str, request: pytest.FixtureRequest) -> None:
    """Feeds, constants and views of them are not made by the run."""
    graph = Graph()
    x = graph.placeholder(F32, "x")
    flat = graph.add("Reshape", x, np.int32([-1]))[0]
    turned = graph.add("Transpose", x, np.int32([1, 0]))[0]
    constant = graph.add("Identity", np.zeros(2 << 18, np.float32) + 1)[0]
    session = session_of(graph, executor, max_session_bytes=64 * MIB)
    feeds = {"x:0": np.zeros((1024, 512), np.float32)}
    fetches = [flat[0], turned[0], constant[0]]
    session.run(feeds, fetches)
    request.getfixturevalue("tensor_mib")  # after the constants have been decoded
    assert [each.nbytes for each in session.run(feeds, fetches)] == [2 * MIB] * 3


def test_a_bound_that_reads_values_is_computed_at_each_run(executor: str) -> None:
    """Where gives no rows, then 64 bytes for each of the same number of elements."""
    graph = Graph()
    condition = graph.placeholder(DataType.BOOL, "condition", (1,) * 7 + (200_000,))
    rows = graph.add("Where", condition)[0]
    size = graph.add("Size", rows)[0][0]
    session = session_of(graph, executor)
    for _ in range(3):
        none = np.zeros((1,) * 7 + (200_000,), bool)
        assert session.run({"condition:0": none}, [size]) == [0]
        with pytest.raises(ResourceExhaustedError, match=r"OOM: [1-9]\d* more bytes are needed"):
            session.run({"condition:0": ~none}, [size])


def pooling_of_rows_that_have_no_step() -> tuple[Graph, str]:
    graph = Graph()
    sizes, steps = np.int32([1, 2, 2, 1]), np.int32([2, 0, 1, 1])
    value = np.zeros((1, 4, 4, 1), np.float32)
    return graph, graph.add("MaxPoolV2", value, sizes, steps, padding="VALID")[0][0]


def fill_of_more_elements_than_int64_counts() -> tuple[Graph, str]:
    graph = Graph()
    return graph, graph.add("Fill", np.int64([1 << 40, 1 << 40]), np.float32(1))[0][0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pooling_of_rows_that_have_no_step, "Pooling is not yet supported on the batch dimension."),
        (fill_of_more_elements_than_int64_counts, "would have more than 2\\*\\*63 - 1 elements"),
    ],
)
def test_inputs_without_a_bound_are_refused_by_the_kernel_in_its_order_of_checks(
    make: Callable[[], tuple[Graph, str]], message: str, executor: str
) -> None:
    graph, fetch = make()
    session = session_of(graph, executor)
    for _ in range(2):
        with pytest.raises((UnimplementedError, InvalidArgumentError), match=message):
            session.run({}, [fetch], [])
    session.close()
