"""RegexSplitWithOffsets: the parts of strings between matches of a regular expression.

TF: tensorflow_text/core/kernels/regex_split.cc, regex_split_kernels.cc
"""

from __future__ import annotations

import itertools
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


def _successive(expression: Expression, text: bytes) -> Iterator[tuple[int, Match]]:
    """Yield the matches in a text, each with the offset of what its places refer to.

    The rest of the text behind a match is a text of its own, for `^` and `\\b` as well.
    """
    rest, offset = memoryview(text), 0
    while (match := expression.search(rest)) is not None:
        yield offset, match
        offset += match.end()
        rest = rest[match.end() :]


def _is_one_group(pattern: bytes) -> bool:
    """Return whether the first group of a valid expression is always the whole match."""
    if not (pattern.startswith(b"(") and pattern.endswith(b")")) or pattern.startswith(b"(?"):
        return False
    try:
        compiled(pattern[1:-1])
    except InvalidArgumentError:  # its parentheses are not a pair
        return False
    return True


class _Split:
    """The tokens of texts, and their places in them."""

    def __init__(self, delimiter: Expression, kept: Expression | None) -> None:
        self._delimiter = delimiter
        self._looks_back = _LOOKS_BACK.search(delimiter.pattern) is not None
        self._is_one_group = _is_one_group(delimiter.pattern)
        self._kept = kept
        self._known: dict[bytes, bool] = {}
        self._texts: list[bytes] = []
        self._places = array("q")  # begin, end of each token
        self._rows = array("q", [0])

    def _matches(self, text: bytes) -> Iterator[tuple[int, Match]]:
        if not self._delimiter.groups:  # without a group nothing is found
            return iter(())
        if self._looks_back:
            return _successive(self._delimiter, text)
        return zip(itertools.repeat(0), self._delimiter.finditer(text), strict=False)

    def add(self, text: bytes) -> None:
        """Add the tokens of a text.

        Raises InvalidArgumentError for an empty match, where TensorFlow would never end, and for a
        match without its first group.
        """
        is_one_group, kept = self._is_one_group, self._kept
        places: list[int] = []  # begin, end of each token
        last = 0
        for offset, match in checked(self._matches(text)):
            start, end = match.span(1)
            rest = (end if is_one_group else match.end()) + offset
            if rest == last:
                raise InvalidArgumentError("The delimiter must not match the empty string")
            if start < 0:
                raise InvalidArgumentError("The first group of the delimiter has no match")
            start += offset
            if start > last:
                places += (last, start)
            if kept is not None and self._is_kept(text[start : end + offset]):
                places += (start, end + offset)
            last = rest
        if last < len(text):
            places += (last, len(text))
        pairs = checked(zip(places[::2], places[1::2], strict=True))
        self._texts += [text[start:end] for start, end in pairs]
        self._places.extend(places)
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
        starts, ends = np.array(self._places, np.int64).reshape(-1, 2).T.copy()
        return string_tensor(self._texts), starts, ends, np.array(self._rows, np.int64)


def _memory(
    input: TensorValue, delim_regex_pattern: TensorValue, keep_delim_regex_pattern: TensorValue
) -> int:
    # a token has at least one byte
    return (_TOKEN + 3) * text_in(input) + 4 * POINTER * elements(input) + STRING


KERNELS = (KernelDef("RegexSplitWithOffsets", regex_split_with_offsets, memory=_memory),)
