"""FastBertNormalize: replaces each character of a text by what a model has for it.

TF: tensorflow_text/core/kernels/fast_bert_normalizer.h, fast_bert_normalizer_model.fbs
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.running_task import checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, size_of, text_in
from runtime.op_packages.text.byte_splits import check_rank_one
from runtime.op_packages.text.character_table import (
    SEPARATOR,
    CharacterTable,
    code_points,
    groups,
    text_of,
    utf8_sizes,
)
from runtime.op_packages.text.double_array import DoubleArray
from runtime.op_packages.text.flatbuffer import FlatBuffer
from runtime.op_packages.text.model_cache import ModelCache
from runtime.op_packages.text.normal_forms import decoded, encoded, parts_of
from runtime.op_packages.text.unicode_properties import CODE_POINTS

# fields of FastBertNormalizerModel
_TRIE, _DATA_FOR_ZERO, _POOL = 1, 2, 3
# of a character's data: whether it is replaced, and where the pool has its replacement
_IS_DIFFERENT = 1 << 30
_LENGTH_BITS = 6
_LENGTH_MASK = (1 << _LENGTH_BITS) - 1
_IS_VALUE = 1 << 31  # of a unit of the trie


class BertNormalizer:
    """A model, and the replacements that were looked up in it."""

    def __init__(self, data: np.ndarray) -> None:
        buffer = FlatBuffer(data, "normalizer model")
        table = buffer.root()
        trie = table.vector(_TRIE, "<u4")
        pool = table.vector(_POOL, "<u1")
        if trie is None or pool is None:
            raise buffer.damaged("has no trie, or no strings")
        self._trie = DoubleArray(trie)
        self._pool = pool.tobytes()
        self._zero = table.number(_DATA_FOR_ZERO, "i")
        self._table = CharacterTable(self._replacement)
        values = trie[(trie & _IS_VALUE != 0) & (trie & _IS_DIFFERENT != 0)] & _LENGTH_MASK
        ascii_sizes = (len(self._replacement(point)) for point in range(0x80))
        longest = int(values.max(initial=1))
        # the most bytes that replace a byte; other characters than those of ASCII have two at least
        self.growth = max(*ascii_sizes, -(-longest // 2))

    def _replacement(self, point: int) -> str:
        character = chr(point).encode("utf-8", "surrogateescape")
        data = 0 if point else self._zero
        for value, length in self._trie.prefixes(character, 0) if point else ():
            if length == len(character):
                data = value
        if not data & _IS_DIFFERENT:
            return chr(point)
        size = data & _LENGTH_MASK
        start = (data & (_IS_DIFFERENT - 1)) >> _LENGTH_BITS
        # TF: what is not in the pool is empty
        return decoded(self._pool[start : start + size] if start + size <= len(self._pool) else b"")

    def normalized(self, texts: list[str]) -> list[bytes]:
        """Return texts with their characters replaced."""
        parts = map(code_points, parts_of(SEPARATOR.join(texts)))
        found = "".join(text_of(self._table.replaced(part)[0]) for part in parts)
        return list(map(encoded, found.split(SEPARATOR)))

    def normalized_with_offsets(
        self, texts: list[str]
    ) -> tuple[list[bytes], np.ndarray, np.ndarray]:
        """Return texts with their characters replaced, and where the bytes come from.

        Each text has an offset, int64, for each byte of its answer, and one for its end; the last
        array has how many these are.
        """
        points = code_points("".join(text + SEPARATOR for text in texts))
        found, counts = self._table.replaced(points)
        sizes = utf8_sizes(points)
        limits = np.cumsum(counts)
        written = np.concatenate([[0], np.cumsum(utf8_sizes(found))])
        new_sizes = written[limits] - written[limits - counts]
        is_replaced = (counts != 1) | (found[np.maximum(limits - 1, 0)] != points)
        # how many bytes of the answer come from each byte of the texts, whose separators are ends
        byte_counts = np.ones(sizes.sum(), np.int64)
        byte_counts[np.repeat(is_replaced, sizes)] = 0
        byte_counts[(np.cumsum(sizes) - sizes)[is_replaced]] = new_sizes[is_replaced]
        ends = np.flatnonzero(points == ord(SEPARATOR))
        text_sizes = np.diff(np.cumsum(sizes)[ends], prepend=0)
        places = np.arange(len(byte_counts)) - np.repeat(
            np.cumsum(text_sizes) - text_sizes, text_sizes
        )
        lengths = np.diff(np.cumsum(new_sizes)[ends], prepend=0)
        answers = text_of(found).split(SEPARATOR)[:-1]
        return list(map(encoded, answers)), np.repeat(places, byte_counts), lengths


_TABLE = 4 * CODE_POINTS  # bytes of a CharacterTable
_models = ModelCache(BertNormalizer)


def fast_bert_normalize(
    input_values: np.ndarray, fast_bert_normalizer_model: np.ndarray, *, get_offsets: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """FastBertNormalize: return normalized strings `[n]`, offsets int64, and their row splits.

    The offsets of a string, one for each byte of its normal form and one for its end, say where
    the bytes come from. Without `get_offsets` there are none, and the row splits are 0. Raises
    FailedPreconditionError if an input is no vector, InvalidArgumentError if the model is damaged.
    """
    check_rank_one("Input values shape", input_values)
    check_rank_one("Fast BERT normalizer model shape", fast_bert_normalizer_model)
    model = _models.get(fast_bert_normalizer_model)
    texts = [decoded(text) for text in checked(input_values.tolist())]
    found: list[bytes] = []
    offsets = [np.zeros(0, np.int64)]
    lengths = [np.zeros(1, np.int64)]
    for group in groups(texts):
        if get_offsets:
            answers, group_offsets, group_lengths = model.normalized_with_offsets(group)
            offsets.append(group_offsets)
            lengths.append(group_lengths)
        else:
            answers = model.normalized(group)
            lengths.append(np.zeros(len(group), np.int64))
        found += answers
    return string_tensor(found), np.concatenate(offsets), np.cumsum(np.concatenate(lengths))


def _memory(
    input_values: TensorValue, fast_bert_normalizer_model: TensorValue, *, get_offsets: bool
) -> int:
    if not isinstance(fast_bert_normalizer_model, np.ndarray):
        return 0  # the kernel refuses it
    # read as the kernel reads it, which finds it in the cache then
    growth = _models.get(fast_bert_normalizer_model).growth
    # A str of 4 bytes a character, its numbers, and what replaces it, as numbers, str and bytes.
    each = 70 + 14 * growth + (8 * POINTER + 3 * POINTER * growth) * get_offsets
    rows = (4 * STRING + 16 * POINTER) * elements(input_values)
    return each * text_in(input_values) + rows + 3 * size_of(fast_bert_normalizer_model) + _TABLE


KERNELS = (
    KernelDef(
        "FastBertNormalize", fast_bert_normalize, memory=_memory, constants={1: BertNormalizer}
    ),
)
