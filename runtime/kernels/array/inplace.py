"""Inplace ops: replace rows of a tensor, or add to or subtract from them.

Despite the name, the ops change a copy: the input tensor stays unchanged.

TF: tensorflow/core/kernels/inplace_ops.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import from_numpy
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.array.identity import identity

Change = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def _assign_rows(rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    rows[places] = values


def _row_kernel(change: Change) -> Kernel:
    def kernel(x: TensorValue, i: np.ndarray, v: TensorValue) -> TensorValue:
        rows, values = box(x), box(v)
        places = np.asarray(i)
        if places.ndim != 1:
            raise InvalidArgumentError(f"i must be a vector. {shape_text(places.shape)}")
        _check_rows(rows, places, values)
        if not rows.size:
            return x
        if change is not _assign_rows and rows.dtype.kind in "bO":
            kind = from_numpy(rows.dtype).tf_name
            raise InvalidArgumentError(f"Unsupported data type: {kind}")
        result = rows.copy()
        change(result, places % len(rows), values)
        return unbox(result)

    return kernel


def _check_rows(rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    shown = f"{shape_text(rows.shape)} vs. {shape_text(values.shape)}"
    if not rows.ndim or rows.ndim != values.ndim:
        raise InvalidArgumentError(f"x and v shape doesn't match (ranks differ): {shown}")
    for axis in range(1, rows.ndim):
        if rows.shape[axis] != values.shape[axis]:
            raise InvalidArgumentError(f"x and v shape doesn't match at index {axis} : {shown}")
    if len(places) != len(values):
        raise InvalidArgumentError(
            "i and x shape doesn't match at index 0: "
            f"{shape_text(places.shape)} vs. {shape_text(values.shape)}"
        )


KERNELS = (
    KernelDef("DeepCopy", identity),  # no copy: a shared tensor is never written to
    KernelDef("InplaceAdd", _row_kernel(np.add.at)),
    KernelDef("InplaceSub", _row_kernel(np.subtract.at)),
    KernelDef("InplaceUpdate", _row_kernel(_assign_rows)),
)
