"""Front ends with `placement: ray` that tests start, and the sessions that they open at them."""

from __future__ import annotations

import base64
import itertools
import pathlib
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import yaml

from tests.conformance.case import Graph
from tests.integration.server_process import ServerProcess
from tests.ray_cluster import RayCluster

SECONDS = 60
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}


class FrontEnds:
    """Starts front ends on a cluster, and removes their applications from it at the end."""

    def __init__(self, cluster: RayCluster, folder: pathlib.Path) -> None:
        self.cluster = cluster
        self._folder = folder
        self._numbers = itertools.count()
        self._started: list[ServerProcess] = []
        self._applications: set[str] = set()

    def __call__(
        self, application: str, settings: dict[str, Any] | None = None, **sessions: Any
    ) -> ServerProcess:
        """Start a front end; `sessions` are settings of that section."""
        config = {
            "models": [HALF_PLUS_TWO],
            "placement": "ray",
            "ray": {"address": self.cluster.address, "application": application},
            "sessions": sessions,
        } | (settings or {})
        file = self._folder / f"{next(self._numbers)}.yaml"
        file.write_text(yaml.safe_dump(config))
        self._applications.add(application)
        server = ServerProcess("--config", str(file))
        self._started.append(server)
        server.wait_for("Serving on")
        return server

    def two(
        self, application: str, settings: dict[str, Any] | None = None, **sessions: Any
    ) -> Sequence[ServerProcess]:
        """Start two front ends at the same time."""
        with futures.ThreadPoolExecutor(2) as threads:
            made = [threads.submit(self, application, settings, **sessions) for _ in range(2)]
            return [each.result() for each in made]

    def end(self) -> None:
        """Kill the front ends, and end the session hosts."""
        import ray

        for server in self._started:
            server.end()
        for application in self._applications:
            ray.get(directory_of(application).stop.remote(), timeout=SECONDS)


def directory_of(application: str) -> Any:
    """The actor."""
    import ray  # after tests.ray_cluster has set what Ray reads when it is imported

    return ray.get_actor(f"runstep.{application}.directory", "runstep")


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


def opened(server: ServerProcess, **config: Any) -> str:
    """Open a session with `counter_graph`, and return its path."""
    request = {"graph_def": counter_graph(), "config": config}
    answer = server.client.post("/v1/sessions", json=request, timeout=SECONDS)
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


def host_ids_of(application: str) -> list[str]:
    """The ids of the session hosts that the directory knows."""
    import ray

    told = ray.get(directory_of(application).hosts.remote(), timeout=SECONDS)[1]
    return [host_id for host_id, _ in told]


def hosts_of(application: str) -> dict[str, dict[str, Any]]:
    """What each session host says of itself, by its id."""
    import ray

    found = {}
    for host_id in host_ids_of(application):
        actor = ray.get_actor(f"runstep.{application}.host.{host_id}", "runstep")
        found[host_id] = ray.get(actor.describe.remote(), timeout=SECONDS)[1]
    return found


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends, "it does not come to hold"
        time.sleep(0.05)
