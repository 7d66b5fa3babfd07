"""CaseFoldUTF8, NormalizeUTF8 and NormalizeUTF8WithOffsetsMap, and FindSourceOffsets.

The map of offsets is a variant that holds an `OffsetsMap`.

TF: tensorflow_text/core/kernels/normalize_kernels.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import as_strings, string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, STRING, elements, size_of, text_in
from runtime.op_packages.text.normal_forms import FORMS, Form, case_folded, normalized
from runtime.op_packages.text.offsets_maps.offsets_map import OffsetsMap, normalized_with_maps

# What the longest answer has for a byte of its text: U+1D160 (4 bytes) becomes three characters
# of 4 bytes, U+FDFA (3 bytes) 18 characters of 33 bytes.
_GROWTH = 11
# Bytes for a byte of a text: as a str and its normal form, both of 4 bytes a character.
_WORK = 2 * 4 + 4 * _GROWTH + _GROWTH
# Bytes for a replaced part: an edit, its numbers in lists and arrays.
_EDIT = 6 * STRING + 24 * POINTER


def case_fold_utf8(input: np.ndarray) -> np.ndarray:
    """CaseFoldUTF8: return each string in the form NFKC_Casefold."""
    strings = as_strings(input)
    return string_tensor(case_folded(strings.ravel().tolist()), strings.shape)


def _form(name: str, unknown: str) -> Form:
    form = name.upper()
    if form not in FORMS:
        raise InvalidArgumentError(f"{unknown}: {form}")
    return form


def normalize_utf8(input: np.ndarray, *, normalization_form: str) -> np.ndarray:
    """NormalizeUTF8: return each string in the form NFC, NFD, NFKC or NFKD.

    Raises InvalidArgumentError for another form.
    """
    form = _form(normalization_form, "Unknown normalization form requrested")  # TensorFlow's text
    strings = as_strings(input)
    return string_tensor(normalized(strings.ravel().tolist(), form), strings.shape)


def normalize_utf8_with_offsets_map(
    input: np.ndarray, *, normalization_form: str
) -> tuple[np.ndarray, TensorValue]:
    """NormalizeUTF8WithOffsetsMap: return the normal forms, and an OffsetsMap for each.

    Raises InvalidArgumentError for another form than NFC, NFD, NFKC and NFKD.
    """
    form = _form(normalization_form, "Offset not supported for this normalization form")
    strings = as_strings(input)
    texts, found = normalized_with_maps(strings.ravel().tolist(), form)
    maps = np.empty(len(found), object)
    maps[:] = found
    variants = maps.reshape(strings.shape) if strings.ndim else maps[0]
    return string_tensor(texts, strings.shape), variants


def find_source_offsets(
    offsets_map: TensorValue,
    input_offsets_values: np.ndarray,
    input_offsets_splits: np.ndarray,
) -> np.ndarray:
    """FindSourceOffsets: return the offsets in texts of offsets in their normal forms.

    Row i of the ragged offsets `[n]` belongs to the i-th map among the rows that are not empty.
    Raises InvalidArgumentError if there are not as many maps as such rows.
    """
    maps = iter(np.asarray(offsets_map, object).ravel().tolist())
    values = np.ravel(input_offsets_values)
    found = np.zeros(len(values), np.int64)
    splits = np.ravel(input_offsets_splits).tolist()
    if splits and not 0 <= min(splits) <= max(splits) <= len(values):
        raise InvalidArgumentError(f"input_offsets_splits must be in [0, {len(values)}]")
    position = 0  # rows follow each other, wherever they begin
    for start, end in checked(itertools.pairwise(splits)):
        if start == end:
            continue
        one = next(maps, None)
        if not isinstance(one, OffsetsMap):
            raise _mismatch(one)
        sources = one.sources_of(values[start:end])[: len(found) - position]
        found[position : position + len(sources)] = sources
        position += len(sources)
    if next(maps, None) is not None:
        raise _mismatch(None)
    return found


def _mismatch(one: object) -> InvalidArgumentError:
    if one is not None:
        return InvalidArgumentError(f"Expected an offset map, got {type(one).__name__}")
    return InvalidArgumentError(
        "Input offset tensor dimension did not match the offset map dimension."
    )


def _text_memory(input: TensorValue) -> int:
    return _WORK * text_in(input) + (STRING + 2 * POINTER) * elements(input)


def _fold_memory(input: TensorValue) -> int:
    # numbers of characters, and where those go that are several
    return _text_memory(input) + _GROWTH * 3 * POINTER * text_in(input)


def _map_memory(input: TensorValue) -> int:
    # a part has at least one byte of a text that is not ASCII
    return _text_memory(input) + _EDIT * text_in(input) + 12 * STRING * elements(input)


def _source_memory(
    offsets_map: TensorValue, input_offsets_values: TensorValue, input_offsets_splits: TensorValue
) -> int:
    return 10 * size_of(input_offsets_values) + 12 * size_of(input_offsets_splits)


KERNELS = (
    KernelDef("CaseFoldUTF8", case_fold_utf8, memory=_fold_memory),
    KernelDef("NormalizeUTF8", normalize_utf8, memory=_text_memory),
    KernelDef("NormalizeUTF8WithOffsetsMap", normalize_utf8_with_offsets_map, memory=_map_memory),
    KernelDef("FindSourceOffsets", find_source_offsets, memory=_source_memory),
)
