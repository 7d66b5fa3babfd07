"""FastWordpieceTokenizeWithOffsets and TFText>FastWordpieceDetokenize.

TF: tensorflow_text/core/kernels/fast_wordpiece_tokenizer_kernel_template.h
"""

from __future__ import annotations

import itertools
from array import array

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    InternalError,
    OutOfRangeError,
)
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, size_of, text_in
from runtime.op_packages.text.model_cache import ModelCache
from runtime.op_packages.text.token_rows import rows_between, strings_in
from runtime.op_packages.text.wordpieces.fast_wordpiece_model import FastWordpieceModel
from runtime.op_packages.text.wordpieces.fast_wordpiece_splitter import (
    Pieces,
    split_text,
    split_word,
)

# Words whose tokens are kept for each model: those of a language come again.
_KEPT_WORDS = 1 << 13
_LONGEST_KEPT = 64  # bytes
# bytes for a token: its text, which is in two lists and an array, and its numbers
TOKEN = STRING + 4 * POINTER + 8 * POINTER
# bytes for a token of a number: the number, its text, and what reading it takes
NUMBERED_TOKEN = 4 * STRING + 6 * POINTER


class _Tokenizer:
    """A model, and the tokens of words that it has split."""

    def __init__(self, data: np.ndarray) -> None:
        self.model = FastWordpieceModel(data)
        # The tokens of a word between spaces; None if they may depend on what is after the space.
        # Threads may lose each other's words, not more.
        self._known: dict[bytes, Pieces | None] = {}

    def parts(self, text: bytes) -> list[tuple[Pieces, int]]:
        """Return the tokens of the words of a text, with the first byte of each word."""
        if not self.model.splits_text:
            whole = self._pieces(text)
            return [] if whole is None else [(whole, 0)]
        found: list[tuple[Pieces, int]] = []
        position = 0
        for word in text.split(b" "):
            pieces = self._known.get(word) or self._pieces(word)
            if pieces is None:
                return [(self._whole(text), 0)]
            if pieces.texts:
                found.append((pieces, position))
            position += len(word) + 1
        return found

    def _whole(self, text: bytes) -> Pieces:
        pieces = Pieces()
        split_text(self.model, text, pieces)
        return pieces

    def _pieces(self, word: bytes) -> Pieces | None:
        if word in self._known:
            return self._known[word]
        check_task()
        found = Pieces()
        pieces: Pieces | None = found
        if not self.model.splits_text:
            split_word(self.model, word, found)
        elif not split_text(self.model, word + b" ", found):
            pieces = None
        if len(word) <= _LONGEST_KEPT:
            if len(self._known) >= _KEPT_WORDS:
                self._known.clear()
            self._known[word] = pieces
        return pieces


_tokenizers = ModelCache(_Tokenizer)


def _tokenizer_of(wp_model: np.ndarray) -> _Tokenizer:
    return _tokenizers.get(wp_model)


def fast_wordpiece_tokenize_with_offsets(
    input_values: np.ndarray, wp_model: np.ndarray
) -> tuple[np.ndarray, ...]:
    """FastWordpieceTokenizeWithOffsets: split n texts, or n words, into tokens.

    Returns the tokens, their numbers in the vocabulary, the row splits [n + 1], and the first byte
    and the end of each token in its text. Raises InvalidArgumentError if the model is damaged.
    """
    tokenizer = _tokenizer_of(wp_model)
    parts: list[tuple[Pieces, int]] = []
    rows = [0]
    try:
        for text in strings_in(input_values, "input_values"):
            parts += tokenizer.parts(text)
            rows.append(len(parts))
    except IndexError:  # a node, or a token, that is not in the model
        raise tokenizer.model.damaged() from None
    pieces = [each for each, _ in parts]
    counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
    offsets = np.repeat(np.fromiter((first for _, first in parts), np.int64, len(parts)), counts)
    return (
        string_tensor(itertools.chain.from_iterable(each.texts for each in pieces)),
        _joined([each.numbers for each in pieces]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[rows],
        _joined([each.starts for each in pieces]) + offsets,
        _joined([each.ends for each in pieces]) + offsets,
    )


def _joined(columns: list[array[int]]) -> np.ndarray:
    return np.frombuffer(bytearray().join(columns), np.int64)


def _tokenize_memory(input_values: TensorValue, wp_model: TensorValue) -> int:
    if not isinstance(wp_model, np.ndarray):
        return 0
    model = _tokenizer_of(wp_model).model
    longest = len(model.suffix_indicator) + len(model.unknown_token)
    text = text_in(input_values)
    # each token has at least one byte; the characters of a word are tuples before it is split
    return text * (TOKEN + longest) + 2 * size_of(input_values) + 4 * text * POINTER


def detokenize(tokenizer: FastWordpieceModel, numbers: list[int]) -> bytes:
    """Return the text of tokens: words of tokens that begin and go on, with spaces between."""
    if not tokenizer.has_vocabulary:
        raise FailedPreconditionError(
            "Detokenize function is only enabled when support_detokenization is true in the "
            "config flatbuffer. Please rebuild the model flatbuffer by setting "
            "support_detokenization=true."
        )
    vocabulary, is_suffix = tokenizer.vocabulary, tokenizer.is_suffix
    if vocabulary is None or is_suffix is None:
        raise InternalError("Missing vocab_array or vocab_is_suffix_array in config.")
    size = min(len(vocabulary), len(is_suffix))
    parts: list[bytes] = []
    for number in numbers:
        if not 0 <= number < size:
            raise OutOfRangeError(f"Token ID out of bounds: {number}")
        if not is_suffix[number]:
            parts.append(b" " if parts else b"")
        elif not parts:
            parts.append(tokenizer.suffix_indicator)
        parts.append(vocabulary[number])
    return b"".join(parts)


def fast_wordpiece_detokenize(
    input_values: np.ndarray, input_row_splits: np.ndarray, wp_model: np.ndarray
) -> np.ndarray:
    """TFText>FastWordpieceDetokenize: return the text of each row of token numbers.

    Raises FailedPreconditionError if the model has no vocabulary, OutOfRangeError if it does not
    have a number, and InvalidArgumentError if a row is not in `input_values`.
    """
    model = _tokenizer_of(wp_model).model
    rows = rows_between(input_values, input_row_splits)
    return string_tensor(detokenize(model, row.tolist()) for row in rows)


def _detokenize_memory(
    input_values: TensorValue, input_row_splits: TensorValue, wp_model: TensorValue
) -> int:
    if not isinstance(input_values, np.ndarray) or not isinstance(wp_model, np.ndarray):
        return 0
    model = _tokenizer_of(wp_model).model
    text = 0 if model.vocabulary is None else model.vocabulary.text_of(input_values)
    rows = elements(input_row_splits)
    return (
        2 * text
        + (input_values.size + 2 * rows) * NUMBERED_TOKEN
        + 2 * rows * len(model.suffix_indicator)
    )


KERNELS = (
    KernelDef(
        "FastWordpieceTokenizeWithOffsets",
        fast_wordpiece_tokenize_with_offsets,
        memory=_tokenize_memory,
        constants={1: FastWordpieceModel},
    ),
    KernelDef(
        "TFText>FastWordpieceDetokenize",
        fast_wordpiece_detokenize,
        memory=_detokenize_memory,
        constants={2: FastWordpieceModel},
    ),
)
