"""Shape functions of ops that reshape, slice, join and reduce.

A shape function takes an operation and returns the static shape of its output. If there are several
outputs, it returns the list of their shapes.

TF: tensorflow/core/ops/array_ops.cc, math_ops.cc, nn_ops.cc (SetShapeFn), common_shape_fns.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.client.framework.operation import Operation
from runtime.client.framework.static_values import MisfitError, Shape, known_shape, known_value
from runtime.framework.shapes import shape_text

ShapeFunction = Callable[[Operation], "Shape | list[Shape]"]


def _sizes(operation: Operation, index: int) -> Shape:
    return operation.inputs[index].shape.sizes


def _reshape(operation: Operation) -> Shape:
    old, new = _sizes(operation, 0), known_shape(operation.inputs[1])
    if new is None or new.count(-1) > 1 or known_value(operation.inputs[1]) is None:
        return new
    rest = math.prod(size for size in new if size >= 0)
    if old is None or min(old, default=0) < 0:
        return new
    total = math.prod(old)
    if -1 not in new:
        if rest != total:
            raise MisfitError(
                f"Cannot reshape a tensor with {total} elements to shape {shape_text(new)} "
                f"({rest} elements)"
            )
        return new
    if rest == 0 or total % rest:
        raise MisfitError(
            f"Dimension size must be evenly divisible by {rest} but is {total}"
            if rest
            else "reshape cannot infer the missing input size for an empty tensor unless all "
            "specified input sizes are non-zero"
        )
    return tuple(total // rest if size < 0 else size for size in new)


def _reduction(operation: Operation) -> Shape:
    sizes, axes = _sizes(operation, 0), known_value(operation.inputs[1])
    keeps = bool(operation.get_attr("keep_dims"))
    if sizes is None:
        return None
    if axes is None:
        return (-1,) * len(sizes) if keeps else None
    reduced = {_axis(int(axis), len(sizes)) for axis in np.atleast_1d(axes)}
    if keeps:
        return tuple(1 if index in reduced else size for index, size in enumerate(sizes))
    return tuple(size for index, size in enumerate(sizes) if index not in reduced)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise MisfitError(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
    return axis % rank


def _arg_extreme(operation: Operation) -> Shape:
    sizes, axis = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None:
        return None
    if axis is None:
        return (-1,) * (len(sizes) - 1)
    rank = len(sizes)
    if not -rank <= int(axis) < max(1, rank):
        raise MisfitError(
            f"Dimension ({int(axis)}) must be in the range [{-rank}, {rank}), where {rank} is "
            "the number of dimensions in the input."
        )
    place = int(axis) % max(1, rank)
    return sizes[:place] + sizes[place + 1 :]


def _concat(operation: Operation) -> Shape:
    *parts, last = operation.inputs
    axis = known_value(last)
    known = [part.shape.sizes for part in parts if part.shape.sizes is not None]
    if not known:
        return None
    rank = len(known[0])
    if axis is None or len(known) < len(parts):
        return (-1,) * rank
    for sizes in known:
        if len(sizes) != rank:
            raise MisfitError(f"Shape must be rank {rank} but is rank {len(sizes)}")
    place = int(axis) % rank if rank else 0
    rest = known[0][:place] + known[0][place + 1 :]
    for sizes in known[1:]:
        rest = _same(rest, sizes[:place] + sizes[place + 1 :])
    along = [sizes[place] for sizes in known]
    total = -1 if min(along) < 0 else sum(along)
    return (*rest[:place], total, *rest[place:])


def _same(one: tuple[int, ...], other: tuple[int, ...], where: str = "") -> tuple[int, ...]:
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        if a != b and min(a, b) >= 0:
            raise MisfitError(
                f"Dimension {index} in both shapes must be equal, but are {a} and {b}. Shapes "
                f"are {shape_text(one)} and {shape_text(other)}.{where}"
            )
    return tuple(max(a, b) for a, b in zip(one, other, strict=True))


def _pack(operation: Operation) -> Shape:
    known = [tensor.shape.sizes for tensor in operation.inputs]
    sizes = known[-1]
    for index, each in reversed([*enumerate(known[:-1])]):
        where = f"\n\tFrom merging shape {index} with other shapes."
        if each is not None and sizes is not None and len(each) != len(sizes):
            ranks = f"Shapes must be equal rank, but are {len(each)} and {len(sizes)}"
            raise MisfitError(ranks + where)
        if each is not None:
            sizes = each if sizes is None else _same(each, sizes, where)
    if sizes is None:
        return None
    place = operation.get_attr("axis") % (len(sizes) + 1)
    return (*sizes[:place], len(known), *sizes[place:])


def _unpack(operation: Operation) -> list[Shape]:
    sizes = _sizes(operation, 0)
    if sizes is None:
        return []
    place = operation.get_attr("axis") % len(sizes)
    return [sizes[:place] + sizes[place + 1 :]] * len(operation.outputs)


def _split(operation: Operation) -> list[Shape]:
    sizes, axis = _sizes(operation, 1), known_value(operation.inputs[0])
    if sizes is None or axis is None:
        return []
    place, count = int(axis) % len(sizes), len(operation.outputs)
    if sizes[place] >= 0 and sizes[place] % count:
        raise MisfitError(
            f"Dimension size must be evenly divisible by {count} but is {sizes[place]}\n\tNumber "
            "of ways to split should evenly divide the split dimension"
        )
    part = -1 if sizes[place] < 0 else sizes[place] // count
    return [(*sizes[:place], part, *sizes[place + 1 :])] * count


def _expand_dims(operation: Operation) -> Shape:
    sizes, axis = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None or axis is None:
        return None
    place = int(axis.reshape(()))
    if not -len(sizes) - 1 <= place <= len(sizes):
        raise MisfitError(f"dim {place} not in the interval [{-len(sizes) - 1}, {len(sizes)}].")
    place %= len(sizes) + 1
    return (*sizes[:place], 1, *sizes[place:])


def _squeeze(operation: Operation) -> Shape:
    sizes, axes = _sizes(operation, 0), operation.get_attr("squeeze_dims")
    if sizes is None:
        return None
    if not axes:
        return None if -1 in sizes else tuple(size for size in sizes if size != 1)
    places = {axis % len(sizes) for axis in axes}
    for place in places:
        if sizes[place] > 1:
            raise MisfitError(
                f"Can not squeeze dim[{place}], expected a dimension of 1, got {sizes[place]}"
            )
    return tuple(size for index, size in enumerate(sizes) if index not in places)


def _transpose(operation: Operation) -> Shape:
    sizes, order = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None:
        return None
    if order is None:
        return (-1,) * len(sizes)
    if len(order) != len(sizes):
        raise MisfitError(f"Dimension must be {len(sizes)} but is {len(order)}")
    if not all(-len(sizes) <= axis < len(sizes) for axis in order):
        raise MisfitError(f"perm dim {max(order)} is out of range of input rank {len(sizes)}")
    return tuple(sizes[axis] for axis in order)


def _gather(operation: Operation) -> Shape:
    sizes, indices = _sizes(operation, 0), _sizes(operation, 1)
    axis = known_value(operation.inputs[2])
    batch = operation.get_attr("batch_dims")
    if sizes is None or indices is None or axis is None or batch < 0:
        return None
    needed = -int(axis) if axis < 0 else int(axis) + 1
    if needed > len(sizes):
        raise MisfitError(f"Shape must be at least rank {needed} but is rank {len(sizes)}")
    place = int(axis) % len(sizes)
    return sizes[:place] + indices[batch:] + sizes[place + 1 :]


def _one_hot(operation: Operation) -> Shape:
    sizes, depth = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None:
        return None
    place = operation.get_attr("axis") % (len(sizes) + 1)
    return (*sizes[:place], -1 if depth is None else int(depth), *sizes[place:])


def _tile(operation: Operation) -> Shape:
    sizes, times = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None or times is None:
        return None if sizes is None else (-1,) * len(sizes)
    return tuple(-1 if a < 0 else a * int(b) for a, b in zip(sizes, times, strict=False))


def _pad(operation: Operation) -> Shape:
    sizes, added = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None or added is None:
        return None if sizes is None else (-1,) * len(sizes)
    extra = added.sum(axis=1).tolist()
    return tuple(-1 if a < 0 else a + b for a, b in zip(sizes, extra, strict=False))


def _slice(operation: Operation) -> Shape:
    whole, begin, sizes = _sizes(operation, 0), *map(known_value, operation.inputs[1:])
    if sizes is None or whole is None or begin is None:
        return None if whole is None else (-1,) * len(whole)
    return tuple(
        size if size >= 0 else -1 if total < 0 else total - start
        for total, start, size in zip(whole, begin.tolist(), sizes.tolist(), strict=False)
    )


def _strided_slice(operation: Operation) -> Shape:
    """Return the shape of a slice with constant bounds.

    It slices a broadcast array that takes no memory.
    """
    sizes = _sizes(operation, 0)
    bounds = [known_value(tensor) for tensor in operation.inputs[1:]]
    if sizes is None or any(bound is None for bound in bounds) or 0 in sizes:
        return None
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    begin_mask, end_mask, ellipsis, new_axis, shrink = map(operation.get_attr, masks)
    key: list[object] = []
    for index, (begin, end, stride) in enumerate(zip(*bounds, strict=True)):
        bit = 1 << index
        if ellipsis & bit:
            key.append(...)
        elif new_axis & bit:
            key.append(None)
        elif shrink & bit:
            key.append(int(begin))
        else:
            start = None if begin_mask & bit else int(begin)
            key.append(slice(start, None if end_mask & bit else int(end), int(stride)))
    return _shape_of_slice(sizes, tuple(key))


def _shape_of_slice(sizes: tuple[int, ...], key: tuple[object, ...]) -> Shape:
    """Return the shape of `array[key]`, for an array of shape `sizes`.

    The shape is computed twice, with different values for the unknown sizes. A size of the result
    that differs between the two depends on an unknown size and is unknown too.
    """
    found = []
    for stand_in in (_STAND_IN, _OTHER_STAND_IN):
        actual = [stand_in if size < 0 else size for size in sizes]
        nothing = np.broadcast_to(np.empty((), np.int8), actual)
        try:
            found.append(nothing[key].shape)  # type: ignore[index] # ints, slices, None, …
        except IndexError:
            _check_indices(sizes, key)
            return None
    return tuple(a if a == b else -1 for a, b in zip(*found, strict=True))


def _check_indices(sizes: tuple[int, ...], key: tuple[object, ...]) -> None:
    if sum(each is not None and each is not ... for each in key) > len(sizes):
        raise MisfitError(
            f"Index out of range using input dim {len(sizes)}; input has only {len(sizes)} dims"
        )
    if None not in key and ... not in key:
        for place, (index, size) in enumerate(zip(key, sizes, strict=False)):
            if isinstance(index, int) and not -size <= index < size:
                raise MisfitError(f"slice index {index} of dimension {place} out of bounds.")


# two values that stand for an unknown size; both are larger than any bound in practice
_STAND_IN, _OTHER_STAND_IN = 1_000_003, 1_000_033


def _batch_matmul(operation: Operation) -> Shape:
    left, right = _sizes(operation, 0), _sizes(operation, 1)
    if left is None or right is None or min(len(left), len(right)) < 2:
        return None
    adjoint_x, adjoint_y = operation.get_attr("adj_x"), operation.get_attr("adj_y")
    rows, inner_x = left[-2:][::-1] if adjoint_x else left[-2:]
    inner_y, columns = right[-2:][::-1] if adjoint_y else right[-2:]
    if inner_x != inner_y and min(inner_x, inner_y) >= 0:
        raise MisfitError(f"Dimensions must be equal, but are {inner_x} and {inner_y}")
    batch = left[:-2] if left[:-2] == right[:-2] or len(right) == 2 else None
    batch = right[:-2] if len(left) == 2 else batch
    return None if batch is None else (*batch, rows, columns)


def _select(operation: Operation) -> Shape:
    """Return the common shape of both values.

    The condition may have another shape: a vector with one element per row.
    """
    one, other = _sizes(operation, 1), _sizes(operation, 2)
    if one is None or other is None:
        return other if one is None else one
    if len(one) != len(other):
        raise MisfitError(f"Shapes must be equal rank, but are {len(one)} and {len(other)}")
    return _same(one, other)


def _range(operation: Operation) -> Shape:
    bounds = [known_value(tensor) for tensor in operation.inputs]
    if any(bound is None for bound in bounds):
        return (-1,)
    start, limit, delta = (float(bound) for bound in bounds if bound is not None)
    return (max(0, math.ceil((limit - start) / delta)),) if delta else (-1,)


def _shape_input(index: int) -> ShapeFunction:
    return lambda operation: known_shape(operation.inputs[index])


def _rank_of_input(operation: Operation) -> Shape:
    sizes = _sizes(operation, 0)
    return (-1,) if sizes is None else (len(sizes),)


def _row_losses(operation: Operation) -> list[Shape]:
    sizes = _sizes(operation, 0)
    return [] if sizes is None else [sizes[:1], sizes]


def _top_k(operation: Operation) -> list[Shape]:
    sizes, k = _sizes(operation, 0), known_value(operation.inputs[1])
    if sizes is None:
        return []
    return [(*sizes[:-1], -1 if k is None else int(k))] * 2


def _scalar(_: Operation) -> Shape:
    return ()


ARRAY_SHAPE_FUNCTIONS: dict[str, ShapeFunction] = {
    **dict.fromkeys(("Sum", "Mean", "Prod", "Max", "Min", "All", "Any"), _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_extreme),
    **dict.fromkeys(("Transpose", "ConjugateTranspose"), _transpose),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _pad),
    **dict.fromkeys(
        ("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "Fill"),
        _shape_input(0),
    ),
    **dict.fromkeys(
        ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), _row_losses
    ),
    **dict.fromkeys(("L2Loss", "QueueSizeV2"), _scalar),
    "BroadcastTo": _shape_input(1),
    "ConcatV2": _concat,
    "ExpandDims": _expand_dims,
    "GatherV2": _gather,
    "OneHot": _one_hot,
    "Pack": _pack,
    "Range": _range,
    "Reshape": _reshape,
    "Select": _select,
    "Shape": _rank_of_input,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "TopKV2": _top_k,
    "Unpack": _unpack,
}
