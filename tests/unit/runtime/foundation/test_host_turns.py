"""Tasks of one pool take turns across the processes of a server."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from runtime.foundation.errors import CancelledError
from runtime.foundation.host_turns import HostTurns
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool

HOLD = """
import pathlib, sys
from runtime.foundation.host_turns import HostTurns
with HostTurns(pathlib.Path(sys.argv[1]), "low", 1).turn():
    print("has it", flush=True)
    sys.stdin.read()
"""


def holder(folder: pathlib.Path) -> subprocess.Popen[str]:
    """A process that has the turn until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "has it\n"
    return process


@pytest.mark.parametrize("count", [1, 2])
def test_as_many_run_at_the_same_time_as_there_are_turns(
    count: int, tmp_path: pathlib.Path
) -> None:
    turns = HostTurns(tmp_path, "low/é", count)
    running, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most
        for _ in range(50):
            with turns.turn():
                with lock:
                    running += 1
                    most = max(most, running)
                with lock:
                    running -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most <= count and running == 0


def test_a_task_of_a_pool_waits_for_its_turn_until_the_other_process_ends(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_turns", {})
    gate.take_turns("low", HostTurns(tmp_path, "low", 1))
    low = ThreadPool("low", 1, low_priority=True)
    other = ThreadPool("other", 1, low_priority=True)
    process = holder(tmp_path)
    try:
        begun, ended = threading.Event(), threading.Event()
        low.schedule(begun.set)
        other.schedule(ended.set)
        assert ended.wait(10)  # a pool without turns
        assert not begun.is_set()
    finally:
        process.kill()
        process.communicate()
    assert begun.wait(10)
    low.shutdown()
    other.shutdown()


class OneTurn(HostTurns):
    """A turn that a test grants."""

    def __init__(self) -> None:
        self.awaited, self.granted = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        self.awaited.set()
        assert self.granted.wait(10)
        yield


def test_a_task_stays_in_the_queue_until_it_is_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_turns", {})
    turns = OneTurn()
    gate.take_turns("low", turns)
    low = ThreadPool("low", 1, low_priority=True)
    ended: list[CancelledError] = []
    done: list[str] = []
    both = threading.Event()
    low.schedule(lambda: done.append("cancelled"), ended=ended)
    assert turns.awaited.wait(10)
    ended.append(CancelledError("The client has gone away"))
    low.schedule(lambda: (done.append("other"), both.set()))
    stats = low.stats()
    assert (stats.queued, stats.running, stats.stuck) == (2, 0, 0)
    assert not low.is_exhausted
    turns.granted.set()
    assert both.wait(10)
    assert done == ["cancelled", "other"]  # a step that has ended returns at once
    low.shutdown()


def test_who_can_not_wait_has_its_turn(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    turns = HostTurns(tmp_path / "none", "low", 1)
    with caplog.at_level(logging.WARNING), turns.turn():
        pass
    assert "A task does not wait for its turn: [Errno 2] No such file" in caplog.text
