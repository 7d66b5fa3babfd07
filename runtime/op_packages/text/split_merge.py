"""SplitMergeTokenizeWithOffsets and TokenizerFromLogits: a decision for each character.

A character begins a token, or goes on with the one before. White space is in no token.

TF: tensorflow_text/core/kernels/split_merge_tokenize_kernel.cc, tokenizer_from_logits_kernel.cc
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, size_of, text_in
from runtime.op_packages.text.token_rows import check_splits, check_vector, strings_in
from runtime.op_packages.text.unicode_characters import WHITE_SPACE

# The bytes of a character by the first four bits of its first byte, whatever follows.
_LENGTH = (1,) * 12 + (2, 2, 3, 4)
_SPACES = frozenset(chr(each).encode() for each in WHITE_SPACE)
# bytes for a token (its parts, its text in two lists and an array, two numbers) of one byte
TOKEN = 2 * STRING + 10 * POINTER


def _characters(text: bytes) -> list[bytes]:
    """Return the characters of a text; one that the end of the text cuts off gets zeros.

    TensorFlow reads on behind the text, where it has a zero.
    """
    found: list[bytes] = []
    position = 0
    while position < len(text):
        end = position + _LENGTH[text[position] >> 4]
        found.append(text[position:end].ljust(end - position, b"\0"))
        position = end
    return found


class _Tokens:
    """The tokens of texts, and their places in them."""

    def __init__(self, splits_at_space: bool) -> None:
        self._splits_at_space = splits_at_space
        self._texts: list[bytes] = []
        self._starts = array("q")
        self._ends = array("q")
        self._rows = array("q", [0])

    def add(self, characters: list[bytes], splits: Sequence[bool]) -> None:
        """Add the tokens of a text whose i-th character begins a token if `splits[i]`."""
        parts: list[bytes] = []
        position = 0
        after_space = False
        for character, split in checked(zip(characters, splits, strict=False)):
            end = position + len(character)
            is_space = character in _SPACES
            if not is_space:
                if split or not parts or (after_space and self._splits_at_space):
                    self._finish(parts)
                    parts = [character]
                    self._starts.append(position)
                    self._ends.append(end)
                else:
                    parts.append(character)
                    self._ends[-1] = end
            position, after_space = end, is_space
        self._finish(parts)
        self._rows.append(len(self._texts))

    def _finish(self, parts: list[bytes]) -> None:
        if parts:
            self._texts.append(b"".join(parts))

    def tensors(self) -> tuple[np.ndarray, ...]:
        """Return the tokens, the row splits, the first bytes and the ends."""
        numbers = (np.array(each, np.int64) for each in (self._rows, self._starts, self._ends))
        return (string_tensor(self._texts), *numbers)


def _decided(
    texts: np.ndarray,
    available: Callable[[int], int],
    splits: Callable[[int], list[bool]],
    kind: str,
    splits_at_space: bool,
) -> tuple[np.ndarray, ...]:
    """Return the tokens of texts; `splits(i)` has `available(i)` decisions for the i-th."""
    tokens = _Tokens(splits_at_space)
    for row, text in enumerate(strings_in(texts, "The strings")):
        characters = _characters(text)
        count = available(row)
        if len(characters) > count:
            raise InvalidArgumentError(
                f"Number of {kind}, {count}, is insufficient for the {len(characters)} characters "
                f"of text {row}"
            )
        tokens.add(characters, splits(row))
    return tokens.tensors()


def split_merge_tokenize_with_offsets(
    input_values: np.ndarray,
    labels: np.ndarray,
    row_splits: np.ndarray,
    *,
    force_split_at_break_character: bool,
) -> tuple[np.ndarray, ...]:
    """SplitMergeTokenizeWithOffsets: split n texts where a character's label is 0.

    `labels[row_splits[i] : row_splits[i + 1]]` are those of the i-th text. Returns the tokens, the
    row splits [n + 1], and the first byte and the end of each token in its text. Raises
    InvalidArgumentError if a text has more characters than labels.
    """
    check_vector(labels, "labels")
    check_vector(input_values, "input_values")
    if len(row_splits) != len(input_values) + 1:
        raise InvalidArgumentError(
            f"Expecting row_splits have {len(input_values) + 1} elements, got {len(row_splits)}"
        )
    check_splits(row_splits, len(labels))
    limits: list[int] = row_splits.tolist()

    def splits(row: int) -> list[bool]:
        decisions: list[bool] = (labels[limits[row] : limits[row + 1]] == 0).tolist()
        return decisions

    return _decided(
        input_values,
        lambda row: limits[row + 1] - limits[row],
        splits,
        "labels",
        force_split_at_break_character,
    )


def tokenizer_from_logits(
    strings: np.ndarray, logits: np.ndarray, force_split_at_break_character: np.ndarray
) -> tuple[np.ndarray, ...]:
    """TokenizerFromLogits: split n texts where `logits[i, j, 0] > logits[i, j, 1]`.

    `logits` is `[n, m, 2]`, of which the first are for the characters of the i-th text. Returns the
    tokens, the row splits [n + 1], and the first byte and the end of each token in its text. Raises
    InvalidArgumentError if a text has more than m characters.
    """
    check_vector(strings, "strings")
    if np.ndim(logits) != 3 or len(logits) != len(strings):
        raise InvalidArgumentError(
            f"Expecting logits to have {len(strings)} rows and 3 dimensions, got shape "
            f"{list(np.shape(logits))}"
        )
    if logits.shape[2] != 2:
        raise InternalError(f"Bad logits dimension #2: {logits.shape[2]} != 2")
    if np.size(force_split_at_break_character) != 1:
        raise InvalidArgumentError("force_split_at_break_character must be a scalar")

    def splits(row: int) -> list[bool]:
        decisions: list[bool] = (logits[row, :, 0] > logits[row, :, 1]).tolist()
        return decisions

    return _decided(
        strings,
        lambda _: int(logits.shape[1]),
        splits,
        "logits",
        bool(np.all(force_split_at_break_character)),
    )


def _memory(texts: TensorValue, decisions: TensorValue, _: TensorValue) -> int:
    return text_in(texts) * TOKEN + 2 * size_of(texts, decisions) + size_of(decisions) * POINTER


KERNELS = (
    KernelDef("SplitMergeTokenizeWithOffsets", split_merge_tokenize_with_offsets, memory=_memory),
    KernelDef("TokenizerFromLogits", tokenizer_from_logits, memory=_memory),
)
