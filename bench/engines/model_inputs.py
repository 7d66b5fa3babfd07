"""A model's folder: `<folder>/1` is the SavedModel, `inputs.npz` has its inputs."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np

Arrays = dict[str, np.ndarray]


def stored_arrays(file: pathlib.Path) -> Arrays:
    """Return the arrays of an .npz file; strings, stored as fixed-width bytes, become objects."""
    with np.load(file) as stored:
        return {name: with_objects(stored[name]) for name in stored.files}


def with_objects(array: np.ndarray) -> np.ndarray:
    """Return an array of fixed-width bytes as one of bytes objects, any other unchanged."""
    return array.astype(object) if array.dtype.kind == "S" else array


def batch_of(inputs: Mapping[str, np.ndarray], size: int) -> Arrays:
    """Return inputs of the batch size, repeated from the first on if there are fewer."""
    return {
        name: np.ascontiguousarray(np.take(value, range(size), axis=0, mode="wrap"))
        for name, value in inputs.items()
    }


def relative_error(got: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> float:
    """Return the largest difference of any output, relative to the largest value of that output.

    Other strings, or a value that is not a number, count as 1.

    Raises:
        KeyError: An expected output is missing.
    """
    worst = 0.0
    for name, value in expected.items():
        if value.dtype.kind in "OS":
            worst = max(worst, 0.0 if np.array_equal(got[name], value) else 1.0)
            continue
        difference = np.abs(got[name].astype(np.float64) - value).max(initial=0)
        error = float(difference / (np.abs(value).max(initial=0) or 1))
        worst = max(worst, error if np.isfinite(error) else 1.0)
    return worst
