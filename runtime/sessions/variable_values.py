"""The values of variables that go along with a step to another process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Step
from runtime.foundation.priority_gate import gate


class VariableValue(NamedTuple):
    """What a variable was. An update that had begun by then ends in the same array: the
    generation tells."""

    array: np.ndarray
    generation: int


def read_variables(portable: PortableStep, step: Step) -> list[VariableValue] | None:
    """The values that go along with a step; None when one of them has none."""
    values = []
    find = step.session.resources.find
    for container, kind, name, dtype in portable.keys:
        gate.pass_through()
        variable = find(container, kind, name)
        if variable is None or not variable.is_initialized or variable.dtype != dtype:
            return None
        generation = variable.generation  # before the value: an older one is sent again
        values.append(VariableValue(variable.read(), generation))
    return values
