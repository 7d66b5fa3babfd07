"""The values of variables that go along with a step to another process."""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Step
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.variable import RefVariable, Variable
from runtime.graph.node import Node
from runtime.kernels.resource_variables import find_variable, var_handle


@dataclasses.dataclass(frozen=True, slots=True)
class VariableValue:
    """What a variable was. An update that had begun by then ends in the same array: the
    generation tells."""

    array: np.ndarray
    generation: int


def read_variables(portable: PortableStep, step: Step) -> list[VariableValue] | None:
    """The values that go along with a step; None when one of them has none."""
    values = []
    for node in portable.variables:
        variable = _variable(node, step)
        if variable is None or not variable.is_initialized or variable.dtype != node.attr("dtype"):
            return None
        generation = variable.generation  # before the value: an older one is sent again
        values.append(VariableValue(variable.read(), generation))
    return values


def _variable(node: Node, step: Step) -> Variable | None:
    context = OpKernelContext(node, step)
    if node.op == "VarHandleOp":
        attrs = {name: node.attr(name) for name in ("container", "shared_name", "dtype", "shape")}
        return find_variable(context, var_handle(context, **attrs))
    name = node.attr("shared_name") or node.name
    return context.resources.find(node.attr("container"), RefVariable, name)
