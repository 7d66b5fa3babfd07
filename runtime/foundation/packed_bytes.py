"""Many byte strings in one buffer, so that numpy can read a word of every string at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_PADDING = bytes(8)  # follows the last string, so that a word read at its end is in the buffer


class PackedBytes:
    """n concatenated byte strings; string i has `lengths[i]` bytes, from offset `starts[i]`."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        buffer = b"".join((*strings, _PADDING))
        self.lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        self.starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1])).astype(np.int64)
        self.starts = self.starts[: len(strings)]
        self.bytes = np.frombuffer(buffer, np.uint8)
        # Views with a stride of one byte: element i is the little-endian word at byte offset i.
        self._words64 = np.ndarray(len(buffer) - 7, "<u8", buffer, strides=(1,))
        self._words32 = np.ndarray(len(buffer) - 3, "<u4", buffer, strides=(1,))

    def word64(self, offsets: np.ndarray) -> np.ndarray:
        """Return the 8 bytes at each offset as uint64."""
        found: np.ndarray = self._words64[offsets].astype(np.uint64)
        return found

    def word32(self, offsets: np.ndarray) -> np.ndarray:
        """Return the 4 bytes at each offset as uint64."""
        found: np.ndarray = self._words32[offsets].astype(np.uint64)
        return found

    def byte(self, offsets: np.ndarray) -> np.ndarray:
        """Return the byte at each offset as uint64."""
        found: np.ndarray = self.bytes[offsets].astype(np.uint64)
        return found

    def groups(self, keys: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over (key, indices of the strings with this key) in ascending order of the keys.

        `keys` `[n]` has one key for each string.
        """
        for key in np.unique(keys):
            yield int(key), np.flatnonzero(keys == key)
