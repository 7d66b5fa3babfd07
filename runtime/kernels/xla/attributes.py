"""What the ops of this room share: dimension numbers in bytes, and small tensors that are sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType

M = TypeVar("M", bound=Message)

# The types that TensorFlow's compiler has.
TYPES = tuple(
    kind
    for kind in DataType
    if kind.name in {
        "BFLOAT16", "BOOL", "COMPLEX64", "COMPLEX128", "DOUBLE", "FLOAT", "HALF", "INT8", "INT16",
        "INT32", "INT64", "QINT8", "QINT32", "QUINT8", "UINT8", "UINT16", "UINT32", "UINT64",
    }
)  # fmt: skip
# Of an op whose operands and result have types of their own.
MIXED_TYPES = dict.fromkeys(("LhsT", "RhsT", "preferred_element_type"), TYPES)


def dimension_numbers_of(kind: type[M], text: str) -> M:
    """Return the message that an attribute holds; its bytes arrive as text."""
    try:
        return kind.FromString(text.encode("utf-8", "surrogateescape"))
    except DecodeError:
        raise InvalidArgumentError(f"dimension_numbers is no {kind.DESCRIPTOR.name}") from None


def sizes_of(name: str, tensor: np.ndarray, count: int, least: int | None = None) -> list[int]:
    """Return the integers of a vector of `count` elements, each at least `least`."""
    array = np.asarray(tensor)
    if array.shape != (count,):
        raise InvalidArgumentError(
            f"{name} must be a vector of size {count}, got shape {list(array.shape)}"
        )
    found = [int(each) for each in array.tolist()]
    if least is not None and min(found, default=least) < least:
        raise InvalidArgumentError(f"{name} must be at least {least}, got {found}")
    return found


def pairs_of(name: str, tensor: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Return the rows of a matrix of shape [count, 2]."""
    array = np.asarray(tensor)
    if array.shape != (count, 2):
        raise InvalidArgumentError(
            f"{name} must be a matrix with minor dimension 2 and {count} rows, "
            f"got shape {list(array.shape)}"
        )
    return [(int(low), int(high)) for low, high in array.tolist()]


def check_dimensions(name: str, dims: Sequence[int], rank: int) -> None:
    """Raise unless `dims` are different dimensions of a tensor of this rank."""
    if len(set(dims)) != len(dims) or any(not 0 <= each < rank for each in dims):
        raise InvalidArgumentError(
            f"{name} must be different dimensions of a tensor of rank {rank}, got {list(dims)}"
        )


def others(rank: int, *taken: Iterable[int]) -> list[int]:
    """Return the dimensions of a tensor of this rank that are not taken, in order."""
    gone = {each for group in taken for each in group}
    return [each for each in range(rank) if each not in gone]
