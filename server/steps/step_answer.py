"""The values that a step has fetched, and their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class StepAnswer(NamedTuple):
    """The fetched values of a step, and the number of bytes of their content."""

    values: list[Any]
    size: int


def bytes_of_brackets(array: np.ndarray | np.generic) -> int:
    """Return how many bytes the brackets of an array without elements take."""
    size: int = 2 * math.prod(max(each, 1) for each in array.shape)
    return size


def bytes_of_strings(arrays: Sequence[np.ndarray]) -> int:
    """Return the total length of the strings in object arrays."""
    return sum(len(item) for array in arrays for item in array.ravel() if isinstance(item, bytes))
