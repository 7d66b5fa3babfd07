"""TFText>ByteSplitWithOffsets, TFText>ByteSplitByOffsets and TFText>Utf8Binarize.

TF: tensorflow_text/core/kernels/byte_splitter.cc, utf8_binarize.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.foundation.running_task import check_task, checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, dense, elements, longest_in, text_in
from runtime.op_packages.text.character_table import code_points
from runtime.op_packages.text.token_rows import check_splits
from runtime.op_packages.text.unicode_characters import characters

_NUMBER_BITS = 32  # of the code points that are written in bits


def check_rank_one(what: str, *tensors: np.ndarray) -> None:
    """Raise FailedPreconditionError unless all tensors are vectors."""
    for each in tensors:
        if np.ndim(each) != 1:
            raise FailedPreconditionError(f"{what} must be rank 1: {list(np.shape(each))}")


def byte_split_with_offsets(input_values: np.ndarray) -> tuple[np.ndarray, ...]:
    """TFText>ByteSplitWithOffsets: return the bytes of strings, and where they are.

    Returns the bytes uint8 `[n]`, the row splits int64, and each byte's begin and end int32 `[n]`.
    """
    check_rank_one("Input values shape", input_values)
    texts: list[bytes] = input_values.tolist()
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    splits = np.concatenate([[0], np.cumsum(sizes)])
    found = np.frombuffer(b"".join(texts), np.uint8)
    starts = (np.arange(len(found)) - np.repeat(splits[:-1], sizes)).astype(np.int32)
    return found, splits, starts, starts + np.int32(1)


def byte_split_by_offsets(
    input_values: np.ndarray,
    input_start_offsets: np.ndarray,
    input_end_offsets: np.ndarray,
    input_row_splits: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """TFText>ByteSplitByOffsets: return parts of strings, and the row splits of the parts.

    Row i of the ragged offsets int32 `[n]` has the parts of string i. Raises InvalidArgumentError
    if an offset is not in the string, or ends before it begins.
    """
    check_rank_one("Input values shape", input_values)
    check_rank_one("Input start offsets shape", input_start_offsets)
    check_rank_one("Input end offsets shape", input_end_offsets)
    check_rank_one("Input row splits shape", input_row_splits)
    texts: list[bytes] = input_values.tolist()
    if len(input_row_splits) <= len(texts):
        raise InvalidArgumentError(
            f"{len(texts)} strings need {len(texts) + 1} row splits, got {len(input_row_splits)}"
        )
    check_splits(input_row_splits, min(len(input_start_offsets), len(input_end_offsets)))
    starts, ends = input_start_offsets.tolist(), input_end_offsets.tolist()
    rows = input_row_splits[: len(texts) + 1].tolist()
    parts: list[bytes] = []
    for row, text in enumerate(checked(texts)):
        for place in range(rows[row], rows[row + 1]):
            start, end = starts[place], ends[place]
            if not 0 <= start <= len(text):
                raise InvalidArgumentError("Start offsets out of range.")
            if not 0 <= end <= len(text):
                raise InvalidArgumentError("End offsets out of range.")
            if start > end:
                raise InvalidArgumentError("Start offset after end offset.")
            parts.append(text[start:end])
    return string_tensor(parts), np.array(rows, np.int64) - rows[0]


def utf8_binarize(
    input_tokens: np.ndarray, *, word_length: int, bits_per_char: int, replacement_char: int
) -> np.ndarray:
    """TFText>Utf8Binarize: return the bits of code points, float32 `[n, word_length * bits]`.

    The lowest bit of a character is the first. What a string lacks is 0, and a malformed character
    is `replacement_char`.
    """
    check_rank_one("Shape", input_tokens)
    if word_length < 0 or bits_per_char < 0:
        raise InvalidArgumentError(
            f"word_length and bits_per_char must not be negative, got {word_length}, "
            f"{bits_per_char}"
        )
    longest = 4 * word_length + 4  # bytes of a word in UTF-8; what is cut off is not needed
    words = [characters(text[:longest])[:word_length] for text in checked(input_tokens.tolist())]
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    found = code_points("".join(words)).astype(np.int64)
    # malformed characters are surrogates, which no well-formed text has
    found[(found >= 0xD800) & (found < 0xE000)] = replacement_char
    points = np.zeros((len(words), word_length), np.int64)
    points[np.arange(word_length) < sizes[:, None]] = found
    shifts = np.minimum(np.arange(bits_per_char), _NUMBER_BITS - 1)
    check_task()
    bits = (points[:, :, None] >> shifts) & 1
    return bits.astype(np.float32).reshape(len(input_tokens), word_length * bits_per_char)


def _split_memory(input_values: TensorValue) -> int:
    return 40 * text_in(input_values) + 14 * POINTER * elements(input_values) + STRING


def _parts_memory(
    input_values: TensorValue,
    input_start_offsets: TensorValue,
    input_end_offsets: TensorValue,
    input_row_splits: TensorValue,
) -> int:
    rows = elements(input_values, input_row_splits)
    part = longest_in(input_values) + STRING + 14 * POINTER
    return part * elements(input_start_offsets) + 10 * POINTER * rows


def _bits_memory(input_tokens: TensorValue, *, word_length: int, bits_per_char: int) -> int:
    rows = elements(input_tokens)
    return dense([rows, word_length, bits_per_char], 24) + dense([rows, word_length], 32)


KERNELS = (
    KernelDef("TFText>ByteSplitWithOffsets", byte_split_with_offsets, memory=_split_memory),
    KernelDef("TFText>ByteSplitByOffsets", byte_split_by_offsets, memory=_parts_memory),
    KernelDef("TFText>Utf8Binarize", utf8_binarize, memory=_bits_memory),
)
