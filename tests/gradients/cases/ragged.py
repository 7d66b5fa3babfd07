"""Ragged tensors, given as row splits and flat values."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import GradientCase, case

VALUES = np.arange(12, dtype=np.float32).reshape(6, 2) / 4 - 1
FLAT = [1.0, -2.0, 0.5, 3.0, 0.25, -1.5]
SPLITS = np.array([0, 2, 2, 5, 6], np.int64)
OUTER = np.array([0, 3, 4], np.int64)


def _gather(indices: Any, *splits: Any) -> Any:
    numbers = np.array(indices, np.int32)
    rank = len(splits) + numbers.ndim - 1
    return lambda x: ops.RaggedGather(list(splits), x, numbers, OUTPUT_RAGGED_RANK=rank)[-1]


def _padded(shape: list[int], splits: list[Any], types: list[str]) -> Any:
    return lambda x, default: ops.RaggedTensorToTensor(
        np.array(shape, np.int64), x, default, splits, row_partition_types=types
    )


def _through_variant(batched: bool) -> Any:
    def body(x: Any) -> Any:
        encoded = ops.RaggedTensorToVariant([SPLITS], x, batched_input=batched)
        return ops.RaggedTensorFromVariant(
            encoded,
            input_ragged_rank=0 if batched else 1,
            output_ragged_rank=1,
            Tvalues="float32",
            Tsplits="int64",
        )[-1]

    return body


def _fill(values: Any, default: Any) -> Any:
    rowids = np.array([0, 0, 2, 2, 2, 5], np.int64)
    return ops.RaggedFillEmptyRows(rowids, values, np.int64(7), default)[1]


SPLIT = ["ROW_SPLITS"]
IDS = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
CASES: dict[str, GradientCase] = {
    "RaggedGather": case(_gather([2, 0, 2], SPLITS), VALUES),
    "RaggedGather_deep": case(_gather([[1, 0], [1, 1]], OUTER, SPLITS), VALUES),
    "RaggedTensorToTensor": case(_padded([-1, -1], [SPLITS], SPLIT), FLAT, 7.0),
    "RaggedTensorToTensor_wide":
        case(_padded([-1, -1, 2], [SPLITS], SPLIT), VALUES, [7.0, 8.0]),
    "RaggedTensorToTensor_broadcast":
        case(_padded([-1, 2, 2], [SPLITS], SPLIT), VALUES, [7.0]),
    "RaggedTensorToTensor_deep":
        case(_padded([3, 4, 2], [OUTER, SPLITS], SPLIT * 2), FLAT, 7.0),
    "RaggedTensorToTensor_ids":
        case(_padded([-1, -1], [np.int64(4), np.array([0, 0, 1, 3, 3, 3])], IDS), FLAT, 7.0),
    "RaggedTensorToSparse": case(lambda x: ops.RaggedTensorToSparse([SPLITS], x)[1], FLAT),
    "RaggedVariant": case(_through_variant(False), VALUES),
    "RaggedVariant_batched": case(_through_variant(True), VALUES),
    "RaggedFillEmptyRows": case(_fill, FLAT, 7.0),
}  # fmt: skip
