"""Substr and StringLength, in bytes or in UTF-8 characters.

A character begins at every byte that is not a UTF-8 continuation byte, whether or not the text is
valid. Substr also lets a character begin at the first byte, whatever that byte is.

TF: tensorflow/core/kernels/substr_op.cc, string_length_op.cc
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, items_of, string_tensor
from runtime.framework.tensor_text import readable

_CONTINUATION = bytes(range(0x80, 0xC0))
_MAX_BROADCAST_RANK = 2


def string_length(input: np.ndarray, *, unit: str) -> np.ndarray:
    """StringLength: return each string's length in bytes (BYTE) or characters (UTF8_CHAR)."""
    items = items_of(input)
    if unit == "UTF8_CHAR":
        items = [item.translate(None, _CONTINUATION) for item in items]
    lengths = np.fromiter(map(len, items), np.int32, len(items))
    return lengths.reshape(as_strings(input).shape)


def substr(input: np.ndarray, pos: np.ndarray, len: np.ndarray, *, unit: str) -> np.ndarray:
    """Substr: return `len` bytes or characters of each string, the first of them at `pos`.

    A negative `pos` counts from the end of the string.
    """
    strings, positions, lengths = as_strings(input), np.asarray(pos), np.asarray(len)
    if positions.shape != lengths.shape:
        raise InvalidArgumentError(
            "pos and len should have the same shape, got: "
            f"{shape_text(positions.shape)} vs. {shape_text(lengths.shape)}"
        )
    shape = _result_shape(strings.shape, positions.shape)
    if unit == "BYTE" and not positions.ndim:
        items = strings.ravel().tolist()
        begin, size = int(positions), int(lengths)
        if 0 <= begin <= min(map(builtins.len, items), default=begin):
            part = slice(begin, begin + size if size >= 0 else None)
            return string_tensor([item[part] for item in items], shape)
    cut = _SUBSTRINGS[unit]
    triples = zip(
        *(np.broadcast_to(each, shape).ravel().tolist() for each in (strings, positions, lengths)),
        strict=True,
    )
    return string_tensor(itertools.starmap(cut, _with_indices(triples)), shape)


def _with_indices(
    triples: Iterable[tuple[bytes, int, int]],
) -> Iterator[tuple[int, bytes, int, int]]:
    return ((index, *triple) for index, triple in enumerate(triples))


def _result_shape(strings: tuple[int, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    if strings == positions or not positions:
        return strings
    try:
        shape = np.broadcast_shapes(strings, positions)
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {shape_text(strings)} vs. {shape_text(positions)}"
        ) from None
    if len(shape) > _MAX_BROADCAST_RANK:
        raise UnimplementedError(f"Substr broadcast not implemented for {len(shape)} dimensions")
    return shape


def _byte_substring(index: int, text: bytes, position: int, length: int) -> bytes:
    if not -len(text) <= position <= len(text):
        raise InvalidArgumentError(
            f"pos {position} out of range for string b'{readable(text)}' at index {index}"
        )
    start = position if position >= 0 else len(text) + position
    # As in TensorFlow, a negative length means the rest of the string if the unit is bytes; if the
    # unit is characters, it means the empty string.
    return text[start:] if length < 0 else text[start : start + length]


def _character_substring(index: int, text: bytes, position: int, length: int) -> bytes:
    starts = [at for at, byte in enumerate(text) if not at or byte & 0xC0 != 0x80]
    count = len(starts)
    if not -count <= position <= count:
        raise InvalidArgumentError(f"pos {position} out of range for string at index {index}")
    first = position if position >= 0 else count + position
    starts.append(len(text))
    return text[starts[first] : starts[min(first + max(length, 0), count)]]


_SUBSTRINGS: dict[str, Callable[[int, bytes, int, int], bytes]] = {
    "BYTE": _byte_substring,
    "UTF8_CHAR": _character_substring,
}

KERNELS = (
    KernelDef("StringLength", string_length),
    KernelDef("Substr", substr),
)
