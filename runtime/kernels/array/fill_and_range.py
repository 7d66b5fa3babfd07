"""Kernels that make tensors from a few numbers: Fill, Range, LinSpace, ZerosLike, OnesLike.

TF: tensorflow/core/kernels/{constant_op.cc,sequence_ops.cc}
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import BLOCK
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import QUANTIZED, DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import (
    FLOAT_TYPES,
    POD_TYPES,
    SINGLE_AND_DOUBLE,
)
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox

INT64_MAX = (1 << 63) - 1
FILL_TYPES = (
    *POD_TYPES,
    *QUANTIZED,
    DataType.STRING,
    DataType.INT4,
    DataType.UINT4,
    DataType.RESOURCE,
    DataType.VARIANT,
)


def fill(dims: np.ndarray, value: TensorValue) -> TensorValue:
    """Fill: return a tensor of shape `dims` in which every element is `value`."""
    if np.ndim(dims) > 1:
        raise InvalidArgumentError(
            f"dims must represent a vector, got shape {shape_text(dims.shape)}"
        )
    value = box(value)
    if value.size != 1 or value.ndim > 1:
        raise InvalidArgumentError(
            f"value must represent a scalar, got shape {shape_text(value.shape)}"
        )
    shape = np.ravel(dims).tolist()
    for size in shape:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    if math.prod(shape) > INT64_MAX:
        raise InvalidArgumentError(
            f"Shape {shape_text(shape)} would have more than 2**63 - 1 elements"
        )
    check_allocation(shape, value.dtype)
    if value.dtype.hasobject and math.prod(shape) > BLOCK:
        # numpy lets no other thread run while it writes objects.
        return np.broadcast_to(value.reshape(()), shape)
    return unbox(np.full(shape, value.reshape(()), value.dtype))


def _scalar(name: str, value: np.ndarray) -> np.ndarray:
    if np.size(value) != 1 or np.ndim(value) > 1:
        raise InvalidArgumentError(
            f"{name} must be a scalar, not shape {shape_text(np.shape(value))}"
        )
    return np.reshape(value, ())[()]


def _number_text(value: np.ndarray) -> str:
    return str(value) if value.dtype.kind in "iu" else f"{float(value):g}"


def _ends(start: np.ndarray, limit: np.ndarray) -> str:
    return f"{_number_text(start)}/{_number_text(limit)}"


def _range_size(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> int:
    """Return the number of values in [start, limit) at a distance of `delta`.

    Raises InvalidArgumentError if `delta` is 0 or its sign leads away from `limit`.
    """
    if delta == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {_number_text(delta)}")
    if delta > 0 and not start <= limit:
        raise InvalidArgumentError(f"Requires start <= limit when delta > 0: {_ends(start, limit)}")
    if not delta > 0 and not start >= limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {_ends(start, limit)}")
    if start.dtype.kind in "iu":
        return -((int(start) - int(limit)) // int(delta))
    steps = float(np.abs((limit - start) / delta))
    if not steps <= INT64_MAX:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {INT64_MAX}")
    return math.ceil(steps)


def make_range(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Range: return `start`, `start + delta`, `start + 2 · delta`, … up to `limit`.

    `limit` itself is excluded. The values descend if `delta` is negative.
    """
    start, limit, delta = _scalar("start", start), _scalar("limit", limit), _scalar("delta", delta)
    size = _range_size(start, limit, delta)
    check_allocation((size,), start.dtype)
    steps = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
    steps = steps.astype(start.dtype, copy=False)
    np.multiply(steps, delta, out=steps)
    return np.add(steps, start, out=steps)


def lin_space(start: np.ndarray, stop: np.ndarray, num: np.ndarray) -> np.ndarray:
    """LinSpace: return `num` evenly spaced values from `start` to `stop`, both included."""
    for name, value in (("start", start), ("stop", stop), ("num", num)):
        if np.ndim(value):
            raise InvalidArgumentError(
                f"{name} must be a scalar, not shape {shape_text(value.shape)}"
            )
    count = int(num)
    if count <= 0:
        raise InvalidArgumentError(f"Requires num > 0: {count}")
    check_allocation((count,), start.dtype)
    if count == 1:
        return np.reshape(start, (1,))
    step = np.divide(np.subtract(stop, start), start.dtype.type(count - 1))
    values = np.add(start, np.multiply(np.arange(count).astype(start.dtype), step))
    values[0], values[-1] = start, stop  # both ends are exact, even if `step` overflows
    return values


def zeros_like(x: np.ndarray) -> np.ndarray:
    """ZerosLike: return zeros of the shape and dtype of `x`."""
    return np.zeros(np.shape(x), x.dtype)


def empty_strings_like(x: np.ndarray) -> np.ndarray:
    """ZerosLike of strings: return empty strings in the shape of `x`."""
    return np.full(np.shape(x), b"", object)


def ones_like(x: np.ndarray) -> np.ndarray:
    """OnesLike: return ones of the shape and dtype of `x`."""
    return np.ones(np.shape(x), x.dtype)


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Fill", fill, {"T": FILL_TYPES}),
    KernelDef("Range", make_range, {"Tidx": (*FLOAT_TYPES, DataType.INT32, DataType.INT64)}),
    KernelDef("LinSpace", lin_space, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("ZerosLike", zeros_like, {"T": POD_TYPES}),
    KernelDef("ZerosLike", empty_strings_like, {"T": (DataType.STRING,)}),
    KernelDef("OnesLike", ones_like, {"T": POD_TYPES}),
)
