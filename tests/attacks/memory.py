"""Graphs that ask for memory: in one tensor, in one step, in what a session keeps."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

import protos as pb
from runtime.api import tensor_to_proto
from runtime.framework.dtypes import DataType
from server.codec.scalars import encode_base64
from tests.attacks import graphs
from tests.attacks.attack import Attack, Prepare, Target
from tests.attacks.graphs import Builder
from tests.conformance.case import Graph

REFUSED = ("429 RESOURCE_EXHAUSTED",)
MEBIBYTE = 1 << 20
# Of the server of the tests; the benchmark's has the defaults.
TENSOR_BYTES = 8 * MEBIBYTE
SESSION_BYTES = 32 * MEBIBYTE
LIMITS = {
    "sessions": {"max_tensor_bytes": TENSOR_BYTES, "max_session_bytes": SESSION_BYTES},
    "rest": {"max_body_bytes": 4_000_000, "max_answer_bytes": 4_000_000},
}
FULL_TENSOR = 1 << 30  # the default of sessions.max_tensor_bytes


def steps(build: Builder, times: int = 1) -> Prepare:
    """Run a step up to some times; return the first answer that is not a success."""

    def prepare(target: Target, size: int) -> Callable[[], str]:
        graph, step = build(size)

        def attack() -> str:
            body = json.dumps({"graph_def": encode_base64(graph.SerializeToString())}).encode()
            status, content = target.request("/v1/sessions", body)
            answer = json.loads(content)
            if status != 201:
                return f"{status} {answer['code']}"
            session, said = f"/v1/sessions/{answer['session']}", "200"
            for _ in range(times):
                said = target.run(session, step)
                if said != "200":
                    break
            target.post(f"{session}:close", b"{}")
            return said

        return attack

    return prepare


def many_nodes(target: Target, count: int) -> Callable[[], str]:
    """Extend a session by graphs of 10,000 nodes until it is refused."""
    constant = tensor_to_proto(np.zeros(16, np.float32))
    session = target.open_session(pb.GraphDef(versions=pb.VersionDef(producer=2474)))

    def attack() -> str:
        said = "200"
        for first in range(0, count, 10_000):
            graph = pb.GraphDef(versions=pb.VersionDef(producer=2474))
            for index in range(first, first + 10_000):
                node = graph.node.add(name=f"n{index}", op="Const")
                node.attr["dtype"].type = DataType.FLOAT  # type: ignore[assignment] # same numbers
                node.attr["value"].tensor.CopyFrom(constant)
            body = json.dumps({"graph_def": encode_base64(graph.SerializeToString())})
            said = target.post(f"{session}:extend", body.encode())
            if said != "200":
                break
        target.post(f"{session}:close", b"{}")
        return said

    return attack


def many_plans(target: Target, count: int) -> Callable[[], str]:
    """Run ever other fetches of one graph of 300 nodes, each of which is compiled."""
    graph = Graph()
    value = graph.placeholder("float32", "x", ())
    for index in range(300):
        value = graph.add("Neg", value, name=f"n{index}")[0]
    session = target.open_session(graph.graph_def)

    def attack() -> str:
        said = "200"
        for index in range(count):
            fetches = [f"n{index % 300}", f"n{(index // 300) % 300}"]
            said = target.run(session, {"feeds": {"x": 1}, "fetches": sorted(set(fetches))})
            if said != "200":
                break
        target.post(f"{session}:close", b"{}")
        return said

    return attack


def many_sessions(target: Target, count: int) -> Callable[[], str]:
    """Open sessions until one is refused, and close them again."""

    def attack() -> str:
        opened, said = [], "201"
        for _ in range(count):
            status, content = target.request("/v1/sessions", b"{}")
            if status != 201:
                said = f"{status} {json.loads(content)['code']}"
                break
            opened.append(json.loads(content)["session"])
        for session in opened:
            target.post(f"/v1/sessions/{session}:close", b"{}")
        return said

    return attack


def shared_variables(target: Target, count: int) -> Callable[[], str]:
    """Fill variables of the master service, which outlive their sessions; then reset it."""
    size = TENSOR_BYTES // 2 if count < 100 else FULL_TENSOR // 2

    def attack() -> str:
        code = "OK"
        for index in range(count):
            graph, step = graphs.variable(size)
            graph.node[0].attr["shared_name"].s = b"attack%d" % index
            create = pb.CreateSessionRequest(graph_def=graph).SerializeToString()
            code, opened = target.call_grpc("CreateSession", create)
            if code != "OK":
                break
            session = pb.CreateSessionResponse.FromString(opened).session_handle
            feeds = [
                pb.NamedTensorProto(name=name, tensor=tensor_to_proto(np.int64(value)))
                for name, value in step["feeds"].items()
            ]
            run = pb.RunStepRequest(session_handle=session, feed=feeds, target=step["targets"])
            code, _ = target.call_grpc("RunStep", run.SerializeToString())
            close = pb.CloseSessionRequest(session_handle=session)
            target.call_grpc("CloseSession", close.SerializeToString())
            if code != "OK":
                break
        target.call_grpc("Reset", b"")
        return code

    return attack


def full_sessions(target: Target, count: int) -> Callable[[], str]:
    """Fill a variable in each of many sessions; return the first answer that is no success."""
    graph, step = graphs.variable(TENSOR_BYTES // 2 if count < 100 else FULL_TENSOR // 2)

    def attack() -> str:
        opened, said = [], "200"
        for _ in range(count):
            opened.append(target.open_session(graph))
            said = target.run(opened[-1], step)
            if said != "200":
                break
        for session in opened:
            target.post(f"{session}:close", b"{}")
        return said

    return attack


def grown(op: str) -> Attack:
    """Return the attack of an operation whose output is larger than its inputs."""
    return Attack(
        f"tensor_{op.lower()}", f"{op} makes a tensor of more than {{}} bytes",
        "refused before it is made", ("sessions.max_tensor_bytes",),
        REFUSED, steps(graphs.growth(op)), TENSOR_BYTES, FULL_TENSOR,
    )  # fmt: skip


ATTACKS = (
    *(grown(op) for op in (*graphs.GROWTHS, *graphs.TEXT_GROWTHS)),
    Attack(
        "stage", "Stage of a Fill of {} bytes, again and again",
        "refused", ("sessions.max_session_bytes",), REFUSED,
        steps(graphs.stage, 200), TENSOR_BYTES // 2, FULL_TENSOR // 2,
    ),
    Attack(
        "constants", "60 constants of one value each that claim {} bytes", "refused",
        ("sessions.max_session_bytes",), REFUSED,
        steps(graphs.constants), 60 * TENSOR_BYTES // 2, 60 * FULL_TENSOR // 2,
    ),
    Attack(
        "add_of_fills", "AddN of 60 Fills of {} bytes in all", "refused, the step ends",
        ("sessions.max_step_bytes", "sessions.max_session_bytes"), REFUSED,
        steps(graphs.add_of_fills), 60 * TENSOR_BYTES // 2, 60 * FULL_TENSOR // 2,
    ),
    Attack(
        "joined_strings", "a string that is joined to itself up to {} bytes", "refused",
        ("sessions.max_tensor_bytes",), REFUSED,
        steps(graphs.joined_strings), 4 * TENSOR_BYTES, 16 * FULL_TENSOR,
    ),
    Attack(
        "doubling_loop", "a loop whose tensor doubles with each iteration", "refused",
        ("sessions.max_tensor_bytes", "sessions.max_session_bytes"), REFUSED,
        steps(graphs.doubling_loop), 0, 0,
    ),
    Attack(
        "shared_variables", "{} variables over gRPC, which outlive their sessions",
        "refused over the budget; they stay until Reset",
        ("sessions.max_session_bytes",), ("RESOURCE_EXHAUSTED",), shared_variables, 20, 120,
    ),
    Attack(
        "full_sessions", "{} sessions, each with a large variable", "refused",
        ("memory.max_process_bytes", "memory.refuse_above_bytes"), REFUSED,
        full_sessions, 40, 100, {"memory": {"max_process_bytes": 2 * SESSION_BYTES}},
    ),
    Attack(
        "many_nodes", "a session that is extended up to {} nodes", "refused",
        ("sessions.max_graph_nodes", "sessions.max_session_bytes"), REFUSED,
        many_nodes, 30_000, 2_000_000, {"sessions": {"max_graph_nodes": 25_000}},
    ),
    Attack(
        "many_plans", "{} steps with ever other fetches", "answered; old plans are dropped",
        ("sessions.max_session_bytes",), ("200", "429 RESOURCE_EXHAUSTED"), many_plans, 60, 5000,
    ),
    Attack(
        "many_sessions", "{} sessions", "refused", ("sessions.max_open",), REFUSED,
        many_sessions, 30, 2000, {"sessions": {"max_open": 20}},
    ),
)  # fmt: skip
