"""Measure sessions on the nodes of a Ray cluster beside those of the server itself.

    python -m bench.ray.sessions [--seconds 5]

On one machine: a head, two nodes, a front end with `placement: ray`, and a plain server. In turns,
one client runs a step that returns its input, with a scalar and with 4 MB in base64, and opens and
closes sessions. Then 32 callers ask the directory for places and for nothing, which bounds how
many sessions can be opened in a second.
"""

from __future__ import annotations

import argparse
import base64
import pathlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import yaml

from tests.conformance.case import Graph
from tests.integration.server_process import ServerProcess
from tests.ray_cluster import ray_cluster  # sets what Ray reads when it is imported

APPLICATION = "bench"
TURNS = 5
CALLERS = 32


def echo_graph() -> str:
    """Return a graph whose `echo` is the fed `x`."""
    graph = Graph()
    graph.add("Identity", graph.placeholder("float32", "x"), name="echo")
    return base64.b64encode(graph.graph_def.SerializeToString()).decode()


def timed(call: Callable[[], object], seconds: float) -> list[float]:
    """Return the milliseconds of each of the calls that fit into some seconds."""
    took = []
    ends = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < ends:
        call()
        took.append((time.perf_counter() - begun) * 1000)
    return took


class Client:
    """One connection to a server, and a session of it."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=60)
        self._path = self.opened()

    def opened(self) -> str:
        """Open a session, and return its path."""
        answer = self._client.post("/v1/sessions", json={"graph_def": echo_graph()})
        answer.raise_for_status()
        return str(answer.headers["location"])

    def tiny(self) -> None:
        """Run a step with a scalar."""
        self._run({"feeds": {"x:0": 1.5}, "fetches": ["echo:0"]})

    def large(self) -> None:
        """Run a step with 4 MB, as base64 in both directions."""
        fed = {"dtype": "float32", "shape": [1 << 20], "b64": LARGE}
        self._run({"feeds": {"x:0": fed}, "fetches": ["echo:0"]}, "?encoding=b64")

    def open_and_close(self) -> None:
        """Open a session and close it."""
        self._client.delete(self.opened()).raise_for_status()

    def _run(self, body: dict[str, Any], query: str = "") -> None:
        self._client.post(f"{self._path}:run{query}", json=body).raise_for_status()


LARGE = base64.b64encode(np.zeros(1 << 20, np.float32).tobytes()).decode()


def directory_rate(call: Callable[[], Any], seconds: float) -> float:
    """Return how many calls of the directory CALLERS threads make in a second."""
    import ray

    counts: list[int] = []

    def work() -> None:
        counts.append(len(timed(lambda: ray.get(call()), seconds)))

    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts) / seconds


def main() -> None:
    """Print a table."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    with ray_cluster(num_cpus=0) as cluster, tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, namespace="runstep", log_to_driver=False)
        file = pathlib.Path(folder) / "server.yaml"
        options = {"address": cluster.address, "application": APPLICATION}
        file.write_text(yaml.safe_dump({"placement": "ray", "ray": options}))
        empty = pathlib.Path(folder) / "local.yaml"
        empty.write_text("{}\n")
        front = ServerProcess("--config", str(file))
        plain = ServerProcess("--config", str(empty))
        try:
            clients = {"local": Client(plain.http_address), "ray": Client(front.http_address)}
            took: dict[tuple[str, str], list[float]] = {}
            for _ in range(TURNS):
                for where, client in clients.items():
                    for name in ("tiny", "large", "open_and_close"):
                        found = timed(getattr(client, name), seconds / TURNS)
                        took.setdefault((name, where), []).extend(found)
            print("| call | sessions | median ms | p99 ms |\n| --- | --- | --- | --- |")
            for (name, where), times in sorted(took.items()):
                p99 = statistics.quantiles(times, n=100)[98]
                print(f"| {name} | {where} | {statistics.median(times):.2f} | {p99:.2f} |")
            directory = ray.get_actor(f"runstep.{APPLICATION}.directory", "runstep")
            rate = directory_rate(lambda: directory.ping.remote("bench"), seconds)
            ray.get(directory.leave.remote("bench"))
            print(f"directory: {rate:.0f} calls in a second")
            listing = timed(lambda: ray.get(directory.hosts.remote()), 1.0)
            print(f"directory, one caller: {statistics.median(listing):.2f} ms")
        finally:
            front.end()
            plain.end()


if __name__ == "__main__":
    main()
