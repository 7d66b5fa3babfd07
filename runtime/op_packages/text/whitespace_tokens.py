"""TFText>WhitespaceTokenizeWithOffsetsV2: tokens between the characters that a model lists.

The model has a bit for each code point, the lowest bit of a byte first, up to the last code point
that is white space.

TF: tensorflow_text/core/kernels/whitespace_tokenizer.h, whitespace_tokenizer.cc
"""

from __future__ import annotations

import functools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import BLOCK, check_task, checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import as_strings, string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, text_in
from runtime.op_packages.text.character_table import SEPARATOR, code_points, groups, utf8_sizes
from runtime.op_packages.text.normal_forms import decoded
from runtime.op_packages.text.unicode_properties import CODE_POINTS

# bytes for half of a token: its text in lists and an array, its place in lists and arrays
_TOKEN = STRING + 12 * POINTER
_POINT = 80  # bytes for a code point: its number as a str and array, its size and place, masks
_ROW = 2 * STRING + 12 * POINTER
_MODELS = 16  # of which what they list is kept


def whitespace_tokenize_with_offsets_v2(
    input_values: np.ndarray, input_config: np.ndarray
) -> tuple[np.ndarray, ...]:
    """TFText>WhitespaceTokenizeWithOffsetsV2: return the tokens `[n]` of strings, and their places.

    Returns the tokens, the row splits int64, and the begins and ends int32 of the tokens. A token
    before white space of n bytes ends n - 1 bytes late, as TensorFlow's does. Raises
    InvalidArgumentError if the strings are no vector, or the model is no scalar.
    """
    if np.ndim(input_values) != 1:
        raise InvalidArgumentError(
            f"input_values must be a vector, got shape {list(np.shape(input_values))}"
        )
    config = as_strings(input_config)
    if config.size != 1:
        raise InvalidArgumentError(f"input_config must be a scalar, got {list(config.shape)}")
    is_space = _spaces(config.item())
    found = _Tokens()
    given: list[bytes] = input_values.tolist()
    position = 0
    for group in groups([decoded(text) for text in checked(given)]):
        found.add(group, given[position : position + len(group)], is_space)
        position += len(group)
    return found.tensors()


class _Tokens:
    """The tokens of groups of texts, and their places in them."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._starts = [np.zeros(0, np.int32)]
        self._ends = [np.zeros(0, np.int32)]
        self._lengths = [np.zeros(1, np.int64)]

    def add(self, texts: list[str], data: list[bytes], is_space: np.ndarray) -> None:
        """Add the tokens of texts, which have the bytes `data`."""
        points = code_points("".join(text + SEPARATOR for text in texts))
        is_end = points == ord(SEPARATOR)
        sizes = utf8_sizes(points)
        begins = np.cumsum(sizes) - sizes
        kept = ~(is_space[points] | is_end)
        before = np.concatenate([[False], kept[:-1]])
        firsts = np.flatnonzero(kept & ~before)
        behind = np.flatnonzero(~kept & before)
        starts = begins[firsts]
        ends = begins[behind] + np.where(is_end[behind], 0, sizes[behind] - 1)
        limits = begins[is_end]  # the text of each number ends here
        row = np.searchsorted(limits, starts)
        first_byte = np.concatenate([[0], limits[:-1] + 1])[row]
        joined = b"\0".join(data)
        for block in range(0, len(starts), BLOCK):
            places = slice(block, block + BLOCK)
            pairs = zip(starts[places].tolist(), ends[places].tolist(), strict=True)
            self._texts += [joined[start:end] for start, end in pairs]
            check_task()
        self._starts.append((starts - first_byte).astype(np.int32))
        self._ends.append((ends - first_byte).astype(np.int32))
        self._lengths.append(np.bincount(row, minlength=len(texts)))

    def tensors(self) -> tuple[np.ndarray, ...]:
        """Return the tokens, the row splits, and where the tokens begin and end."""
        splits = np.cumsum(np.concatenate(self._lengths))
        starts, ends = np.concatenate(self._starts), np.concatenate(self._ends)
        return string_tensor(self._texts), splits, starts, ends


@functools.lru_cache(maxsize=_MODELS)
def _spaces(config: bytes) -> np.ndarray:
    """Return whether a model lists each code point, bool `[CODE_POINTS]`."""
    found = np.zeros(CODE_POINTS, bool)
    bits = np.unpackbits(np.frombuffer(config[: CODE_POINTS // 8], np.uint8), bitorder="little")
    found[: len(bits)] = bits
    found[0xD800:0xE000] = False  # not in well-formed text
    return found


def _memory(input_values: TensorValue, input_config: TensorValue) -> int:
    # every second byte of a text may be a token
    return (_TOKEN + _POINT) * text_in(input_values) + _ROW * elements(input_values) + CODE_POINTS


KERNELS = (
    KernelDef(
        "TFText>WhitespaceTokenizeWithOffsetsV2",
        whitespace_tokenize_with_offsets_v2,
        memory=_memory,
    ),
)
