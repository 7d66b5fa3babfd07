"""PartialRun: one step whose feeds and fetches come in several calls, which are called its parts.

The dataflow executor runs it; each `_Arg` node runs when its feed is given.

Guarantees: thread-safe; parts may run concurrently, and a part that waits for its fetches blocks no
thread; a part that names a wrong feed or fetch raises and changes nothing; the step ends
when all its feeds were given and all its fetches returned, or at the first error.

TF: tensorflow/core/common_runtime/direct_session.cc (PRunSetup, PRun); the error messages are
the same.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import threading
from collections.abc import Iterable, Mapping, Sequence

from runtime.executors.dataflow import MISSING, DataflowExecutor, DataflowRun, dereferenced
from runtime.executors.dataflow_graph import Item
from runtime.executors.frames import Frame, Iteration
from runtime.executors.step import Done, Step
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.tensor_value import TensorValue


@dataclasses.dataclass(eq=False, slots=True)
class _Part:
    """The `fetches` and the `done` callback of one call of `start_part`."""

    fetches: Sequence[str]
    done: Done


class PartialRun(DataflowRun):
    """A step that runs in parts; feeds and fetches are named as in `partial_run_setup`."""

    def __init__(
        self,
        executor: DataflowExecutor,
        step: Step,
        feeds: Sequence[str],
        fetches: Sequence[str],
    ) -> None:
        self._values: list[TensorValue] = [None] * len(feeds)
        super().__init__(executor.items, step, self._values, _ignore_result)
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
        self._plan_bytes = executor.bytes_held
        # The ids of the constants, which belong to the graph.
        self._constants = {id(item.constant) for item in self._graph.items if item.is_constant}
        self._feeds_by_fetch = self._find_feeds_by_fetch()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the plan and the values that were fed, wait at nodes or are fetched.

        Values inside loops and calls are those of running nodes.
        """
        waiting = list(self._root.iterations[0].inputs.values())
        values = [
            value
            for inputs in waiting
            for value in list(inputs)
            if id(value) not in self._constants
        ]
        size = self._plan_bytes + self._step.bytes_held
        return size, (self._values, self._fetched, values)

    def begin(self) -> None:
        """Run the nodes that depend on no feed."""
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

    def start_part(
        self, feeds: Mapping[str, TensorValue], fetches: Sequence[str], done: Done
    ) -> None:
        """Feed some values; `done` is called once, in any thread, when all `fetches` are computed.

        Raises InvalidArgumentError if a name was not part of the setup, if it was fed or fetched
        before, or if a fetch depends on feeds that were not given yet. Raises
        ResourceExhaustedError if the queue of the pool is full. Neither error changes the step.
        `done` receives the errors of the step, and InvalidArgumentError if a fetch is dead.
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
                    if part in self._waiting:  # it is absent if the step has failed
                        self._waiting.remove(part)
                raise
        self._complete_parts()

    def _activate(self, items: Sequence[Item]) -> None:
        """Run items, and the items that become ready because of them, on the step's pool if any."""
        iteration = self._root.iterations[0]
        ready = collections.deque((item, self._root, iteration, False) for item in items)
        runner = self._step.runner
        if runner is None:
            self._process(ready)
        else:
            runner(functools.partial(self._process, ready))

    @property
    def is_complete(self) -> bool:
        """Whether all feeds were given and all fetches requested, or the step has failed."""
        everything = len(self._fed) == len(self._feeds) and len(self._taken) == len(self._fetches)
        return everything or self._failure is not None

    def _check(self, feeds: Mapping[str, TensorValue], fetches: Sequence[str]) -> None:
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
            if not self._feeds_by_fetch[name] <= available:
                raise InvalidArgumentError(
                    f"Fetch {name} can't be computed from the feeds that have been fed so far."
                )

    def _find_feeds_by_fetch(self) -> dict[str, set[str]]:
        """Return {fetch name: the names of the feeds that the fetch depends on}."""
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

    def _complete_parts(self) -> None:
        """Call `done` of each waiting part whose fetches are computed or can never be computed."""
        settled: list[tuple[_Part, list[TensorValue] | None, OpError | None]] = []
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

    def _values_of(self, part: _Part) -> list[TensorValue] | None:
        """Return the values that a part fetches, or None if some of them are not computed yet.

        Raises the error of the step, and InvalidArgumentError if the step ended without a value.
        """
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
            dereferenced(value, are_refs[position])
            for value, position in zip(values, positions, strict=True)
        ]

    def _complete(
        self, item: Item, frame: Frame, iteration: Iteration, outputs: list[TensorValue] | None
    ) -> list[tuple[Item, Frame, Iteration, bool]]:
        ready = super()._complete(item, frame, iteration, outputs)
        if self._waiting:
            self._complete_parts()
        return ready

    def _fail(self, error: OpError) -> None:
        super()._fail(error)
        with self._parts_lock:
            self._failure = self._failure or error
            self._ended = True
        self._complete_parts()

    def _finish(self) -> None:
        with self._parts_lock:
            self._ended = True
        self._complete_parts()  # a part that waits for a dead fetch gets its error

    def abandon(self, error: OpError) -> None:
        """End the step with `error`: no part has come for too long, or the session closes."""
        self._fail(error)


def _ignore_result(values: list[TensorValue] | None, error: OpError | None) -> None:
    """Do nothing when the whole run ends, because each part has a `done` callback of its own."""
