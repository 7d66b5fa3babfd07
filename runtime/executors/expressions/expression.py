"""Expression: a group of a plan as one call of numexpr, for shapes that have proven to be small.

A plan runs the instructions of a group one by one until it has met the same shapes LEARNING_RUNS
times with a small result; from then on it calls the expression for these shapes. Errors of shapes
are hence raised by kernels only, and an expression raises none.

Guarantees: thread-safe. A program of numexpr may run once at a time, because it keeps its
intermediate values, so each run takes one that is idle or makes another. numexpr's own threads are
not used: it has none for fewer than 2,048 elements.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Hashable
from typing import Any

import numpy as np

from runtime.executors.expressions.groups import KINDS, Group
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_value import TensorValue

LEARNING_RUNS = 8  # an expression takes 0.4 to 2.5 ms to compile
MOST_ELEMENTS = 256  # of a result; numpy begins to be as fast for more
_MOST_KNOWN = 32  # shapes that a group remembers
_log = logging.getLogger(__name__)


@functools.cache
def is_available() -> bool:
    """Return whether numexpr is installed; this does not import it."""
    return importlib.util.find_spec("numexpr") is not None


class Expression:
    """What runs a group; `known` has the shapes of its varying inputs for which it may be called.

    Reading `known` requires no lock; its sets are only added to. A race of threads may lose the
    count of a run.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._runs: dict[Hashable, int] = {}
        self.known: set[Hashable] = set()
        self._idle: list[Any] = []  # programs; append and pop are atomic
        self._is_given_up = False

    def __call__(self, *values: TensorValue) -> np.ndarray:
        """Return the value of the group for the values of its slots, in a new array."""
        try:
            program = self._idle.pop()
        except IndexError:
            program = self._another()
        result: np.ndarray = program(*values, *self._group.constants)
        self._idle.append(program)
        return result

    def learn(self, shapes: Hashable, result: TensorValue) -> None:
        """Take notice of a run of the group's instructions with inputs of `shapes`."""
        if self._is_given_up or not (
            isinstance(result, np.ndarray)  # the sum of two scalars is no array
            and 0 < result.size <= MOST_ELEMENTS
            and result.dtype == self._group.dtype.numpy
        ):
            return
        runs = self._runs.get(shapes, 0) + 1
        if runs == 1 and len(self._runs) >= _MOST_KNOWN:
            return
        self._runs[shapes] = runs
        if runs < LEARNING_RUNS:
            return
        try:
            if not self._idle:
                self._idle.append(self._another())
        except Exception as error:  # numexpr has no base class of its errors
            self._is_given_up = True
            _log.warning("Small operations stay on numpy kernels: %s", error)
            return
        self.known.add(shapes)

    def _another(self) -> Any:
        inputs = len(self._group.slots) + len(self._group.constants)
        compiled = _compiled(self._group.text, inputs, self._group.dtype)
        return type(compiled)(
            compiled.signature,
            compiled.tempsig,
            compiled.program,
            compiled.constants,
            compiled.input_names,
        )


@functools.lru_cache(256)
def _compiled(text: str, inputs: int, dtype: DataType) -> Any:
    """Return a program that nobody runs, of which others are made; `text` has generated names."""
    import numexpr  # takes 6 ms, which a step without groups need not spend

    signature = [(f"a{place}", KINDS[dtype]) for place in range(inputs)]
    return numexpr.NumExpr(text, signature=signature, optimization="none", truediv=True)
