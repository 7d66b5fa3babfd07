"""Concatenating, stacking and splitting tensors along a dimension.

TF: tensorflow/core/kernels/{concat_op,pack_op,unpack_op,split_op,split_v_op}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def concat_v2(*values_and_axis: TensorValue) -> np.ndarray:
    """ConcatV2: concatenate all inputs except the last, which is the dimension to join along."""
    arrays = [box(value) for value in values_and_axis]
    return _concatenate(arrays, arrays.pop(), "axis")


def concat(axis: np.ndarray, *values: TensorValue) -> np.ndarray:
    """Concat: concatenate `values` along dimension `axis`, as ConcatV2 does."""
    return _concatenate([box(value) for value in values], axis, "concat_dim")


def _concatenate(arrays: list[np.ndarray], axis: np.ndarray, axis_name: str) -> np.ndarray:
    if axis.size != 1 or axis.ndim > 1:
        raise InvalidArgumentError(
            f"{axis_name} tensor should be a scalar integer, but got shape {shape_text(axis.shape)}"
        )
    first = arrays[0].shape
    ranks = len(first)
    if not all(array.ndim for array in arrays):
        raise InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    dim = int(axis.item())
    if not -ranks <= dim < ranks:
        raise InvalidArgumentError(
            "ConcatOp : Expected concatenating dimensions in the range "
            f"[{-ranks}, {ranks}), but got {dim}"
        )
    dim %= ranks
    try:
        return np.concatenate(arrays, dim)
    except ValueError:  # numpy makes the same checks as TensorFlow, with other messages
        for index, array in enumerate(arrays):
            _check_joins(first, index, array.shape, dim)
        raise


def _check_joins(first: tuple[int, ...], index: int, other: tuple[int, ...], dim: int) -> None:
    shapes = f"shape[0] = {shape_text(first)} vs. shape[{index}] = {shape_text(other)}"
    if len(other) != len(first):
        raise InvalidArgumentError(f"ConcatOp : Ranks of all input tensors should match: {shapes}")
    for axis, (one, two) in enumerate(zip(first, other, strict=True)):
        if axis != dim and one != two:
            raise InvalidArgumentError(
                f"ConcatOp : Dimension {axis} in both shapes must be equal: {shapes}"
            )


def parallel_concat(*values: TensorValue, shape: PartialShape) -> np.ndarray:
    """ParallelConcat: concatenate N `values` of shape `[1, …]` to a tensor `[N, …]`."""
    if shape is None or shape[0] != len(values):
        raise InvalidArgumentError(
            f"0 th dimension of the output shape must be {len(values)}, got {shape}"
        )
    return _concatenate([box(value) for value in values], np.array(0), "axis")


def concat_offset(axis: np.ndarray, *shapes: np.ndarray) -> list[np.ndarray]:
    """ConcatOffset: return the offset [rank] of each part in a concatenation.

    The parts have the given `shapes` and are concatenated along dimension `axis`.
    """
    if axis.ndim:
        raise InvalidArgumentError(
            f"Concat dim tensor should be a scalar integer, but got shape {shape_text(axis.shape)}"
        )
    first = shapes[0]
    dim = int(axis)
    for index, each in enumerate(shapes):
        if each.ndim != 1:
            raise InvalidArgumentError(
                f"input {index + 1} should be a vector, but got shape {shape_text(each.shape)}"
            )
    ranks = len(first)
    if not -ranks <= dim < ranks:
        raise InvalidArgumentError(f"Concat dim is out of range: {dim} vs. {ranks}")
    dim %= ranks
    offset = 0
    results = []
    for index, each in enumerate(shapes):
        _check_offset_shape(first, index, each, dim)
        result = np.zeros_like(each)
        result[dim] = offset
        offset += int(each[dim])
        results.append(result)
    return results


def _check_offset_shape(first: np.ndarray, index: int, other: np.ndarray, dim: int) -> None:
    if len(other) != len(first):
        raise InvalidArgumentError(
            f"input {index} should contain {len(first)} elements, but got {len(other)}"
        )
    differs = first != other
    differs[dim] = False
    if differs.any():
        raise InvalidArgumentError(
            f"All dimensions except {dim} must match. Input {index} has shape "
            f"[{' '.join(map(str, other))}] and doesn't match input 0 with shape "
            f"[{' '.join(map(str, first))}]."
        )


def pack(*values: TensorValue, axis: int) -> np.ndarray:
    """Pack: stack N tensors of one shape along a new dimension of size N."""
    arrays = [box(value) for value in values]
    first = arrays[0].shape
    ranks = len(first) + 1
    if not -ranks <= axis < ranks:
        raise InvalidArgumentError(f"axis = {axis} not in [{-ranks}, {ranks})")
    for index, array in enumerate(arrays):
        if array.shape != first:
            raise InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} "
                f"!= values[{index}].shape = {shape_text(array.shape)}"
            )
    axis %= ranks
    expanded = (*first[:axis], 1, *first[axis:])
    return np.concatenate([array.reshape(expanded) for array in arrays], axis)


def unpack(value: np.ndarray, *, num: int, axis: int) -> list[TensorValue]:
    """Unpack: return the slice at each index of dimension `axis`, without that dimension."""
    array = box(value)
    ranks = array.ndim
    if not -ranks <= axis < ranks:
        raise InvalidArgumentError(f"axis = {axis} not in [{-ranks}, {ranks})")
    axis %= ranks
    if array.shape[axis] != num:
        raise InvalidArgumentError(
            f"Input shape axis {axis} must equal {num}, got shape {shape_text(array.shape)}"
        )
    leading = np.moveaxis(array, axis, 0)
    return [unbox(leading[index, ...]) for index in range(num)]


def split(split_dim: np.ndarray, value: np.ndarray, *, num_split: int) -> list[np.ndarray]:
    """Split: split `value` into `num_split` equal parts along dimension `split_dim`."""
    value = box(value)
    dim = _split_dim(split_dim, value.ndim)
    length = value.shape[dim]
    if length % num_split:
        raise InvalidArgumentError(
            "Number of ways to split should evenly divide the split dimension, but got "
            f"split_dim {dim} (size = {length}) and num_split {num_split}"
        )
    return _split_by_sizes(value, dim, [length // num_split] * num_split)


def _split_dim(split_dim: np.ndarray, ranks: int) -> int:
    if split_dim.size != 1 or split_dim.ndim:
        raise InvalidArgumentError("split_dim must be a scalar but has rank " + str(split_dim.ndim))
    dim = int(split_dim)
    if not -ranks <= dim < ranks:
        raise InvalidArgumentError(
            f"-input rank(-{ranks}) <= split_dim < input rank ({ranks}), but got {dim}"
        )
    return dim % ranks


def _split_by_sizes(value: np.ndarray, dim: int, sizes: list[int]) -> list[np.ndarray]:
    before = (slice(None),) * dim
    begin = 0
    parts = []
    for size in sizes:
        parts.append(value[(*before, slice(begin, begin + size))])
        begin += size
    return parts


def split_v(
    value: np.ndarray, size_splits: np.ndarray, split_dim: np.ndarray, *, num_split: int
) -> list[np.ndarray]:
    """SplitV: split `value` into parts of the sizes `size_splits` along dimension `split_dim`.

    At most one size may be −1: that part gets the remaining elements.
    """
    if size_splits.ndim != 1 or len(size_splits) != num_split:
        raise InvalidArgumentError(
            "size of the split_tensor must be 1-D and have the same elements as outputs "
            f"got {size_splits.ndim} -D and {size_splits.size} elements"
        )
    if split_dim.size != 1:
        raise InvalidArgumentError("split_dim_tensor must have exactly one element.")
    value = box(value)
    dim = _split_dim(split_dim.reshape(()), value.ndim)
    sizes = size_splits.tolist()
    length = value.shape[dim]
    known = sum(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if num_split == 1 and sizes[0] != length:
        raise InvalidArgumentError(
            "If there is only one output, it must have the same size as the input. "
            f"Input size: {length} output size: {sizes[0]}"
        )
    if unknown > 1:
        raise InvalidArgumentError("There can only be one -1 in the input.")
    for index, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Split size at index {index} must be >= 0. Got: {size}")
    if known > length or (not unknown and known != length):
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {known}"
        )
    return _split_by_sizes(value, dim, [length - known if size == -1 else size for size in sizes])


KERNELS = (
    KernelDef("Concat", concat),
    KernelDef("ConcatOffset", concat_offset),
    KernelDef("ConcatV2", concat_v2),
    KernelDef("Pack", pack),
    KernelDef("ParallelConcat", parallel_concat),
    KernelDef("Split", split),
    KernelDef("SplitV", split_v),
    KernelDef("Unpack", unpack),
)
