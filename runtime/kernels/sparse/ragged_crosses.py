"""The kernel of RaggedCross: crosses of features in ragged, sparse and dense tensors.

TF: tensorflow/core/kernels/ragged_cross_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.sparse.feature_crosses import (
    SEPARATOR,
    Column,
    Sparse,
    combinations,
    dense_column,
    hashed,
    joined,
    plain_words,
    split_inputs,
)
from runtime.kernels.sparse.ragged import check_splits_cover, splits_of_lengths

RANK_2 = "tf.ragged.cross only supports inputs with rank=2."
SAME_BATCH = "inputs must all have the same batch dimension size."


def _ragged_column(values: np.ndarray, splits: np.ndarray) -> Column:
    return Column(values, splits[:-1].astype(np.int64), np.diff(splits.astype(np.int64)))


def _sparse_column(indices: np.ndarray, values: np.ndarray, batch: int) -> Column:
    """Return the column of a sparse matrix.

    An element belongs to the largest row index that has occurred up to this element.
    """
    owners = np.maximum.accumulate(indices[: len(values), :1].ravel())
    ends = np.searchsorted(owners, np.arange(batch), side="right")
    starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
    return Column(values, starts, ends - starts)


def _ragged_cross_columns(
    ragged: list[tuple[np.ndarray, np.ndarray]], sparse: list[Sparse], dense: list[np.ndarray]
) -> tuple[dict[str, list[Column]], int]:
    """Check all columns; return (columns by kind, number of rows of every column).

    The kinds are R (ragged), S (sparse) and D (dense).
    """
    for values, splits in ragged:
        if np.ndim(values) != 1 or np.ndim(splits) != 1:
            raise InvalidArgumentError(RANK_2)
        check_splits_cover(splits, len(values))
    for place, (indices, values, shape) in enumerate(sparse):
        if np.ndim(indices) != 2 or np.ndim(values) != 1 or np.ndim(shape) != 1:
            raise InvalidArgumentError(f"Invalid SparseTensor {place}")
        if shape.size != 2:
            raise InvalidArgumentError(RANK_2)
        if len(values) and (len(indices) < len(values) or not indices.shape[1]):
            raise InvalidArgumentError(f"Invalid SparseTensor {place}: values without indices")
    if any(np.ndim(values) != 2 for values in dense):
        raise InvalidArgumentError(RANK_2)
    batches = {
        *(len(splits) - 1 for _, splits in ragged),
        *(int(shape[0]) for *_, shape in sparse),
        *map(len, dense),
    }
    if len(batches) > 1:
        raise InvalidArgumentError(SAME_BATCH)
    batch = batches.pop() if batches else 0
    check_allocation((batch, 2), np.int64)
    columns = {
        "R": [_ragged_column(*each) for each in ragged],
        "S": [_sparse_column(indices, values, batch) for indices, values, _ in sparse],
        "D": [dense_column(each) for each in dense],
    }
    return columns, batch


def _in_order(columns: dict[str, list[Column]], input_order: str) -> list[Column]:
    if sum(map(len, columns.values())) != len(input_order):
        raise InvalidArgumentError("Invalid length for input_order")
    result = []
    taken = dict.fromkeys(columns, 0)
    for kind in input_order:
        if kind not in columns:
            raise InvalidArgumentError("Unexpected input_order value.")
        if taken[kind] >= len(columns[kind]):
            name = {"R": "ragged", "S": "sparse", "D": "dense"}[kind]
            raise InvalidArgumentError(
                f'input_order "{input_order}" specifies reading a {name} tensor value at index '
                f"{taken[kind]} from a list of {len(columns[kind])} values."
            )
        result.append(columns[kind][taken[kind]])
        taken[kind] += 1
    return result


def ragged_cross(
    *inputs: np.ndarray,
    Nsparse: int,  # noqa: N803
    ragged_values_types: tuple[DataType, ...],
    ragged_splits_types: tuple[DataType, ...],
    input_order: str,
    num_buckets: int,
    hash_key: int,
    out_values_type: DataType,
    out_row_splits_type: DataType,
) -> tuple[np.ndarray, np.ndarray]:
    """RaggedCross: return the combinations of each row as a ragged tensor (values, row splits)."""
    count = len(ragged_values_types)
    if len(ragged_splits_types) != count:
        raise InvalidArgumentError("ragged values and splits must have the same length")
    ragged = list(zip(inputs[:count], inputs[count : 2 * count], strict=True))
    rest = inputs[2 * count :]
    sparse, dense = split_inputs(rest, Nsparse, len(rest) - 3 * Nsparse)
    by_kind, batch = _ragged_cross_columns(ragged, sparse, dense)
    columns = _in_order(by_kind, input_order)
    totals, places = combinations(columns, batch)
    splits = splits_of_lengths(totals, out_row_splits_type.numpy)
    if out_values_type == DataType.INT64:
        words = [plain_words(column) for column in columns]
        return hashed(words, places, hash_key, num_buckets), splits
    return joined(columns, places, SEPARATOR), splits


KERNELS = (KernelDef("RaggedCross", ragged_cross),)
