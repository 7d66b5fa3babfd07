"""Inputs of tokenizers: vectors of strings, and the rows of a ragged tensor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import checked


def strings_in(values: np.ndarray, name: str) -> Iterator[bytes]:
    """Yield the strings of a vector. Raises InvalidArgumentError if it is not one."""
    check_vector(values, name)
    texts: list[bytes] = values.tolist()
    return checked(texts)


def check_vector(values: np.ndarray, name: str) -> None:
    """Raise InvalidArgumentError unless `values` is a vector."""
    if np.ndim(values) != 1:
        raise InvalidArgumentError(f"{name} must be a vector, got shape {list(np.shape(values))}")


def rows_between(values: np.ndarray, splits: np.ndarray) -> Iterator[np.ndarray]:
    """Return the rows values[splits[i] : splits[i + 1]] of a ragged tensor.

    Raises InvalidArgumentError if a row is not in `values`.
    """
    check_vector(values, "input_values")
    check_splits(splits, len(values))
    limits = splits.tolist()
    return checked(values[first:end] for first, end in itertools.pairwise(limits))


def check_splits(splits: np.ndarray, size: int) -> None:
    """Raise InvalidArgumentError unless each row that `splits` divides is in `size` values."""
    check_vector(splits, "row_splits")
    if len(splits) < 2:
        return
    steps_back = np.flatnonzero(splits[1:] < splits[:-1])
    if len(steps_back):
        raise InvalidArgumentError(
            f"row_splits must not decrease, got {splits[steps_back[0]]} before "
            f"{splits[steps_back[0] + 1]}"
        )
    if splits[0] < 0 or splits[-1] > size:
        raise InvalidArgumentError(
            f"row_splits must be in [0, {size}], got {splits[0]} to {splits[-1]}"
        )
