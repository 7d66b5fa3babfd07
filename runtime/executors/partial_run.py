"""PartialRun: one step whose feeds arrive and whose fetches leave in parts.

It is a run of the dataflow executor whose `_Arg` nodes are held back until they are fed.

Guarantees: thread-safe; parts may be run by different threads, one at a time for a handle; bad
names change nothing; the step ends when everything was fed and fetched, or at the first error.

TF: tensorflow/core/common_runtime/direct_session.cc (PRunSetup, PRun), whose texts these are.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.executors.dataflow import MISSING, DataflowExecutor, DataflowRun, plain_value
from runtime.executors.dataflow_graph import Item
from runtime.executors.step import Step
from runtime.foundation.errors import InvalidArgumentError, OpError


class PartialRun(DataflowRun):
    """A step in parts: `feed` and `fetch` by the names of its setup."""

    def __init__(
        self,
        executor: DataflowExecutor,
        step: Step,
        feeds: Sequence[str],
        fetches: Sequence[str],
    ) -> None:
        self._values: list[Any] = [None] * len(feeds)
        super().__init__(executor.items, step, self._values, self._end)
        self._feeds = {name: position for position, name in enumerate(feeds)}
        self._fetches = {name: position for position, name in enumerate(fetches)}
        self._fed: set[str] = set()
        self._taken: set[str] = set()
        self._progress = threading.Condition()  # guards _ended, _failure; told of new results
        self._ended = False
        self._failure: OpError | None = None
        self._argument_items = {
            item.argument: item for item in self._graph.items if item.argument >= 0
        }
        self._sources = self._feeds_needed()

    def begin(self) -> None:
        """Run what needs no feed."""
        iteration = self._root.iterations[0]
        held = list(self._argument_items.values())
        roots = [item for item in self._graph.roots if item.argument < 0]
        self._outstanding = len(roots) + len(held)
        iteration.outstanding = self._outstanding
        if not self._outstanding:
            self._finish()
            return
        ready = collections.deque((item, self._root, iteration, False) for item in roots)
        self._process(ready)

    def run_part(self, feeds: Mapping[str, Any], fetches: Sequence[str]) -> list[Any]:
        """Give some feeds, take some fetches; waits until those are there.

        Raises InvalidArgumentError, and changes nothing, for a name that was not set up, that was
        given or taken before, or that needs feeds which have not come yet.
        """
        self._check(feeds, fetches)
        iteration = self._root.iterations[0]
        self._fed.update(feeds)
        for name, value in feeds.items():
            item = self._argument_items.get(self._feeds[name])
            if item is not None:
                self._values[item.argument] = value
                self._process(collections.deque([(item, self._root, iteration, False)]))
        values = [self._wait_for(name) for name in fetches]
        self._taken.update(fetches)
        return values

    @property
    def is_complete(self) -> bool:
        """Whether everything was fed and fetched, or the step has failed."""
        everything = len(self._fed) == len(self._feeds) and len(self._taken) == len(self._fetches)
        return everything or self._failure is not None

    def _check(self, feeds: Mapping[str, Any], fetches: Sequence[str]) -> None:
        for name in feeds:
            if name not in self._feeds:
                raise InvalidArgumentError(
                    f"The feed {name} was not specified in partial_run_setup."
                )
            if name in self._fed:
                raise InvalidArgumentError(f"The feed {name} has already been fed.")
        available = self._fed | feeds.keys()
        for name in fetches:
            if name not in self._fetches:
                raise InvalidArgumentError(
                    f"The fetch {name} was not specified in partial_run_setup."
                )
            if name in self._taken:
                raise InvalidArgumentError(f"The fetch {name} has already been fetched.")
            if not self._sources[name] <= available:
                raise InvalidArgumentError(
                    f"Fetch {name} can't be computed from the feeds that have been fed so far."
                )

    def _feeds_needed(self) -> dict[str, set[str]]:
        """For each fetch the feeds that it depends on."""
        names = {position: name for name, position in self._feeds.items()}
        sources: dict[int, list[Item]] = {item.index: [] for item in self._graph.items}
        fetched: dict[int, Item] = {}
        for item in self._graph.items:
            for _, reader, _ in item.data_edges:
                sources[reader.index].append(item)
            for reader in item.control_edges:
                sources[reader.index].append(item)
            for _, position in item.fetches:
                fetched[position] = item
        needed: dict[str, set[str]] = {}
        for name, position in self._fetches.items():
            seen: set[int] = set()
            pending = [fetched[position]]
            needed[name] = set()
            while pending:
                item = pending.pop()
                if item.index in seen:
                    continue
                seen.add(item.index)
                if item.argument >= 0:
                    needed[name].add(names[item.argument])
                pending += sources[item.index]
        return needed

    def _wait_for(self, name: str) -> Any:
        position = self._fetches[name]
        with self._progress:
            self._progress.wait_for(lambda: self._fetched[position] is not MISSING or self._ended)
            if self._failure is not None:
                raise self._failure
        value = self._fetched[position]
        if value is MISSING:
            raise InvalidArgumentError(f"The tensor returned for {name} was not valid.")
        return plain_value(value, self._graph.fetch_is_ref[position])

    def _complete(self, *arguments: Any) -> list[Any]:
        ready = super()._complete(*arguments)
        with self._progress:
            self._progress.notify_all()
        return ready

    def _fail(self, error: OpError) -> None:
        super()._fail(error)
        with self._progress:
            self._failure = self._failure or error
            self._ended = True
            self._progress.notify_all()

    def _end(self, values: list[Any] | None, error: OpError | None) -> None:
        with self._progress:
            self._ended = True
            # A dead fetch is reported by the part that asks for it.
            self._progress.notify_all()

    def abandon(self, error: OpError) -> None:
        """End the step: it was left alone too long, or its session was closed."""
        self._fail(error)
