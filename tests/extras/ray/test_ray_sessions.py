"""`placement: ray`: sessions on the nodes of a cluster, reached from any front end."""

from __future__ import annotations

import base64
import collections
import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent import futures

import grpc
import httpx
import numpy as np
import pytest
import ray

import protos as pb
from runtime.api import SessionOptions, new_session, tensor_from_proto
from tests.extras.ray.front_ends import (
    SECONDS,
    FrontEnds,
    counter_graph,
    directory_of,
    host_ids_of,
    hosts_of,
    opened,
    until,
    value,
)
from tests.extras.ray.session_load import CONNECTION, SessionLoad
from tests.integration.server_process import ServerProcess
from tests.integration.targets.graphs import queue
from tests.ray_cluster import RayCluster


def test_any_front_end_finds_a_session(front: FrontEnds) -> None:
    first, second = front.two("shared")
    with futures.ThreadPoolExecutor(4) as threads:  # while the session hosts start
        paths = list(threads.map(opened, [first] * 4))
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


def test_the_death_of_the_directory_loses_no_session(front: FrontEnds) -> None:
    server = front("directory", max_open=3)
    paths = [opened(server) for _ in range(2)]
    ray.kill(directory_of("directory"), no_restart=False)
    assert [value(server, path) for path in paths] == [0, 0]
    # The next session waits for it, and its count is the old one.
    paths.append(opened(server))
    assert len(hosts_of("directory")) == 2
    refused = server.client.post("/v1/sessions", json={"graph_def": counter_graph()})
    assert (refused.status_code, refused.json()["code"]) == (429, "RESOURCE_EXHAUSTED")
    assert "3 sessions are open" in refused.json()["error"]
    server.client.delete(paths[0])
    until(lambda: sum(each["sessions"] for each in hosts_of("directory").values()) == 2)
    lost = opened(server)
    # A host that ends while there is no directory is not forgotten.
    host = hosts_of("directory")[lost.rpartition("-r")[2]]
    ray.kill(directory_of("directory"), no_restart=False)
    os.kill(host["process_id"], signal.SIGKILL)
    until(lambda: server.client.get(lost).status_code == 410)
    assert "Session has been lost with its session host" in server.client.get(lost).json()["error"]


def test_tensorflow_clients_find_their_session_at_any_front_end(front: FrontEnds) -> None:
    first, second = front.two("master")
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


def samples(server: ServerProcess, part: str = "") -> dict[str, list[tuple[str, float]]]:
    """The labels and values of each metric."""
    answer = server.client.get(f"/monitoring/prometheus/metrics{part}")
    assert answer.status_code == 200
    found: dict[str, list[tuple[str, float]]] = collections.defaultdict(list)
    for line in answer.text.splitlines():
        if match := re.fullmatch(r"([^#{ ]+)(?:\{(.*)\})? (\S+)", line):
            found[match[1]].append((match[2] or "", float(match[3])))
    return found


def host_in(labels: str) -> str:
    """The host that the labels name; "" for the front end."""
    found = re.search(r'host="([0-9a-f]+)"', labels)
    assert (found is not None) == ('node="127.0.0.1"' in labels)
    return found[1] if found else ""


def test_the_figures_of_all_nodes_are_at_every_front_end(front: FrontEnds) -> None:
    server = front("figures")
    for path in [opened(server) for _ in range(4)]:
        assert value(server, path) == 0
    predict = "/v1/models/half_plus_two:predict"
    assert server.client.post(predict, json={"instances": [1.0]}).status_code == 200
    hosts = hosts_of("figures")
    assert len(hosts) == 2
    page = samples(server)
    steps = collections.Counter({"": 0})
    for labels, count in page["runstep_steps_total"]:
        steps[host_in(labels)] += int(count)
    assert steps == {"": 1} | dict.fromkeys(hosts, 4)  # of two sessions each
    # A request is counted by the front end that has received it, a session where it is.
    requests = page["runstep_requests_total"]
    assert not any(host_in(labels) for labels, _ in requests)
    assert sum(count for labels, count in requests if "session_call" in labels) == 12
    there = {host_in(labels): count for labels, count in page["runstep_sessions_open"]}
    assert there == {"": 0} | dict.fromkeys(hosts, 2)
    up = {host_in(labels): count for labels, count in page["runstep_session_host_up"]}
    assert up == dict.fromkeys(hosts, 1)
    # Scrapes of several front ends, and one of the nodes, have everything once.
    own, others = samples(server, "?from=front"), samples(server, "?from=nodes")
    assert {host_in(labels) for each in own.values() for labels, _ in each} == {""}
    assert {host_in(labels) for each in others.values() for labels, _ in each} == hosts.keys()
    wrong = server.client.get("/monitoring/prometheus/metrics?from=here")
    assert (wrong.status_code, wrong.json()["error"]) == (
        400, "from must be front or nodes, got 'here'",
    )  # fmt: skip
    pools = server.client.get("/v1/threadpools").json()["thread_pools"]
    online = [each for each in pools if each["name"] == "online"]
    assert [each.get("host", "") for each in online] == ["", *hosts]
    assert [each.get("node") for each in online] == [None, "127.0.0.1", "127.0.0.1"]
    stopped = hosts[max(hosts)]["process_id"]
    os.kill(stopped, signal.SIGSTOP)
    began = time.monotonic()
    up = {host_in(labels): count for labels, count in samples(server)["runstep_session_host_up"]}
    assert up == {min(hosts): 1, max(hosts): 0}
    assert time.monotonic() - began < 10
    os.kill(stopped, signal.SIGKILL)
    until(lambda: len(host_ids_of("figures")) == 1)
    up = {host_in(labels): count for labels, count in samples(server)["runstep_session_host_up"]}
    assert up == {min(hosts): 1}


@contextlib.contextmanager
def loads(count: int, *fronts: ServerProcess) -> Iterator[list[SessionLoad]]:
    """Clients of the first front end, whose steps run; no answer may be wrong."""
    addresses = [front.http_address for front in fronts]
    made = [SessionLoad(addresses) for _ in range(count)]
    try:
        more(made)
        yield made
        more(made)
    finally:
        for load in made:
            load.end()
    assert [load.wrong for load in made] == [0] * count


def more(loads: list[SessionLoad], count: int = 20) -> None:
    """Wait until each has some more right answers."""
    before = [load.right for load in loads]
    until(lambda: all(load.right > was + count for load, was in zip(loads, before, strict=True)))


def host_of(load: SessionLoad) -> str:
    """The id of the host of a session."""
    return load.path.rpartition("-r")[2]


def check_lost(loads: list[SessionLoad], lost: list[SessionLoad], killed_at: float) -> None:
    """The sessions of `lost` are lost, with at most a few failed requests, and no others."""
    for load in lost:
        (ending,) = load.endings
        assert ending.startswith("Session has been lost with its session host: ")
        assert load.answered_at - killed_at < 20
        assert set(load.failed) <= {"410", "503"}
    assert not any(load.failed for load in loads if load not in lost)


def test_a_session_host_that_dies_under_load(front: FrontEnds) -> None:
    server = front("host")
    with loads(4, server) as made:
        host_id = host_of(made[0])
        lost = [load for load in made if host_of(load) == host_id]
        assert 0 < len(lost) < 4
        killed_at = time.monotonic()
        os.kill(hosts_of("host")[host_id]["process_id"], signal.SIGKILL)
        until(lambda: all(load.answered_at for load in lost))
        # Their node has fewer sessions then, and a new host.
        assert host_id not in map(host_of, made)
    check_lost(made, lost, killed_at)


def test_a_node_that_dies_under_load(front: FrontEnds, front_cluster: RayCluster) -> None:
    server = front("node")
    node = front_cluster.add_node(num_cpus=1)
    with loads(6, server) as made:
        (host_id,) = (x for x, told in hosts_of("node").items() if told["node_id"] == node.node_id)
        lost = [load for load in made if host_of(load) == host_id]
        assert lost
        killed_at = time.monotonic()
        front_cluster.kill_node(node)
        until(lambda: all(load.answered_at for load in lost))
    check_lost(made, lost, killed_at)
    assert server.client.get("/readyz").status_code == 200


def test_no_other_node_than_the_head_has_the_directory(
    front: FrontEnds, front_cluster: RayCluster
) -> None:
    for application in ("first", "second"):
        front(application)
        where = directory_of(application).__ray_call__.remote(_own_node_id)
        assert ray.get(where, timeout=SECONDS) == front_cluster.head.node_id


def _own_node_id(_: object) -> str:
    return str(ray.get_runtime_context().get_node_id())


def test_a_front_end_that_dies_under_load(front: FrontEnds) -> None:
    first, second = front.two("fronts", {"admin": {"enabled": True}})
    waiting = base64.b64encode(queue("q").SerializeToString()).decode()
    opened = first.client.post("/v1/sessions", json={"graph_def": waiting}, timeout=SECONDS)
    path = opened.headers["location"]
    unload = "/v2/repository/models/half_plus_two/unload"
    with loads(4, first, second) as made, futures.ThreadPoolExecutor(2) as threads:
        dequeue = {"fetches": ["dequeue:0"]}
        step = threads.submit(first.client.post, f"{path}:run", json=dequeue)
        until(lambda: second.client.get(path).json()["state"] == "RUNNING")
        before = [load.path for load in made]
        killed_at = time.monotonic()
        first.process.kill()
        change = threads.submit(second.client.post, unload, json={})
        until(lambda: all(load.answered_at for load in made))
        with pytest.raises(httpx.TransportError):
            step.result(SECONDS)
        # A step that nobody waits for any more is cancelled, as if its client had gone away.
        until(lambda: second.client.get(path).json()["state"] == "IDLE")
        # A change of the models does not wait for it for ever.
        assert change.result(SECONDS).status_code == 200
    assert [load.path for load in made] == before  # no session is lost
    for load in made:
        assert load.failed == {CONNECTION: 1}
        assert load.answered_at - killed_at < 20
