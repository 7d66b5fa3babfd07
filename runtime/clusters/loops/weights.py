"""Weights of a recognised loop: evaluates known forms with the arrays of the loop's variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from runtime.clusters.emission import DeclinedError
from runtime.clusters.loops.forms import Form, Kind, array_of

# A step of an index: ("range", start, stop, step) or ("at", position).
IndexStep = tuple[Any, ...]


def _add_matrices(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.shape != right.shape:
        raise DeclinedError(f"a sum of matrices {left.shape} and {right.shape}")
    total: np.ndarray = left + right
    return total


def _as_bias(bias: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return what is added to each row of a product with `matrix`, as a vector `[units]`."""
    if bias.ndim and bias.size != bias.shape[-1]:
        raise DeclinedError(f"a bias of shape {bias.shape}")
    units = matrix.shape[-1]
    if bias.size not in (1, units):
        raise DeclinedError(f"a bias of {bias.size} elements for {units} units")
    return np.broadcast_to(bias.reshape(-1), (units,))


def _part(array: np.ndarray, axis: int, index: int, count: int) -> np.ndarray:
    if array.shape[axis] % count:
        raise DeclinedError(f"a split of {array.shape[axis]} into {count}")
    return np.split(array, count, axis)[index]


def _sized_part(array: np.ndarray, axis: int, index: int, *sizes: int) -> np.ndarray:
    """Return part `index` of a split into parts of `sizes`, one of which may be -1 for the rest."""
    length = array.shape[axis]
    rest = length - sum(each for each in sizes if each != -1)
    if rest < 0 or (rest and -1 not in sizes):
        raise DeclinedError(f"a split of {length} into {sizes}")
    counts = [rest if each == -1 else each for each in sizes]
    start = sum(counts[:index])
    return _range(array, axis, start, start + counts[index])


def _unpacked(array: np.ndarray, axis: int, index: int, count: int) -> np.ndarray:
    if array.shape[axis] != count:
        raise DeclinedError(f"{count} parts of {array.shape[axis]}")
    return np.asarray(np.take(array, index, axis))


def _vector(bias: np.ndarray) -> np.ndarray:
    # BiasAdd has an error where Add would repeat one element, or add a matrix.
    if bias.ndim != 1 or bias.size == 1:
        raise DeclinedError(f"a bias of shape {bias.shape}")
    return bias


def _range(array: np.ndarray, axis: int, start: int, stop: int | None) -> np.ndarray:
    index: list[slice] = [slice(None)] * array.ndim
    index[axis] = slice(start, stop)
    return array[tuple(index)]


def _indexed(array: np.ndarray, *steps: IndexStep) -> np.ndarray:
    return array[tuple(step[1] if step[0] == "at" else slice(*step[1:]) for step in steps)]


def _scale(array: np.ndarray, factor: float) -> np.ndarray:
    scaled: np.ndarray = array * array.dtype.type(factor)
    return scaled


# Functions of arrays, then parameters.
FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "add_matrices": _add_matrices,
    "as_bias": _as_bias,
    "indexed": _indexed,
    "multiply": np.multiply,
    "part": _part,
    "range": _range,
    "scale": _scale,
    "sized_part": _sized_part,
    "squeeze": lambda array, *axes: np.squeeze(array, axes or None),
    "transpose": lambda array: array.T,
    "unpacked": _unpacked,
    "vector": _vector,
}


class Evaluation:
    """Evaluates known forms; `widths` are the last sizes of the values that matrices multiply."""

    def __init__(self, arrays: Mapping[int, np.ndarray], widths: Callable[[Form], int]) -> None:
        self._arrays = arrays
        self._widths = widths
        self._memo: dict[Form, np.ndarray] = {}

    def array(self, form: Form) -> np.ndarray:
        """Return the array of a known form; raise DeclinedError if shapes don't fit together."""
        found = self._memo.get(form)
        if found is None:
            found = self._memo[form] = self._evaluate(form)
        return found

    def _evaluate(self, form: Form) -> np.ndarray:
        if form.kind is Kind.CONSTANT:
            return array_of(form)
        if form.kind is Kind.INVARIANT:
            assert isinstance(form.detail, int)
            return self._arrays[form.detail]
        assert form.kind is Kind.DERIVED and isinstance(form.detail, tuple)
        name, parameters = form.detail
        if name == "rows":
            return self._rows(form, *parameters)
        given = parameters if isinstance(parameters, tuple) else (parameters,)
        operands = [self.array(each) for each in form.operands]
        try:
            return np.asarray(FUNCTIONS[name](*operands, *given))
        except (ValueError, IndexError) as error:
            raise DeclinedError(f"{name}: {error}") from None

    def _rows(self, form: Form, parts: Sequence[Form], index: int) -> np.ndarray:
        """Return the rows of a matrix that part `index` of the joined `parts` is multiplied by."""
        matrix = self.array(form.operands[0])
        widths = [self._widths(part) for part in parts]
        if matrix.ndim != 2 or sum(widths) != len(matrix):
            raise DeclinedError(f"a product of width {sum(widths)} with {matrix.shape}")
        start = sum(widths[:index])
        return matrix[start : start + widths[index]]


def invariants_of(forms: Sequence[Form]) -> list[int]:
    """Return the indices of the loop variables that known forms depend on, sorted."""
    found: set[int] = set()
    seen: set[Form] = set()
    pending = list(forms)
    while pending:
        form = pending.pop()
        if form in seen:
            continue
        seen.add(form)
        if form.kind is Kind.INVARIANT:
            assert isinstance(form.detail, int)
            found.add(form.detail)
        pending += form.operands
    return sorted(found)
