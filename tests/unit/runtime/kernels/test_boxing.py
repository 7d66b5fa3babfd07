"""Scalars of Python objects on their way through kernels that move elements."""

from __future__ import annotations

import numpy as np

from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.array.concat_split import pack, unpack


class Token:
    """A variant: an object that numpy must not look into."""

    def __len__(self) -> int:
        raise AssertionError("numpy looked into a variant")


def test_a_bare_object_becomes_an_array_of_rank_0_and_back() -> None:
    token = Token()
    boxed = box(token)
    assert boxed.shape == ()
    assert boxed.dtype == object
    assert unbox(boxed) is token


def test_arrays_pass_through_unchanged() -> None:
    array = np.arange(3)
    assert box(array) is array
    assert unbox(array) is array


def test_a_string_scalar_stays_an_array() -> None:
    result = unbox(b"text")
    assert isinstance(result, np.ndarray)
    assert result.shape == ()
    assert result.item() == b"text"
    assert isinstance(unbox(result), np.ndarray)


def test_packed_objects_unpack_to_the_same_objects() -> None:
    tokens = [Token(), Token()]
    packed = pack(*tokens, axis=0)
    assert packed.shape == (2,)
    assert unpack(packed, num=2, axis=0) == tokens
