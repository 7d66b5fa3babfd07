"""The models of the fast WordPiece tokenizer: a trie with failure links, in a FlatBuffer.

A token is encoded in 32 bits: whether it is a suffix (bit 30), its number (bits 8 to 29), and its
bytes without the suffix indicator, less 1 (bits 0 to 7).

Guarantees: a model's numbers are read where they lie, and each access is checked: a damaged buffer
raises InvalidArgumentError or IndexError.

TF: tensorflow_text/core/kernels/fast_wordpiece_tokenizer_model.fbs,
fast_wordpiece_tokenizer_utils.h, darts_clone_trie_wrapper.h
"""

from __future__ import annotations

import numpy as np

from runtime.op_packages.text.flatbuffer import FlatBuffer

ROOT = 0
NO_NODE = 0xFFFFFFFF
_SUFFIX_BIT, _NUMBER_BIT = 30, 8
_NUMBER_MASK, _LENGTH_MASK = (1 << _SUFFIX_BIT) - (1 << _NUMBER_BIT), (1 << _NUMBER_BIT) - 1

# fields of the schema's FastWordpieceTokenizerConfig
_TRIE, _FAILURES, _POPS, _SUFFIX_ROOT, _MAX_BYTES, _SUFFIX_INDICATOR, _UNKNOWN = range(7)
_UNKNOWN_ID, _SUFFIX_INDICATOR_TOKENS, _PUNCTUATION_FAILURE, _IS_TEXT, _HAS_VOCABULARY = range(
    7, 12
)
_VOCABULARY, _IS_SUFFIX = 12, 13


def token_number(encoded: int) -> int:
    """Return the number of an encoded token in the vocabulary."""
    return (encoded & _NUMBER_MASK) >> _NUMBER_BIT


def token_length(encoded: int) -> int:
    """Return the number of bytes of an encoded token, without the suffix indicator."""
    return (encoded & _LENGTH_MASK) + 1


def is_suffix(encoded: int) -> bool:
    """Return whether an encoded token is a suffix."""
    return bool(encoded >> _SUFFIX_BIT)


class FastWordpieceModel:
    """A model in its buffer, uint8 `[n]`.

    The trie is a double array: the unit of a node has its label (bits 0 to 7 and 31), whether it
    ends a token (bit 8), and the offset of its children (bits 9 to 31).
    """

    def __init__(self, data: np.ndarray) -> None:
        """Raise InvalidArgumentError if `data` is not a model."""
        self._buffer = FlatBuffer(data, "FastWordpieceTokenizerConfig")
        table = self._buffer.root()
        trie = table.vector(_TRIE, "<u4")
        if trie is None or not len(trie):
            raise self._buffer.damaged("has no trie_array")
        self.units = trie.data
        self.failures = self._numbers(table.vector(_FAILURES, "<u4", 2), "<u4").data
        self.pops = self._numbers(table.vector(_POPS, "<i4"), "<i4").data
        self.suffix_root = table.number(_SUFFIX_ROOT, "I")
        # compared as an unsigned number where the input is one word
        self.max_bytes = table.number(_MAX_BYTES, "i")
        self.suffix_indicator = table.string(_SUFFIX_INDICATOR, "suffix_indicator")
        self.unknown_token = table.string(_UNKNOWN, "unk_token")
        self.unknown_number = table.number(_UNKNOWN_ID, "i")
        found = table.vector(_SUFFIX_INDICATOR_TOKENS, "<i4")
        self.suffix_indicator_tokens: list[int] = self._numbers(found, "<i4").tolist()
        self.punctuation_failure = table.number(_PUNCTUATION_FAILURE, "I")
        self.splits_text = bool(table.number(_IS_TEXT, "B"))
        self.has_vocabulary = bool(table.number(_HAS_VOCABULARY, "B"))
        self.vocabulary = table.strings(_VOCABULARY)
        self.is_suffix = table.vector(_IS_SUFFIX, "<u1")

    @staticmethod
    def _numbers(vector: np.ndarray | None, dtype: str) -> np.ndarray:
        return np.empty(0, dtype) if vector is None else vector

    def step(self, node: int, unit: int, text: bytes) -> tuple[int, int] | None:
        """Return (node, unit) that `text` leads to from a node, or None."""
        units = self.units
        for byte in text:
            node ^= (unit >> 10) << ((unit & 0x200) >> 6) ^ byte
            unit = units[node]
            if unit & 0x800000FF != byte:
                return None
        return node, unit

    def token_at(self, node: int, unit: int) -> int | None:
        """Return the encoded token that ends at a node, or None."""
        if not unit & 0x100:
            return None
        return self.units[node ^ (unit >> 10) << ((unit & 0x200) >> 6)] & 0x7FFFFFFF

    def failure(self, node: int) -> int:
        """Return the node to go on from if a character does not lead on, or NO_NODE."""
        return self.failures[2 * node]

    def failure_tokens(self, node: int) -> memoryview[int]:
        """Return the encoded tokens that the step to the node `failure` completes."""
        packed = self.failures[2 * node + 1]
        first, count = packed >> 8, (packed & 0xFF) + 1
        if first + count > len(self.pops):
            raise self.damaged()
        return self.pops[first : first + count]

    def damaged(self) -> Exception:
        """Return the error of a model whose parts contradict each other."""
        return self._buffer.damaged("is damaged: its parts contradict each other")
