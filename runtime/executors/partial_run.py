"""PartialRun: one step whose feeds arrive and whose fetches leave in parts.

It is a run of the dataflow executor whose `_Arg` nodes are held back until they are fed.

Guarantees: thread-safe; parts may run side by side, and one that waits for its fetches holds no
thread; bad names change nothing; the step ends when everything was fed and fetched, or at the first
error.

TF: tensorflow/core/common_runtime/direct_session.cc (PRunSetup, PRun), whose texts these are.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.executors.dataflow import MISSING, DataflowExecutor, DataflowRun, plain_value
from runtime.executors.dataflow_graph import Item
from runtime.executors.step import Done, Step
from runtime.foundation.errors import InvalidArgumentError, OpError


@dataclasses.dataclass(eq=False, slots=True)
class _Part:
    """Fetches that somebody waits for."""

    fetches: Sequence[str]
    done: Done


class PartialRun(DataflowRun):
    """A step in parts: feeds and fetches by the names of its setup."""

    def __init__(
        self,
        executor: DataflowExecutor,
        step: Step,
        feeds: Sequence[str],
        fetches: Sequence[str],
    ) -> None:
        self._values: list[Any] = [None] * len(feeds)
        super().__init__(executor.items, step, self._values, _nothing)
        self._feeds = {name: position for position, name in enumerate(feeds)}
        self._fetches = {name: position for position, name in enumerate(fetches)}
        self._fed: set[str] = set()
        self._taken: set[str] = set()
        self._parts_lock = threading.Lock()  # guards _fed, _taken, _waiting, _ended, _failure
        self._waiting: list[_Part] = []
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
        if roots:
            self._activate(roots)

    def start_part(self, feeds: Mapping[str, Any], fetches: Sequence[str], done: Done) -> None:
        """Give some feeds; `done` is called once, in whatever thread, when the fetches are there.

        Raises InvalidArgumentError for a name that was not set up, that was given or taken before,
        or that needs feeds which have not come yet, and ResourceExhaustedError when the pool's
        queue is full; nothing has changed then. Errors of the step, and InvalidArgumentError for a
        fetch that stays dead, go to `done`.
        """
        part = _Part(fetches, done)
        with self._parts_lock:
            self._check(feeds, fetches)
            self._fed.update(feeds)
            self._taken.update(fetches)
            self._waiting.append(part)
        items = []
        for name, value in feeds.items():
            item = self._argument_items.get(self._feeds[name])
            if item is not None:
                self._values[item.argument] = value
                items.append(item)
        if items:
            try:
                self._activate(items)
            except OpError:
                with self._parts_lock:
                    self._fed.difference_update(feeds)
                    self._taken.difference_update(fetches)
                    if part in self._waiting:  # not when the step has failed meanwhile
                        self._waiting.remove(part)
                raise
        self._settle()

    def _activate(self, items: Sequence[Item]) -> None:
        """Run items and what follows from them, on the step's pool when it has one."""
        iteration = self._root.iterations[0]
        ready = collections.deque((item, self._root, iteration, False) for item in items)
        runner = self._step.runner
        if runner is None:
            self._process(ready)
        else:
            runner(functools.partial(self._process, ready))

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

    def _settle(self) -> None:
        """Answer the parts whose fetches have come, or never will."""
        settled: list[tuple[_Part, list[Any] | None, OpError | None]] = []
        with self._parts_lock:
            for part in list(self._waiting):
                try:
                    values = self._values_of(part)
                except OpError as error:
                    self._taken.difference_update(part.fetches)
                    settled.append((part, None, error))
                else:
                    if values is None:
                        continue
                    settled.append((part, values, None))
                self._waiting.remove(part)
        for part, values, failure in settled:
            part.done(values, failure)

    def _values_of(self, part: _Part) -> list[Any] | None:
        """What a part fetches; None while something of it is missing."""
        if self._failure is not None:
            raise self._failure.copy()
        positions = [self._fetches[name] for name in part.fetches]
        values = [self._fetched[position] for position in positions]
        for name, value in zip(part.fetches, values, strict=True):
            if value is MISSING:
                if not self._ended:
                    return None
                raise InvalidArgumentError(f"The tensor returned for {name} was not valid.")
        are_refs = self._graph.fetch_is_ref
        return [
            plain_value(value, are_refs[position])
            for value, position in zip(values, positions, strict=True)
        ]

    def _complete(self, *arguments: Any) -> list[Any]:
        ready = super()._complete(*arguments)
        if self._waiting:
            self._settle()
        return ready

    def _fail(self, error: OpError) -> None:
        super()._fail(error)
        with self._parts_lock:
            self._failure = self._failure or error
            self._ended = True
        self._settle()

    def _finish(self) -> None:
        with self._parts_lock:
            self._ended = True
        self._settle()  # a dead fetch is reported to the part that asks for it

    def abandon(self, error: OpError) -> None:
        """End the step: it was left alone too long, or its session was closed."""
        self._fail(error)


def _nothing(values: list[Any] | None, error: OpError | None) -> None:
    """The end is told to the parts."""
