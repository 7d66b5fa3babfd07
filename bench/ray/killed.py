"""Kill a front end, a session host and a node under load, and count what clients notice.

    python -m bench.ray.killed [--clients 6] [--seconds 3]

On one machine: a head, three nodes and two front ends with `placement: ray`. Each client runs one
step after the other in a session of its own, at the first front end. If its connection ends, it
goes on at the second; if its session is lost, it opens another one. Each answer is compared with
what it must be, and so is the sum that each session has in the end.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import pathlib
import signal
import tempfile
import time
from collections.abc import Callable, Sequence

from tests.extras.ray.front_ends import FrontEnds, hosts_of
from tests.extras.ray.session_load import SessionLoad
from tests.integration.server_process import ServerProcess
from tests.ray_cluster import RayCluster, ray_cluster  # sets what Ray reads when it is imported

APPLICATION = "killed"
PATIENCE = 60.0  # seconds in which all clients must have answers again
Kill = Callable[[RayCluster, ServerProcess], object]


def _kill_front(_: RayCluster, first: ServerProcess) -> object:
    return first.process.kill()


def _kill_host(_: RayCluster, __: ServerProcess) -> object:
    return os.kill(next(iter(hosts_of(APPLICATION).values()))["process_id"], signal.SIGKILL)


def _kill_node(cluster: RayCluster, _: ServerProcess) -> object:
    return cluster.kill_node(cluster.nodes["c"])


def killed(
    cluster: RayCluster, fronts: Sequence[ServerProcess], kill: Kill, clients: int, seconds: float
) -> str:
    """Kill something while clients run steps, and return a row of the table."""
    with contextlib.ExitStack() as stack:
        loads = []
        for _ in range(clients):
            loads.append(SessionLoad([front.http_address for front in fronts]))
            stack.callback(loads[-1].end)
        time.sleep(seconds)
        killed_at = time.monotonic()
        kill(cluster, fronts[0])
        time.sleep(seconds)
        while any(load.failed_at and not load.answered_at for load in loads):
            if time.monotonic() - killed_at > PATIENCE:
                raise SystemExit(f"No answers after {PATIENCE:g} s")
            time.sleep(0.05)
        time.sleep(seconds)
    failed: collections.Counter[str] = collections.Counter()
    for load in loads:
        failed += load.failed
    touched = [load for load in loads if load.failed_at]
    late = max((load.answered_at - killed_at for load in touched), default=0.0)
    right, wrong = sum(load.right for load in loads), sum(load.wrong for load in loads)
    codes = ", ".join(f"{count} × {code}" for code, count in failed.items()) or "none"
    return f"{len(touched)} of {clients} | {codes} | {late:.1f} | {right} | {wrong} |"


def main() -> None:
    """Print a table."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    print("| killed | clients that notice | failed | answers again, s | right | wrong |")
    print("| --- | --- | --- | --- | --- | --- |")
    kills = {"a front end": _kill_front, "a session host": _kill_host, "a node": _kill_node}
    with ray_cluster(num_cpus=0) as cluster, tempfile.TemporaryDirectory() as folder:
        for name in ("a", "b", "c"):
            cluster.nodes[name] = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, namespace="runstep", log_to_driver=False)
        front = FrontEnds(cluster, pathlib.Path(folder))
        try:
            last = front(APPLICATION)
            for name, kill in kills.items():
                fronts = [front(APPLICATION), last]
                row = killed(cluster, fronts, kill, options.clients, options.seconds)
                print(f"| {name} | {row}", flush=True)
        finally:
            front.end()


if __name__ == "__main__":
    main()
