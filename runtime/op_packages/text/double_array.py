"""A trie as a double array, in the format of Darts-clone: which keys does a text begin with?

The unit of a node has its label (bits 0 to 7 and 31), whether it ends a key (bit 8), and the
offset of its children (bits 9 to 31). A key's value is the first of them.

TF: tensorflow_text/core/kernels/sentencepiece/double_array_trie.h
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


class DoubleArray:
    """A trie in its units, uint32 `[n]`. Lookups end where a damaged trie leads outside."""

    def __init__(self, units: np.ndarray) -> None:
        self._units = units.data

    def prefixes(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield (value, length) of each key that `text[start:]` begins with, the shortest first."""
        units = self._units
        if not len(units):
            return
        node = _offset(units[0])
        for place in range(start, len(text)):
            byte = text[place]
            node ^= byte
            if node >= len(units) or units[node] & 0x800000FF != byte:
                return
            ends_key = units[node] & 0x100
            node ^= _offset(units[node])
            if node >= len(units):
                return
            if ends_key:
                yield units[node] & 0x7FFFFFFF, place + 1 - start
