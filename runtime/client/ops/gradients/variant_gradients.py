"""Gradient functions of values of type VARIANT: maps of tensors, optionals, composite tensors.

TF: tensorflow/python/ops/map_ops.py, optional_grad.py, composite_tensor_ops.py
"""

from __future__ import annotations

from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.control_flow import cond
from runtime.client.ops.gradients.gradient_registry import Derivation


def _look_up(operation: Operation, grad: Tensor) -> list[Tensor | None]:
    """TensorMapLookup: a map with nothing but the gradient of the value."""
    empty = op_function("EmptyTensorMap")()
    return [op_function("TensorMapInsert")(empty, operation.inputs[1], grad), None]


def _insert(operation: Operation, grad: Tensor) -> list[Tensor | None]:
    """TensorMapInsert: the value's gradient is taken out of the map, if it is there."""
    _, key, value = operation.inputs
    dtype = value.dtype

    def taken() -> list[Tensor]:
        found = op_function("TensorMapLookup")(grad, key, value_dtype=dtype)
        found.set_shape(value.shape)
        return [found, op_function("TensorMapErase")(grad, key, value_dtype=dtype)]

    def nothing() -> list[Tensor]:
        return [op_function("ZerosLike")(value), op_function("Identity")(grad)]

    of_value, of_map = cond(op_function("TensorMapHasKey")(grad, key), taken, nothing)
    return [of_map, None, of_value]


def _erase(_: Operation, grad: Tensor) -> list[Tensor | None]:
    return [grad, None]


def _optional_from(operation: Operation, grad: Tensor) -> list[Tensor]:
    values = operation.inputs
    found = op_function("OptionalGetValue")(
        grad,
        output_types=[each.dtype for each in values],
        output_shapes=[each.shape for each in values],
    )
    return list(found) if isinstance(found, list | tuple) else [found]


def _value_of_optional(_: Operation, *grads: Tensor) -> list[Tensor]:
    return [op_function("OptionalFromValue")(list(grads))]


def _composite_from(operation: Operation, grad: Tensor) -> list[Tensor]:
    names = ("metadata", "Tcomponents")
    attrs = {name: operation.node.attr(name) for name in names}
    found = op_function("CompositeTensorVariantToComponents")(grad, **attrs)
    return list(found) if isinstance(found, list | tuple) else [found]


def _components_of(operation: Operation, *grads: Tensor | None) -> list[Tensor]:
    """Encode the gradients; a component without a gradient stays as it is."""
    pairs = zip(operation.outputs, grads, strict=True)
    components = [output if grad is None else grad for output, grad in pairs]
    metadata = operation.node.attr("metadata")
    op = op_function("CompositeTensorVariantFromComponents")
    return [op(components, metadata=metadata)]


VARIANT_GRADIENTS: dict[str, Derivation] = {
    "TensorMapLookup": Derivation(_look_up),
    "TensorMapInsert": Derivation(_insert),
    "TensorMapErase": Derivation(_erase),
    "OptionalFromValue": Derivation(_optional_from),
    "OptionalGetValue": Derivation(_value_of_optional),
    "CompositeTensorVariantFromComponents": Derivation(_composite_from),
    "CompositeTensorVariantToComponents": Derivation(_components_of, fills_zeros=False),
}
