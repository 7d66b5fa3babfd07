"""Keep what lives long, such as the nodes of graphs, from the garbage collector.

A full collection visits all objects of the process, and all threads wait for it: 130 ms beside one
session with a graph of 20,000 nodes, 420 ms beside five. To make such a graph sets one off, because
Python collects when a quarter more objects have survived. They are freed by their reference counts:
after such a session was destroyed, a collection found 24 objects of 500,000. Only the nodes of a
graph with loops of v1 control flow are in cycles; whoever closes such a session must see to them
(`DirectSession.nodes_for_collector`).

Therefore the collector rests while such objects are made, and then excludes them from collections
(`gc.freeze`). A program that wants this calls `long_lived_objects.keep`; in other programs the
collector is left alone, because what is excluded is whatever exists then, the program's own too.

Guarantees: thread-safe; the contexts may be nested; a collector that was disabled stays disabled.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

# Number of new objects from which they are excluded. The collector's next visit of the youngest
# objects, which come to at most this number, takes 2 ms.
KEPT_AT = 20_000


class CollectorPause:
    """A context in which the garbage collector does not run; several threads may be in it.

    The last thread that leaves enables the collector, unless it was disabled before the first one
    entered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields, and the collector's switch
        self._inside = 0
        self._was_enabled = False
        self._young_before = 0  # objects that were in the youngest generation then
        self._makes_long_lived = False  # whether what is made meanwhile lives long
        self._made = 0  # number of such objects since they were excluded
        self.times_kept = 0  # number of times that objects were excluded from collections

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *exception: object) -> None:
        self.leave()

    def enter(self, *, makes_long_lived: bool = False) -> None:
        """Pause the collector until `leave`."""
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
                self._young_before = gc.get_count()[0]
                self._makes_long_lived = False
            self._inside += 1
            self._makes_long_lived |= makes_long_lived

    def leave(self, *, has_failed: bool = False) -> None:
        """End one `enter`; the last one excludes many objects that live long from collections.

        If it `has_failed` to make them, they are not counted.
        """
        with self._lock:
            self._inside -= 1
            if self._inside:
                return
            if self._makes_long_lived and not has_failed:
                # The count grows although the collector is disabled.
                self._made += max(0, gc.get_count()[0] - self._young_before)
            if self._made >= KEPT_AT:
                gc.freeze()  # this takes microseconds
                self._made = 0
                self.times_kept += 1
            if self._was_enabled:
                gc.enable()


class LongLivedObjects:
    """Makes contexts for what makes objects that live long."""

    def __init__(self, pause: CollectorPause) -> None:
        self._pause = pause
        self._is_used = False

    @property
    def times_kept(self) -> int:
        """The number of times that objects were excluded from collections.

        What had become garbage in cycles by then is excluded too, until `gc.unfreeze`.
        """
        return self._pause.times_kept

    def keep(self) -> None:
        """Let the contexts take effect in this process from now on."""
        self._is_used = True

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Return a context that makes objects which live long, and neither waits nor blocks."""
        if not self._is_used:
            yield
            return
        self._pause.enter(makes_long_lived=True)
        try:
            yield
        except BaseException:
            self._pause.leave(has_failed=True)
            raise
        self._pause.leave()


collector_pause = CollectorPause()
long_lived_objects = LongLivedObjects(collector_pause)
