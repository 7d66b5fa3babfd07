"""Kernels that distribute the slices of a tensor over outputs, or merge slices (stitching).

TF: tensorflow/core/kernels/{dynamic_partition_op,dynamic_stitch_op}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.array.gather import check_indices


def dynamic_partition(
    data: TensorValue, partitions: np.ndarray, *, num_partitions: int
) -> list[np.ndarray]:
    """DynamicPartition: return `num_partitions` tensors.

    Output i holds the slices of `data` [P…, S…] whose entry in `partitions` [P…] is i.
    """
    array = box(data)
    if array.shape[: partitions.ndim] != partitions.shape:
        raise InvalidArgumentError(
            "data.shape must start with partitions.shape, got data.shape = "
            f"{shape_text(array.shape)}, partitions.shape = {shape_text(partitions.shape)}"
        )
    check_indices(partitions, num_partitions, "partitions")
    slices = array.reshape(partitions.size, *array.shape[partitions.ndim :])
    flat = partitions.ravel()
    return [slices[flat == part] for part in range(num_partitions)]


def dynamic_stitch(*indices_and_data: TensorValue) -> np.ndarray:
    """DynamicStitch: merge slices: row `indices[m][i]` of the result is `data[m][i]`.

    The inputs are all indices, then all data. If an index occurs several times, the last slice
    stays.
    """
    half = len(indices_and_data) // 2
    indices = [np.asarray(each) for each in indices_and_data[:half]]
    data = [box(each) for each in indices_and_data[half:]]
    for number, (where, what) in enumerate(zip(indices, data, strict=True)):
        _check_stitch_shapes(number, where, what, indices[0], data[0])
    slice_shape = data[0].shape[indices[0].ndim :]
    rows = max((int(each.max()) + 1 for each in indices if each.size), default=0)
    if rows > np.iinfo(np.int32).max:
        raise InvalidArgumentError(f"Expected a non-negative size, got {rows - 2**32}")
    sizes = (rows, *slice_shape)
    check_allocation(sizes, data[0].dtype)
    result = np.zeros(sizes, data[0].dtype)
    if result.dtype.hasobject:
        result[...] = b""
    for where, what in zip(indices, data, strict=True):
        outside = (where < 0).ravel()
        if outside.any():
            raise InvalidArgumentError(f"indices[{outside.argmax()}] is out of range")
        result[where] = what
    return result


def _check_stitch_shapes(
    number: int,
    indices: np.ndarray,
    data: np.ndarray,
    first_indices: np.ndarray,
    first_data: np.ndarray,
) -> None:
    if data.shape[: indices.ndim] != indices.shape:
        raise InvalidArgumentError(
            f"data[{number}].shape = {shape_text(data.shape)} does not start with "
            f"indices[{number}].shape = {shape_text(indices.shape)}"
        )
    if data.shape[indices.ndim :] != first_data.shape[first_indices.ndim :]:
        raise InvalidArgumentError(
            f"Need data[0].shape[{first_indices.ndim}:] = data[{number}].shape[{indices.ndim}:], "
            f"got data[0].shape = {shape_text(first_data.shape)}, "
            f"data[{number}].shape = {shape_text(data.shape)}, "
            f"indices[0].shape = {shape_text(first_indices.shape)}, "
            f"indices[{number}].shape = {shape_text(indices.shape)}"
        )


KERNELS = (
    KernelDef("DynamicPartition", dynamic_partition),
    KernelDef("DynamicStitch", dynamic_stitch),
    KernelDef("ParallelDynamicStitch", dynamic_stitch),
)
