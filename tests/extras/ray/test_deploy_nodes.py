"""Replicas on several nodes: one node dies, and their number follows the load."""

from __future__ import annotations

import collections
import pathlib
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import httpx
import pytest

from tests.extras.ray.conftest import QUICK
from tests.extras.ray.deployments import HALF_PLUS_TWO, SECONDS, Commands, deployed, until
from tests.ray_cluster import THINK_SECONDS, RayCluster

PREDICT = "/v1/models/half_plus_two:predict"
REPLICA = "model_half_plus_two"


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[RayCluster]:
    """A head without replicas, and two nodes that have room for one each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S", "1")
        started = RayCluster(num_cpus=0, _system_config=QUICK)
        started.nodes = {name: started.add_node(num_cpus=1) for name in ("a", "b")}
    yield started
    started.end()


class Load:
    """A caller whose every request has a connection of its own, as nodes share a port here."""

    def __init__(self, address: str) -> None:
        self.right = self.wrong = 0
        self.failed: collections.Counter[str] = collections.Counter()
        self._address = address
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._call)
        self._thread.start()

    def _call(self) -> None:
        alone = {"Connection": "close"}
        with httpx.Client(base_url=self._address, headers=alone, timeout=SECONDS) as client:
            value = 0
            while not self._ended.wait(THINK_SECONDS):
                value += 1
                try:
                    answer = client.post(PREDICT, json={"instances": [value]})
                except httpx.TransportError:  # of the proxy that died with its node
                    self.failed["connection"] += 1
                    continue
                if answer.status_code != 200:
                    self.failed[str(answer.status_code)] += 1
                elif answer.json() == {"predictions": [value / 2 + 2]}:
                    self.right += 1
                else:
                    self.wrong += 1

    def more(self, count: int = 50) -> None:
        wanted = self.right + count
        until(lambda: self.right >= wanted)

    def end(self) -> None:
        self._ended.set()
        self._thread.join(SECONDS)


def test_replicas_follow_the_load(
    own_cluster: RayCluster, tmp_path: pathlib.Path, commands: Commands
) -> None:
    parameters = tmp_path / "batching.txt"
    parameters.write_text("max_batch_size { value: 99 }\nbatch_timeout_micros { value: 500000 }\n")
    batching = {"mode": "parameters", "parameters_file": str(parameters)}
    model: dict[str, Any] = HALF_PLUS_TWO | {"batching": batching}
    replicas = {"min": 1, "max": 2, "queued_per_replica": 1, "more_after_seconds": 1}
    with deployed(own_cluster, tmp_path, [model], commands, replicas=replicas) as application:
        assert len(own_cluster.actors(REPLICA)) == 1
        ended = threading.Event()

        def call() -> set[int]:
            statuses = set()
            with httpx.Client(base_url=application.http_address, timeout=SECONDS) as client:
                while not ended.is_set():
                    statuses.add(client.post(PREDICT, json={"instances": [1.0]}).status_code)
            return statuses

        with futures.ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(call) for _ in range(4)]
            began = time.monotonic()
            try:
                until(lambda: len(own_cluster.actors(REPLICA)) == 2, 80)
            finally:
                ended.set()
            assert {status for each in calls for status in each.result()} == {200}
        assert time.monotonic() - began > 1.0


def test_a_node_that_dies_under_load(
    own_cluster: RayCluster, tmp_path: pathlib.Path, commands: Commands
) -> None:
    numbers = {"replicas": 2, "fronts": 2}
    with deployed(own_cluster, tmp_path, [HALF_PLUS_TWO], commands, **numbers) as application:
        load = Load(application.http_address)
        try:
            load.more()
            own_cluster.kill_node(own_cluster.nodes["b"])
            load.more(100)
            failed = load.failed.total()
            load.more(100)
            assert load.failed.total() == failed  # it is over
        finally:
            load.end()
        assert load.wrong == 0
        assert set(load.failed) <= {"connection", "500", "503"}
        # The second replica has no node until there is one more.
        own_cluster.add_node(num_cpus=1)
        until(lambda: len(own_cluster.actors(REPLICA)) == 2)
