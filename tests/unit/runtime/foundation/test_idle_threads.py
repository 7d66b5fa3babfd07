"""The threads of a pool that wait for work: each token wakes one of them, the last that came."""

import threading
import time
from collections.abc import Callable

import pytest

from runtime.foundation.idle_threads import IdleThreads

WAIT_SECONDS = 10.0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_tokens_are_taken_in_their_order() -> None:
    idle = IdleThreads()
    for token in (True, False, True):
        idle.put(token)
    assert [idle.get() for _ in range(3)] == [True, False, True]


def test_a_token_wakes_the_thread_that_began_to_wait_last() -> None:
    idle = IdleThreads()
    woken: list[tuple[str, bool]] = []

    def wait(name: str) -> None:
        woken.append((name, idle.get()))

    threads = []
    for count, name in enumerate(("first", "last"), 1):
        threads.append(threading.Thread(target=wait, args=(name,)))
        threads[-1].start()
        until(lambda count=count: idle.waiting == count)
    for count, token in enumerate((True, False), 1):
        idle.put(token)
        until(lambda count=count: len(woken) == count)
    assert woken == [("last", True), ("first", False)]
    for thread in threads:
        thread.join(WAIT_SECONDS)


def test_a_token_can_be_given_before_its_thread_wakes() -> None:
    idle = IdleThreads()
    assert idle.give(True) is None  # nobody waits: it is kept
    assert idle.get() is True
    taken: list[bool] = []
    thread = threading.Thread(target=lambda: taken.append(idle.get()))
    thread.start()
    until(lambda: idle.waiting == 1)
    wake = idle.give(True)
    assert wake is not None
    assert idle.waiting == 0
    assert taken == []
    wake()
    thread.join(WAIT_SECONDS)
    assert taken == [True]


@pytest.mark.parametrize("threads", [1, 3])
def test_no_token_is_lost_or_taken_twice(threads: int) -> None:
    idle, tokens = IdleThreads(), 3000
    taken = [0] * threads

    def take(index: int) -> None:
        while idle.get():
            taken[index] += 1

    workers = [threading.Thread(target=take, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for _ in range(tokens):
        idle.put(True)
    for _ in range(threads):
        idle.put(False)
    for worker in workers:
        worker.join(WAIT_SECONDS)
    assert sum(taken) == tokens
