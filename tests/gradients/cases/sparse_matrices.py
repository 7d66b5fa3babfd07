"""Sparse matrices in the CSR form."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

INDICES = np.array([[0, 1], [1, 0], [1, 2], [2, 2]], np.int64)
BATCHED = np.array([[0, 0, 1], [0, 2, 0], [1, 1, 2], [1, 2, 2]], np.int64)
SHAPE = np.array([3, 3], np.int64)
VALUES = [1.0, 2.0, 3.0, -0.5]
OTHERS = [0.5, -1.0, 2.0, 1.5]
DENSE = np.sin(np.arange(9, dtype=np.float32)).reshape(3, 3)
PAIR = np.stack([DENSE, DENSE * 2 + 1])
FLAGS = [
    ("", ""),
    ("transpose", ""),
    ("", "transpose"),
    ("transpose", "transpose"),
    ("adjoint", ""),
    ("", "adjoint"),
    ("adjoint", "adjoint"),
    ("adjoint", "transpose"),
]


def _matrix(values: Any, indices: Any = INDICES, shape: Any = SHAPE) -> Any:
    return ops.SparseTensorToCSRSparseMatrix(indices, values, shape)


def _dense(matrix: Any, dtype: str) -> Any:
    return ops.CSRSparseMatrixToDense(matrix, type=dtype)


def _dtype(x: Any) -> str:
    return str(np.dtype(x.dtype.numpy))


def _named(a: str, b: str) -> dict[str, bool]:
    return {f"{flag}_{name}": True for flag, name in ((a, "a"), (b, "b")) if flag}


def _product(a: str, b: str, **attrs: Any) -> Body:
    return lambda values, dense: ops.SparseMatrixMatMul(
        _matrix(values), dense, **_named(a, b), **attrs
    )


def _batched(values: Any, dense: Any) -> Any:
    matrix = _matrix(values, BATCHED, np.array([2, 3, 3], np.int64))
    return ops.SparseMatrixMatMul(matrix, dense, transpose_a=True)


def _sparse_product(a: str, b: str) -> Body:
    def body(values: Any, others: Any) -> Any:
        dtype = _dtype(values)
        matrices = (_matrix(values), _matrix(others, INDICES[:, ::-1][[1, 0, 2, 3]]))
        found = ops.SparseMatrixSparseMatMul(*matrices, type=dtype, **_named(a, b))
        return _dense(found, dtype)

    return body


def _turned(conjugate: bool) -> Body:
    return lambda values: _dense(
        ops.SparseMatrixTranspose(_matrix(values), conjugate=conjugate, type=_dtype(values)),
        _dtype(values),
    )


def _complex(values: Any) -> np.ndarray:
    real = np.array(values, np.float32)
    return (real + 0.5j * np.cos(np.arange(real.size)).reshape(real.shape)).astype(np.complex64)


CASES: dict[str, GradientCase] = {
    "SparseTensorToCSRSparseMatrix": case(lambda x: _dense(_matrix(x), "float32"), VALUES),
    "DenseToCSRSparseMatrix":
        case(lambda x: _dense(ops.DenseToCSRSparseMatrix(x, INDICES), "float32"), DENSE),
    "CSRSparseMatrixToSparseTensor": case(
        lambda x: ops.CSRSparseMatrixToSparseTensor(_matrix(x), type="float32")[1], VALUES
    ),
    **{f"SparseMatrixMatMul_{a}_{b}": case(_product(a, b), VALUES, DENSE) for a, b in FLAGS},
    **{f"SparseMatrixMatMul_complex_{a}_{b}":
       case(_product(a, b), _complex(VALUES), _complex(DENSE)) for a, b in FLAGS[:4]},
    **{f"SparseMatrixMatMul_turned_{a}_{b}":
       case(_product(a, b, transpose_output=True), VALUES, DENSE) for a, b in FLAGS[:4]},
    "SparseMatrixMatMul_batched": case(_batched, VALUES, PAIR),
    **{f"SparseMatrixSparseMatMul_{a}_{b}": case(_sparse_product(a, b), VALUES, OTHERS)
       for a, b in FLAGS},
    **{f"SparseMatrixTranspose_{conjugate}": case(_turned(conjugate), _complex(VALUES))
       for conjugate in (False, True)},
}  # fmt: skip
