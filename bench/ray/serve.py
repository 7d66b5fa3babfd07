"""Measure models that are replicas of Ray Serve beside a plain server and a bare deployment.

    python -m bench.ray.serve [--seconds 5] [--callers 8]

On one machine: a cluster of one node, half_plus_two deployed with one replica and then with two, a
deployment of Ray Serve that returns its body, and a plain server. Each is called by one caller and
by several, over connections that stay open. The callers share the cores with what they measure, but
the processor time is that of the other processes: of the server, or of the whole cluster.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import httpx
import numpy as np
import yaml

import protos as pb
from bench.processes import processor_seconds
from bench.tables import table
from runtime.api import tensor_to_proto
from tests.integration.server_process import ServerProcess
from tests.ray_cluster import RayCluster, ray_cluster  # sets what Ray reads when it is imported

MODEL = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}
PREDICT = "/v1/models/half_plus_two:predict"
BODY = b'{"instances":[1.0]}'
RPC = "/tensorflow.serving.PredictionService/Predict"
MESSAGE = pb.serving.PredictRequest(
    model_spec=pb.serving.ModelSpec(name="half_plus_two"),
    inputs={"x": tensor_to_proto(np.array([1.0], np.float32))},
).SerializeToString()
WARM_UP_SECONDS = 1.0


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Caller(threading.Thread):
    """Sends one request after the other over one connection."""

    def __init__(self, url: str, until: float) -> None:
        super().__init__()
        self._url, self._until = url, until
        self.milliseconds: list[float] = []

    def run(self) -> None:
        if self._url.startswith("grpc://"):
            with grpc.insecure_channel(self._url.removeprefix("grpc://")) as channel:
                predict = channel.unary_unary(RPC)
                self._repeat(lambda: predict(MESSAGE, timeout=60))
        else:
            with httpx.Client(timeout=60) as client:
                self._repeat(lambda: client.post(self._url, content=BODY).raise_for_status())

    def _repeat(self, call: Callable[[], object]) -> None:
        while (begun := time.perf_counter()) < self._until:
            call()
            self.milliseconds.append((time.perf_counter() - begun) * 1000)


def measured(url: str, callers: int, seconds: float) -> list[float]:
    """Return the milliseconds of the requests of some callers."""
    until = time.perf_counter() + seconds
    threads = [Caller(url, until) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for thread in threads for each in thread.milliseconds]


def others_seconds() -> float:
    """Return the processor time of all processes that this one has started and that still run."""
    return processor_seconds(os.getpid()) - sum(os.times()[:2])


def report(what: str, url: str, callers: int, seconds: float) -> None:
    """Print the rows of one server."""
    for count in (1, callers):
        measured(url, count, WARM_UP_SECONDS)
        before = others_seconds()
        took = measured(url, count, seconds)
        used = others_seconds() - before
        cuts = statistics.quantiles(took, n=100)
        rates = f"{len(took) / seconds:.0f} | {len(took) / used:.0f}"
        print(f"| {what} | {count} | {rates} | {cuts[49]:.2f} | {cuts[98]:.2f} |", flush=True)


def deploy(*arguments: str) -> None:
    """Run `runstep deploy ray`."""
    command = [sys.executable, "-m", "server.main", "deploy", "ray", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def report_models(cluster: RayCluster, callers: int, seconds: float) -> None:
    """Print the rows of one replica and of two."""
    port, rpc_port = free_port(), free_port()
    settings: dict[str, Any] = {
        "rest": {"host": "127.0.0.1", "port": port},
        "grpc": {"port": rpc_port},
        "models": [MODEL],
        "sessions": {"enabled": False},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "server.yaml"
        for replicas in (1, 2):
            serve = {"replicas": replicas, "cpus": 0}
            settings["ray"] = {"address": cluster.address, "serve": serve}
            file.write_text(yaml.safe_dump(settings))
            deploy("--config", str(file))
            url = f"http://127.0.0.1:{port}{PREDICT}"
            report(f"HTTP, {replicas} replicas on Ray Serve", url, callers, seconds)
            rpc = f"grpc://127.0.0.1:{rpc_port}"
            report(f"gRPC, {replicas} replicas on Ray Serve", rpc, callers, seconds)
    deploy("--address", cluster.address, "--remove")


def report_bare(cluster: RayCluster, callers: int, seconds: float) -> None:
    """Print the rows of a deployment that returns its body."""
    import ray
    from ray import serve

    class Echo:
        async def __call__(self, request: Any) -> Any:
            return (await request.body()).decode()

    ray.init(address=cluster.address, log_to_driver=False)
    port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    options = {"max_ongoing_requests": 1000, "ray_actor_options": {"num_cpus": 0}}
    serve.run(serve.deployment(**options)(Echo).bind(), name="echo", route_prefix="/")
    report("HTTP, a bare deployment of Ray Serve", f"http://127.0.0.1:{port}/", callers, seconds)
    serve.shutdown()
    ray.shutdown()


def report_plain(callers: int, seconds: float) -> None:
    """Print the rows of a server without Ray."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "server.yaml"
        file.write_text(yaml.safe_dump({"models": [MODEL]}))
        server = ServerProcess("--config", str(file))
        try:
            server.wait_for("Serving on")
            report("HTTP, `runstep serve`", f"{server.http_address}{PREDICT}", callers, seconds)
            report("gRPC, `runstep serve`", server.grpc_address, callers, seconds)
        finally:
            server.end()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--callers", type=int, default=8)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load before: {load:.1f}")
    head = (
        "what answers",
        "callers",
        "requests/s",
        "in a second of processor time",
        "p50 ms",
        "p99 ms",
    )
    print(table(head, []))
    report_plain(options.callers, options.seconds)
    with ray_cluster(num_cpus=2) as cluster:
        report_bare(cluster, options.callers, options.seconds)
        report_models(cluster, options.callers, options.seconds)


if __name__ == "__main__":
    main()
