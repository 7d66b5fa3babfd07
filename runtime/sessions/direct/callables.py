"""The callables of a session: prepared steps with fixed feeds, fetches and targets, by handle.

Guarantees: thread-safe; a handle is never used for a second callable.

TF: tensorflow/core/common_runtime/direct_session.cc (MakeCallable, RunCallable)
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_numpy
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.direct.prepared_step import has_elements
from runtime.sessions.runtime_session import RunRequest, Tensor

V = TypeVar("V")
_CALLABLE_BYTES = 2000
_OPTION_FACTOR = 24  # bytes in memory for each byte of the options on the wire


@dataclasses.dataclass(slots=True)
class Callable:
    """A step that has been compiled from its CallableOptions."""

    options: pb.CallableOptions
    compiled: CompiledStep
    _types: list[DataType] = dataclasses.field(init=False)  # one for each of `options.feed`

    def __post_init__(self) -> None:
        types = dict(zip(self.compiled.feeds, self.compiled.feed_types, strict=True))
        self._types = [types[name] for name in self.options.feed]

    @property
    def bytes_held(self) -> int:
        """The bytes that the callable keeps, estimated from its options and its nodes."""
        size = _OPTION_FACTOR * self.options.ByteSize() + _CALLABLE_BYTES
        # A graph with tensor connections is the callable's own; others are in the cache.
        return size + (self.compiled.executor.bytes_held if self.options.tensor_connection else 0)

    def by_name(self, values: Sequence[V]) -> dict[str, V]:
        """Return {feed name: value}; raise InvalidArgumentError for a wrong number or no list."""
        names = self.options.feed
        try:
            count = len(values)
        except TypeError:
            found = type(values).__name__
            raise InvalidArgumentError(f"feeds must be a list of tensors, got {found}") from None
        if count != len(names):
            raise InvalidArgumentError(f"Expected {len(names)} feed tensors, but got {count}")
        return dict(zip(names, values, strict=True))

    def feeds(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return {feed name: value}; raise InvalidArgumentError if a type or number is wrong."""
        feeds = self.by_name(values)
        for value, wanted in zip(values, self._types, strict=True):
            if (
                isinstance(value, np.ndarray | np.generic)
                and value.dtype != wanted.numpy
                and not has_elements(value.dtype, wanted)
            ):
                raise InvalidArgumentError(
                    f"Type mismatch: actual {from_numpy(value.dtype).tf_name} "
                    f"vs. expect {wanted.tf_name}"
                )
        return feeds

    def request(self, values: Sequence[Tensor], metadata: pb.RunMetadata | None) -> RunRequest:
        """Return the RunRequest of this step for `values`; raise what `feeds` raises."""
        return RunRequest(
            self.feeds(values),
            self.options.fetch,
            self.options.target,
            self.options.run_options,
            metadata,
            compiled=self.compiled,
        )


class Callables:
    """The callables of one session, by handle."""

    def __init__(self) -> None:
        self._handles = itertools.count(1)  # next() is atomic
        self._newest = 0
        self._made: dict[int, Callable] = {}  # single operations on a dict are atomic
        self._lock = threading.Lock()  # guards `_bytes`
        self._bytes = 0

    @property
    def bytes_held(self) -> int:
        """The bytes of the options of the callables, estimated from their sizes as messages."""
        return self._bytes

    def add(self, made: Callable) -> int:
        """Add a prepared step and return its handle."""
        handle = next(self._handles)
        self._made[handle] = made
        self._count(made.bytes_held)
        self._newest = max(self._newest, handle)
        return handle

    def get(self, handle: int) -> Callable:
        """Return the step of a handle; raise InvalidArgumentError if it is released or unknown."""
        made = self._made.get(handle) if isinstance(handle, Hashable) else None
        if made is not None:
            return made
        if isinstance(handle, int | np.integer) and 0 < handle <= self._newest:
            raise InvalidArgumentError("Attempted to run callable after handle was released")
        raise InvalidArgumentError("No such callable handle")

    def release(self, handle: int) -> None:
        """Remove a step. Releasing a handle again has no effect.

        Raises InvalidArgumentError if the handle was never given.
        """
        if not (isinstance(handle, int | np.integer) and 0 < handle <= self._newest):
            raise InvalidArgumentError(f"No such callable handle: {handle}")
        released = self._made.pop(handle, None)
        if released is not None:
            self._count(-released.bytes_held)

    def _count(self, change: int) -> None:
        with self._lock:
            self._bytes += change

    def clear(self) -> None:
        """Remove every step."""
        for handle in list(self._made):
            self.release(handle)
