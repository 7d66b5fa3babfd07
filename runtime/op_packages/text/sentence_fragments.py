"""SentenceFragments: parts of texts, as tokens, that end where a sentence may end.

TF: tensorflow_text/core/kernels/sentence_fragmenter.cc, sentence_breaking_utils.cc
"""

from __future__ import annotations

import bisect
import dataclasses
import enum
from array import array

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task, checked
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements
from runtime.kernels.strings.unicode_text import unicode_decode
from runtime.op_packages.text.sentence_fragments_v2 import (
    HAS_CLOSE_PARENTHESIS,
    HAS_SENTENTIAL_CLOSE_PARENTHESIS,
    HAS_SEVERAL,
    HAS_TERMINAL,
)
from runtime.op_packages.text.unicode_properties import (
    CLOSE_PARENTHESIS,
    CLOSE_PUNCTUATION,
    OPEN_PARENTHESIS,
    PUNCTUATION,
    TERMINAL,
    sentence_bits,
)

# More bits of a token than those of `sentence_bits`.
_ELLIPSIS, _EMOTICON, _ACRONYM = 1 << 8, 1 << 9, 1 << 10
# of `token_properties`. TF: sentence_fragmenter.h (Token::TextProperty)
_TEXT_EMOTICON, _TEXT_ACRONYM = 0x80, 0x100
_HORIZONTAL_ELLIPSIS = 0x2026
_ENOUGH = 64  # bytes in which there is more than one character, whatever the encoding
_TOKEN = 1200  # bytes for a token: its beginning, its code points, its bits in lists and arrays


class _State(enum.Enum):
    INITIAL = enum.auto()
    TERMINAL = enum.auto()
    CLOSING = enum.auto()


@dataclasses.dataclass(slots=True)
class _Match:
    """How far the end of a fragment was found. TF: FragmentBoundaryMatch"""

    state: _State = _State.INITIAL
    terminal: int = -1  # the first token that may end a sentence
    close: int = -1  # the first one that closes something
    limit: int = -1

    def advance(self, token: int, index: int) -> bool:
        """Go on with the token at an index; return False if it does not continue the end."""
        if self.state is _State.INITIAL:
            if token & (TERMINAL | _ACRONYM | _EMOTICON):
                self.terminal, self.state = index, _State.TERMINAL
        elif self.state is _State.TERMINAL:
            if not token & (TERMINAL | _EMOTICON):
                if not token & CLOSE_PUNCTUATION:
                    return False
                self.close, self.state = index, _State.CLOSING
        elif not token & (CLOSE_PUNCTUATION | _ELLIPSIS | _EMOTICON):
            return False
        self.limit = index + 1
        if self.state is _State.TERMINAL:
            self.close = self.limit
        return True


def _next_end(tokens: list[int], start: int, first: int) -> _Match:
    """Return the end of the fragment that begins at an index.

    `first` is the next token that may end a sentence.
    """
    match = _Match(limit=first)
    before = None  # the last end before tokens that may belong to it
    index = first
    while index < len(tokens):
        check_task()
        token = tokens[index]
        if match.terminal >= 0 and index > start:
            if not token & (_EMOTICON | TERMINAL | CLOSE_PARENTHESIS):
                break
            before = dataclasses.replace(match)
        if match.advance(token, index):
            index += 1
        elif before is not None:
            return before
        else:  # only at the first one, which always matches
            return match
    return match


def _properties(tokens: list[int], match: _Match, is_sentential: bool) -> tuple[int, int]:
    """Return the properties of a fragment, and its first terminal token or −1."""
    if match.terminal < 0:
        return 0, -1
    found = HAS_TERMINAL
    later = tokens[match.terminal + 1 : match.close]
    if any(each & PUNCTUATION and not each & (_ELLIPSIS | _EMOTICON) for each in later):
        found |= HAS_SEVERAL
    if any(each & CLOSE_PARENTHESIS for each in tokens[match.close : match.limit]):
        found |= HAS_CLOSE_PARENTHESIS
        if is_sentential:
            found |= HAS_SENTENTIAL_CLOSE_PARENTHESIS
    for index in range(match.close, match.terminal, -1):
        if tokens[index - 1] & (_ELLIPSIS | _EMOTICON):
            return found, match.terminal if index == match.close else index
    return found, match.terminal


def _word_bits(words: list[bytes], encoding: str) -> dict[bytes, int]:
    """Return what each word is, as bits. Raises InternalError if one is empty."""
    kinds = list(dict.fromkeys(words))
    splits, points = unicode_decode(
        string_tensor(word[:_ENOUGH] for word in kinds if len(word) <= _ENOUGH),
        input_encoding=encoding,
        errors="replace",
        replacement_char=0xFFFD,
        replace_control_characters=False,
        Tsplits=DataType.INT64,
    )
    sizes = np.diff(splits)
    if (sizes == 0).any():
        # ICU: U_INDEX_OUTOFBOUNDS_ERROR
        raise InternalError("Failed to decode string, error status=8")
    firsts = points[splits[:-1]]
    bits = np.where(sizes == 1, sentence_bits()[firsts].astype(np.int64), 0)
    bits[(sizes == 1) & (firsts == _HORIZONTAL_ELLIPSIS)] |= _ELLIPSIS
    short = (word for word in kinds if len(word) <= _ENOUGH)
    found: dict[bytes, int] = dict(zip(short, bits.tolist(), strict=True))
    for word, more in ((b"...", _ELLIPSIS | TERMINAL), (b"''", CLOSE_PUNCTUATION)):
        if word in found:
            found[word] |= more
    return found


def _token_bits(words: np.ndarray, properties: np.ndarray, encoding: str) -> list[int]:
    """Return what each token is, as bits. Raises InternalError if a word is empty."""
    texts: list[bytes] = words.tolist()
    known = _word_bits(texts, encoding)
    # a longer word has several characters
    bits = np.array([known.get(text, 0) for text in checked(texts)], np.int64)
    bits[(properties & _TEXT_EMOTICON) != 0] |= _EMOTICON
    for index in np.flatnonzero(properties & _TEXT_ACRONYM).tolist():
        if texts[index].endswith(b"."):
            bits[index] |= _ACRONYM
    found: list[int] = bits.tolist()
    return found


def sentence_fragments(
    row_lengths: np.ndarray,
    token_start: np.ndarray,
    token_end: np.ndarray,
    token_word: np.ndarray,
    token_properties: np.ndarray,
    *,
    input_encoding: str,
) -> tuple[np.ndarray, ...]:
    """SentenceFragments: divide texts into fragments, by their tokens.

    `row_lengths` has the numbers of tokens of each text. Returns the first tokens of the
    fragments, the tokens behind them, the properties, the first tokens that may end a sentence
    (−1 if there are none), all int64 `[n]`, and how many fragments each text has. Raises
    InvalidArgumentError if the sizes of the inputs do not match, InternalError if a token is empty.
    """
    named = {
        "row_lengths": row_lengths, "token_start": token_start, "token_end": token_end,
        "token_word": token_word, "token_properties": token_properties,
    }  # fmt: skip
    for name, each in named.items():
        if np.ndim(each) != 1:
            shape = list(np.shape(each))
            raise InvalidArgumentError(f"'{name}' must be a vector, got shape: {shape}")
    lengths = row_lengths.tolist()
    count = sum(lengths)
    sizes = [len(each) for each in (token_start, token_end, token_word)]
    if sizes != [count] * 3 or len(token_properties) != count or min(lengths, default=0) < 0:
        raise InvalidArgumentError(
            f"num_elements({count}), token_start({sizes[0]}), token_end({sizes[1]}), "
            f"token_word({sizes[2]}) must all be the same size."
        )
    bits = _token_bits(token_word, token_properties, input_encoding)
    columns = [array("q") for _ in range(4)]
    rows: list[int] = []
    position = 0
    for length in lengths:
        rows.append(_add_fragments(bits[position : position + length], columns))
        position += length
    return tuple(np.array(each, np.int64) for each in (*columns, rows))


def _add_fragments(tokens: list[int], columns: list[array[int]]) -> int:
    """Add the fragments of one text to the columns; return how many there are."""
    starts, limits, properties, terminals = columns
    before = len(starts)
    start, is_sentential = 0, False
    ends = [index for index, each in enumerate(tokens) if each & (TERMINAL | _ACRONYM | _EMOTICON)]
    opened = [index for index, each in enumerate(tokens) if each & OPEN_PARENTHESIS]
    while start < len(tokens):
        following = bisect.bisect_left(ends, start)
        match = _next_end(tokens, start, ends[following] if following < len(ends) else len(tokens))
        last = bisect.bisect_left(opened, match.limit) - 1
        if last >= 0 and opened[last] >= start:
            is_sentential = opened[last] == start
        found, terminal = _properties(tokens, match, is_sentential)
        starts.append(start)
        limits.append(match.limit)
        properties.append(found)
        terminals.append(terminal)
        start = match.limit
        check_task()
    return len(starts) - before


def _memory(
    row_lengths: TensorValue,
    token_start: TensorValue,
    token_end: TensorValue,
    token_word: TensorValue,
    token_properties: TensorValue,
) -> int:
    return _TOKEN * elements(token_word) + 80 * elements(row_lengths)


KERNELS = (KernelDef("SentenceFragments", sentence_fragments, memory=_memory),)
