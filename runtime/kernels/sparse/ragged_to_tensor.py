"""The kernel of RaggedTensorToTensor, which pads rows of unequal length to a dense tensor.

TF: tensorflow/core/kernels/ragged_tensor_to_tensor_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def ragged_tensor_to_tensor(
    shape: np.ndarray,
    values: np.ndarray,
    default_value: np.ndarray,
    *partitions: np.ndarray,
    row_partition_types: tuple[str, ...],
) -> np.ndarray:
    """RaggedTensorToTensor: return a dense tensor with `values` [n, E…] at their positions.

    Every other element is `default_value`. If a size in `shape` is −1, it is made as large as
    necessary. A value whose position is outside another size is dropped.
    """
    if not values.ndim:
        raise InvalidArgumentError("values must have rank 1 or more, got a scalar")
    levels = _RowPartitions(partitions, row_partition_types)
    wanted = _static_shape(shape)
    element_shape = values.shape[1:]
    sizes = _result_sizes(wanted, levels, values.shape, default_value.shape)
    check_allocation(sizes, values.dtype)
    depth = levels.ragged_rank + 1
    rows = math.prod(sizes[:depth])
    if not rows:  # TensorFlow reads no partition in this case
        return np.empty(sizes, values.dtype)
    places = levels.places(sizes[:depth], len(values))
    result = np.empty((rows, *sizes[depth:]), values.dtype)
    result[...] = default_value
    kept = np.flatnonzero(places >= 0)
    if tuple(sizes[depth:]) != element_shape:
        raise InvalidArgumentError(
            f"values element shape {shape_text(element_shape)} does not match the output shape "
            f"{shape_text(sizes)}"
        )
    result[places[kept]] = values[kept]
    return result.reshape(sizes)


def _static_shape(shape: np.ndarray) -> list[int] | None:
    """Return the requested shape, or None if no size is requested (`shape` is a scalar −1)."""
    if shape.ndim == 0:
        if shape != -1:
            raise InvalidArgumentError(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return None
    if shape.ndim != 1:
        raise InvalidArgumentError(f"shape must be a vector, got {shape_text(shape.shape)}")
    sizes: list[int] = shape.tolist()
    for size in sizes:
        if size < -1:
            raise InvalidArgumentError(f"Dimension {size} must be >= -1")
    return sizes


class _RowPartitions:
    """The row partitions of a ragged tensor, outermost first.

    A row partition says how many values each row of a level has, as row splits or as the row of
    each value.
    """

    def __init__(self, partitions: tuple[np.ndarray, ...], types: tuple[str, ...]) -> None:
        if len(types) != len(partitions):
            raise InvalidArgumentError(
                f"{len(partitions)} row partition tensors, but {len(types)} row partition types"
            )
        if types[0] == "FIRST_DIM_SIZE":
            if partitions[0].ndim:
                raise InvalidArgumentError("Cannot get the first dimension from a non-scalar")
            self.first_dimension = int(partitions[0])
            partitions, types = partitions[1:], types[1:]
        elif types[0] == "ROW_SPLITS":
            if partitions[0].ndim != 1 or not len(partitions[0]):
                raise InvalidArgumentError(
                    "Invalid first partition input. Tensor requires at least one element."
                )
            self.first_dimension = len(partitions[0]) - 1
        else:
            raise InvalidArgumentError(f"{types[0]} cannot be first")
        self.ragged_rank = len(partitions)
        for partition, kind in zip(partitions, types, strict=True):
            _check_partition(partition, kind)
        self._levels = list(zip(partitions, types, strict=True))

    def width(self, level: int) -> int:
        """Return the length of the longest row of a level; level 0 is the outermost partition."""
        partition, kind = self._levels[level]
        if kind == "ROW_SPLITS":
            return int(np.diff(partition).max(initial=0))
        columns = _rows_and_columns_of_ids(partition)[1]
        return int(columns.max(initial=-1)) + 1

    def places(self, sizes: list[int], count: int) -> np.ndarray:
        """Return the positions of the first `count` values in a flat tensor of `sizes`.

        A position is −1 if the value is dropped. The result is shorter than `count` if the
        partitions describe fewer values.
        """
        stride = math.prod(sizes[1:])
        places = np.arange(self.first_dimension, dtype=np.int64)
        places = np.where(places < sizes[0], places * stride, -1)
        for level, size in zip(self._levels, sizes[1:], strict=True):
            rows, columns = _rows_and_columns(*level)
            stride = stride // size if size else 0
            beyond = rows >= len(places)
            if beyond.any():
                raise InvalidArgumentError(
                    f"Got next_value_rowid={rows[beyond.argmax()]} which is not less than "
                    f"{len(places)}"
                )
            parents = places[rows]
            places = np.where((parents >= 0) & (columns < size), parents + columns * stride, -1)
        return places[:count]


def _check_partition(partition: np.ndarray, kind: str) -> None:
    if partition.ndim != 1:
        raise InvalidArgumentError(f"A row partition of type {kind} must be a vector")
    if kind not in ("ROW_SPLITS", "VALUE_ROWIDS"):
        raise InvalidArgumentError(f"Unsupported partition type: {kind}")


def _rows_and_columns(partition: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return each value's row, and its column in that row."""
    if kind == "ROW_SPLITS":
        return rows_and_columns_of_splits(partition)
    if (partition < 0).any():
        raise InvalidArgumentError(f"Got value_rowid={partition.min()} which is less than 0")
    return _rows_and_columns_of_ids(partition)


def _rows_and_columns_of_ids(partition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = len(partition)
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begins = np.flatnonzero(np.concatenate(([True], np.diff(partition) != 0)))
    lengths = np.diff(np.append(begins, count))
    return partition, np.arange(count) - np.repeat(begins, lengths)


def rows_and_columns_of_splits(splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column of each value.

    Raises InvalidArgumentError unless `splits` starts with 0 and ascends.
    """
    if not len(splits) or splits[0] != 0:
        raise InvalidArgumentError("Row splits must start with 0")
    lengths = np.diff(splits)
    if (lengths < 0).any():
        raise InvalidArgumentError("Invalid row split size.")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, np.arange(len(rows)) - np.repeat(splits[:-1], lengths)


def _result_sizes(
    wanted: list[int] | None,
    levels: _RowPartitions,
    values_shape: tuple[int, ...],
    default_shape: tuple[int, ...],
) -> list[int]:
    ranks = levels.ragged_rank + len(values_shape)
    if wanted is not None and len(wanted) != ranks:
        raise InvalidArgumentError(
            f"rt_input.shape and shape={shape_text(wanted)} are incompatible: "
            f"rt_input.rank = {ranks} but shape.rank = {len(wanted)}"
        )
    sizes = list(wanted) if wanted is not None else [-1] * ranks
    if sizes[0] < 0:
        sizes[0] = levels.first_dimension
    for axis in range(1, levels.ragged_rank + 1):
        if sizes[axis] < 0:
            sizes[axis] = levels.width(axis - 1)
    for axis in range(levels.ragged_rank + 1, ranks):
        size = values_shape[axis - levels.ragged_rank]
        if sizes[axis] not in (-1, size):
            raise InvalidArgumentError(
                f"rt_input.shape and shape={shape_text(wanted)} are incompatible: "
                f"rt_input.shape[{axis}] = {size} but shape[{axis}] = {sizes[axis]}"
            )
        sizes[axis] = size
    elements = sizes[levels.ragged_rank + 1 :]
    fits = len(default_shape) <= len(elements) and all(
        one in (1, two) for one, two in zip(default_shape[::-1], elements[::-1], strict=False)
    )
    if not fits:
        raise InvalidArgumentError(
            f"default_value.shape={shape_text(default_shape)} and "
            f"rt_input.flat_values.shape={shape_text(values_shape)} are incompatible"
            f"{_rank_mismatch_text(default_shape, values_shape)}"
        )
    return sizes


def _rank_mismatch_text(default_shape: tuple[int, ...], values_shape: tuple[int, ...]) -> str:
    if len(default_shape) < len(values_shape):
        return ""
    return (
        f": default_value.rank = {len(default_shape)}  must be less than "
        f"rt_input.flat_values.rank = {len(values_shape)}"
    )


KERNELS = (KernelDef("RaggedTensorToTensor", ragged_tensor_to_tensor),)
