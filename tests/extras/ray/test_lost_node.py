"""A large answer that nobody can fetch any more, because its node has died.

The cluster declares nodes dead as late as Ray does by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray

from runtime.api import OpError, RunRequest, SessionOptions, UnavailableError, new_session
from runtime.sessions.ray_cluster.hosts import Host
from server.ray_sessions.silence import ActorCalls
from tests.integration.targets.graphs import identity
from tests.ray_cluster import RayCluster, ray_cluster

SECONDS = 60
LATEST = 8.0  # seconds until the call fails: 4, and those of a machine; Ray takes 15 and more
LARGE = np.zeros(1 << 18, np.float32)  # 1 MiB, which goes through the object store


@pytest.fixture(scope="module")
def slow_cluster() -> Iterator[RayCluster]:
    """A head, to which nodes can be added."""
    with ray_cluster() as started:
        yield started


@pytest.mark.parametrize("is_async", [False, True])
def test_a_large_answer_of_a_killed_node(
    slow_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    node = slow_cluster.add_node(labels={"zone": str(is_async)})
    target = f"ray://{slow_cluster.address}?label.zone={is_async}"
    session = new_session(SessionOptions(target))
    session.create(identity("float32"))
    start = Host.start

    def start_and_kill(host: Host, method: str, argument: Any = None) -> Any:
        answer = start(host, method, argument)
        if method == "run":
            assert ray.wait([answer], timeout=SECONDS, fetch_local=False)[0]
            slow_cluster.kill_node(node)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Host, "start", start_and_kill)
        began = time.monotonic()
        with pytest.raises(
            UnavailableError,
            match=r"The actor can't be reached at present .*: the port of the node does not open",
        ):
            if is_async:
                session.run_async(RunRequest({"x:0": LARGE}, ["y:0"])).result(SECONDS)
            else:
                session.run({"x:0": LARGE}, ["y:0"])
    assert time.monotonic() - began < LATEST
    with contextlib.suppress(OpError):
        session.close()


class Echo:
    """An actor that answers at once; with coroutines, as session hosts have."""

    async def large(self) -> Any:
        """Answer with what goes through the object store."""
        return LARGE

    async def ping(self) -> None:
        """Answer at once."""


def test_a_large_answer_for_a_front_end(slow_cluster: RayCluster) -> None:
    node = slow_cluster.add_node(resources={"front": 1})
    ray.init(address=slow_cluster.address, log_to_driver=False, ignore_reinit_error=True)
    actor = ray.remote(Echo).options(num_cpus=0, resources={"front": 1}).remote()  # type: ignore[attr-defined]
    answer = actor.large.remote()
    assert ray.wait([answer], timeout=SECONDS, fetch_local=False)[0]
    slow_cluster.kill_node(node)
    began = time.monotonic()
    with pytest.raises(ray.exceptions.RayActorError):
        calls = ActorCalls(actor.ping.remote, ray.exceptions.RayActorError)
        asyncio.run(calls.answer_of(answer))
    assert time.monotonic() - began < LATEST
