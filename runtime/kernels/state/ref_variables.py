"""Kernels of reference variables, the variables of TensorFlow 1.

The output of a Variable op is a reference. Here, a reference is the Variable object itself. If an
op's input is not declared as a reference, the executor passes the value of the variable.

TF: tensorflow/core/kernels/variable_ops.cc, assign_op.h, dense_update_ops.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import AlreadyExistsError, InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER
from runtime.framework.resources.variable import RefVariable, Variable
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box


class TemporaryVariable(RefVariable):
    """A variable that lives for one step, until DestroyTemporaryVariable deletes it."""

    type_name = "N10tensorflow19TemporaryVariableOp6TmpVarE"
    __slots__ = ("maker",)

    def __init__(self, dtype: DataType, name: str, maker: str) -> None:
        super().__init__(dtype, name)
        # a node name; only this node may create the variable again, for example in a loop
        self.maker = maker


def variable(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    dtype: DataType,
    shape: tuple[int, ...] | None,
) -> Variable:
    """Variable, VariableV2: return a reference to the node's variable, at first uninitialized."""
    name = shared_name or context.node.name
    found = context.resources.look_up_or_create(
        container or DEFAULT_CONTAINER,
        RefVariable,
        name,
        lambda: RefVariable(dtype, context.node.name),
    )
    if found.dtype != dtype:
        raise InternalError(
            f"Output 0 of type {found.dtype.tf_name}_ref does not match declared output type "
            f"{dtype.tf_name}_ref for node {{{{node {context.node.name}}}}}"
        )
    if shape is not None and -1 not in shape:
        found.declared_shape = shape
    return found


def temporary_variable(
    context: OpKernelContext, *, var_name: str, dtype: DataType, shape: tuple[int, ...] | None
) -> Variable:
    """TemporaryVariable: return a reference to a variable of this step, filled with zeros.

    Raises AlreadyExistsError if another node has created a variable of the same name.
    """
    name, container = var_name or context.node.name, _step_container(context)
    made = TemporaryVariable(dtype, name, context.node.name)
    if shape is not None and all(size >= 0 for size in shape):
        check_allocation(shape, dtype.numpy)
        made.assign(np.zeros(shape, dtype.numpy))
    resources = context.step.resources
    found = resources.look_up_or_create(container, TemporaryVariable, name, lambda: made)
    if found.maker != made.maker:
        raise AlreadyExistsError(f"Resource {container}/{name}/{TemporaryVariable.type_name}")
    if found is not made:
        resources.put(container, name, made)
    return made


def destroy_temporary_variable(
    context: OpKernelContext, ref: Variable, *, var_name: str
) -> np.ndarray:
    """DestroyTemporaryVariable: delete the variable and return its last value."""
    value = ref.read()
    context.step.resources.delete(
        _step_container(context), TemporaryVariable.type_name, var_name or ref.name
    )
    return value


def _step_container(context: OpKernelContext) -> str:
    return f"__per_step_{context.step.step_id}"


def assign(ref: RefVariable, value: TensorValue, *, validate_shape: bool) -> Variable:
    """Assign: replace the variable's value.

    If `validate_shape` is true, the shape must not change.
    """
    array = box(value)

    def check(shape: tuple[int, ...] | None) -> None:
        expected = ref.declared_shape if shape is None else shape
        if expected is not None and expected != array.shape:
            raise InvalidArgumentError(
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {shape_text(expected)} rhs shape= {shape_text(array.shape)}"
            )

    ref.assign(array, check if validate_shape else None)
    return ref


def _assign_update(function: np.ufunc) -> Callable[..., Variable]:
    def kernel(ref: Variable, value: np.ndarray) -> Variable:
        def change(array: np.ndarray) -> None:
            if array.shape != np.shape(value):
                raise InvalidArgumentError("Parameters and update must be the same size")
            function(array, value, out=array)

        ref.update(change)
        return ref

    return kernel


def is_variable_initialized(ref: Variable) -> np.bool_:
    """IsVariableInitialized: return whether a value was ever assigned to the variable."""
    return np.bool_(ref.is_initialized)


KERNELS = (
    KernelDef("Assign", assign),
    KernelDef("AssignAdd", _assign_update(np.add)),
    KernelDef("AssignSub", _assign_update(np.subtract)),
    KernelDef("DestroyTemporaryVariable", destroy_temporary_variable),
    KernelDef("IsVariableInitialized", is_variable_initialized),
    KernelDef("TemporaryVariable", temporary_variable),
    KernelDef("Variable", variable),
    KernelDef("VariableV2", variable),
)
