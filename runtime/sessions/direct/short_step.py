"""DirectShortStep: a step of a direct session that runs often, at once, in its caller's thread.

`DirectSession.run_if_short` looks a request up by its names and makes objects for it, which takes
as long as a small graph takes to run. A DirectShortStep keeps what does not change between runs.

Guarantees: thread-safe; a run is one that `run_if_short` would make too, by the same executor, and
counts as a use of it for the executor cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.executors.duration_estimate import SHORT_SECONDS, size_of
from runtime.executors.step import Executor
from runtime.foundation.errors import InternalError, OpError
from runtime.foundation.priority_gate import gate
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import SessionState
from runtime.sessions.direct.executor_cache import CompiledStep, SpelledKey
from runtime.sessions.direct.prepared_step import StepPreparer, checked_argument
from runtime.sessions.direct.session_graph import SessionGraph
from runtime.sessions.runtime_session import ShortStep, Tensor

INLINE_SECONDS = SHORT_SECONDS


def is_short(executor: Executor, state: SessionState, size: int) -> bool:
    """Return whether a step may run in its caller's thread, for which an event loop may wait.

    `state` is the session's: what the step derives from variables may have to be computed first.
    `size` is the size of the feeds (see `size_of`).
    """
    duration = executor.duration
    return (
        duration.seconds < INLINE_SECONDS
        and not (executor.may_block or executor.uses_threads)
        and (executor.preparation_seconds < INLINE_SECONDS or executor.is_prepared(state))
        and size <= duration.size_limit
        and executor.is_predictable
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Binding:
    """A compiled step, and what a run requires of it."""

    compiled: CompiledStep
    # For each argument of the executor, its index in the caller's values; None if they are in the
    # same order.
    order: tuple[int, ...] | None
    dtypes: tuple[np.dtype, ...]
    has_strings: bool


class DirectShortStep(ShortStep):
    """One step of a direct session; `cancellation` is the session's."""

    __slots__ = ("_binding", "_cancellation", "_graph", "_key", "_steps")

    def __init__(
        self,
        key: SpelledKey,
        graph: SessionGraph,
        steps: StepPreparer,
        cancellation: CancellationManager,
    ) -> None:
        self._key = key
        self._graph = graph
        self._steps = steps
        self._cancellation = cancellation
        self._binding: _Binding | None = None

    @property
    def may_run(self) -> bool:
        """Whether the newest runs of the step were short, or it has not run in this way yet."""
        binding = self._binding
        return binding is None or binding.compiled.executor.duration.seconds < INLINE_SECONDS

    def run(self, values: Sequence[np.ndarray]) -> list[Tensor] | None:
        """Run the step in this thread, if it is compiled and short and the session is open."""
        # Looked up each time, because a step that is in use must not be the first to be evicted,
        # and because an extend replaces the cache.
        compiled = self._graph.cache.find(self._key)
        if compiled is None or self._cancellation.error:
            return None
        binding = self._binding
        if binding is None or binding.compiled is not compiled:
            binding = self._binding = _bind(self._key[0], compiled)
        if binding.order is not None:
            values = [values[index] for index in binding.order]
        size = 0
        for value, dtype in zip(values, binding.dtypes, strict=True):
            if value.dtype is not dtype and value.dtype != dtype:
                values = _converted(values, compiled)
            size += value.size
        if binding.has_strings:
            size = size_of(values)
        if not is_short(compiled.executor, self._steps.state, size):
            return None
        functions, cancellation = self._graph.functions, self._cancellation
        gate.ended += 1
        try:
            return self._steps.run_arguments(values, size, compiled, functions, cancellation)
        except OpError:
            raise
        except Exception as error:
            raise InternalError(f"{type(error).__name__}: {error}") from error


def _converted(values: Sequence[np.ndarray], compiled: CompiledStep) -> list[Any]:
    """Return the values as arrays of the executor's dtypes; raise for the first wrong type."""
    return [
        value if value.dtype == wanted.numpy else checked_argument(value, wanted, position)
        for position, (value, wanted) in enumerate(zip(values, compiled.feed_types, strict=True))
    ]


def _bind(names: Sequence[str], compiled: CompiledStep) -> _Binding:
    order = tuple(names.index(name) for name in compiled.feeds)
    return _Binding(
        compiled,
        None if order == tuple(range(len(names))) else order,
        tuple(data_type.numpy for data_type in compiled.feed_types),
        DataType.STRING in compiled.feed_types,
    )
