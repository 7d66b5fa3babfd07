"""WordpieceTokenizeWithOffsets: the longest tokens that a lookup table has, from left to right.

TF: tensorflow_text/core/kernels/wordpiece_kernel.cc, wordpiece_tokenizer.cc
"""

from __future__ import annotations

import dataclasses
import itertools
from array import array
from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.foundation.running_task import check_task, checked
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.lookup_table import LookupTable
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, longest_in, size_of, text_in
from runtime.kernels.state.lookup_tables import table_of
from runtime.op_packages.text.unicode_characters import characters, code_point_and_size

_MISSING = -1
_WORDS_AT_ONCE = 512  # which look their tokens up together
_TOKENS_AT_ONCE = 32  # of a word, at a place, from the longest
# bytes for a token: its text, which is in two lists and an array, and two numbers
TOKEN = 2 * STRING + 9 * POINTER

# (text, first byte, end) of each token
Tokens: TypeAlias = list[tuple[bytes, int, int]]
# The tokens of a word, from a process that yields possible tokens and gets which of them exist.
Search: TypeAlias = Generator[list[bytes], Sequence[bool], Tokens]


@dataclasses.dataclass(frozen=True, slots=True)
class _Splitter:
    """The attributes of the op; `unknown` is None if unknown words stay as they are."""

    suffix_indicator: bytes
    max_bytes: int
    max_characters: int
    unknown: bytes | None
    splits_unknown: bool

    def search(self, word: bytes) -> Search:
        """Return the tokens of `word`."""
        unknown = word if self.unknown is None else self.unknown
        if len(word) > self.max_bytes:
            return [(unknown, 0, len(unknown))]
        tokens: Tokens = []
        sizes = (code_point_and_size(each)[1] for each in checked(characters(word)))
        ends = array("q", itertools.accumulate(sizes))
        place = start = 0
        while start < len(word):
            prefix = self.suffix_indicator if start else b""
            limit = place + self.max_characters if self.max_characters > 0 else len(ends)
            found = yield from self._longest(word, prefix, start, ends, place, limit)
            if found is not None:
                text = prefix + word[start : ends[found]]
            elif self.splits_unknown:
                found = place
                text = prefix + (
                    word[start : ends[found]] if self.unknown is None else self.unknown
                )
            else:
                return [(unknown, 0, len(word))]
            tokens.append((text, start, ends[found]))
            place, start = found + 1, ends[found]
        return tokens

    @staticmethod
    def _longest(
        word: bytes, prefix: bytes, start: int, ends: array[int], place: int, limit: int
    ) -> Generator[list[bytes], Sequence[bool], int | None]:
        """Return the last character of the longest token that begins at `start`, or None."""
        last = min(limit, len(ends))
        while last > place:
            first = max(place, last - _TOKENS_AT_ONCE)
            exist = yield [prefix + word[start:end] for end in ends[first:last]]
            for index in range(last - 1, first - 1, -1):
                if exist[index - first]:
                    return index
            last = first
        return None


class _Searches:
    """Searches for the tokens of words that take the steps to the table together."""

    def __init__(self) -> None:
        self.found: dict[bytes, Tokens] = {}
        self._wanted: dict[bytes, tuple[Search, list[bytes]]] = {}

    def go_on(self, word: bytes, search: Search, exist: Sequence[bool] | None) -> None:
        """Go on with a search, whose wanted tokens `exist`; None begins it."""
        try:
            self._wanted[word] = search, search.send(exist)  # type: ignore[arg-type] # None begins it
        except StopIteration as end:
            self._wanted.pop(word, None)
            self.found[word] = end.value

    def finish(self, table: LookupTable) -> None:
        """Go on with all searches until they have ended."""
        default = np.array(_MISSING, np.int64)
        while self._wanted:
            check_task()
            keys = string_tensor(key for _, wanted in self._wanted.values() for key in wanted)
            exist = iter((_find(table, keys, default) != _MISSING).tolist())
            for word, (search, wanted) in list(self._wanted.items()):
                self.go_on(word, search, list(itertools.islice(exist, len(wanted))))


def _find(table: LookupTable, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
    try:
        return table.find(keys, default)
    except OpError as error:
        raise InvalidArgumentError(error.message) from None


def _tokens_of(words: list[bytes], splitter: _Splitter, table: LookupTable) -> dict[bytes, Tokens]:
    """Return the tokens of each word."""
    searches = _Searches()
    for first in range(0, len(words), _WORDS_AT_ONCE):
        for word in words[first : first + _WORDS_AT_ONCE]:
            searches.go_on(word, splitter.search(word), None)
        searches.finish(table)
    return searches.found


def _check_table(table: LookupTable) -> None:
    if (table.key_dtype, table.value_dtype) != (DataType.STRING, DataType.INT64) or (
        table.key_shape or table.value_shape
    ):
        raise InvalidArgumentError(
            "vocab_lookup_table must map string to int64, got a table of "
            f"{table.key_dtype.tf_name} to {table.value_dtype.tf_name}"
        )


def wordpiece_tokenize_with_offsets(
    context: OpKernelContext,
    input_values: np.ndarray,
    vocab_lookup_table: ResourceHandle,
    *,
    suffix_indicator: str,
    max_bytes_per_word: int,
    max_chars_per_token: int,
    use_unknown_token: bool,
    unknown_token: str,
    split_unknown_characters: bool,
    output_row_partition_type: str,
) -> tuple[np.ndarray, ...]:
    """WordpieceTokenizeWithOffsets: split n words into tokens that the table has.

    Returns the tokens, the lengths [n] or splits [n + 1] of the rows, and the first byte and the
    end of each token in its word. Raises InvalidArgumentError if the table does not map strings to
    int64, or has not been initialised.
    """
    table = table_of(context, vocab_lookup_table)
    _check_table(table)
    splitter = _Splitter(
        raw_bytes(suffix_indicator),
        max_bytes_per_word,
        max_chars_per_token,
        raw_bytes(unknown_token) if use_unknown_token else None,
        split_unknown_characters,
    )
    words = items_of(input_values)
    tokens = _tokens_of(list(dict.fromkeys(words)), splitter, table)
    lengths = np.fromiter((len(tokens[word]) for word in words), np.int64, len(words))
    if output_row_partition_type == "row_splits":
        lengths = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    starts = array("q", (start for word in words for _, start, _ in tokens[word]))
    ends = array("q", (end for word in words for _, _, end in tokens[word]))
    return (
        string_tensor(text for word in words for text, _, _ in tokens[word]),
        lengths,
        np.array(starts, np.int64),
        np.array(ends, np.int64),
    )


def _memory(
    input_values: TensorValue,
    vocab_lookup_table: TensorValue,
    *,
    suffix_indicator: str,
    unknown_token: str,
) -> int:
    text, words = text_in(input_values), elements(input_values)
    added = len(raw_bytes(suffix_indicator)) + len(raw_bytes(unknown_token))
    # the tokens that are looked up together: each word has at most as many as it has bytes
    wanted = _TOKENS_AT_ONCE * min(text, _WORDS_AT_ONCE * longest_in(input_values))
    wanted += min(text, _TOKENS_AT_ONCE * _WORDS_AT_ONCE) * (STRING + added + 6 * POINTER)
    return (text + words) * (TOKEN + added) + 4 * size_of(input_values) + wanted


KERNELS = (
    KernelDef("WordpieceTokenizeWithOffsets", wordpiece_tokenize_with_offsets, memory=_memory),
)
