"""Actors, nodes and programs that are killed in the middle of steps: every answer is counted."""

from __future__ import annotations

import collections
import dataclasses
import os
import queue as queues
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from runtime.api import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    RunRequest,
    RuntimeSession,
)
from runtime.sessions.ray_cluster import hosts as hosts_module
from runtime.sessions.ray_cluster.hosts import Host
from tests.extras.ray.conftest import Open
from tests.extras.ray.test_placement import PROGRAM, described, has_session, host_of
from tests.integration.targets.graphs import counter, identity, queue
from tests.ray_cluster import THINK_SECONDS, RayCluster

NOTICED_SECONDS = 30  # until the end of a node is noticed
SECONDS = 120  # for anything else: other programs may keep the processors busy
LARGE = 1 << 16  # floats: 256 KiB, which go through the object store


@dataclasses.dataclass
class Load:
    """Steps of one session, one after the other, until it is lost or the load is ended."""

    session: RuntimeSession
    right: int = 0
    wrong: int = 0
    errors: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    lost_at: float | None = None
    message: str = ""

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self.begun = threading.Event()
        self._awaited = 0
        self._reached = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(THINK_SECONDS):
            number += 1
            fed = np.full(LARGE if number % 4 == 0 else 1, number, np.float32)
            try:
                (fetched,) = self.session.run({"x:0": fed}, ["y:0"])
            except OpError as error:
                self.errors[error.code.name] += 1
                if isinstance(error, AbortedError):
                    self.lost_at, self.message = time.monotonic(), error.message
                    break
                continue
            if np.array_equal(fetched, fed):
                self.right += 1
            else:
                self.wrong += 1
            if self.right == 20:
                self.begun.set()
            if self.right == self._awaited:
                self._reached.set()

    def goes_on(self) -> bool:
        """Whether it has more right answers soon."""
        self._reached.clear()
        self._awaited = self.right + 20
        return self._reached.wait(SECONDS)

    def wait_until_lost(self) -> None:
        self._thread.join(SECONDS)
        assert self.lost_at is not None, self.errors

    def end(self) -> None:
        self._ended.set()
        self._thread.join(SECONDS)


def loaded(sessions: list[RuntimeSession]) -> list[Load]:
    loads = [Load(session) for session in sessions]
    for load in loads:
        assert load.begun.wait(SECONDS)
    return loads


def test_a_killed_host(open_session: Open) -> None:
    graph = identity("float32")
    lost = [open_session("?label.zone=b", graph) for _ in range(2)]
    isolated = open_session("?label.zone=b&isolation=actor&num_cpus=0", graph)
    elsewhere = open_session("?label.zone=c", graph)
    *first, kept, other = loaded([*lost, isolated, elsewhere])
    os.kill(described(lost[0])["pid"], signal.SIGKILL)
    for load in first:
        load.wait_until_lost()
        assert set(load.errors) <= {"ABORTED", "UNAVAILABLE"}
        assert load.message.startswith(
            "The session is lost with its actor (the session host on node 127.0.0.1 ("
        )
        assert "dead because its worker process has died" in load.message
    again = loaded([open_session("?label.zone=b", graph)])
    for load in (kept, other, *again):
        load.end()
        assert (load.errors, load.wrong) == ({}, 0)
    assert sum(load.wrong for load in first) == 0
    for session in lost:
        session.close()


def test_a_killed_actor_of_one_session(open_session: Open) -> None:
    graph = identity("float32")
    isolated = open_session("?label.zone=c&isolation=actor", graph)
    shared = open_session("?label.zone=c", graph)
    lost, kept = loaded([isolated, shared])
    os.kill(described(isolated)["pid"], signal.SIGKILL)
    lost.wait_until_lost()
    assert "an actor of its own on node 127.0.0.1" in lost.message
    kept.end()
    assert (kept.errors, kept.wrong, lost.wrong) == ({}, 0, 0)


def test_waiting_steps_of_a_killed_actor(open_session: Open) -> None:
    """A step that would wait for ever, a part, a callable and a deadline all end."""
    session = open_session("?label.zone=b", queue("q"))
    futures = [session.run_async(RunRequest({}, ["dequeue:0"])) for _ in range(3)]
    assert session.run({}, ["size:0"]) == [0]
    os.kill(described(session)["pid"], signal.SIGKILL)
    for future in futures:
        with pytest.raises(OpError) as caught:
            future.result(SECONDS)
        assert caught.value.code.name in ("ABORTED", "UNAVAILABLE")
    for call in (
        lambda: session.partial_run_setup(["value:0"], ["size:0"]),
        lambda: session.extend(counter("late")),
        session.list_devices,
    ):
        with pytest.raises(AbortedError, match="The session is lost with its actor"):
            call()


def test_an_actor_that_does_not_answer(open_session: Open) -> None:
    """A stopped process is not dead: the deadline holds all the same."""
    session = open_session("?label.zone=b&isolation=actor&num_cpus=0", queue("q"))
    pid = described(session)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        future = session.run_async(RunRequest({}, ["size:0"], deadline=started + 0.2))
        with pytest.raises(DeadlineExceededError):
            future.result(SECONDS)
        assert time.monotonic() - started < 5
    finally:
        os.kill(pid, signal.SIGCONT)
    assert session.run({}, ["size:0"]) == [0]


def test_what_is_opened_after_the_deadline_is_closed(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(open_session("?label.zone=c"))
    closed: queues.Queue[tuple[str, Any]] = queues.Queue()
    start = Host.start

    def started(self: Host, method: str, argument: Any = None) -> Any:
        answer = start(self, method, argument)
        if method == "close":
            closed.put((argument, answer))
        return answer

    monkeypatch.setattr(Host, "start", started)
    pid = host.call("describe", None, SECONDS)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeadlineExceededError):
            open_session("?label.zone=c", operation_timeout_in_ms=100)
    finally:
        os.kill(pid, signal.SIGCONT)
    handle, answer = closed.get(timeout=SECONDS)
    assert handle and host.result(answer, SECONDS) == (0, None)
    assert not has_session(host, handle)


def test_a_killed_node(cluster: RayCluster, open_session: Open) -> None:
    graph = identity("float32")
    node = cluster.add_node(labels={"zone": "killed"})
    shared = open_session("?label.zone=killed", graph)
    isolated = open_session("?label.zone=killed&isolation=actor", graph)
    *lost, kept = loaded([shared, isolated, open_session("?label.zone=c", graph)])
    killed_at = time.monotonic()
    cluster.kill_node(node)
    for load in lost:
        load.wait_until_lost()
        assert load.lost_at is not None and load.lost_at - killed_at < NOTICED_SECONDS
        assert set(load.errors) <= {"ABORTED", "UNAVAILABLE"}
        assert "died because its node has died" in load.message, load.message
    with pytest.raises(FailedPreconditionError, match="has label zone=killed"):
        open_session("?label.zone=killed", graph)
    assert kept.goes_on()
    kept.end()
    assert (kept.errors, kept.wrong) == ({}, 0)
    assert [load.wrong for load in lost] == [0, 0]


def test_a_killed_program_leaves_the_host_to_others(open_session: Open) -> None:
    mine = open_session("?label.zone=c")
    target = mine.options.target  # type: ignore[attr-defined]
    program = PROGRAM + "sys.stdout.flush()\nsys.stdin.read()\n"
    with subprocess.Popen(
        [sys.executable, "-c", program, target],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        _, pid, handle = process.stdout.readline().split()
        assert pid == str(described(mine)["pid"])
        process.kill()
    # Its sessions are closed after CLIENT_SECONDS of silence; until then they harm nobody.
    assert has_session(host_of(mine), handle)
    assert mine.run({"x:0": np.float32(3)}, ["n:0"]) == [-6]


class Broken:
    """An actor whose node lacks what it needs; with a coroutine, as it has no threads then."""

    def __init__(self, *_: object) -> None:
        raise ModuleNotFoundError("No module named 'runtime'")

    async def describe(self, _: object) -> None:
        """Is never called."""


def test_a_node_that_cannot_start_a_host(
    cluster: RayCluster, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_module, "_ACTOR", (__name__, "Broken"))
    before = cluster.num_actors()
    for isolation in ("actor", "host"):
        node = cluster.head.node_id if isolation == "actor" else cluster.nodes["c"].node_id
        monkeypatch.setattr(hosts_module.hosts, "_shared", {})
        monkeypatch.setattr(hosts_module, "PROTOCOL", 99)  # no host of this number is there
        with pytest.raises(
            FailedPreconditionError,
            match=r"could not start; the node must have the same runstep as this program: .*'runt",
        ):
            open_session(f"?node={node}&isolation={isolation}")
    assert cluster.num_actors() == before


def test_one_program_one_cluster(cluster: RayCluster, open_session: Open) -> None:
    session = open_session()
    with pytest.raises(
        FailedPreconditionError,
        match=f"belongs to the Ray cluster at {cluster.address} and can't join the one at 127",
    ):
        open_session(address="127.0.0.1:1")
    assert host_of(session) is not None
