"""The log of a real process, while a client tries to write in it."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_to_proto
from server.log import LINES_PER_SECOND
from tests.integration.access import bearer, key_of, write_keys
from tests.integration.rest_server import encoded
from tests.integration.server_process import ServerProcess

FORGED = "2026-01-02T03:04:05.678Z INFO server.sessions.service: forged"
PRINTS = 3 * LINES_PER_SECOND


def printing_graph() -> pb.GraphDef:
    """`p0` … each print a text that looks like a line of the log, and is long."""
    graph = pb.GraphDef()
    text = graph.node.add(name="text", op="Const")
    text.attr["dtype"].type = DataType.STRING
    value = np.array(f"\n{FORGED}\r\n{FORGED}".encode() + b"x" * 1_000_000, object)
    text.attr["value"].tensor.CopyFrom(tensor_to_proto(value))
    for number in range(PRINTS):
        node = graph.node.add(name=f"p{number}", op="PrintV2", input=["text"])
        node.attr["output_stream"].s = b"stderr"
        node.attr["end"].s = f"\n{FORGED}".encode()
    return graph


def test_graphs_print_little_and_no_line_of_their_own() -> None:
    server = ServerProcess("--host=127.0.0.1", "--config=configs/server.yaml")
    try:
        answer = server.client.post("/v1/sessions", json={"graph_def": encoded(printing_graph())})
        assert answer.status_code == 201, answer.text
        session = answer.headers["location"]
        run = {"targets": [f"p{number}" for number in range(PRINTS)]}
        for _ in range(3):
            assert server.client.post(f"{session}:run", json=run).status_code == 200
        server.client.delete(session)
        server.wait_for("Session closed")
        assert server.stop() == 0
    finally:
        server.end()
    printed = [line for line in server.log if "xxxx" in line]
    assert 0 < len(printed) < 3 * PRINTS
    assert not any(line.startswith(FORGED) for line in server.log)
    assert sum(map(len, server.log)) < 4_000 * len(server.log)
    assert session.rpartition("/")[2] not in "".join(server.log)


def test_keys_are_never_in_the_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("keys")
    config = folder / "server.yaml"
    keys = write_keys(folder / "keys.yaml")
    config.write_text(
        f"rest: {{host: 127.0.0.1, access_log: true}}\naccess: {{keys_file: {keys}}}\n"
        "log: {level: debug}\n"
    )
    server = ServerProcess(f"--config={config}")
    try:
        client = server.client
        assert client.get("/v1/models", headers=bearer("alice")).status_code == 200
        assert client.get("/v1/models", headers={"x-api-key": "wrong-key"}).status_code == 401
        assert client.get("/v1/models", auth=("x", key_of("bob"))).status_code == 200
        assert client.get("/v1/models", auth=("x", key_of("bob") + "!")).status_code == 401
        (folder / "keys.yaml").write_text(f"owners: {{alice: {{keys: [{key_of('alice')}]}}}}")
        server.wait_for("The keys are unchanged, because a file is wrong")
        write_keys(folder / "keys.yaml", {})
        server.wait_for("The keys were read again")
        assert client.get("/v1/models", headers=bearer("alice")).status_code == 401
        assert server.stop() == 0
    finally:
        server.end()
    log = "".join(server.log)
    assert "owner=alice" in log and "owner=bob" in log
    assert not any(secret in log for secret in (key_of("alice"), key_of("bob"), "wrong-key"))
