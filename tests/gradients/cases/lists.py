"""Tensor lists: creation, reads, writes, concatenation; and TensorArrays that loops fill."""

from __future__ import annotations

from typing import Any

import numpy as np

import runtime.client as tf
from runtime.client import ops
from tests.gradients.gradient_case import GradientCase, case

M = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]
ROWS = (np.arange(12, dtype=np.float32) / 4 + 0.5).reshape(6, 2)
V = [0.5, 0.25, 0.75]
ANY = np.array(-1, np.int32)


def _list(x: Any) -> Any:
    return ops.TensorListFromTensor(x, ANY)


def _stack(the_list: Any) -> Any:
    return ops.TensorListStack(the_list, ANY, element_dtype=tf.float32)


def _get(the_list: Any, index: int) -> Any:
    return ops.TensorListGetItem(the_list, index, ANY, element_dtype=tf.float32)


def _pop(x: Any) -> Any:
    rest, last = ops.TensorListPopBack(_list(x), ANY, element_dtype=tf.float32)
    return [last, _get(rest, 0)]


def _scatter(x: Any, rows: Any) -> Any:
    return _stack(ops.TensorListScatterIntoExistingList(_list(x), rows, [3, 1]))


CASES: dict[str, GradientCase] = {
    "stack": case(lambda x: _stack(_list(x)) * 2.0, M),
    "get_item": case(lambda x: _get(_list(x), 1), M),
    "get_items": case(lambda x: _get(_list(x), 1) * _get(_list(x), 0), M),
    "set_item": case(lambda x, v: _stack(ops.TensorListSetItem(_list(x), 1, v)), M, V),
    "push_back": case(lambda x, v: _stack(ops.TensorListPushBack(_list(x), v)), M, V),
    "pop_back": case(_pop, M),
    "resize": case(lambda x: _get(ops.TensorListResize(_list(x), 1), 0), M),
    "gather": case(
        lambda x: ops.TensorListGather(_list(x), [3, 1], ANY, element_dtype=tf.float32), ROWS
    ),
    "scatter": case(lambda x: _stack(ops.TensorListScatter(x, [1, 0], [3])), M),
    "scatter_v2": case(lambda x: _stack(ops.TensorListScatterV2(x, [1, 0], [3], 2)), M),
    "scatter_into": case(_scatter, ROWS, ROWS[:2] * 3),
    "concat": case(
        lambda a, b: ops.TensorListConcatV2(
            ops.TensorListPushBack(ops.TensorListFromTensor(a, ANY), b), ANY,
            np.zeros(0, np.int64), element_dtype=tf.float32,
        )[0],
        [M], np.array(M, np.float32) * 2,
    ),
    "concat_of_the_first_version": case(
        lambda a: ops.TensorListConcat(
            ops.TensorListFromTensor(a, ANY), element_dtype=tf.float32
        )[0],
        [M],
    ),
    "split": case(
        lambda x: _get(ops.TensorListSplit(x, ANY, np.array([1, 3, 2], np.int64)), 1), ROWS
    ),
}  # fmt: skip
