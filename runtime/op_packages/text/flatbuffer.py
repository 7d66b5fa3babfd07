"""Reading FlatBuffers, the format of TF Text's models, with every bound checked.

A table refers to its fields by number, in the order of its schema; a field that is not there has
its default value. Whatever leads outside of the buffer raises InvalidArgumentError.

Format: https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import checked

_OFFSET = struct.Struct("<I")
_SIGNED_OFFSET = struct.Struct("<i")
_SLOT = struct.Struct("<H")


class FlatBuffer:
    """The bytes of a buffer, uint8 `[n]`, whose memory all vectors share."""

    def __init__(self, data: np.ndarray, kind: str) -> None:
        """`kind` names the model in errors."""
        self._kind = kind
        self._data = np.ascontiguousarray(data, np.uint8).reshape(-1)
        self._bytes = self._data.data

    def damaged(self, why: str) -> InvalidArgumentError:
        """Return the error of a buffer that can't be read."""
        return InvalidArgumentError(f"The {self._kind} of {len(self._bytes)} bytes {why}")

    def read(self, layout: struct.Struct, at: int) -> int:
        """Return the number at a position."""
        self.check(at, layout.size)
        number: int = layout.unpack_from(self._bytes, at)[0]
        return number

    def check(self, at: int, size: int) -> None:
        """Raise InvalidArgumentError unless `size` bytes from `at` are in the buffer."""
        if not 0 <= at <= len(self._bytes) - size:
            raise self.damaged(f"is damaged: it refers to bytes {at} to {at + size}")

    def follow(self, at: int) -> int:
        """Return the position to which the offset at `at` leads."""
        return at + self.read(_OFFSET, at)

    def root(self) -> Table:
        """Return the table that the buffer is about."""
        return Table(self, self.follow(0))

    def vector(self, at: int, dtype: str, width: int = 1) -> np.ndarray:
        """Return the vector at `at`, `[n * width]`, whose elements are `width` numbers each."""
        count = self.read(_OFFSET, at) * width
        self.check(at + _OFFSET.size, count * np.dtype(dtype).itemsize)
        vector = np.frombuffer(self._data, dtype, count, at + _OFFSET.size)
        # a damaged offset may be odd, and a memoryview can't read what is not aligned
        return np.require(vector, requirements=["ALIGNED"])

    def string_size(self, at: int) -> int:
        """Return the number of bytes of the string at `at`."""
        size = self.read(_OFFSET, at)
        self.check(at + _OFFSET.size, size)
        return size

    def string(self, at: int) -> bytes:
        """Return the string at `at`."""
        size = self.string_size(at)
        return bytes(self._bytes[at + _OFFSET.size : at + _OFFSET.size + size])


class Strings:
    """A vector of strings, each of which is read when it is looked at."""

    def __init__(self, buffer: FlatBuffer, at: int) -> None:
        self._buffer = buffer
        self._first = at + _OFFSET.size
        self._count = len(buffer.vector(at, "<u4"))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> bytes:
        return self._buffer.string(self._place(index))

    def _size(self, index: int) -> int:
        return self._buffer.string_size(self._place(index))

    def _place(self, index: int) -> int:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._buffer.follow(self._first + index * _OFFSET.size)

    def text_of(self, indices: np.ndarray) -> int:
        """Return how many bytes the strings of some indices have together; wrong ones count 0."""
        valid = indices[(indices >= 0) & (indices < self._count)].ravel()
        return sum(map(self._size, checked(valid.tolist())))


class Table:
    """A table of a FlatBuffer. A field is the number of a field in the table's schema."""

    def __init__(self, buffer: FlatBuffer, at: int) -> None:
        self._buffer = buffer
        self._at = at
        self._slots = at - buffer.read(_SIGNED_OFFSET, at)
        self._size = buffer.read(_SLOT, self._slots)  # of the table of slots, in bytes

    def _position(self, field: int) -> int | None:
        # the first two slots have the sizes of the slots and of the table
        slot = (2 + field) * _SLOT.size
        if slot + _SLOT.size > self._size:
            return None
        offset = self._buffer.read(_SLOT, self._slots + slot)
        return self._at + offset if offset else None

    def _target(self, field: int) -> int | None:
        position = self._position(field)
        return None if position is None else self._buffer.follow(position)

    def number(self, field: int, layout: str, default: int = 0) -> int:
        """Return a number, in a layout of the module struct; `default` if it is not there."""
        position = self._position(field)
        if position is None:
            return default
        return self._buffer.read(struct.Struct("<" + layout), position)

    def string(self, field: int, name: str) -> bytes:
        """Return a string. Raises InvalidArgumentError with its name if it is not there."""
        target = self._target(field)
        if target is None:
            raise self._buffer.damaged(f"has no {name}")
        return self._buffer.string(target)

    def vector(self, field: int, dtype: str, width: int = 1) -> np.ndarray | None:
        """Return a vector `[n * width]` that shares the buffer's memory, or None."""
        target = self._target(field)
        return None if target is None else self._buffer.vector(target, dtype, width)

    def strings(self, field: int) -> Strings | None:
        """Return a vector of strings, or None."""
        target = self._target(field)
        return None if target is None else Strings(self._buffer, target)

    def table(self, field: int) -> Table | None:
        """Return a table that this one refers to, or None."""
        target = self._target(field)
        return None if target is None else Table(self._buffer, target)
