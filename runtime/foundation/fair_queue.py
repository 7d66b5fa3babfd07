"""FairQueue: queues of several owners, whose items are taken in turns.

An owner is whoever put an item into the queue, for example a session. Items of one owner leave in
the order in which they came; the owners take turns, one item each. A queue is pure state: it has no
lock, and the caller must use it from one thread at a time.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """The items that wait, by owner. `put` and `take` take constant time unless owners are held."""

    def __init__(self) -> None:
        # The owners with waiting items, in the order of their turns: a dict keeps this order.
        self._waiting: dict[Hashable, collections.deque[T]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, owner: Hashable, item: T) -> None:
        """Add an item of `owner`. An owner without waiting items gets the last turn."""
        items = self._waiting.get(owner)
        if items is None:
            items = self._waiting[owner] = collections.deque()
        items.append(item)
        self._size += 1

    def take(self, may_take: Callable[[Hashable], bool]) -> T | None:
        """Remove and return the item of the next owner for whom `may_take` is true.

        The owner's next item gets the last turn. Returns None if no owner may take an item.
        """
        for owner in self._waiting:
            if may_take(owner):
                break
        else:
            return None
        items = self._waiting.pop(owner)
        if len(items) > 1:
            self._waiting[owner] = items
        self._size -= 1
        return items.popleft()

    def has(self, may_take: Callable[[Hashable], bool]) -> bool:
        """Return whether an item waits whose owner passes `may_take`."""
        return any(map(may_take, self._waiting))
