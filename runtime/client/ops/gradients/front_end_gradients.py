"""Gradient functions that only graphs under construction have: variables, lookups, losses.

The gradient of a lookup is IndexedSlices, so that training an embedding updates only the rows of a
batch. Cross-entropy ops have a second output, the gradient of the loss (here called `slope`), which
is differentiable too and gives second derivatives.

TF: tensorflow/python/ops/array_grad.py, resource_variable_ops.py, nn_grad.py
"""

from __future__ import annotations

from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.static_values import known_value
from runtime.client.ops import op_function
from runtime.client.ops.array_ops import concat, reshape
from runtime.client.ops.construction import constant
from runtime.client.ops.gradients.backpropagation import Gradient
from runtime.client.ops.gradients.gradient_operations import GraphNodes, endpoint, for_tensors
from runtime.client.ops.gradients.gradient_registry import Derivation
from runtime.client.ops.gradients.not_differentiable import NOT_DIFFERENTIABLE
from runtime.client.ops.indexed_slices import IndexedSlices
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.gradient_functions import GRADIENT_FUNCTIONS
from runtime.graph.gradients.nn_gradients import cross_entropy_slope


def _unchanged(_: Operation, grad: Gradient) -> Gradient:
    return grad


def _rows(indices: Tensor, grad: Tensor, sizes: Tensor) -> IndexedSlices:
    """Return the gradient of a lookup as IndexedSlices; `sizes` is the shape of `params`."""
    flat = reshape(indices, [-1])
    values = reshape(grad, concat([op_function("Shape")(flat), sizes[1:]], 0))
    return IndexedSlices(values, flat, sizes)


def _gather(operation: Operation, grad: Tensor) -> list[Gradient | None]:
    params, indices = operation.inputs
    return [_rows(indices, grad, _sizes(params)), None]


_DENSE_GATHER = for_tensors(GRADIENT_FUNCTIONS["GatherV2"])


def _gather_v2(operation: Operation, grad: Tensor) -> list[Gradient | None]:
    """Return the gradient of GatherV2: IndexedSlices for a lookup along axis 0, else a tensor."""
    params, indices, axis = operation.inputs
    along = known_value(axis)
    if along is None or along != 0 or operation.get_attr("batch_dims"):
        return list(_DENSE_GATHER(operation, grad))
    return [_rows(indices, grad, _sizes(params)), None, None]


def _resource_gather(operation: Operation, grad: Tensor) -> list[Gradient | None]:
    """Return the gradient of ResourceGather, as IndexedSlices.

    As in TensorFlow, `batch_dims` is ignored: `gather` of a variable never sets it.
    """
    handle, indices = operation.inputs
    sizes = op_function("VariableShape")(handle, out_type=DataType.INT32)
    return [_rows(indices, grad, sizes), None]


def _resource_gather_nd(operation: Operation, grad: Tensor) -> list[Gradient | None]:
    """Return the gradient of ResourceGatherNd: IndexedSlices if the indices are rows `[n, 1]`."""
    handle, indices = operation.inputs
    sizes = op_function("VariableShape")(handle, out_type=indices.dtype)
    if indices.shape.rank == 2 and indices.shape.as_list()[1] == 1:
        return [IndexedSlices(grad, reshape(indices, [-1]), sizes), None]
    return [op_function("ScatterNd")(indices, grad, sizes), None]


def _first_unchanged(operation: Operation, grad: Tensor) -> list[Gradient | None]:
    return [grad, *([None] * (len(operation.inputs) - 1))]


def _prevented(operation: Operation, _: Tensor) -> list[Gradient | None]:
    message = operation.get_attr("message")
    raise LookupError(f"Gradient explicitly disabled. Reason: {message!r}")


def _not_implemented(operation: Operation, *_: Tensor) -> list[Gradient | None]:
    raise NotImplementedError(f"Gradient for {operation.type} is not implemented.")


def _sizes(tensor: Tensor) -> Tensor:
    if tensor.shape.is_fully_defined():
        return constant(tensor.shape.as_list(), DataType.INT32)
    sizes: Tensor = op_function("Shape")(tensor)
    return sizes


def _cross_entropy(
    operation: Operation, of_loss: Tensor | None, of_slope: Tensor | None
) -> list[Gradient | None]:
    first = for_tensors(GRADIENT_FUNCTIONS[operation.type])
    found: list[Gradient | None] = first(operation, of_loss, of_slope)
    if of_slope is not None:
        ops = GraphNodes(graph_of((), lambda: operation.graph))
        second = cross_entropy_slope(ops, operation.node, endpoint(of_slope))
        found[0] = op_function("AddV2")(found[0], ops.tensor(second))
    return found


FRONT_END_GRADIENTS: dict[str, Derivation] = {
    "ReadVariableOp": Derivation(_unchanged, takes_slices=True),
    "Identity": Derivation(_unchanged, takes_slices=True),
    "Gather": Derivation(_gather),
    "GatherV2": Derivation(_gather_v2),
    "ResourceGather": Derivation(_resource_gather),
    "ResourceGatherNd": Derivation(_resource_gather_nd),
    "Print": Derivation(_first_unchanged),
    "RefIdentity": Derivation(_unchanged, takes_slices=True),
    "DebugGradientIdentity": Derivation(_unchanged, takes_slices=True),
    "DebugGradientRefIdentity": Derivation(_unchanged, takes_slices=True),
    "DebugIdentityV2": Derivation(_unchanged, takes_slices=True),
    "PreventGradient": Derivation(_prevented),
    **{
        op: Derivation(_not_implemented)
        for op in (
            "SparseDenseCwiseAdd",
            "SparseSparseMaximum",
            "SparseSparseMinimum",
            "SparseMatrixMul",
        )
    },
    "SoftmaxCrossEntropyWithLogits": Derivation(_cross_entropy, fills_zeros=False),
    "SparseSoftmaxCrossEntropyWithLogits": Derivation(_cross_entropy, fills_zeros=False),
    # Differentiation ends at variables: they are state, not results of other operations.
    "VarHandleOp": Derivation(None),
    "VariableV2": Derivation(None),
    "Variable": Derivation(None),
    "PlaceholderWithDefault": Derivation(_unchanged),
    **{op: Derivation(None) for op in NOT_DIFFERENTIABLE},
}
