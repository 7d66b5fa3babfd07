"""`gradients` and `hessians`, which add operations that compute derivatives of tensors.

TF: tensorflow/python/ops/gradients_impl.py, gradients_util.py, unconnected_gradients.py
"""

from __future__ import annotations

import enum
from typing import Any

from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import OperationGraph, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.gradients.backpropagation import (
    Gradient,
    GradientOptions,
    backpropagate,
    gradient_call,
    is_trainable,
    zeros_of,
)
from runtime.client.ops.gradients.branch_gradients import BRANCH_GRADIENTS
from runtime.client.ops.gradients.call_gradients import CALL_GRADIENTS
from runtime.client.ops.gradients.front_end_gradients import FRONT_END_GRADIENTS
from runtime.client.ops.gradients.gradient_registry import replace_derivations
from runtime.client.ops.gradients.loop_gradients import LOOP_GRADIENTS
from runtime.client.ops.gradients.tensor_array_gradients import TENSOR_ARRAY_GRADIENTS
from runtime.client.ops.gradients.variant_gradients import VARIANT_GRADIENTS
from runtime.client.ops.indexed_slices import IndexedSlices
from runtime.client.ops.variables import Variable

# These replace functions of `runtime.graph` that support neither variables nor function calls.
replace_derivations(
    {
        **FRONT_END_GRADIENTS,
        **CALL_GRADIENTS,
        **BRANCH_GRADIENTS,
        **TENSOR_ARRAY_GRADIENTS,
        **VARIANT_GRADIENTS,
        **LOOP_GRADIENTS,
    }
)


class AggregationMethod:
    """How several gradients of one tensor are added; here every method has the same effect."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """What `gradients` returns for a tensor on which no result depends."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Structure,
    xs: Structure,
    grad_ys: Structure = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Structure | None = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Gradient | None]:
    """Return the gradients of the sum of all `ys` with respect to each of `xs`.

    A gradient is a tensor or IndexedSlices. If no y depends on an x, it is None, or zeros if
    `unconnected_gradients` is ZERO. `grad_ys` are the gradients of the ys; if one is None, ones are
    used. The tensors of `stop_gradients` are treated as constants. Raises LookupError if an
    operation between xs and ys has no gradient function, ValueError if an argument is invalid,
    TypeError if a complex y has no gradient in `grad_ys` or a gradient has another type than its y.
    """
    results, sources = _as_list(ys), _as_list(xs)
    starts = [None] * len(results) if grad_ys is None else _as_list(grad_ys)
    if len(starts) != len(results):
        raise ValueError(f"Passed {len(starts)} grad_ys for {len(results)} ys")
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method}.")
    unconnected = _unconnected(unconnected_gradients)
    graph = graph_of([*results, *sources, *starts], get_default_graph)
    with graph.as_default(), graph.name_scope(name), gradient_call():
        ends = [_result(graph, each) for each in results]
        origins = [_source(graph, each) for each in sources]
        stops = frozenset(_source(graph, each) for each in _as_list(stop_gradients))
        begun = [_start(y, given) for y, given in zip(ends, starts, strict=True)]
        options = GradientOptions(colocate_gradients_with_ops, bool(gate_gradients), stops)
        found = backpropagate(ends, origins, begun, options)
        if unconnected is UnconnectedGradients.ZERO:
            return [zeros_of(x) if dx is None else dx for x, dx in zip(origins, found, strict=True)]
        return found


def _as_list(given: Structure) -> list[Structure]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _unconnected(given: UnconnectedGradients | str) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(given)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {given!r}; expected 'none' or 'zero'"
        ) from None


def _result(graph: OperationGraph, y: TensorLike) -> Tensor:
    return graph.capture(convert_to_tensor(y, name="y"))


def _source(graph: OperationGraph, x: TensorLike) -> Tensor:
    """Return the tensor to differentiate by; for a variable, that is its handle or reference."""
    if isinstance(x, Variable):
        return graph.capture(x.handle)
    if isinstance(x, IndexedSlices):
        x = x.values
    return graph.capture(convert_to_tensor(x, name="x"))


def _start(y: Tensor, given: TensorLike) -> Gradient | None:
    """Return the initial gradient of a result: `given` if it is not None, else ones.

    Returns None if the result can have no gradient. Raises TypeError if `given` has another type
    than `y`, or if `y` is complex and `given` is None.
    """
    if given is None:
        if not is_trainable(y):
            return None
        if y.dtype.numpy.kind == "c":
            raise TypeError(
                f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = "
                f"{y.dtype.name_on_wire})"
            )
        ones: Tensor = op_function("OnesLike")(y, name="grad_ys")
        return ones
    if isinstance(given, IndexedSlices):
        return given
    gradient = convert_to_tensor(given, None if isinstance(given, Tensor) else y.dtype, "grad_y")
    if gradient.dtype is not y.dtype:
        raise TypeError(
            f"Gradient type {gradient.dtype.name_on_wire} given for tensor {y} with type "
            f"{y.dtype.name_on_wire} must be that type"
        )
    return gradient


def hessians(
    ys: Structure,
    xs: Structure,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """Return the second derivatives of the sum of all `ys`, for each x of `xs`.

    Each is `[*shape of x, *shape of x]`. Operations are added for every element of x. Raises
    ValueError if no y depends on an x, or if the static shape of an x is not fully known.
    """
    keywords = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    sources = _as_list(xs)
    with get_default_graph().name_scope(name):
        slopes = gradients(ys, sources, **keywords)  # type: ignore[arg-type] # keyword arguments of several types
        return [_hessian(slope, x, keywords) for slope, x in zip(slopes, sources, strict=True)]


def _hessian(slope: Gradient | None, x: TensorLike, keywords: dict[str, Any]) -> Tensor:
    """Stack the gradients of the elements of `slope` to `[*shape of x, *shape of x]`."""
    if slope is None:
        raise ValueError(f"hessians: the ys do not depend on {x}")
    shape = convert_to_tensor(x).shape
    count = shape.num_elements()
    if count is None:
        raise ValueError(f"hessians: the shape of {x} has to be known, got {shape}")
    flat = op_function("Reshape")(convert_to_tensor(slope), [-1])
    options: dict[str, Any] = {**keywords, "unconnected_gradients": UnconnectedGradients.ZERO}
    rows = [gradients(flat[index], x, **options)[0] for index in range(count)]
    sizes = shape.as_list()
    whole: Tensor = op_function("Reshape")(op_function("Pack")(rows), [*sizes, *sizes])
    return whole
