"""Gradient functions of tensor lists: the gradient of a list is a list of gradients.

If an element has no gradient, it is unset in the list of gradients and is read as zeros.

TF: tensorflow/python/ops/list_ops.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _element_shape(ops: GradientNodes, stacked: Endpoint) -> Endpoint:
    """Return the shape of `stacked` without the first dimension."""
    bounds = (ops.indices([1]), ops.indices([0]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(stacked), *bounds, end_mask=1)
    return output


def _push_back(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    element = node.inputs[1]
    shape, dtype = _shape_of(ops, element), type_of(element)
    return list(ops.TensorListPopBack(grads[0], shape, element_dtype=dtype))


def _shape_of(ops: GradientNodes, element: Endpoint) -> Endpoint:
    """Return the shape of `element`; the empty shape if `element` is itself a list."""
    output: Endpoint = (
        ops.indices(()) if type_of(element) is DataType.VARIANT else ops.Shape(element)
    )
    return output


def _pop_back(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.TensorListPushBack(grads[0], grads[1]), None]


def _stack(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.TensorListFromTensor(grads[0], _element_shape(ops, grads[0])), None]


def _from_tensor(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[0]
    dtype = type_of(x)
    return [ops.TensorListStack(grads[0], _element_shape(ops, x), element_dtype=dtype), None]


def _get_item(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    the_list, index, _ = node.inputs
    count = ops.TensorListLength(the_list)
    dtype = type_of(grads[0])
    empty = ops.TensorListReserve(_shape_of(ops, grads[0]), count, element_dtype=dtype)
    return [ops.TensorListSetItem(empty, index, grads[0]), None, None]


def _set_item(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    the_list, index, item = node.inputs
    dtype = type_of(item)
    found = ops.TensorListGetItem(grads[0], index, _shape_of(ops, item), element_dtype=dtype)
    kept = ops.TensorListSetItem(grads[0], index, ops.ZerosLike(item))
    if node.attr("resize_if_index_out_of_bounds"):
        kept = ops.TensorListResize(kept, ops.TensorListLength(the_list))
    return [kept, None, found]


def _gather(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    the_list, indices, _ = node.inputs
    count = ops.TensorListLength(the_list)
    shape = _element_shape(ops, grads[0])
    return [ops.TensorListScatterV2(grads[0], indices, shape, count), None, None]


def _scatter(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """TensorListScatter and TensorListScatterV2: gather the gradients of the scattered elements.

    TensorListScatterV2 has an additional input, the number of elements of the list.
    """
    x, indices, *others = node.inputs
    shape, dtype = _element_shape(ops, x), type_of(x)
    found = ops.TensorListGather(grads[0], indices, shape, element_dtype=dtype)
    return [found, None, *([None] * len(others))]


def _scatter_into(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    _, x, indices = node.inputs
    shape, dtype = _element_shape(ops, x), type_of(x)
    kept = ops.TensorListScatterIntoExistingList(grads[0], ops.ZerosLike(x), indices)
    return [kept, ops.TensorListGather(grads[0], indices, shape, element_dtype=dtype), None]


def _concat(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    lengths = (node, 1)
    parts = ops.TensorListSplit(grads[0], _any_rows(ops, grads[0]), lengths)
    return [parts, *([None] * (len(node.inputs) - 1))]


def _any_rows(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the shape of x with −1 (unknown) in place of the size of the first dimension."""
    output: Endpoint = ops.ConcatV2([ops.indices([-1]), _element_shape(ops, x)], ops.indices(0))
    return output


def _split(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, _, lengths = node.inputs
    attrs = {"element_dtype": type_of(x)}
    whole, _ = ops.TensorListConcatV2(grads[0], _any_rows(ops, x), lengths, **attrs)
    return [whole, None, None]


def _resize(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.TensorListResize(grads[0], ops.TensorListLength(node.inputs[0])), None]


LIST_GRADIENTS: dict[str, GradientFunction] = {
    "TensorListPushBack": _push_back,
    "TensorListPopBack": _pop_back,
    "TensorListStack": _stack,
    "TensorListFromTensor": _from_tensor,
    "TensorListGetItem": _get_item,
    "TensorListSetItem": _set_item,
    "TensorListGather": _gather,
    "TensorListScatter": _scatter,
    "TensorListScatterV2": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListConcatV2": _concat,
    "TensorListConcat": _concat,
    "TensorListSplit": _split,
    "TensorListResize": _resize,
}
