"""Whether anybody still waits for the task that a thread runs.

A kernel that takes long and has no context calls `check_task` in its loops, at least every 50 ms.
Only threads of a pool have a task; in all others, `check_task` does nothing.

Guarantees: a call takes less than 0.1 µs; `check_task` raises as soon as the step has ended.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from runtime.foundation.errors import OpError

T = TypeVar("T")
BLOCK = 4096  # items between two checks; Python code takes about 1 µs for an item


class _Running(threading.local):
    ended: Sequence[object] = ()


_running = _Running()


def set_running_task(ended: Sequence[object]) -> None:
    """Set the task of the calling thread.

    `ended` is empty, and gets the error of the task's step when the step ends.
    """
    _running.ended = ended


def check_task() -> None:
    """Raise the error of the step if the task of the calling thread has ended."""
    ended = _running.ended
    if ended and isinstance(ended[0], OpError):
        raise ended[0].copy()


def checked_list(items: Iterable[T]) -> list[T]:
    """Return the items as a list; call `check_task` after every BLOCK of them."""
    listed: list[T] = []
    iterator = iter(items)
    while block := list(itertools.islice(iterator, BLOCK)):
        listed += block
        check_task()
    return listed


def checked(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, and call `check_task` after every BLOCK of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % BLOCK == 0:
            check_task()
