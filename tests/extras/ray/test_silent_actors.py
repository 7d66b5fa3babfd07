"""`placement: ray`: what a session host or the directory that hangs does to clients."""

from __future__ import annotations

import base64
import time
from concurrent import futures
from typing import Any

import grpc
import httpx
import ray
from google.protobuf.message import Message

import protos as pb
from tests.extras.ray.front_ends import (
    SECONDS,
    FrontEnds,
    counter_graph,
    directory_of,
    hosts_of,
    opened,
    until,
    value,
)
from tests.integration.server_process import ServerProcess, stopped
from tests.ray_cluster import RayCluster

LATEST = 15.0  # seconds until a call fails whose actor does not answer: 10, and those of a machine


def timed(
    server: ServerProcess, method: str, path: str, **request: Any
) -> tuple[httpx.Response, float]:
    """The response to a request, and how many seconds it took."""
    began = time.monotonic()
    answer = server.client.request(method, path, timeout=SECONDS, **request)
    return answer, time.monotonic() - began


def check_deadlines(server: ServerProcess, path: str) -> None:
    """The 504 leaves at the deadline, whatever says it."""
    fetch: dict[str, Any] = {"fetches": ["value:0"]}
    by_options = fetch | {"options": {"timeout_in_ms": 500}}
    large = {"feeds": {"x:0": [0.5] * 100_000}} | by_options
    for body, headers in (
        (fetch, {"X-Timeout-Ms": "500"}),
        (by_options, {}),
        (by_options, {"X-Timeout-Ms": "60000"}),  # options come first
        (large, {}),
    ):
        check_deadline(server, path, body, headers)


def check_deadline(
    server: ServerProcess,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str],
    least: float = 0.5,
) -> None:
    answer, seconds = timed(server, "POST", f"{path}:run", json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
    assert least <= seconds < least + 2.5


def test_a_session_host_that_hangs(front: FrontEnds) -> None:
    server = front("hung")
    paths = [opened(server) for _ in range(4)]
    quick = opened(server, operation_timeout_in_ms=1500)
    hosts = hosts_of("hung")
    hung = quick.rpartition("-r")[2]
    path, doomed = (each for each in paths if each.endswith(hung))
    others = [each for each in paths if not each.endswith(hung)]
    calls: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("DELETE", doomed, None),
        ("POST", f"{path}:run", {"fetches": ["value:0"]}),  # has no deadline
    ]
    with stopped(hosts[hung]["process_id"]), futures.ThreadPoolExecutor() as threads:
        check_deadlines(server, path)
        check_deadline(server, quick, {"fetches": ["value:0"]}, {}, 1.5)
        made = [threads.submit(timed, server, *call[:2], json=call[2]) for call in calls]
        for each in made:
            answer, seconds = each.result()
            assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
            where = f"Session host {hung} on node 127.0.0.1 does not answer"
            assert answer.json()["error"].startswith(where)
            assert seconds < LATEST
        # New sessions go to the other host, although it has more.
        fresh = [opened(server) for _ in range(4)]
        assert not any(each.endswith(hung) for each in fresh)
        assert [value(server, each) for each in others] == [0, 0]
    # It was not ended: its sessions are there, and it gets new ones.
    assert value(server, path) == 0
    until(lambda: opened(server).endswith(hung))


def test_the_master_on_a_session_host_that_hangs(front: FrontEnds) -> None:
    """gRPC clients have an answer, but no other master: it would not have the same variables."""
    server = front("hung-master")
    graph = pb.GraphDef.FromString(base64.b64decode(counter_graph()))
    opening = pb.CreateSessionRequest(graph_def=graph)
    with grpc.insecure_channel(server.grpc_address.removeprefix("grpc://")) as channel:

        def called(name: str, request: Message) -> tuple[Any, float]:
            """The response or the error of a call without a deadline, and its seconds."""
            method = channel.unary_unary(f"/tensorflow.MasterService/{name}")
            began = time.monotonic()
            call = method.future(request.SerializeToString())
            return call.exception(SECONDS) or call.result(), time.monotonic() - began

        opened, _ = called("CreateSession", opening)
        handle = pb.CreateSessionResponse.FromString(opened).session_handle
        step = pb.RunStepRequest(session_handle=handle, target=["init"])
        hosts = hosts_of("hung-master")
        with (
            stopped(hosts[handle.rpartition("-r")[2]]["process_id"]),
            futures.ThreadPoolExecutor() as threads,
        ):
            made = [
                threads.submit(called, name, request)
                for name, request in (("RunStep", step), ("CreateSession", opening))
            ]
            limited = pb.RunStepRequest(session_handle=handle, target=["init"])
            limited.options.timeout_in_ms = 500
            error, seconds = called("RunStep", limited)
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            assert 0.5 <= seconds < 3
            for each in made:
                error, seconds = each.result()
                assert error.code() == grpc.StatusCode.UNAVAILABLE
                assert seconds < LATEST
        assert isinstance(called("RunStep", step)[0], bytes)


def test_an_opening_goes_to_another_host_than_one_that_has_just_hung(front: FrontEnds) -> None:
    server = front("just-hung")
    paths = [opened(server) for _ in range(3)]  # the next goes to the host that has one
    last = {each.rpartition("-r")[2]: each for each in paths}
    (hung,) = (each for each in last if sum(path.endswith(each) for path in paths) == 1)
    with stopped(hosts_of("just-hung")[hung]["process_id"]):
        answer, seconds = timed(server, "POST", "/v1/sessions", json={"graph_def": counter_graph()})
        assert answer.status_code == 201, answer.text
        assert not answer.json()["session"].endswith(hung)
        assert seconds < LATEST


def test_a_directory_that_hangs(front: FrontEnds, front_cluster: RayCluster) -> None:
    server = front("lost")
    path = opened(server)
    never = f"{path.rpartition('-r')[0]}-r000000000000"
    before = front_cluster.actors("DirectoryActor")
    actor_id = directory_of("lost")._actor_id.hex()
    with stopped(before[actor_id]):
        assert value(server, path) == 0
        graph = {"graph_def": counter_graph()}
        answer, seconds = timed(
            server, "POST", "/v1/sessions", json=graph, headers={"X-Timeout-Ms": "1000"}
        )
        assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
        assert 1 <= seconds < 3
        for method, target, body in (("POST", "/v1/sessions", graph), ("GET", never, None)):
            answer, seconds = timed(server, method, target, json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
            assert answer.json()["error"].startswith("The directory of sessions does not answer")
            assert seconds < LATEST
        until(lambda: server.client.get("/readyz").status_code == 503)
    assert server.client.get(never, timeout=SECONDS).status_code == 404
    opened(server)
    assert ray.get(directory_of("lost").hosts.remote(), timeout=SECONDS)[0] == 0
