"""`placement: ray`: sessions on the nodes of a cluster, reached from any front end."""

from __future__ import annotations

import base64
import collections
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
import ray
import yaml

import protos as pb
from runtime.api import SessionOptions, new_session, tensor_from_proto
from tests.conformance.case import Graph
from tests.extras.ray.conftest import QUICK
from tests.integration.server_process import ROOT, ServerProcess, on_free_ports
from tests.ray_cluster import RayCluster, ray_cluster

SECONDS = 60
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[RayCluster]:
    """A head on which no sessions are, and two nodes."""
    with ray_cluster(num_cpus=0, _system_config=QUICK) as started:
        started.nodes = {name: started.add_node(num_cpus=1) for name in ("a", "b")}
        ray.init(address=started.address, namespace="runstep", log_to_driver=False)
        yield started


def config_of(cluster: RayCluster, path: pathlib.Path, application: str, **sessions: Any) -> str:
    """The file of a front end's settings."""
    config = {
        "models": [HALF_PLUS_TWO],
        "placement": "ray",
        "ray": {"address": cluster.address, "application": application},
        "sessions": sessions,
    }
    file = path / f"{application}.yaml"
    file.write_text(yaml.safe_dump(config))
    return str(file)


Start = Callable[..., ServerProcess]


@pytest.fixture
def front(own_cluster: RayCluster, tmp_path: pathlib.Path) -> Iterator[Start]:
    """Starts front ends; their applications are removed from the cluster at the end."""
    started: list[ServerProcess] = []
    applications: set[str] = set()

    def start(application: str, **sessions: Any) -> ServerProcess:
        config = config_of(own_cluster, tmp_path, application, **sessions)
        server = ServerProcess("--config", config)
        started.append(server)
        applications.add(application)
        server.wait_for("Serving on")
        return server

    yield start
    for server in started:
        server.end()
    for application in applications:
        directory = ray.get_actor(f"runstep.{application}.directory", "runstep")
        ray.get(directory.stop.remote(), timeout=SECONDS)


def counter_graph() -> str:
    """A variable `count` that `add` increases by the fed `x`."""
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype="float32", shape=(), name="count")[0]
    graph.add("AssignVariableOp", handle, np.float32(0), dtype="float32", name="init")
    fed = graph.placeholder("float32", "x")
    graph.add("AssignAddVariableOp", handle, fed, dtype="float32", name="add")
    graph.add("ReadVariableOp", handle, dtype="float32", name="value")
    graph.add("Identity", fed, name="echo")
    return base64.b64encode(graph.graph_def.SerializeToString()).decode()


def opened(server: ServerProcess) -> str:
    """Open a session with `counter_graph`, and return its path."""
    answer = server.client.post(
        "/v1/sessions", json={"graph_def": counter_graph()}, timeout=SECONDS
    )
    assert answer.status_code == 201, answer.text
    path = f"/v1/sessions/{answer.json()['session']}"
    assert answer.headers["location"] == path
    assert server.client.post(f"{path}:run", json={"targets": ["init"]}).status_code == 200
    return path


def value(server: ServerProcess, path: str) -> float:
    """The variable of a session."""
    answer = server.client.post(f"{path}:run", json={"fetches": ["value:0"]})
    assert answer.status_code == 200, answer.text
    found: float = answer.json()["outputs"]["value:0"]["data"]
    return found


def hosts_of(application: str) -> dict[str, dict[str, Any]]:
    """What each session host says of itself, by its id."""
    directory = ray.get_actor(f"runstep.{application}.directory", "runstep")
    found = {}
    for host_id, _ in ray.get(directory.hosts.remote(), timeout=SECONDS)[1]:
        actor = ray.get_actor(f"runstep.{application}.host.{host_id}", "runstep")
        found[host_id] = ray.get(actor.describe.remote(), timeout=SECONDS)[1]
    return found


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends, "it does not come to hold"
        time.sleep(0.05)


def test_any_front_end_finds_a_session(front: Start) -> None:
    first, second = front("shared"), front("shared")
    paths = [opened(first) for _ in range(4)]
    suffixes = collections.Counter(path.rpartition("-r")[2] for path in paths)
    assert sorted(suffixes.values()) == [2, 2]  # of the two nodes with a CPU
    for number, path in enumerate(paths):
        run = {"feeds": {"x:0": number}, "targets": ["add"]}
        assert second.client.post(f"{path}:run", json=run).status_code == 200
        assert value(first, path) == number
    for server in (first, second):
        listed = server.client.get("/v1/sessions").json()["sessions"]
        assert len(listed) == 4
    large = {"feeds": {"x:0": [0.5] * 100_000}, "fetches": ["echo:0"]}
    answer = second.client.post(f"{paths[0]}:run", json=large)
    assert answer.json()["outputs"]["echo:0"]["data"] == [0.5] * 100_000
    wrong = first.client.post(f"{paths[0]}:run", json={"fetches": ["none:0"]})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "INVALID_ARGUMENT")
    assert second.client.delete(paths[0]).status_code == 200
    gone = first.client.post(f"{paths[0]}:run", json={"fetches": ["value:0"]})
    assert (gone.status_code, gone.json()["error"]) == (410, "Session has been closed.")
    never = f"{paths[0].rpartition('-r')[0]}-r000000000000"
    assert first.client.post(f"{never}:run", json={}).status_code == 404
    # A session on a served model, and a prediction, which the front end answers itself.
    model = second.client.post("/v1/sessions", json={"model": "half_plus_two"})
    assert model.status_code == 201, model.text
    predicted = first.client.post(
        "/v1/models/half_plus_two:predict", json={"instances": [1.0, 5.0]}
    )
    assert predicted.json() == {"predictions": [2.5, 4.5]}


def test_the_death_of_a_front_end_loses_nothing(front: Start) -> None:
    first, second = front("fronts"), front("fronts")
    path = opened(first)
    first.process.kill()
    first.process.wait()
    run = {"feeds": {"x:0": 7}, "targets": ["add"]}
    assert second.client.post(f"{path}:run", json=run).status_code == 200
    assert value(second, path) == 7


def test_the_death_of_the_directory_loses_no_session(front: Start) -> None:
    server = front("directory", max_open=3)
    paths = [opened(server) for _ in range(2)]
    directory = ray.get_actor("runstep.directory.directory", "runstep")
    ray.kill(directory, no_restart=False)
    assert [value(server, path) for path in paths] == [0, 0]
    # The next session waits for it, and its count is the old one.
    paths.append(opened(server))
    assert len(hosts_of("directory")) == 2
    refused = server.client.post("/v1/sessions", json={"graph_def": counter_graph()})
    assert (refused.status_code, refused.json()["code"]) == (429, "RESOURCE_EXHAUSTED")
    assert "3 sessions are open" in refused.json()["error"]
    server.client.delete(paths[0])
    until(lambda: sum(each["sessions"] for each in hosts_of("directory").values()) == 2)
    opened(server)


def test_tensorflow_clients_find_their_session_at_any_front_end(front: Start) -> None:
    first, second = front("master"), front("master")
    graph = pb.GraphDef.FromString(base64.b64decode(counter_graph()))
    session = new_session(SessionOptions(first.grpc_address))
    session.create(graph)
    session.run({}, [], ["init"])
    session.run({"x:0": np.float32(3)}, [], ["add"])
    handle = session._handle  # type: ignore[attr-defined] # of a gRPC session
    address = second.grpc_address.removeprefix("grpc://")
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/tensorflow.MasterService/RunStep")
        request = pb.RunStepRequest(session_handle=handle, fetch=["value:0"])
        answer = pb.RunStepResponse.FromString(call(request.SerializeToString(), timeout=SECONDS))
        assert tensor_from_proto(answer.tensor[0].tensor) == 3.0
        request.session_handle = "unknown"
        with pytest.raises(grpc.RpcError) as caught:
            call(request.SerializeToString(), timeout=SECONDS)
        assert caught.value.code() is grpc.StatusCode.ABORTED
    session.close()


class Load:
    """Steps of one session at one front end, until it is lost."""

    def __init__(self, server: ServerProcess, path: str) -> None:
        self.right = self.wrong = 0
        self.statuses: collections.Counter[int] = collections.Counter()
        self.ending: tuple[float, str] | None = None
        self._ended = threading.Event()
        self._run = (server.http_address, path)
        self._thread = threading.Thread(target=self._call)
        self._thread.start()

    def _call(self) -> None:
        address, path = self._run
        with httpx.Client(base_url=address, timeout=SECONDS) as client:
            number = 0
            while not self._ended.is_set() and self.ending is None:
                number += 1
                body = {"feeds": {"x:0": number}, "fetches": ["echo:0"]}
                answer = client.post(f"{path}:run", json=body)
                if answer.status_code == 200:
                    is_right = answer.json()["outputs"]["echo:0"]["data"] == number
                    self.right, self.wrong = self.right + is_right, self.wrong + (not is_right)
                    continue
                self.statuses[answer.status_code] += 1
                if answer.status_code == 410:
                    self.ending = (time.monotonic(), answer.json()["error"])

    def end(self) -> None:
        self._ended.set()
        self._thread.join(SECONDS)


def killed_under_load(server: ServerProcess, paths: list[str], kill: Callable[[], str]) -> None:
    """Kill what `kill` kills, which returns the host id of the sessions that are lost with it."""
    loads = {path: Load(server, path) for path in paths}
    try:
        until(lambda: all(load.right > 20 for load in loads.values()))
        killed_at, lost = time.monotonic(), kill()
        until(lambda: all(loads[p].ending for p in paths if p.endswith(lost)))
        before = {path: load.right for path, load in loads.items()}
        until(lambda: all(loads[p].right > before[p] + 20 for p in paths if not p.endswith(lost)))
    finally:
        for load in loads.values():
            load.end()
    assert sum(load.wrong for load in loads.values()) == 0
    for path, load in loads.items():
        if path.endswith(lost):
            assert load.ending is not None
            assert load.ending[1].startswith("Session has been lost with its session host: ")
            assert load.ending[0] - killed_at < 20
            assert set(load.statuses) <= {410, 503}
        else:
            assert not load.statuses


def test_a_session_host_that_dies_under_load(front: Start) -> None:
    server = front("host")
    paths = [opened(server) for _ in range(4)]

    def kill() -> str:
        host_id = paths[0].rpartition("-r")[2]
        name = f"runstep.host.host.{host_id}"
        actor = ray.get_actor(name, "runstep")
        os.kill(ray.get(actor.describe.remote())[1]["process_id"], signal.SIGKILL)
        return host_id

    killed_under_load(server, paths, kill)
    # Its node has fewer sessions now, and a new host.
    assert opened(server).rpartition("-r")[2] not in {path.rpartition("-r")[2] for path in paths}


def test_a_node_that_dies_under_load(front: Start, own_cluster: RayCluster) -> None:
    server = front("node")
    node = own_cluster.add_node(num_cpus=1)
    paths = [opened(server) for _ in range(6)]

    def kill() -> str:
        (lost,) = [
            host_id for host_id, told in hosts_of("node").items() if told["node_id"] == node.node_id
        ]
        own_cluster.kill_node(node)
        return lost

    killed_under_load(server, paths, kill)
    assert server.client.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("ray_settings", "sentence"),
    [
        ({"address": "127.0.0.1:1"}, "127.0.0.1:1"),
        ({"address": "127.0.0.1:10001"}, "Ray Client"),
        ({"nodes": "resources.tpu=4"}, "No node of the Ray cluster has 4 tpu"),
        ({"nodes": "cpus=4"}, "unknown option cpus"),
    ],
)
def test_what_can_not_be_is_said_at_the_start(
    own_cluster: RayCluster, tmp_path: pathlib.Path, ray_settings: dict[str, str], sentence: str
) -> None:
    config = {"placement": "ray", "ray": {"address": own_cluster.address} | ray_settings}
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump(config))
    until(lambda: own_cluster.num_actors() == 0)
    command = [sys.executable, "-m", "server.main", "serve", "--config", str(file)]
    began = time.monotonic()
    ended = subprocess.run(
        command, cwd=ROOT, env=on_free_ports(), capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 1
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
    assert time.monotonic() - began < 20  # with the start of the interpreter
    assert own_cluster.num_actors() == 0
