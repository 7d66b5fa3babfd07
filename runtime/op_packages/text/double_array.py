"""A trie as a double array, in the format of Darts-clone: which keys does a text begin with?

The unit of a node has its label (bits 0 to 7 and 31), whether it ends a key (bit 8), and the
offset of its children (bits 9 to 31). A key's value is the first of them.

TF: tensorflow_text/core/kernels/sentencepiece/double_array_trie.h
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


class DoubleArray:
    """A trie in its units, uint32 `[n]`. Lookups end where a damaged trie leads outside."""

    def __init__(self, units: np.ndarray) -> None:
        self._units = units.data
        self._count = len(units)
        self._root = _offset(self._units[0]) if self._count else 0

    def prefixes(self, text: bytes, start: int) -> list[tuple[int, int]]:
        """Return (value, end) of each key that is in `text` at `start`, the shortest first."""
        units, count, node = self._units, self._count, self._root
        found = []
        for place in range(start, len(text)):
            byte = text[place]
            node ^= byte
            if node >= count or (unit := units[node]) & 0x800000FF != byte:
                break
            node ^= unit >> 10 << ((unit & 0x200) >> 6)
            if node >= count:
                break
            if unit & 0x100:
                found.append((units[node] & 0x7FFFFFFF, place + 1))
        return found

    def begins(self) -> re.Pattern[bytes]:
        """Return an expression that finds where a key may begin: by its first two bytes."""
        first_bytes: dict[bytes, list[bytes]] = defaultdict(list)
        for byte in range(256):
            unit = self._unit(self._root ^ byte, byte)
            if unit is None:
                continue
            node = self._root ^ byte ^ _offset(unit)
            following = (each for each in range(256) if self._unit(node ^ each, each) is not None)
            then = b"" if unit & 0x100 else _any_of(following)
            first_bytes[then].append(re.escape(bytes([byte])))
        parts = [b"[" + b"".join(each) + b"]" + then for then, each in first_bytes.items()]
        return re.compile(b"|".join(parts) or b"(?!)", re.DOTALL)

    def _unit(self, node: int, label: int) -> int | None:
        """Return the unit of a node that `label` leads to, or None if it does not."""
        unit = self._units[node] if node < self._count else None
        return unit if unit is not None and unit & 0x800000FF == label else None


def _any_of(characters: Iterator[int]) -> bytes:
    found = b"".join(re.escape(bytes([each])) for each in characters)
    return b"[" + found + b"]" if found else b"(?!)"
