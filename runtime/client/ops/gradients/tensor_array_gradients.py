"""Gradient functions of TensorArrays of versions 2 and 3.

The gradient of an array is an array that the op TensorArrayGrad creates beside it; it adds what is
written to one element several times. The flows, which are scalars without meaning, order reads
after writes. Each call of `gradients` has an array of its own, known by the attribute `source`.

TensorFlow 2.21 registers these functions for version 2 too, but cannot add its ops to a graph.

TF: tensorflow/python/ops/tensor_array_grad.py
"""

from __future__ import annotations

from runtime.client.framework.argument_types import Structure
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import control_dependencies
from runtime.client.ops.gradients.backpropagation import gradient_source
from runtime.client.ops.gradients.gradient_registry import Derivation

_Gradients = list[Tensor | None]


def _sibling(operation: Operation, kind: str, *args: Tensor, **attrs: object) -> Structure:
    """Call the op `kind` of TensorArrays in the version of `operation`."""
    return op_function(f"TensorArray{kind}{operation.type[-2:]}")(*args, **attrs)


def _array(operation: Operation, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return (handle, flow) of the gradient of the array that `operation` uses."""
    created = _sibling(operation, "Grad", operation.inputs[0], flow, source=gradient_source())
    handle = created if isinstance(created, Tensor) else created[0]
    with control_dependencies([handle]):
        return handle, op_function("Identity")(flow)


def _array_after(operation: Operation, flow_grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return `_array` for an operation that writes, once the operation has run."""
    with control_dependencies([operation.outputs[0]]):
        flow = op_function("Identity")(flow_grad)
    return _array(operation, flow)


def _read(operation: Operation, grad: Tensor) -> _Gradients:
    _, index, flow = operation.inputs
    handle, flow = _array(operation, flow)
    return [None, None, _sibling(operation, "Write", handle, index, grad, flow)]


def _gather(operation: Operation, grad: Tensor) -> _Gradients:
    _, indices, flow = operation.inputs
    handle, flow = _array(operation, flow)
    return [None, None, _sibling(operation, "Scatter", handle, indices, grad, flow)]


def _concat(operation: Operation, grad: Tensor, _: Tensor | None) -> _Gradients:
    handle, flow = _array(operation, operation.inputs[1])
    return [None, _sibling(operation, "Split", handle, grad, operation.outputs[1], flow)]


def _write(operation: Operation, flow_grad: Tensor) -> _Gradients:
    handle, flow = _array_after(operation, flow_grad)
    _, index, value, _ = operation.inputs
    return [None, None, _sibling(operation, "Read", handle, index, flow, dtype=value.dtype), flow]


def _scatter(operation: Operation, flow_grad: Tensor) -> _Gradients:
    handle, flow = _array_after(operation, flow_grad)
    _, indices, value, _ = operation.inputs
    found = _sibling(operation, "Gather", handle, indices, flow, dtype=value.dtype)
    return [None, None, found, flow]


def _split(operation: Operation, flow_grad: Tensor) -> _Gradients:
    handle, flow = _array_after(operation, flow_grad)
    found, _ = _sibling(operation, "Concat", handle, flow, dtype=operation.inputs[1].dtype)
    return [None, found, None, flow]


TENSOR_ARRAY_GRADIENTS: dict[str, Derivation] = {
    f"TensorArray{kind}V{version}": Derivation(function)
    for version in (2, 3)
    for kind, function in (
        ("Read", _read),
        ("Gather", _gather),
        ("Concat", _concat),
        ("Write", _write),
        ("Scatter", _scatter),
        ("Split", _split),
    )
}
