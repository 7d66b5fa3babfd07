"""DerivedValues: what one step computes from variables and constants only.

`runtime.executors.derived_executor` computes the values once for each state of the variables, and
says when they are computed anew. Here are the values themselves, and which of them the sessions of
one resource manager use at present.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import NamedTuple, TypeAlias

import numpy as np

from runtime.framework.tensor_value import TensorValue


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DerivedValues:
    """The derived values of one step, and the state of the variables that they are derived from.

    Guarantees: immutable. Two runs that use the same object (compared with `is`) use the same
    arrays, whose elements never change. Computed arrays are read-only. A value that is the array of
    a variable is that array itself.
    """

    values: tuple[TensorValue, ...]  # in the order of `VariableOnlyPart.outputs`
    arrays: tuple[np.ndarray, ...]  # the arrays of the variables
    generations: tuple[int, ...]  # the variables' generations; may be older than `arrays`
    bytes_held: int  # bytes of `values` without the arrays of the variables


class DerivedValuesUse(NamedTuple):
    """The derived values that the runs of one step use, and since which change of variables."""

    newest: object  # `variable_changes.newest` before the variables were read or compared
    values: DerivedValues
    is_own: bool  # whether the values were computed for this resource manager


# The uses of one resource manager, by the step; a key is a weak reference to its DerivedExecutor.
# Threads share it without a lock, because every operation on it is atomic.
DerivedValuesInUse: TypeAlias = dict[Hashable, DerivedValuesUse]


def drop_derived(derived: DerivedValuesInUse, generation: int) -> None:
    """Remove the uses whose values depend on a variable that had `generation`.

    A variable calls it after each write. Otherwise old arrays, of which the derived values are a
    part, would stay in memory until the step runs again.
    """
    for step, use in list(derived.items()):
        if generation in use.values.generations:
            derived.pop(step, None)
