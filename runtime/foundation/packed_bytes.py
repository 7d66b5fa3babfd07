"""Many byte strings in one buffer, so that numpy can read a word of every string at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_PADDING = bytes(8)  # a word read at the very end of the last string stays inside the buffer


class PackedBytes:
    """n byte strings, concatenated: `starts` `[n]` and `lengths` `[n]` give each one's place."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        buffer = b"".join((*strings, _PADDING))
        self.lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        self.starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1])).astype(np.int64)
        self.starts = self.starts[: len(strings)]
        self.bytes = np.frombuffer(buffer, np.uint8)
        # Views with a stride of one byte: the little-endian word that begins at each byte offset.
        self._words64 = np.ndarray(len(buffer) - 7, "<u8", buffer, strides=(1,))
        self._words32 = np.ndarray(len(buffer) - 3, "<u4", buffer, strides=(1,))

    def word64(self, offsets: np.ndarray) -> np.ndarray:
        """The 8 bytes at each offset as uint64."""
        found: np.ndarray = self._words64[offsets].astype(np.uint64)
        return found

    def word32(self, offsets: np.ndarray) -> np.ndarray:
        """The 4 bytes at each offset as uint64."""
        found: np.ndarray = self._words32[offsets].astype(np.uint64)
        return found

    def byte(self, offsets: np.ndarray) -> np.ndarray:
        """The byte at each offset as uint64."""
        found: np.ndarray = self.bytes[offsets].astype(np.uint64)
        return found

    def groups(self, keys: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """(key, indices of the strings with that key) for each key of `keys` `[n]`, ascending."""
        for key in np.unique(keys):
            yield int(key), np.flatnonzero(keys == key)
