"""Memory accounts: how much memory a step, a session and the process may have, and how much it has.

numpy has no hook for what kernels allocate. So an account does not follow every byte:

* Before a kernel that may need much memory is called, `reserve` checks a bound on its need.
* `hold` counts a large array that a kernel has made until nothing refers to it any more. What
  variables, queues, lists and fetches keep is thus counted without asking them.
* Small arrays are not counted one by one. `note_kept` adds up what kernels keep in lists and
  resources, and has it counted each time that a certain amount may have been added.

An account has a parent: what a session has, the process has. A limit of None is no limit.

Guarantees: thread-safe. One lock guards the numbers of all accounts; it is taken for large arrays
only and never while anything is computed. An array that ends while the lock is held is only queued,
because it may end at any instruction.

TF: tensorflow/core/framework/allocator.h (limits of an allocator; there are none of a session)
"""

from __future__ import annotations

import collections
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import overload

import numpy as np

from runtime.foundation.errors import ResourceExhaustedError
from runtime.foundation.machine_memory import available_bytes, resident_bytes
from runtime.foundation.running_task import BLOCK
from runtime.framework.string_tensor import string_blocks
from runtime.framework.tensor_value import TensorValue

SYNC_BYTES = 1 << 24  # of small arrays that kernels have kept since they were last counted
STRING_OVERHEAD = 33  # bytes of a `bytes` object without its contents
_KEPT_OVERHEAD = 160  # bytes of an array object and its place in a list
_REFRESH_SECONDS = 1.0  # between two looks at what the machine has left
SESSION_SETTING = "sessions.max_session_bytes"
WATERMARK = 0.9  # of the memory that the process can reach; above it new work is refused
GLANCE_SECONDS = 0.05
SLACK = 1.05  # times the limit of resident memory, above which a running step may not add more

_lock = threading.Lock()  # guards `_used` and `_reserved` of all accounts, and `_held`
_held: dict[int, _Held] = {}  # by the id of the array that owns the memory
_ended: collections.deque[_Held] = collections.deque()  # append and popleft are atomic


class _Held(weakref.ref[np.ndarray]):
    """A reference to an array that is counted, with what it counts."""

    __slots__ = ("account", "key", "size")

    account: MemoryAccount
    key: int
    size: int


class MemoryAccount:
    """The memory of a step, a session, or the process.

    `name` and `setting` are for messages: what has the limit, and where the limit is set.
    """

    __slots__ = ("_kept", "_reserved", "_used", "count_kept", "limit", "name", "parent", "setting")

    def __init__(
        self,
        name: str,
        limit: int | None = None,
        setting: str = "",
        parent: MemoryAccount | None = None,
    ) -> None:
        self.name = name
        self.setting = setting
        self.parent = parent
        self.limit = limit  # None if there is no limit
        self._used = 0  # bytes of the held arrays
        self._reserved = 0  # bytes that running kernels may be about to allocate
        self._kept = 0  # bytes of small arrays kept since they were last counted; may lose some
        # Returns the bytes that resources keep, large arrays included.
        self.count_kept: Callable[[], int] | None = None

    @property
    def used(self) -> int:
        """The bytes of the large arrays that were made on this account and still exist."""
        with _lock:
            _settle_ended()
            return self._used

    def reserve(self, size: int) -> None:
        """Set `size` bytes aside for a kernel; `release` must follow when it has ended.

        Raises ResourceExhaustedError if an account of the chain has not that much left.
        """
        process_account.look()
        with _lock:
            _settle_ended()
            self._check(size)
            self._add_reserved(size)

    @property
    def left(self) -> int | None:
        """How many bytes may still be reserved; None if there is no limit."""
        process_account.look()
        found: list[int] = []
        with _lock:
            _settle_ended()
            account: MemoryAccount | None = self
            while account is not None:
                if account.limit is not None:
                    found.append(account.limit - account._used - account._reserved)
                account = account.parent
        return max(0, min(found)) if found else None

    def release(self, size: int) -> None:
        """Undo a `reserve` of `size` bytes."""
        with _lock:
            self._add_reserved(-size)

    def _check(self, size: int) -> None:
        account: MemoryAccount | None = self
        while account is not None:
            limit = account.limit
            if limit is not None and account._used + account._reserved + size > limit:
                raise account._exhausted(size, limit)
            account = account.parent

    def _add_reserved(self, size: int) -> None:
        account: MemoryAccount | None = self
        while account is not None:
            account._reserved += size
            account = account.parent

    def _add_used(self, size: int) -> None:
        account: MemoryAccount | None = self
        while account is not None:
            account._used += size
            account = account.parent

    def hold(self, value: TensorValue, size: int | None = None) -> None:
        """Count the memory of an array until it ends, unless it is counted already.

        `size` is what it counts, by default `bytes_of` its owner. Raises ResourceExhaustedError if
        there is then more than there may be.
        """
        owner = owner_of(value)
        if owner is None:
            return
        size = bytes_of(owner) if size is None else size
        key = id(owner)
        with _lock:
            _settle_ended()
            if key in _held:
                return
            held = _held[key] = _Held(owner, _ended.append)
            held.account, held.key, held.size = self, key, size
            self._add_used(size)
            self._check(0)

    def note_kept(self, size: int) -> None:
        """Note that a kernel has put `size` bytes of small arrays where they stay.

        Raises ResourceExhaustedError if that is found to be more than there may be.
        """
        self._kept += size + _KEPT_OVERHEAD
        if self._kept >= SYNC_BYTES:
            self._kept = 0
            self.check_kept()

    def check_kept(self) -> None:
        """Count what resources keep; raise ResourceExhaustedError if it exceeds a limit."""
        if self.limit is not None and self.count_kept is not None:
            kept = self.count_kept()
            if kept > self.limit:
                raise self._exhausted(0, self.limit, kept)
        if self.parent is not None:
            self.parent.check_kept()

    def _exhausted(self, size: int, limit: int, used: int | None = None) -> ResourceExhaustedError:
        used = self._used + self._reserved if used is None else used
        where = f" ({self.setting})" if self.setting else ""
        return ResourceExhaustedError(
            f"OOM: {size} more bytes are needed; {self.name} has {used} bytes, "
            f"the limit is {limit}{where}"
        )


@overload
def owner_of(value: np.ndarray) -> np.ndarray: ...
@overload
def owner_of(value: TensorValue) -> np.ndarray | None: ...
def owner_of(value: TensorValue) -> np.ndarray | None:
    """Return the array whose memory `value` uses; None if `value` is no array."""
    if not isinstance(value, np.ndarray):
        return None
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value


def bytes_of(value: TensorValue) -> int:
    """Return the bytes of an array or numpy scalar, those of its strings included; 0 of others."""
    if isinstance(value, np.ndarray):
        if not value.dtype.hasobject:
            return value.nbytes
        if value.size <= BLOCK:
            return value.nbytes + _bytes_of_strings(value.ravel().tolist())
        part, times = distinct(value)
        return value.nbytes + times * sum(map(_bytes_of_strings, string_blocks(part)))
    if isinstance(value, np.generic):
        return value.nbytes
    return len(value) if isinstance(value, bytes) else 0


def bytes_held_by(value: TensorValue, at_most: int | None = None) -> int:
    """Return `bytes_of`; a string tensor has at most `at_most`, if several elements are one object.

    `at_most` is a bound on what its kernel has allocated.
    """
    size = bytes_of(value)
    if at_most is not None and isinstance(value, np.ndarray) and value.dtype.hasobject:
        return min(size, at_most)
    return size


def distinct(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (`array` with each axis of stride 0 cut to one element, how often that repeats)."""
    cut = tuple(
        slice(1) if not stride and size > 1 else slice(None)
        for size, stride in zip(array.shape, array.strides, strict=True)
    )
    part = array[*cut, ...]  # with the ellipsis, of rank 0 too
    return part, array.size // max(part.size, 1)


def _bytes_of_strings(items: Sequence[object]) -> int:
    return sum(len(each) + STRING_OVERHEAD for each in items if isinstance(each, bytes))


def _settle_ended() -> None:
    """Subtract the arrays that have ended; the caller must hold the lock."""
    while _ended:
        held = _ended.popleft()
        if _held.get(held.key) is held:
            del _held[held.key]
        held.account._add_used(-held.size)


class SessionAccount(MemoryAccount):
    """The account of a session, whose steps may have a limit each."""

    __slots__ = ("step_limit",)

    def __init__(
        self, limit: int | None, step_limit: int | None, parent: MemoryAccount | None
    ) -> None:
        super().__init__("the session", limit, SESSION_SETTING, parent)
        self.step_limit = step_limit

    def of_step(self) -> MemoryAccount:
        """Return an account for one step of the session."""
        return MemoryAccount("the step", self.step_limit, "sessions.max_step_bytes", self)


class ProcessAccount(MemoryAccount):
    """The account of the process, the parent of all sessions' accounts.

    It has no limit before `set_limits`. Resident memory has a limit of its own, because small
    arrays, engines and Python objects are in no account.
    """

    __slots__ = (
        "_follows_machine",
        "_next_glance",
        "_next_look",
        "_processes",
        "_resident",
        "_watermark",
        "resident_limit",
    )

    def __init__(self) -> None:
        super().__init__("the process", setting="memory.max_process_bytes")
        self._follows_machine = False
        self._watermark: int | None = None  # as it was set
        self._processes = 1  # that share what the machine has left
        self._next_look = math.inf  # instant of `time.monotonic()`
        self._next_glance = 0.0
        self._resident = 0  # bytes at the last glance
        self.resident_limit: int | None = None  # new work is refused above it

    def set_limits(self, limit: int | None, resident_limit: int | None, processes: int = 1) -> None:
        """Let the steps of all sessions together have `limit` bytes.

        If `limit` is None, it is half of what the machine, or the group of the process, has left.
        What the steps have counts as left, so the limit stays while they allocate; what was loaded
        does not. If `resident_limit` is None, it is the part WATERMARK of what the process may
        reach. Both are then updated every second. `processes` is how many share what is left.
        """
        self._follows_machine = limit is None
        self.limit, self._watermark = limit, resident_limit
        self._processes = processes
        self._next_look = 0.0
        self.look()

    def remove_limits(self) -> None:
        """Let the process have any memory, as before `set_limits`."""
        self._follows_machine, self._next_look = False, math.inf
        self.limit = self.resident_limit = self._watermark = None

    def look(self) -> None:
        """Look at the machine's memory if it was not in the last second."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _REFRESH_SECONDS
        left, resident = available_bytes(), resident_bytes()
        if self._follows_machine and left is not None:
            self.limit = (left // self._processes + max(0, self._used)) // 2
        if self._watermark is not None:
            self.resident_limit = self._watermark
        elif left is not None and resident is not None:
            self.resident_limit = int((resident + left) * WATERMARK)

    def refuses_new_work(self) -> bool:
        """Return whether resident memory exceeds its limit.

        It is looked at every GLANCE_SECONDS; any other call takes 0.1 µs.
        """
        now = time.monotonic()
        if now >= self._next_glance:
            self._next_glance = now + GLANCE_SECONDS
            self.look()
            self._resident = resident_bytes() or 0
        limit = self.resident_limit
        return limit is not None and self._resident > limit

    def check_new_work(self) -> None:
        """Raise ResourceExhaustedError if resident memory exceeds its limit."""
        if self.refuses_new_work():
            raise self._too_much(self.resident_limit or 0, self._resident)

    def check_kept(self) -> None:
        """Raise ResourceExhaustedError if resident memory is far above its limit."""
        self.look()
        limit, resident = self.resident_limit, resident_bytes()
        if limit is not None and resident is not None and resident > limit * SLACK:
            raise self._too_much(limit, resident)

    def _too_much(self, limit: int, resident: int) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"The process has {resident} bytes of resident memory; new work is refused above "
            f"{limit} (memory.refuse_above_bytes)"
        )


process_account = ProcessAccount()
