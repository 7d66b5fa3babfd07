"""RegexSplitWithOffsets: the parts of strings between matches of a regular expression.

TF: tensorflow_text/core/kernels/regex_split.cc, regex_split_kernels.cc
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import items_of, string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, text_in
from runtime.kernels.strings.string_regex import Expression, Match, compiled, scalar_pattern

# bytes for a token: its text in lists and an array, its place in two arrays, a match
_KNOWN = 1000  # delimiters of which it is known whether they are kept
_TOKEN = STRING + 20 * POINTER


def regex_split_with_offsets(
    input: np.ndarray, delim_regex_pattern: np.ndarray, keep_delim_regex_pattern: np.ndarray
) -> tuple[np.ndarray, ...]:
    """RegexSplitWithOffsets: split strings where the first group of an expression matches.

    A delimiter is a token itself if the whole of it matches `keep_delim_regex_pattern`, unless
    that is empty. Returns the tokens `[n]`, their begins and ends int64, and the row splits.
    Raises InvalidArgumentError if a pattern is no scalar or is invalid.
    """
    delimiter = compiled(scalar_pattern(delim_regex_pattern, "Pattern"))
    pattern = scalar_pattern(keep_delim_regex_pattern, "Pattern")
    kept = compiled(pattern)
    split = _Split(delimiter, kept if pattern else None)
    for text in items_of(input):
        # TensorFlow takes the string for one that ends at its first zero
        split.add(text.partition(b"\0")[0])
    return split.tensors()


# what in an expression may look at the text before a match
_LOOKS_BACK = re.compile(rb"\^|\\[bBA]")


def _matches(expression: Expression, text: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where the first group of each match begins and ends, and where the match ends.

    Nothing is found without a group. Raises InvalidArgumentError for an empty match, where
    TensorFlow would never end, and for a match without its group.
    """
    if not expression.groups:
        return
    last = 0
    for offset, match in _successive(expression, text):
        start, stop = match.span(1)
        end = match.end() + offset
        if end == last:
            raise InvalidArgumentError("The delimiter must not match the empty string")
        if start < 0:
            raise InvalidArgumentError("The first group of the delimiter has no match")
        yield start + offset, stop + offset, end
        last = end


def _successive(expression: Expression, text: bytes) -> Iterator[tuple[int, Match]]:
    """Yield the matches in a text, each with the offset of what its places refer to."""
    if _LOOKS_BACK.search(expression.pattern) is None:
        yield from ((0, match) for match in expression.finditer(text))
        return
    # The rest of the text behind a match is a text of its own, for `^` and `\b` as well.
    rest, offset = memoryview(text), 0
    while (match := expression.search(rest)) is not None:
        yield offset, match
        offset += match.end()
        rest = rest[match.end() :]


class _Split:
    """The tokens of texts, and their places in them."""

    def __init__(self, delimiter: Expression, kept: Expression | None) -> None:
        self._delimiter = delimiter
        self._kept = kept
        self._known: dict[bytes, bool] = {}
        self._texts: list[bytes] = []
        self._starts = array("q")
        self._ends = array("q")
        self._rows = array("q", [0])

    def _token(self, text: bytes, start: int, end: int) -> None:
        self._texts.append(text[start:end])
        self._starts.append(start)
        self._ends.append(end)

    def add(self, text: bytes) -> None:
        """Add the tokens of a text."""
        kept = self._kept
        last = 0
        for start, end, rest in checked(_matches(self._delimiter, text)):
            if start > last:
                self._token(text, last, start)
            if kept is not None and self._is_kept(text[start:end]):
                self._token(text, start, end)
            last = rest
        if last < len(text):
            self._token(text, last, len(text))
        self._rows.append(len(self._texts))

    def _is_kept(self, delimiter: bytes) -> bool:
        # there are few delimiters, and most of them come again
        found = self._known.get(delimiter)
        if found is None:
            assert self._kept is not None  # the caller has seen to it
            found = self._kept.fullmatch(delimiter) is not None
            if len(self._known) < _KNOWN:
                self._known[delimiter] = found
        return found

    def tensors(self) -> tuple[np.ndarray, ...]:
        """Return the tokens, their begins and ends, and the row splits."""
        parts = (np.array(each, np.int64) for each in (self._starts, self._ends, self._rows))
        return (string_tensor(self._texts), *parts)


def _memory(
    input: TensorValue, delim_regex_pattern: TensorValue, keep_delim_regex_pattern: TensorValue
) -> int:
    # a token has at least one byte
    return (_TOKEN + 3) * text_in(input) + 4 * POINTER * elements(input) + STRING


KERNELS = (KernelDef("RegexSplitWithOffsets", regex_split_with_offsets, memory=_memory),)
