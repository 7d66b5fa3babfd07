"""PhraseTokenize and TFText>PhraseDetokenize: tokens are words, or several words of a vocabulary.

TF: tensorflow_text/core/kernels/phrase_tokenizer.cc, phrase_tokenizer_kernel_template.h
"""

from __future__ import annotations

import random
from array import array

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InternalError, OutOfRangeError
from runtime.foundation.running_task import checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, size_of, text_in
from runtime.op_packages.text.double_array import DoubleArray
from runtime.op_packages.text.flatbuffer import FlatBuffer
from runtime.op_packages.text.model_cache import ModelCache
from runtime.op_packages.text.token_rows import rows_between, strings_in
from runtime.op_packages.text.unicode_characters import characters, code_point_and_size

# fields of the schema's PhraseTokenizerConfig, and of its Trie
_PROBABILITY, _UNKNOWN, _UNKNOWN_NUMBER, _HAS_VOCABULARY, _VOCABULARY = range(5)
_TRIE, _WHITE_SPACE, _SPLITS_END = range(5, 8)
_UNITS = 0

# What is split off at the end of a word, if the model says so.
_ENDS = (b"'t", b"'s", b".", b",", b"!", b"?", b"'m", b"'re", b"'ll", b"'d", b"'ve")
# bytes for a token: its text, which is in two lists and an array, and its number
TOKEN = 2 * STRING + 7 * POINTER
# bytes for a token of a number: the number, its text, and what reading it takes
NUMBERED_TOKEN = 4 * STRING + 6 * POINTER


class PhraseModel:
    """The model of a tokenizer, read from a FlatBuffer."""

    def __init__(self, data: np.ndarray) -> None:
        """Raise InvalidArgumentError if `data`, uint8 `[n]`, is not a model."""
        buffer = FlatBuffer(data, "PhraseTokenizerConfig")
        table = buffer.root()
        trie = table.table(_TRIE)
        if trie is None:
            raise buffer.damaged("has no vocab_trie")
        units = trie.vector(_UNITS, "<u4")
        self._phrases = DoubleArray(np.empty(0, "<u4") if units is None else units)
        # per cent, with which a phrase is taken though there is a longer one
        self._probability = table.number(_PROBABILITY, "i") / 100
        self.unknown_token = table.string(_UNKNOWN, "unk_token")
        self._unknown_number = table.number(_UNKNOWN_NUMBER, "i")
        self._has_vocabulary = bool(table.number(_HAS_VOCABULARY, "B"))
        self.vocabulary = table.strings(_VOCABULARY)
        self._splits_end = bool(table.number(_SPLITS_END, "B"))
        # a bit for each code point
        self._spaces = table.string(_WHITE_SPACE, "whitespace_config")

    def _is_space(self, code_point: int) -> bool:
        return 0 <= code_point < 8 * len(self._spaces) and bool(
            self._spaces[code_point >> 3] >> (code_point & 7) & 1
        )

    def _words(self, text: bytes) -> list[bytes]:
        """Split a text at white space.

        As in TensorFlow, all bytes but the last of a space remain at the end of the word before.
        """
        words: list[bytes] = []
        position = start = 0
        inside = False
        for code_point, size in checked(map(code_point_and_size, characters(text))):
            before, position = position, position + size
            if not self._is_space(code_point):
                if not inside:
                    start, inside = before, True
            elif inside:
                words.append(text[start : position - 1])
                inside = False
        if inside:
            words.append(text[start:])
        return words

    def _with_end(self, word: bytes) -> bytes:
        """Return a word with a space before its end, if that is split off."""
        if self._splits_end:
            for end in _ENDS:
                if word.endswith(end):
                    return word[: -len(end)] + b" " + end
        return word

    def split(self, text: bytes, texts: list[bytes], numbers: array[int]) -> None:
        """Add the tokens of a text, and their numbers in the vocabulary."""
        joined = b" ".join(map(self._with_end, self._words(text)))
        position = 0
        for _ in checked(range(len(joined))):
            if position >= len(joined):
                return
            phrase = self._phrase(joined, position)
            if phrase is not None:
                number, length = phrase
                texts.append(joined[position : position + length])
                numbers.append(number)
                position += length + 1
                continue
            texts.append(self.unknown_token)
            numbers.append(self._unknown_number)
            position = joined.find(b" ", position) + 1
            if not position:
                return

    def _phrase(self, text: bytes, start: int) -> tuple[int, int] | None:
        """Return (number, length) of the longest phrase, or of one that is chosen by chance."""
        found = None
        for number, end in self._phrases.prefixes(text, start):
            if end < len(text) and text[end] != 0x20:
                continue
            found = number, end - start
            if self._probability > 0 and random.random() < self._probability:
                break
        return found

    def join(self, numbers: list[int]) -> bytes:
        """Return the text of tokens.

        Raises FailedPreconditionError if the model has no vocabulary, and OutOfRangeError if that
        does not have a number.
        """
        if not self._has_vocabulary:
            raise FailedPreconditionError(
                "Detokenize function is only enabled when support_detokenization is true in the "
                "config flatbuffer. Please rebuild the model flatbuffer by setting "
                "support_detokenization=true."
            )
        if self.vocabulary is None:
            raise InternalError("Missing vocab_array in config.")
        parts: list[bytes] = []
        has_text = False
        for number in numbers:
            if not 0 <= number < len(self.vocabulary):
                raise OutOfRangeError(f"Token ID out of bounds: {number}")
            token = self.vocabulary[number]
            is_first = not has_text if self._splits_end else not parts
            if not is_first and not (self._splits_end and token in _ENDS):
                parts.append(b" ")
            parts.append(token)
            has_text = has_text or bool(token)
        return b"".join(parts)


_models = ModelCache(PhraseModel)


def phrase_tokenize(input_values: np.ndarray, phrase_model: np.ndarray) -> tuple[np.ndarray, ...]:
    """PhraseTokenize: split n texts into phrases.

    Returns the tokens, their numbers in the vocabulary, and the row splits [n + 1]. Raises
    InvalidArgumentError if the model is damaged.
    """
    model = _models.get(phrase_model)
    texts: list[bytes] = []
    numbers = array("q")
    splits = [0]
    for text in strings_in(input_values, "input_values"):
        model.split(text, texts, numbers)
        splits.append(len(texts))
    return string_tensor(texts), np.array(numbers, np.int64), np.array(splits, np.int64)


def phrase_detokenize(
    input_values: np.ndarray, input_row_splits: np.ndarray, phrase_model: np.ndarray
) -> np.ndarray:
    """TFText>PhraseDetokenize: return the text of each row of token numbers.

    Raises FailedPreconditionError if the model has no vocabulary, OutOfRangeError if it does not
    have a number, and InvalidArgumentError if a row is not in `input_values`.
    """
    model = _models.get(phrase_model)
    rows = rows_between(input_values, input_row_splits)
    return string_tensor(model.join(row.tolist()) for row in rows)


def _tokenize_memory(input_values: TensorValue, _: TensorValue) -> int:
    text = text_in(input_values)
    return text * (TOKEN + 3 * POINTER) + 4 * size_of(input_values) + elements(input_values)


def _detokenize_memory(
    input_values: TensorValue, input_row_splits: TensorValue, phrase_model: TensorValue
) -> int:
    if not isinstance(input_values, np.ndarray) or not isinstance(phrase_model, np.ndarray):
        return 0
    vocabulary = _models.get(phrase_model).vocabulary
    text = 0 if vocabulary is None else vocabulary.text_of(input_values)
    tokens = input_values.size + 2 * elements(input_row_splits)
    return 2 * text + tokens * NUMBERED_TOKEN


KERNELS = (
    KernelDef(
        "PhraseTokenize", phrase_tokenize, memory=_tokenize_memory, constants={1: PhraseModel}
    ),
    KernelDef(
        "TFText>PhraseDetokenize",
        phrase_detokenize,
        memory=_detokenize_memory,
        constants={2: PhraseModel},
    ),
)
