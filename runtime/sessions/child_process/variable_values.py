"""The values of variables that go along with a step to another process.

Most steps find that no variable of this process has changed since the process had them
(`variable_changes`): looking at the 262 of a MobileNetV2, one by one, takes most of a millisecond.
"""

from __future__ import annotations

import dataclasses
import weakref
from typing import NamedTuple

import numpy as np

from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Step
from runtime.foundation.priority_gate import gate
from runtime.framework.resource_manager import ResourceManager, variable_changes


class _Value(NamedTuple):
    """What a variable was. The generation may be older than the array, never newer."""

    array: np.ndarray
    generation: int


@dataclasses.dataclass(frozen=True, slots=True)
class ChangedVariables:
    """Variables of a step that another process does not have as they are."""

    indices: list[int]  # in the order of `PortableStep.variables`
    values: list[_Value]
    resources: ResourceManager  # that they are in
    newest: object  # of `variable_changes`, before they were read

    @property
    def arrays(self) -> list[np.ndarray]:
        """Their values."""
        return [value.array for value in self.values]


class SentVariables:
    """What another process has of a step's variables. No array is kept alive by it.

    For one thread at a time: the one that has the process.
    """

    def __init__(self, portable: PortableStep) -> None:
        self._keys = portable.keys
        self._values: list[tuple[weakref.ref[np.ndarray], int] | None] = [None] * len(self._keys)
        self._resources: weakref.ref[ResourceManager] | None = None
        self._newest: object = None

    def changed(self, step: Step) -> ChangedVariables | None:
        """The variables that have changed since `note_sent`; None when one has no value."""
        newest = variable_changes.newest  # before the values: a change meanwhile is seen next time
        resources = step.session.resources
        changed = ChangedVariables([], [], resources, newest)
        seen = None if self._resources is None else self._resources()
        if seen is resources and self._newest is newest:
            return changed
        for index, (container, kind, name, dtype) in enumerate(self._keys):
            gate.pass_through()
            variable = resources.find(container, kind, name)
            if variable is None or not variable.is_initialized or variable.dtype != dtype:
                return None
            generation = variable.generation  # before the value: an older one is sent again
            value = _Value(variable.read(), generation)
            if not self._has(index, value):
                changed.indices.append(index)
                changed.values.append(value)
        return changed

    def _has(self, index: int, value: _Value) -> bool:
        sent = self._values[index]
        return sent is not None and sent[0]() is value.array and sent[1] == value.generation

    def note_sent(self, changed: ChangedVariables) -> None:
        """The process has them now."""
        for index, value in zip(changed.indices, changed.values, strict=True):
            self._values[index] = weakref.ref(value.array), value.generation
        self._resources = weakref.ref(changed.resources)
        self._newest = changed.newest
