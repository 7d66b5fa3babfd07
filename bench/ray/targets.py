"""Measure the latency of a step on Ray, beside the direct runtime, a server and a bare actor.

    python -m bench.ray.targets [--steps N] [--opened N]

Requires the extra `ray`. The step returns its input, a float scalar or one of 4 MB. The cluster has
two nodes on this machine, each address is 127.0.0.1. The bare actor returns its argument and knows
nothing of sessions: what it takes is Ray's own. The measurements take turns, so that a disturbance
by the machine affects all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import protos as pb
from bench.measure import median, percentile
from bench.serving import runstep_server
from bench.tables import table
from bench.targets import steps_of
from runtime.api import RunRequest, SessionOptions, load_saved_model, new_session
from tests.conformance.case import Graph
from tests.ray_cluster import RayCluster, ray_cluster

ROUNDS = 10  # turns of each measurement
TINY = np.float32(1)
LARGE = np.zeros(1 << 20, np.float32)  # 4 MB
MODEL = pathlib.Path(__file__).parents[2] / "examples/models/digits"


def identity() -> pb.GraphDef:
    graph = Graph()
    graph.add("Identity", graph.placeholder("float32", "x"), name="y")
    return graph.graph_def


def session_step(target: str, value: Any, pool: int = 0) -> Callable[[], object]:
    session = new_session(SessionOptions(target))
    session.create(identity())
    options = pb.RunOptions(inter_op_thread_pool=pool)
    (fetched,) = session.run({"x:0": value}, ["y:0"], (), options)
    np.testing.assert_array_equal(fetched, value)
    return lambda: session.run({"x:0": value}, ["y:0"], (), options)


def asynchronous_step(target: str, value: Any) -> Callable[[], object]:
    session = new_session(SessionOptions(target))
    session.create(identity())
    return lambda: session.run_async(RunRequest({"x:0": value}, ["y:0"])).result()


class Echo:
    """A bare actor with a coroutine, as the session host has."""

    async def echo(self, value: Any) -> Any:
        return value


class BlockingEcho:
    """A bare actor that runs one call after the other."""

    def echo(self, value: Any) -> Any:
        return value


def bare_step(actor_class: type, node: str, value: Any) -> Callable[[], object]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    actor = ray.remote(actor_class).options(num_cpus=0, scheduling_strategy=strategy).remote()
    return lambda: ray.get(actor.echo.remote(value))


def opening(target: str) -> Callable[[], object]:
    """Return what opens a session on a loaded model and closes it."""
    directory = str(sorted(MODEL.iterdir())[-1])
    options = SessionOptions(target)
    bundle = load_saved_model(options, None, directory, ["serve"])

    def open_and_close() -> None:
        session, is_shared = bundle.open_session(options)
        assert is_shared
        session.close()

    return open_and_close


def rows(cluster: RayCluster, master: str, value: Any) -> dict[str, Callable[[], object]]:
    here = f"ray://{cluster.address}?node={cluster.head.node_id}"
    there = f"ray://{cluster.address}?node={cluster.nodes['other'].node_id}"
    return {
        "direct, caller's thread": session_step("", value, pool=-1),
        "direct, on a pool": session_step("", value),
        "another process (grpc)": session_step(master, value),
        "ray, the program's node": session_step(here, value),
        "ray, the program's node, run_async": asynchronous_step(here, value),
        "ray, an actor of its own": session_step(f"{here}&isolation=actor&num_cpus=0", value),
        "ray, another node": session_step(there, value),
        "bare actor, coroutine": bare_step(Echo, cluster.head.node_id, value),
        "bare actor, coroutine, another node": bare_step(
            Echo, cluster.nodes["other"].node_id, value
        ),
        "bare actor, blocking": bare_step(BlockingEcho, cluster.head.node_id, value),
    }


def measured(calls: dict[str, Callable[[], object]], steps: int) -> dict[str, list[float]]:
    runs = {row: steps_of(call) for row, call in calls.items()}
    times: dict[str, list[float]] = {row: [] for row in calls}
    for _ in range(ROUNDS):
        for row, run in runs.items():
            times[row] += run(max(1, steps // ROUNDS))
    return times


def microseconds(times: list[float]) -> list[str]:
    return [f"{median(times) * 1e6:,.0f}", f"{percentile(times, 99) * 1e6:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of each row with a scalar")
    parser.add_argument("--opened", type=int, default=200, help="sessions")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(runstep_server({"models": []})).grpc
        cluster = stack.enter_context(ray_cluster())
        cluster.nodes["other"] = cluster.add_node()
        started = time.perf_counter()
        new_session(SessionOptions(f"ray://{cluster.address}")).close()
        print(f"joining the cluster: {time.perf_counter() - started:.2f} s")
        tiny = measured(rows(cluster, master, TINY), options.steps)
        large = measured(rows(cluster, master, LARGE), options.steps // 4)
        opened = {"direct": opening(""), "ray": opening(f"ray://{cluster.address}")}
        print(
            table(
                ["step", "tiny: median µs", "p99 µs", "4 MB: median µs", "p99 µs"],
                [[row, *microseconds(tiny[row]), *microseconds(large[row])] for row in tiny],
            )
        )
        print(
            table(
                ["a session opened on a loaded model, and closed", "median µs", "p99 µs"],
                [
                    [row, *microseconds(times)]
                    for row, times in measured(opened, options.opened).items()
                ],
            )
        )


if __name__ == "__main__":
    main()
