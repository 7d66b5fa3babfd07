"""ExecutorCache: finds compiled steps by their feeds, fetches and targets; bounded, counts hits.

It is bounded in steps and in the bytes of steps and names; the newest step is always kept.

A step is looked up first by its names as the request spells them. The second look-up uses the full
names (`x:0` for `x`) in sorted order, so that names in another order find the same executor.

Guarantees: thread-safe; a step is compiled once, and other threads that need it wait; compilations
of different steps do not wait for each other; the least recently used step is evicted first; a use
under any spelling counts.

Every run calls `find`, which takes no lock: a low-priority thread could lose the processor while
holding it and so block normal steps. Instead each of its dict operations is atomic (comparing the
keys, tuples of strings, runs no Python code). An entry that is evicted between two operations is
still returned. `_lock` orders insertions, evictions and compilations.

TF: tensorflow/core/common_runtime/direct_session.cc (GetOrCreateExecutors)
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Iterable, Sequence

from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.executors.step import Executor
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.long_lived_objects import long_lived_objects
from runtime.foundation.model_objects import model_objects
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph
from runtime.graph.passes.pruning import find_endpoint
from runtime.graph.tensor_name import fed_more_than_once, parse_tensor_name

DEFAULT_CAPACITY = 1024  # number of compiled steps; TensorFlow's cache has no bound
MAX_BYTES = 512 << 20  # of compiled steps and their names, estimated
_NAME_BYTES = 120  # of a name's text without its characters, and of its places in keys and tables
_ENTRY_BYTES = 1000  # of an entry, and of a compiled step of no nodes
SpelledKey = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def spelled_key(feeds: Iterable[str], fetches: Iterable[str], targets: Iterable[str]) -> SpelledKey:
    """Return the key of a step whose names are spelled like this."""
    return tuple(feeds), tuple(fetches), tuple(targets)


@dataclasses.dataclass(frozen=True, slots=True)
class CompiledStep:
    """An executor, and how the names of one request map to its arguments and results."""

    executor: Executor
    sorted_key: SpelledKey  # the executor's key: full names in sorted order
    feeds: tuple[str, ...]  # the request's names, in the order of the executor's arguments
    feed_types: tuple[DataType, ...]
    fetch_positions: tuple[int, ...]  # for each fetch of the request, its index in the results


class ExecutorCache:
    """Compiled steps of one graph and its extensions."""

    def __init__(
        self,
        parent: ExecutorCache | None = None,
        capacity: int = DEFAULT_CAPACITY,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._parent = parent
        self._capacity = capacity
        self._max_bytes = max_bytes
        self.bytes_held = 0  # of this cache's own steps and names; `_lock` guards changes
        # Held for insertions, evictions and counting misses; `find` reads and moves entries
        # without this lock.
        self._lock = threading.Lock()
        self._compiling: dict[SpelledKey, threading.Event] = {}  # set when the compilation ends
        self._spelled: collections.OrderedDict[SpelledKey, CompiledStep] = collections.OrderedDict()
        self._sorted: collections.OrderedDict[SpelledKey, Executor] = collections.OrderedDict()
        # The step that `find` has moved to the ends of both, if it is there still. A race may let
        # it be another one, which is then evicted one use too early.
        self._newest: CompiledStep | None = None
        self.hits = 0  # counted without the lock, so a race may lose a hit
        self.misses = 0

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def executors(self) -> dict[SpelledKey, Executor]:
        """The executors by their keys, those of a template included."""
        inherited = {} if self._parent is None else self._parent.executors
        with self._lock:
            return inherited | self._sorted

    def clusters(self) -> dict[tuple[str, ...], list[ClusterSummary]]:
        """Return the clusters of each step that has some, by the step's fetches."""
        return {
            fetches: found
            for (_, fetches, _), executor in self.executors.items()
            if (found := executor.clusters)
        }

    def clear(self) -> None:
        """Drop the steps of this cache, not those of a template; runs keep what they found."""
        with self._lock:
            self._newest = None
            self._spelled.clear()
            self._sorted.clear()
            self.bytes_held = 0

    def find(self, key: SpelledKey) -> CompiledStep | None:
        """Return the step of a request with this spelling, or None."""
        cache = self
        try:
            found = cache._spelled.get(key)
        except TypeError:  # a name without a hash is no string, as whoever compiles it says
            return None
        if found is None and self._parent is not None:
            cache = self._parent
            found = cache._spelled.get(key)
        if found is not None:
            self.hits += 1
            if found is cache._newest:
                return found
            try:  # suppress() costs more than the look-up itself
                cache._spelled.move_to_end(key)
                cache._sorted.move_to_end(found.sorted_key)
            except KeyError:
                return found  # another thread has just evicted the step
            cache._newest = found
        return found

    def find_or_compile(
        self,
        graph: Graph,
        key: SpelledKey,
        compile_step: Callable[[Sequence[str], Sequence[str], Sequence[str]], Executor],
    ) -> CompiledStep:
        """Return the step of a request; call `compile_step` if no spelling of it is cached.

        Raises InvalidArgumentError if an output is fed twice or both fed and fetched, and what
        `compile_step` raises.
        """
        feeds, fetches, targets = key
        canonical_feeds = _canonical_feeds(feeds)
        canonical_fetches = [_canonical(name) for name in fetches]
        for name, canonical in zip(fetches, canonical_fetches, strict=True):
            if canonical in canonical_feeds:
                raise InvalidArgumentError(f"{name} is both fed and fetched.")
        ordered_feeds = tuple(sorted(canonical_feeds))
        ordered_fetches = tuple(sorted(set(canonical_fetches)))
        ordered_targets = tuple(sorted({parse_tensor_name(name)[0] for name in targets}))
        sorted_key = (ordered_feeds, ordered_fetches, ordered_targets)
        executor = self._find_sorted(sorted_key)
        if executor is None:
            executor = self._compile_once(sorted_key, lambda: compile_step(*sorted_key))
        step = CompiledStep(
            executor,
            sorted_key,
            tuple(canonical_feeds[name] for name in ordered_feeds),
            tuple(type_of(graph, name) for name in ordered_feeds),
            tuple(ordered_fetches.index(name) for name in canonical_fetches),
        )
        with self._lock:
            self._keep(sorted_key, executor)
            if key not in self._spelled:
                self.bytes_held += _name_bytes(key)
            self._spelled[key] = step
            self._newest = None
            self._evict()
        return step

    def _keep(self, key: SpelledKey, executor: Executor) -> None:
        """Add an executor; the caller must hold the lock."""
        replaced = self._sorted.get(key)
        if replaced is None:
            self.bytes_held += _name_bytes(key)
        else:
            self.bytes_held -= replaced.bytes_held
        self._sorted[key] = executor
        self.bytes_held += executor.bytes_held

    def _evict(self) -> None:
        """Drop what was not used for longest until the bounds hold; the caller holds the lock."""
        while len(self._sorted) > self._capacity or (
            self.bytes_held > self._max_bytes and len(self._sorted) > 1
        ):
            key, executor = self._sorted.popitem(last=False)
            self.bytes_held -= executor.bytes_held + _name_bytes(key)
            # `find` moves keys without the lock. That ends an iteration over an OrderedDict, but
            # not one over the plain dict that it is too, whose order stays.
            steps = dict.items(self._spelled)
            for spelled in [each for each, step in steps if step.sorted_key == key]:
                del self._spelled[spelled]
                self.bytes_held -= _name_bytes(spelled)
        while len(self._spelled) > self._capacity or (
            self.bytes_held > self._max_bytes and len(self._spelled) > 1
        ):
            spelled, _ = self._spelled.popitem(last=False)
            self.bytes_held -= _name_bytes(spelled)

    def _compile_once(self, key: SpelledKey, compile_step: Callable[[], Executor]) -> Executor:
        while True:
            with self._lock:
                executor = self._sorted.get(key)
                if executor is not None:
                    self.hits += 1
                    return executor
                others = self._compiling.get(key)
                if others is None:
                    self.misses += 1
                    ended = self._compiling[key] = threading.Event()
                    break
            others.wait()  # if that compilation has failed, the next round compiles again
        try:
            with model_objects, long_lived_objects():
                executor = compile_step()
            with self._lock:
                self._keep(key, executor)
            return executor
        finally:
            with self._lock:
                del self._compiling[key]
            ended.set()

    def _find_sorted(self, key: SpelledKey) -> Executor | None:
        with self._lock:
            executor = self._sorted.get(key)
            if executor is not None:
                self._newest = None
                self._sorted.move_to_end(key)
                self.hits += 1
                return executor
        return None if self._parent is None else self._parent._find_sorted(key)


def _name_bytes(key: SpelledKey) -> int:
    return _ENTRY_BYTES + sum(_NAME_BYTES + len(name) for names in key for name in names)


def _canonical(name: str) -> str:
    node, index = parse_tensor_name(name)
    return f"^{node}" if index < 0 else f"{node}:{index}"


def _canonical_feeds(feeds: Sequence[str]) -> dict[str, str]:
    """Return {full name: the request's name}; raise if two names mean the same output."""
    canonical: dict[str, str] = {}
    for name in feeds:
        tensor = _canonical(name)
        if tensor in canonical:
            raise fed_more_than_once(name)
        canonical[tensor] = name
    return canonical


def type_of(graph: Graph, name: str) -> DataType:
    """Return the type of a tensor; raise the error of a name that is none."""
    node, index = find_endpoint(graph, name)
    return node.output_types[index]
