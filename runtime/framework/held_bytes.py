"""How many bytes values keep in memory, counted once or kept up to date.

`value_bytes` walks over values. `HeldBytes` is the count of a collection that changes often, such
as a queue: adding and dropping a value takes the same time however long the collection is.

An array keeps the whole memory alive of which it is a view, so this memory counts: in full, but
once for all of its views in one count. Memory that a file is mapped to counts by the view.

An object that keeps other values (a tensor list, a dataset, a resource) has a method `held`; see
`Holder`. It may take a lock only if no function of this module is called while the lock is held.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime.framework.growth_limit import NO_LIMIT, GrowthLimit

# Bytes of an array object without its elements, and of the tuple or table entry that refers to it,
# as tracemalloc counts them in CPython 3.11 to 3.13.
OBJECT_BYTES = 112
ENTRY_BYTES = 64
_POINTER_BYTES = 8
STRING_BYTES = 33  # of a bytes object without its characters
_SMALL = 4096  # bytes of memory; views of less are counted as if each had memory of its own
_PLAIN = (int, float, complex, bool, str, bytearray)  # values that refer to nothing else
_SEQUENCES = (list, tuple, collections.deque, set, frozenset)


class Holder(Protocol):
    """An object that keeps other values alive."""

    def held(self) -> tuple[int, Iterable[object]]:
        """Return (bytes that the object has counted itself, the values that must be counted)."""


def value_bytes(*values: object) -> int:
    """Return the bytes that `values` keep alive together; what they share counts once.

    A value may be a tensor, anything that has a method `held`, or a list, tuple, set, deque or dict
    of these. Of any other object only its own size counts. Values may refer to each other in
    cycles.
    """
    return count_values(values)[0]


def count_values(values: Iterable[object]) -> tuple[int, int]:
    """Return (the result of `value_bytes`, the number of objects that were visited)."""
    total = visited = 0
    # The objects are kept, because an id is unique only while its object is alive.
    seen: dict[int, object] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        visited += 1
        if isinstance(value, np.ndarray):
            total += OBJECT_BYTES
            value = memory_owner(value)
        if id(value) in seen:
            continue
        seen[id(value)] = value
        size, inner = _own_bytes(value)
        total += size
        pending.extend(inner)
    return total, visited


def _own_bytes(value: Any) -> tuple[int, Iterable[object]]:
    """Return (the bytes of `value` itself, the values that it keeps)."""
    if isinstance(value, np.ndarray):
        return _array_bytes(value)
    if isinstance(value, bytes):
        return STRING_BYTES + len(value), ()
    if isinstance(value, _PLAIN) or value is None:
        return sys.getsizeof(value), ()
    if isinstance(value, _SEQUENCES):
        return sys.getsizeof(value), value
    if isinstance(value, dict):
        return sys.getsizeof(value), [*value.keys(), *value.values()]
    held = getattr(type(value), "held", None)
    if held is not None:
        size, inner = held(value)
        return size + ENTRY_BYTES, inner
    return sys.getsizeof(value, OBJECT_BYTES), ()


def memory_owner(array: np.ndarray) -> Any:
    """Return the object whose memory `array` is a view of: an array or bytes.

    If it is something else, such as a mapped file, return the outermost array.
    """
    base: object = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, bytes | bytearray) else array


def _array_bytes(array: np.ndarray) -> tuple[int, Iterable[object]]:
    if not array.dtype.hasobject:
        return _memory_bytes(array), ()
    items = array.ravel().tolist()
    distinct = list({id(item): item for item in items}.values()) if len(items) > 1 else items
    size = _POINTER_BYTES * array.size
    if all(type(item) is bytes for item in distinct):
        return size + sum(map(len, distinct)) + STRING_BYTES * len(distinct), ()
    return size, distinct


def _memory_bytes(array: np.ndarray) -> int:
    """Return the bytes of the memory of an array of numbers that owns it.

    They are fewer than `nbytes` if elements share memory (stride 0).
    """
    size: int = array.nbytes
    return size if array.base is None else min(size, sum(map(_extent, array.shape, array.strides)))


def _extent(size: int, stride: int) -> int:
    return max(size * abs(stride), 1)


class HeldBytes:
    """The bytes of a collection of values that changes; `bytes` is the present number.

    A value must be dropped as often as it was added. The number is what `value_bytes` returns plus
    `ENTRY_BYTES` for each value, except that a large memory counts once for all values.

    Not thread-safe: the caller must hold a lock during `add`, `drop` and `clear`; `bytes` may be
    read without it.
    """

    __slots__ = ("_shared", "bytes", "limit")

    def __init__(self, limit: GrowthLimit = NO_LIMIT) -> None:
        self.bytes = 0
        self.limit = limit
        # id of a memory's owner, or of a value that is no array → [times added, bytes]
        self._shared: dict[int, list[int]] = {}

    def add(self, values: Sequence[object]) -> None:
        """Count `values`; raise ResourceExhaustedError, with no effect, if a limit is exceeded."""
        size = ENTRY_BYTES * len(values)
        for value in values:
            size += self._enter(value)
        self.bytes += size
        limit = self.limit
        if limit.max_bytes != sys.maxsize:
            try:
                limit.grow(size)
            except BaseException:
                self.drop(values)
                raise

    def drop(self, values: Sequence[object]) -> None:
        """Count `values` no longer."""
        size = ENTRY_BYTES * len(values)
        for value in values:
            size += self._leave(value)
        self.bytes -= size

    def clear(self) -> None:
        """Count no value any more."""
        self._shared.clear()
        self.bytes = 0

    def _enter(self, value: object) -> int:
        size = unshared_bytes(value)
        if size is not None:
            return size
        owner, header = _owner(value)
        entry = self._shared.get(id(owner))
        if entry is not None:
            entry[0] += 1
            return header
        size = value_bytes(owner)
        self._shared[id(owner)] = [1, size]
        return header + size

    def _leave(self, value: object) -> int:
        size = unshared_bytes(value)
        if size is not None:
            return size
        owner, header = _owner(value)
        entry = self._shared[id(owner)]
        entry[0] -= 1
        if entry[0]:
            return header
        del self._shared[id(owner)]
        return header + entry[1]


def unshared_bytes(value: Any) -> int | None:
    """Return the bytes of a small value that refers to no other; None for any other value.

    The result is the same whenever the function is called with this value.
    """
    if isinstance(value, np.ndarray):
        base: object = value.base
        if value.dtype.hasobject:
            if base is None and value.size == 1 and type(item := value.item()) is bytes:
                return OBJECT_BYTES + _POINTER_BYTES + STRING_BYTES + len(item)
            return None
        memory = value if base is None else base
        if isinstance(memory, np.ndarray) and memory.base is None and memory.nbytes <= _SMALL:
            size: int = memory.nbytes
            return size + OBJECT_BYTES
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.object_ | np.void):
        return sys.getsizeof(value)
    return None


def _owner(value: object) -> tuple[object, int]:
    """Return (the object that the bytes of `value` are counted for, the bytes beyond these)."""
    return (memory_owner(value), OBJECT_BYTES) if isinstance(value, np.ndarray) else (value, 0)
