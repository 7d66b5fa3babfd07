"""Kernels of matrix products.

As in TensorFlow, half-precision inputs are multiplied in float32 and rounded once.

TF: tensorflow/core/kernels/{matmul_op_impl.h,matmul_op_fused.cc}
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, HALF_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text
from runtime.kernels.linalg.matrix_product import matrix_product, stacked_product
from runtime.kernels.math.broadcasting import SMALL_ENOUGH


def mat_mul(a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    """MatMul: return the product of two matrices `[m, k]` and `[k, n]`.

    If `transpose_a` (`transpose_b`) is set, `a` (`b`) is transposed first.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise _rank_error(a, b)
    left = a.T if transpose_a else a
    right = b.T if transpose_b else b
    if left.shape[1] != right.shape[0]:
        raise _size_error(a, b)
    if left.shape[0] * right.shape[1] > SMALL_ENOUGH:
        check_allocation((left.shape[0], right.shape[1]), left.dtype)
    return matrix_product(left, right)


def _rank_error(a: np.ndarray, b: np.ndarray) -> InvalidArgumentError:
    if a.ndim != b.ndim:
        return _different_ranks(a, b)
    return InvalidArgumentError(f"In[0] and In[1] ndims must be == 2: {a.ndim}")


def _different_ranks(x: np.ndarray, y: np.ndarray) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"In[0] and In[1] has different ndims: {shape_text(x.shape)} vs. {shape_text(y.shape)}"
    )


def _size_error(x: np.ndarray, y: np.ndarray) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Matrix size-incompatible: In[0]: {shape_text(x.shape)}, In[1]: {shape_text(y.shape)}"
    )


def batch_mat_mul_v2(x: np.ndarray, y: np.ndarray, *, adj_x: bool, adj_y: bool) -> np.ndarray:
    """BatchMatMulV2: return the products of the matrices in the last two dimensions.

    The leading dimensions broadcast. If `adj_x` (`adj_y`) is set, the adjoints of `x` (`y`) are
    used.
    """
    for index, each in enumerate((x, y)):
        if each.ndim < 2:
            raise InvalidArgumentError(f"In[{index}] ndims must be >= 2: {each.ndim}")
    if x.shape[-2 if adj_x else -1] != y.shape[-1 if adj_y else -2]:
        raise _batch_error(x, y)  # before a product is allocated, which threads would write
    if x.size * y.size > SMALL_ENOUGH:
        _check_product_allocation(x, y, adj_x, adj_y)
    try:
        return stacked_product(_adjoint(x) if adj_x else x, _adjoint(y) if adj_y else y)
    except ValueError:
        raise _batch_error(x, y) from None


def _check_product_allocation(x: np.ndarray, y: np.ndarray, adj_x: bool, adj_y: bool) -> None:
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return  # the product raises the error for incompatible batches
    rows, columns = x.shape[-1 if adj_x else -2], y.shape[-2 if adj_y else -1]
    check_allocation((*batch, rows, columns), x.dtype)


def _batch_error(x: np.ndarray, y: np.ndarray) -> InvalidArgumentError:
    try:
        np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return InvalidArgumentError(
            "In[0] and In[1] must have compatible batch dimensions: "
            f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
        )
    return _size_error(x, y)


def _adjoint(x: np.ndarray) -> np.ndarray:
    transposed = x.swapaxes(-1, -2)
    return np.conjugate(transposed) if x.dtype.kind == "c" else transposed


def batch_mat_mul(x: np.ndarray, y: np.ndarray, *, adj_x: bool, adj_y: bool) -> np.ndarray:
    """BatchMatMul: return the products of the matrices in the last two dimensions.

    The leading dimensions must be equal; otherwise raises InvalidArgumentError.
    """
    if x.ndim != y.ndim:
        raise _different_ranks(x, y)
    for axis in range(x.ndim - 2):
        if x.shape[axis] != y.shape[axis]:
            raise InvalidArgumentError(
                f"In[0].dim({axis}) and In[1].dim({axis}) must be the same: "
                f"{shape_text(x.shape)} vs {shape_text(y.shape)}"
            )
    return batch_mat_mul_v2(x, y, adj_x=adj_x, adj_y=adj_y)


def _in_float32(kernel: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a kernel that computes `kernel` of two half-precision inputs in float32."""

    def wide(x: np.ndarray, y: np.ndarray, *, adj_x: bool, adj_y: bool) -> np.ndarray:
        product = kernel(x.astype(np.float32), y.astype(np.float32), adj_x=adj_x, adj_y=adj_y)
        return product.astype(x.dtype)

    return wide


def half_mat_mul(
    a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    """MatMul of half-precision matrices: compute `mat_mul` in float32."""
    wide = mat_mul(
        a.astype(np.float32),
        b.astype(np.float32),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    return wide.astype(a.dtype)


def batch_mat_mul_v3(
    x: np.ndarray,
    y: np.ndarray,
    *,
    Tout: DataType,  # noqa: N803 - the attribute's name
    adj_x: bool,
    adj_y: bool,
) -> np.ndarray:
    """BatchMatMulV3 of 8-bit integers: convert them to `Tout`, then compute `batch_mat_mul_v2`."""
    wide = Tout.numpy
    return batch_mat_mul_v2(x.astype(wide), y.astype(wide), adj_x=adj_x, adj_y=adj_y)


def mixed_batch_mat_mul(x: np.ndarray, y: np.ndarray, *, adj_x: bool, adj_y: bool) -> np.ndarray:
    """BatchMatMulV3 of bfloat16, or of bfloat16 and 8-bit integers: compute it in float32.

    The result is bfloat16.
    """
    product = batch_mat_mul_v2(x.astype(np.float32), y.astype(np.float32), adj_x=adj_x, adj_y=adj_y)
    return product.astype(DataType.BFLOAT16.numpy)


INTEGERS = (DataType.INT32, DataType.INT64)
FULL_WIDTH = SINGLE_AND_DOUBLE + COMPLEX_TYPES
SAME_TYPE_V3 = (*FULL_WIDTH, *INTEGERS, DataType.INT16)
WIDENED_V3 = (DataType.INT8, DataType.UINT8)

KERNELS: tuple[KernelDef, ...] = (
    KernelDef("MatMul", mat_mul, {"T": FULL_WIDTH + INTEGERS}, expensive=True, fresh=True),
    KernelDef("MatMul", half_mat_mul, {"T": HALF_TYPES}, expensive=True),
    KernelDef("BatchMatMul", batch_mat_mul, {"T": FULL_WIDTH + INTEGERS}, expensive=True),
    KernelDef("BatchMatMul", _in_float32(batch_mat_mul), {"T": HALF_TYPES}, expensive=True),
    KernelDef(
        "BatchMatMulV2",
        batch_mat_mul_v2,
        {"T": (*FULL_WIDTH, *INTEGERS, DataType.INT16)},
        expensive=True,
    ),
    KernelDef("BatchMatMulV2", _in_float32(batch_mat_mul_v2), {"T": HALF_TYPES}, expensive=True),
    *(
        KernelDef(
            "BatchMatMulV3",
            batch_mat_mul_v2,
            {"Ta": (t,), "Tb": (t,), "Tout": (t,)},
            expensive=True,
        )
        for t in SAME_TYPE_V3
    ),
    *(
        KernelDef(
            "BatchMatMulV3",
            mixed_batch_mat_mul,
            {"Ta": (DataType.BFLOAT16,), "Tb": (right,), "Tout": (DataType.BFLOAT16,)},
            expensive=True,
        )
        for right in (DataType.BFLOAT16, *WIDENED_V3)
    ),
    *(
        KernelDef(
            "BatchMatMulV3",
            mixed_batch_mat_mul,
            {"Ta": (left,), "Tb": (DataType.BFLOAT16,), "Tout": (DataType.BFLOAT16,)},
            expensive=True,
        )
        for left in WIDENED_V3
    ),
    KernelDef(
        "BatchMatMulV3",
        batch_mat_mul_v3,
        {"Ta": WIDENED_V3, "Tb": WIDENED_V3, "Tout": (DataType.INT32,)},
        expensive=True,
    ),
)
