"""Kernels of resource variables: handles, reads and assigns.

A handle names a Variable, which the first assign creates. A read returns the array that the
variable holds, without a copy; `runtime.framework.resources.variable` says when that array may be
written.

TF: tensorflow/core/kernels/resource_variable_ops.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle
from runtime.framework.resources.variable import Variable
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox

# The `shared_name` that requests a new variable at every run of the op (TF: kAnonymousName).
ANONYMOUS_NAME = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def var_handle(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    dtype: DataType,
    shape: tuple[int, ...] | None,
) -> ResourceHandle:
    """VarHandleOp: return the handle of a variable.

    Every run returns the same handle, unless `shared_name` requests an anonymous variable.
    """
    if shared_name == ANONYMOUS_NAME:
        made = Variable(dtype)
        return ResourceHandle(
            "Anonymous", "", Variable.type_name, dtype=dtype, value_shape=shape, resource=made
        )
    return context.kernel_state(
        lambda: ResourceHandle(
            container or DEFAULT_CONTAINER,
            shared_name,
            Variable.type_name,
            dtype=dtype,
            value_shape=shape,
        )
    )


def as_handle(value: TensorValue) -> ResourceHandle:
    """Return the first handle of a resource tensor.

    Raises InvalidArgumentError if `value` is not a tensor of handles.
    """
    if isinstance(value, ResourceHandle):
        return value
    if isinstance(value, np.ndarray) and value.size and value.dtype == object:
        item = value.item(0)
        if isinstance(item, ResourceHandle):
            return item
    raise InvalidArgumentError("Expected the handle of a resource")


def find_variable(context: OpKernelContext, handle: ResourceHandle) -> Variable | None:
    """Return the variable that `handle` refers to, or None if it does not exist."""
    handle = as_handle(handle)
    bound = handle.resource
    if bound is not None:
        return bound if isinstance(bound, Variable) else None
    return context.resources.find(handle.container, Variable, handle.name)


def look_up_variable(context: OpKernelContext, handle: ResourceHandle) -> Variable:
    """Return the variable that `handle` refers to.

    Raises NotFoundError if no value was assigned to the variable yet.
    """
    variable = find_variable(context, handle)
    if variable is None:
        handle = as_handle(handle)
        raise NotFoundError(
            context.resources.missing_message(handle.container, Variable.type_name, handle.name)
        )
    return variable


def read_variable(
    context: OpKernelContext, handle: ResourceHandle, *, dtype: DataType
) -> TensorValue:
    """ReadVariableOp: return the variable's value.

    The result shares memory with the variable until the next write.
    """
    variable = find_variable(context, handle)
    if variable is None:
        raise _uninitialized(context, as_handle(handle))
    if variable.dtype != dtype:
        raise InvalidArgumentError(
            "Trying to read variable with wrong dtype. "
            f"Expected {dtype.tf_name} got {variable.dtype.tf_name}"
        )
    value = variable.read()
    return unbox(value) if value.dtype.hasobject else value


def _uninitialized(context: OpKernelContext, handle: ResourceHandle) -> FailedPreconditionError:
    missing = context.resources.missing_message(handle.container, Variable.type_name, handle.name)
    return FailedPreconditionError(
        f"Could not find variable {handle.name}. This could mean that the variable has been "
        "deleted. In TF1, it can also mean the variable is uninitialized. Debug info: "
        f"container={handle.container}, status error message={missing}"
    )


def assign_variable(
    context: OpKernelContext,
    handle: ResourceHandle,
    value: TensorValue,
    *,
    dtype: DataType,
    validate_shape: bool,
) -> None:
    """AssignVariableOp: replace the variable's value; the first assign creates the variable."""
    variable = find_variable(context, handle)
    if variable is None:
        variable = _create(context, as_handle(handle), dtype)
    if variable.dtype != dtype:
        raise InvalidArgumentError(
            "Trying to assign variable with wrong dtype. "
            f"Expected {variable.dtype.tf_name} got {dtype.tf_name}"
        )
    array = box(value)

    def check(shape: tuple[int, ...] | None) -> None:
        if shape is not None and shape != array.shape:
            raise InvalidArgumentError(
                "Trying to assign to variable with tensor with wrong shape. "
                f"Expected {shape_text(shape)} got {shape_text(array.shape)}"
            )

    variable.assign(array, check if validate_shape else None)


def _create(context: OpKernelContext, handle: ResourceHandle, dtype: DataType) -> Variable:
    return context.resources.look_up_or_create(
        handle.container, Variable, handle.name, lambda: Variable(dtype, handle.name)
    )


def _assign_update(function: np.ufunc) -> Callable[..., None]:
    def kernel(
        context: OpKernelContext, handle: ResourceHandle, value: np.ndarray, *, dtype: DataType
    ) -> None:
        variable = look_up_variable(context, handle)

        def change(array: np.ndarray) -> None:
            if array.shape != np.shape(value):
                raise InvalidArgumentError(
                    f"Cannot update variable with shape {shape_text(array.shape)} using a Tensor "
                    f"with shape {shape_text(np.shape(value))}, shapes must be equal."
                )
            if variable.dtype != dtype:
                raise InvalidArgumentError("DType of variable handle and value does not match.")
            function(array, value, out=array)

        variable.update(change)

    return kernel


def var_is_initialized(context: OpKernelContext, handle: ResourceHandle) -> np.bool_:
    """VarIsInitializedOp: return whether `handle` refers to a variable that has a value."""
    variable = find_variable(context, handle)
    return np.bool_(variable is not None and variable.is_initialized)


def destroy_resource(
    context: OpKernelContext, handle: ResourceHandle, *, ignore_lookup_error: bool
) -> None:
    """DestroyResourceOp: remove a named resource.

    An anonymous resource is not removed; it lives as long as its handles.
    """
    handle = as_handle(handle)
    try:
        context.resources.delete(handle.container, handle.type_name, handle.name)
    except NotFoundError:
        if not ignore_lookup_error and handle.resource is None:
            missing = context.resources.missing_message(handle.container, "<unknown>", handle.name)
            raise NotFoundError(missing) from None


def variable_shape(
    context: OpKernelContext, handle: ResourceHandle, *, out_type: DataType
) -> np.ndarray:
    """VariableShape: return the shape of the variable's value, as a vector [rank]."""
    shape = look_up_variable(context, handle).shape
    return np.array(shape or (), out_type.numpy)


def disable_copy_on_read(handle: ResourceHandle) -> None:
    """DisableCopyOnRead: do nothing, because reads do not copy."""


KERNELS = (
    KernelDef("AssignAddVariableOp", _assign_update(np.add)),
    KernelDef("AssignSubVariableOp", _assign_update(np.subtract)),
    KernelDef("AssignVariableOp", assign_variable),
    KernelDef("DestroyResourceOp", destroy_resource),
    KernelDef("DisableCopyOnRead", disable_copy_on_read),
    KernelDef("ReadVariableOp", read_variable),
    KernelDef("VarHandleOp", var_handle),
    KernelDef("VarIsInitializedOp", var_is_initialized),
    KernelDef("VariableShape", variable_shape),
)
