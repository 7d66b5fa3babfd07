"""Expression: a group of a plan as one call of numexpr, for inputs that have proven to be small.

A plan runs the instructions of a group one by one until it has met inputs of the same shapes and
strides LEARNING_RUNS times with a small result. The expression is then compiled and tried on zeros
of these shapes, and from then on called for them. So it is the kernels that raise errors of shapes,
and an expression raises none.

Guarantees: thread-safe. A program of numexpr may run once at a time, because it keeps its
intermediate values, so each run takes one that is idle or makes another. Threads of numexpr do not
take part: it has none for fewer than 2,048 elements.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from runtime.executors.expressions.groups import KINDS, Group
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_value import TensorValue

LEARNING_RUNS = 8  # an expression takes 0.4 to 2.5 ms to compile
# Measured, for inputs of equal shapes: with as many elements in the result, numpy is as fast.
_ELEMENTS_AN_OPERATION, _OPERATIONS_FOR_ONE_CALL = 8, 4
MOST_ELEMENTS = 256
_MOST_KNOWN = 32  # inputs that a group remembers
_MOST_REFUSALS = 100  # runs without a small result, before a group stops to look
_THREADS = "NUMEXPR_NUM_THREADS"
_log = logging.getLogger(__name__)

Inputs: TypeAlias = tuple[tuple[int, ...], ...]  # the shape and the strides of each input


@functools.cache
def is_available() -> bool:
    """Return whether numexpr is installed; this does not import it."""
    return importlib.util.find_spec("numexpr") is not None


def most_elements(operations: int) -> int:
    """Return how many elements the result of a group with `operations` may have."""
    return min(MOST_ELEMENTS, _ELEMENTS_AN_OPERATION * (operations - _OPERATIONS_FOR_ONE_CALL))


class Expression:
    """What runs a group; `known` has the inputs for which it may be called.

    `known` is only added to, so reading it requires no lock. `learns` is false once the group has
    nothing to learn any more.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._most_elements = most_elements(group.end - group.begin)
        self._runs: dict[Inputs, int] = {}  # a race of threads may lose the count of a run
        self._refusals = 0
        self.known: set[Inputs] = set()
        self.learns = True
        self._compiled: Any = None  # a program that nobody runs, of which others are made
        self._idle: list[Any] = []  # programs; append and pop are atomic under the interpreter lock

    def __call__(self, *values: TensorValue) -> np.ndarray:
        """Return the value of the group for the values of its slots, in a new array."""
        try:
            program = self._idle.pop()
        except IndexError:
            program = _copy(self._compiled)
        result: np.ndarray = program(*values, *self._group.constants)
        self._idle.append(program)
        return result

    def learn(self, inputs: Inputs, result: TensorValue) -> None:
        """Take notice of a run of the group's instructions."""
        if not self._is_small(inputs, result):
            self._refusals += 1
            self.learns = self._refusals < _MOST_REFUSALS
            return
        assert isinstance(result, np.ndarray)
        runs = self._runs.get(inputs, 0) + 1
        if runs == 1 and len(self._runs) >= _MOST_KNOWN:
            return
        self._runs[inputs] = runs
        if runs < LEARNING_RUNS:
            return
        try:
            if self._compiled is None:
                self._compiled = _compiled(self._group)
            fits = self._compiled is not None and self._fits(inputs, result)
        except Exception as error:  # numexpr has no base class of its errors
            _log.warning("Small operations stay on numpy kernels: %s", error)
            fits = False
        if fits:
            self.known.add(inputs)
        else:
            self.learns = False

    def _is_small(self, inputs: Inputs, result: TensorValue) -> bool:
        """Return whether numexpr is faster, and gives the same array, for a run with this result.

        Of empty inputs numexpr makes other shapes. The order of elements in memory is that of
        numpy if it is C's in all inputs.
        """
        return (
            isinstance(result, np.ndarray)  # what is computed from scalars is none
            and 0 < result.size <= self._most_elements
            and result.dtype == self._group.dtype.numpy
            and all(_is_in_order(*each, result.itemsize) for each in _pairs(inputs))
        )

    def _fits(self, inputs: Inputs, result: np.ndarray) -> bool:
        """Return whether the expression takes such inputs, and gives an array like `result`."""
        tried = self(*(np.zeros(shape, result.dtype) for shape, _ in _pairs(inputs)))
        return tried.shape == result.shape and tried.dtype == result.dtype


def _pairs(inputs: Inputs) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    return zip(inputs[::2], inputs[1::2], strict=True)


def _is_in_order(shape: Sequence[int], strides: Sequence[int], step: int) -> bool:
    """Return whether elements of `step` bytes are one after the other, the last axis first."""
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _compiled(group: Group) -> Any:
    """Return the program of a group; None if numexpr can't be imported."""
    if _numexpr() is None:
        return None
    return _program(group.text, len(group.slots) + len(group.constants), group.dtype)


@functools.lru_cache(256)  # layers of a model often have the same operations
def _program(text: str, inputs: int, dtype: DataType) -> Any:
    numexpr = _numexpr()
    assert numexpr is not None
    signature = [(f"a{place}", KINDS[dtype]) for place in range(inputs)]
    return numexpr.NumExpr(text, signature=signature, optimization="none", truediv=True)


def _copy(program: Any) -> Any:
    return type(program)(
        program.signature, program.tempsig, program.program, program.constants, program.input_names
    )


@functools.cache
def _numexpr() -> types.ModuleType | None:
    """Import numexpr, which takes 6 ms that a process without groups need not spend.

    When it is imported, it starts a thread for each core, and ends the process if it can't, unless
    its own variable or that of OpenMP says otherwise.
    """
    is_ours = "numexpr" not in sys.modules and _THREADS not in os.environ
    if is_ours:
        os.environ[_THREADS] = "1"
    try:
        import numexpr

        module: types.ModuleType = numexpr
        return module
    except Exception as error:
        _log.warning("Small operations stay on numpy kernels, without numexpr: %r", error)
        return None
    finally:
        if is_ours:
            del os.environ[_THREADS]
