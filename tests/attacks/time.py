"""Steps and calls that take for ever."""

from __future__ import annotations

import concurrent.futures
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import protos as pb
from server.rest.session_docs import half_plus_two_graph
from tests.attacks.attack import Attack, Prepare, Target
from tests.conformance.case import Graph
from tests.integration.rest_server import RUN_Y, endless_graph

EXPIRED = ("504 DEADLINE_EXCEEDED",)
LOOP = {"feeds": {"start": 1.0}, "fetches": ["loop"]}
# The server of the tests ends steps soon; the benchmark's has a limit as if it were reachable.
LIMITS: dict[str, Any] = {
    "sessions": {"max_step_seconds": 1, "call_timeout_ms": 5000, "max_running_steps": 10},
    "thread_pools": [
        {"name": "online", "num_threads": 1},
        {"name": "background", "num_threads": 1, "low_priority": True},
    ],
}
# The limit counts a step's wait for a thread. A step that comes this much later than those that
# hold every thread up to the limit has so much of its own limit left when they end.
SECONDS_LATER = 0.5
Built = tuple[pb.GraphDef, dict[str, Any]]


def shuffle(rounds: int) -> Built:
    """One element's place in a permutation, after ever more rounds."""
    graph = Graph()
    graph.add(
        "RandomIndexShuffle", np.int64(1), np.int64([1, 2, 3]), np.int64(1000), name="shuffle",
        rounds=rounds,
    )  # fmt: skip
    return graph.graph_def, {"fetches": ["shuffle"]}


def product(size: int) -> Built:
    """A product of matrices: one native call."""
    graph = Graph()
    value = graph.add("Fill", np.int32([size, size]), np.float32(1))[0]
    graph.add("Size", graph.add("MatMul", value, value)[0], name="size")
    return graph.graph_def, {"fetches": ["size"]}


def decomposition(size: int) -> Built:
    """Singular values of a matrix: one native call that takes long for few bytes."""
    graph = Graph()
    seed = np.int32([1, 2])
    value = graph.add("StatelessRandomUniform", np.int32([size, size]), seed, dtype="float32")[0]
    graph.add("Svd", value, name="svd", compute_uv=False)
    return graph.graph_def, {"fetches": ["svd:0"]}


def regular_expression(size: int) -> Built:
    """An expression that backtracking would take for ever on."""
    graph = Graph()
    text = np.array(b"a" * size, object)
    graph.add("RegexFullMatch", text, np.array(b"(a|a)*" * 20 + b"b", object), name="match")
    return graph.graph_def, {"fetches": ["match"]}


def endless(_: object) -> Built:
    return endless_graph(), LOOP


def step(build: Callable[[Any], Built], options: dict[str, Any] | None = None) -> Prepare:
    """Run the step of a graph, then a step of another session; return the two answers."""

    def prepare(target: Target, size: Any) -> Callable[[], str]:
        graph, run = build(size)
        session, other = target.open_session(graph), target.open_session(half_plus_two_graph())

        def attack() -> str:
            said = target.run(session, run | (options or {}))
            after = target.run(other, RUN_Y)
            for path in (session, other):
                target.post(f"{path}:close", b"{}")
            return said if after == "200" else f"{said}, then {after}"

        return attack

    return prepare


def greedy(target: Target, count: int) -> Callable[[], str]:
    """Run many endless steps of one session; return the answer to a step of another."""
    session = target.open_session(endless_graph())
    other = target.open_session(half_plus_two_graph())

    def attack() -> str:
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            running = [threads.submit(target.run, session, LOOP) for _ in range(count)]
            while json.loads(target.request(session, None, {}, "GET")[1])["state"] != "RUNNING":
                pass
            time.sleep(SECONDS_LATER)
            said = target.run(other, RUN_Y)
            target.post(f"{session}:close", b"{}")
            answers = {each.result() for each in running}
        target.post(f"{other}:close", b"{}")
        expected = {"499 CANCELLED", "504 DEADLINE_EXCEEDED", "429 RESOURCE_EXHAUSTED"}
        return said if answers <= expected else f"{said}, but {sorted(answers)}"

    return attack


def large_graph(target: Target, count: int) -> Callable[[], str]:
    """Prepare a callable of a chain of nodes, whose compilation takes long."""
    graph = Graph()
    value = graph.placeholder("float32", "x", ())
    for index in range(count):
        value = graph.add("Neg", value, name=f"n{index}")[0]
    session = target.open_session(graph.graph_def)
    options = {"options": {"feed": ["x:0"], "fetch": [value[0]]}}

    def attack() -> str:
        said = target.post(f"{session}:makeCallable", json.dumps(options).encode())
        target.post(f"{session}:close", b"{}")
        return said

    return attack


ATTACKS = (
    Attack(
        "endless_loop", "a loop that never ends", "ended at the limit",
        ("sessions.max_step_seconds",), EXPIRED, step(endless), 0, 0, LIMITS,
    ),
    Attack(
        "endless_low", "the same at low priority", "ended at the limit",
        ("sessions.max_step_seconds",), EXPIRED,
        step(endless, {"priority": "low"}), 0, 0, LIMITS,
    ),
    Attack(
        "shuffle", "RandomIndexShuffle of {} rounds", "refused or ended at the limit",
        ("sessions.max_step_seconds",), ("429 RESOURCE_EXHAUSTED", *EXPIRED),
        step(shuffle), 1 << 62, 1 << 62, LIMITS,
    ),
    Attack(
        "native_product", "a product of two matrices of edge {}",
        "answered at the limit; the pool replaces the thread until the call returns",
        ("sessions.max_step_seconds",), ("200", *EXPIRED), step(product), 1000, 8_000, LIMITS,
    ),
    Attack(
        "native_svd", "Svd of a matrix of edge {}", "the same",
        ("sessions.max_step_seconds",), ("200", *EXPIRED), step(decomposition), 200, 3_000, LIMITS,
    ),
    Attack(
        "regular_expression", "an ambiguous expression on {} characters",
        "answered in linear time (RE2)", ("sessions.max_tensor_bytes",), ("200",),
        step(regular_expression), 10_000, 1_000_000,
    ),
    Attack(
        "greedy_session", "{} endless steps of one session", "other sessions take their turns",
        ("sessions.max_running_steps", "sessions.max_step_seconds"), ("200",),
        greedy, 8, 64, LIMITS,
    ),
    Attack(
        "large_graph", "a callable of a graph of {} nodes", "answered or ended at the deadline",
        ("sessions.call_timeout_ms", "sessions.max_graph_nodes"), ("200", *EXPIRED),
        large_graph, 2000, 300_000, LIMITS,
    ),
)  # fmt: skip
