"""Whoever may not: web pages, other clients' sessions, files, the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import protos as pb
from server.log import LINES_PER_SECOND
from server.rest.session_docs import half_plus_two_graph
from tests.attacks.attack import Attack, Prepare, Target
from tests.attacks.graphs import counted_loop
from tests.conformance.case import Graph
from tests.integration.rest_server import RUN_Y

REFUSED = ("403 PERMISSION_DENIED",)
FORGED = "FORGED LINE"
# More lines of the log than this in a second of one attack would fill a disk in the end.
LOG_LINES = 2 * LINES_PER_SECOND


def create(headers: dict[str, str]) -> Prepare:
    """Create a session with these headers."""

    def prepare(target: Target, _: object) -> Callable[[], str]:
        return lambda: target.post("/v1/sessions", b"{}", headers)

    return prepare


def listed_ids(target: Target, _: object) -> Callable[[], str]:
    """Return whether the listing gives away the id of a session."""
    session = target.open_session(half_plus_two_graph()).rpartition("/")[2]

    def attack() -> str:
        status, content = target.request("/v1/sessions", None, {}, "GET")
        target.post(f"/v1/sessions/{session}:close", b"{}")
        return f"{status}, {'shown' if session.encode() in content else 'masked'}"

    return attack


def guessed_id(target: Target, count: int) -> Callable[[], str]:
    """Close sessions by ids that nobody holds."""

    def attack() -> str:
        return {
            target.post(f"/v1/sessions/{index:022d}:close", b"{}") for index in range(count)
        }.pop()

    return attack


def reset(target: Target, _: object) -> Callable[[], str]:
    """Reset the master service; return how a session of REST is answered afterwards."""
    session = target.open_session(half_plus_two_graph())

    def attack() -> str:
        code, _ = target.call_grpc("Reset", b"")
        said = f"{code}, {target.run(session, RUN_Y)}"
        target.post(f"{session}:close", b"{}")
        return said

    return attack


def file_step(op: str) -> Prepare:
    """Run a graph that reads or writes a file of the server."""

    def prepare(target: Target, path: str) -> Callable[[], str]:
        graph, name = Graph(), np.array(path.encode(), object)
        step: dict[str, Any] = {"targets": ["file"]}
        if op == "WriteFile":
            graph.add(op, name, np.array(b"written", object), name="file")
        else:
            graph.add(op, name, name="file")
        session = target.open_session(graph.graph_def)

        def attack() -> str:
            said = target.run(session, step)
            target.post(f"{session}:close", b"{}")
            return said

        return attack

    return prepare


def printing(target: Target, count: int) -> Callable[[], str]:
    """Print in a loop; return whether the log has a line for each, or one that is forged."""
    graph, step = printing_loop(count)
    session = target.open_session(graph)

    def attack() -> str:
        before, begun = len(target.log), time.monotonic()
        said = target.run(session, step)
        target.post(f"{session}:close", b"{}")
        target.request("/healthz", method="GET")
        lines, seconds = target.log[before:], time.monotonic() - begun
        if any(line.startswith(FORGED) for line in lines):
            return f"{said}, a line is forged"
        return f"{said}, {'flooded' if len(lines) > LOG_LINES * (seconds + 1) else 'limited'}"

    return attack


def printing_loop(count: int) -> tuple[pb.GraphDef, dict[str, Any]]:
    """Return a loop that prints a text with a line break so many times."""
    text = f"printed\n{FORGED}".encode()

    def body(function: pb.FunctionDef) -> str:
        constant = function.node_def.add(name="text", op="Const")
        constant.attr["dtype"].type = pb.DT_STRING
        tensor = constant.attr["value"].tensor
        tensor.CopyFrom(pb.TensorProto(dtype=pb.DT_STRING, string_val=[text]))
        tensor.tensor_shape.SetInParent()
        function.node_def.add(name="print", op="PrintV2", input=["text:output:0"])
        return "print"

    return counted_loop(count, body)


def name_with_lines(target: Target, _: object) -> Callable[[], str]:
    """Fetch what has line breaks in its name; return whether a line of the log is forged."""
    session = target.open_session(half_plus_two_graph())

    def attack() -> str:
        before = len(target.log)
        said = target.run(session, {"fetches": [f"x\n{FORGED}"]})
        target.request("/" + "%0A" + FORGED.replace(" ", "%20"), method="GET")
        target.post(f"{session}:close", b"{}")
        is_forged = any(line.startswith(FORGED) for line in target.log[before:])
        return f"{said}, a line is forged" if is_forged else said

    return attack


def secret_of_an_error(target: Target, _: object) -> Callable[[], str]:
    """Return whether the error of a step tells where the server's files are."""
    session = target.open_session(half_plus_two_graph())

    def attack() -> str:
        body = json.dumps({"fetches": ["nothing:0"]}).encode()
        status, content = target.request(f"{session}:run", body)
        target.post(f"{session}:close", b"{}")
        is_told = b"/server/" in content or b".py" in content
        return f"{status}, {'a path is told' if is_told else 'no path'}"

    return attack


ATTACKS = (
    Attack(
        "foreign_origin", "a web page of another site that creates a session", "refused",
        ("access.hosts",), REFUSED,
        create({"Content-Type": "text/plain", "Origin": "http://evil.example"}),
    ),
    Attack(
        "foreign_host", "a name of another site that leads to this server (DNS rebinding)",
        "refused, if the server is bound to loopback", ("access.hosts",), REFUSED,
        create({"Content-Type": "application/json", "Host": "evil.example"}),
    ),
    Attack(
        "listed_ids", "a listing of sessions, to learn other clients' ids", "the ids are masked",
        ("access.keys_file",), ("200, masked",), listed_ids,
    ),
    Attack(
        "guessed_ids", "{} guessed ids", "not found: ids have 128 random bits",
        ("access.keys_file",), ("404 NOT_FOUND",), guessed_id, 20, 1000,
    ),
    Attack(
        "reset", "Reset over gRPC", "ends sessions of the master service, none of REST",
        ("access.keys_file",), ("OK, 200",), reset,
    ),
    Attack(
        "read_file", "a graph that reads `{}`", "refused", ("sessions.allowed_paths",), REFUSED,
        file_step("ReadFile"), "/etc/passwd", "/etc/passwd",
    ),
    Attack(
        "write_file", "a graph that writes `{}`", "refused", ("sessions.allowed_paths",), REFUSED,
        file_step("WriteFile"), "/tmp/attack", "/tmp/attack",
    ),
    Attack(
        "printing", "a loop that prints {} times", "answered; the log has the first lines",
        ("log.level",), ("200, limited", "504 DEADLINE_EXCEEDED, limited"),
        printing, 5000, 1_000_000,
    ),
    Attack(
        "name_with_lines", "names with line breaks", "escaped in the log",
        ("log.format",), ("400 INVALID_ARGUMENT",), name_with_lines,
    ),
    Attack(
        "told_paths", "an error, to learn about the machine", "tells no path of the server",
        ("log.level",), ("400, no path", "404, no path"), secret_of_an_error,
    ),
)  # fmt: skip
