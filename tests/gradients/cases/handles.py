"""TensorArrays of version 3, maps, optionals, composite tensors; branches of version 1."""

from __future__ import annotations

from typing import Any

import numpy as np

import runtime.client as tf
from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

M = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]
ROWS = np.sin(np.arange(12, dtype=np.float32)).reshape(6, 2)


def _array(size: int) -> Any:
    return ops.TensorArrayV3(size, dtype="float32", clear_after_read=False)


def _written(x: Any, y: Any) -> Any:
    handle, flow = _array(2)
    flow = ops.TensorArrayWriteV3(handle, 0, x, flow)
    flow = ops.TensorArrayWriteV3(handle, 1, y, flow)
    first = ops.TensorArrayReadV3(handle, 0, flow, dtype="float32")
    again = ops.TensorArrayReadV3(handle, 0, flow, dtype="float32")
    second = ops.TensorArrayReadV3(handle, 1, flow, dtype="float32")
    return ops.Mul(ops.Mul(first, again), second)


def _scattered(x: Any) -> Any:
    handle, flow = _array(6)
    flow = ops.TensorArrayScatterV3(handle, [3, 1, 0, 2, 5, 4], x, flow)
    return ops.Square(ops.TensorArrayGatherV3(handle, [0, 4, 1], flow, dtype="float32"))


def _split(x: Any) -> Any:
    handle, flow = _array(3)
    flow = ops.TensorArraySplitV3(handle, x, np.array([1, 3, 2]), flow)
    whole = ops.TensorArrayConcatV3(handle, flow, dtype="float32")[0]
    one = ops.TensorArrayReadV3(handle, 1, flow, dtype="float32")
    return [ops.Square(whole), ops.Exp(one)]


def _mapped(read: list[str], erased: str | None = None) -> Body:
    def body(x: Any, y: Any) -> Any:
        names = {name: tf.constant(name) for name in ("a", "b")}
        handle = ops.TensorMapInsert(ops.EmptyTensorMap(), names["a"], x)
        handle = ops.TensorMapInsert(handle, names["b"], y)
        if erased:
            handle = ops.TensorMapErase(handle, names[erased], value_dtype="float32")
        found = [ops.TensorMapLookup(handle, names[name], value_dtype="float32") for name in read]
        return [ops.Square(each) for each in found]

    return body


def _optional(x: Any, y: Any) -> Any:
    optional = ops.OptionalFromValue([ops.Square(x), y])
    types, shapes = [tf.float32] * 2, [x.shape, y.shape]
    found = ops.OptionalGetValue(optional, output_types=types, output_shapes=shapes)
    return [ops.Exp(found[0]), ops.Mul(found[0], found[1])]


def _branch(taken: bool) -> Body:
    def body(x: Any, y: Any) -> Any:
        pred = tf.constant(taken)
        no, yes = ops.Switch(x, pred)
        other = ops.Switch(y, pred)[1]
        return ops.Merge([ops.Square(no), ops.Mul(yes, other)])[0]

    return body


CASES: dict[str, GradientCase] = {
    "TensorArray_written": case(_written, M, ROWS[:2].repeat(3)[:6].reshape(2, 3)),
    "TensorArray_scattered": case(_scattered, ROWS),
    "TensorArray_split": case(_split, ROWS),
    "TensorMap": case(_mapped(["a", "b"]), M, ROWS),
    "TensorMap_of_one": case(_mapped(["b"]), M, ROWS),
    "TensorMap_erased": case(_mapped(["a"], "b"), M, ROWS),
    "Optional": case(_optional, M, [1.0, 2.0, 3.0]),
    **{f"branch_{taken}": case(_branch(taken), M, [1.0, 2.0, 3.0]) for taken in (False, True)},
}
