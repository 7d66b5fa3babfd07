"""Products, decompositions and solutions; Einsum; Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

M = [[1.0, 2.0], [3.0, 5.0]]
M2 = [[0.5, -1.0], [2.0, 0.25]]
WIDE = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]
BATCH = np.array([M, M2], np.float32)
C = np.array([[0.5 + 0.25j, -0.75 + 0.5j], [1.5 - 2j, 1 + 1j]], np.complex64)
C2 = np.array([[1 - 0.5j, 0.25 + 1j], [-0.5 - 0.75j, 2j]], np.complex64)
REGULAR = np.array([[[4.0, 1.0, 0.5], [0.25, 3.0, 1.0], [0.5, -1.0, 2.0]]] * 2, np.float32)
REGULAR[1] += np.eye(3, dtype=np.float32)
POSITIVE = REGULAR @ REGULAR.transpose(0, 2, 1)
RIGHT = (np.arange(12, dtype=np.float32) / 4 - 1).reshape(2, 3, 2)
CUBE = (np.arange(24, dtype=np.float32) / 8 - 1).reshape(2, 3, 4)
WAVE = (np.arange(48) / 16 - 1 + 0.5j * np.sin(np.arange(48))).reshape(2, 2, 3, 4)
WAVE = WAVE.astype(np.complex64)


def _flags(op: str, first: str, second: str, a: bool, b: bool) -> Body:
    return lambda x, y: getattr(ops, op)(x, y, **{first: a, second: b})


def _einsum(equation: str) -> Body:
    return lambda *operands: ops.Einsum(list(operands), equation=equation)


def _sparse(adjoint_a: bool, adjoint_b: bool) -> Body:
    indices = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
    shape = np.array([2, 3], np.int64)

    def product(values: Any, b: Any) -> Any:
        return ops.SparseTensorDenseMatMul(
            indices, values, shape, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b
        )

    return product


BOOLS = [(a, b) for a in (False, True) for b in (False, True)]
_EINSUMS: dict[str, tuple[Any, ...]] = {
    "ij,jk->ik": (WIDE, RIGHT[0]),
    "ij,kj->ki": (WIDE, CUBE[0, :, :3]),
    "bij,bjk->bik": (CUBE[:, :2, :3], RIGHT),
    "ij,j->": (WIDE, [1.0, 2.0, 3.0]),
    "ij->ji": (WIDE,),
    "ijk->j": (CUBE,),
    "i,j->ij": ([1.0, 2.0], [3.0, 4.0, 5.0]),
    "...ij,jk->...ik": (CUBE[:, :2, :3], RIGHT[0]),
    "...ij,...jk->...ik": (CUBE[:1, :2, :3], RIGHT),
    "abc,cd->abd": (CUBE, CUBE[0].T),
    "i...,i->...": (CUBE, [1.0, 2.0]),
    "ab,bc->c": (WIDE, RIGHT[0]),
}

CASES: dict[str, GradientCase] = {
    **{f"MatMul_{int(a)}{int(b)}": case(_flags("MatMul", "transpose_a", "transpose_b", a, b), M, M2)
       for a, b in BOOLS},
    **{f"SparseMatMul_{int(a)}{int(b)}":
       case(_flags("SparseMatMul", "transpose_a", "transpose_b", a, b), M, M2) for a, b in BOOLS},
    "MatMul_wide": case(ops.MatMul, M, WIDE),
    **{f"MatMul_complex_{int(a)}{int(b)}":
       case(_flags("MatMul", "transpose_a", "transpose_b", a, b), C, C2) for a, b in BOOLS},
    **{f"{op}_{int(a)}{int(b)}": case(_flags(op, "adj_x", "adj_y", a, b), BATCH, BATCH + 1)
       for op in ("BatchMatMul", "BatchMatMulV2") for a, b in BOOLS},
    **{f"BatchMatMulV2_complex_{int(a)}{int(b)}":
       case(_flags("BatchMatMulV2", "adj_x", "adj_y", a, b), C[None], C2[None]) for a, b in BOOLS},
    "BatchMatMulV2_broadcast": case(ops.BatchMatMulV2, BATCH[:, None], BATCH[:1] + 1),
    "BatchMatMulV3": case(
        lambda a, b: ops.BatchMatMulV3(a, b, Tout=a.dtype, adj_x=True),
        BATCH[:, None], BATCH[:1] + 1,
    ),
    "MatMul_twice": case(lambda a, b: ops.Tanh(ops.MatMul(a, b)), M, M2, order=2),
    "MatrixInverse": case(ops.MatrixInverse, REGULAR, tolerance=3e-5),
    "MatrixInverse_adjoint": case(lambda x: ops.MatrixInverse(x, adjoint=True), REGULAR,
                                  tolerance=3e-5),
    "MatrixInverse_complex": case(lambda x: ops.MatrixInverse(x, adjoint=True), C, tolerance=3e-5),
    "MatrixDeterminant": case(ops.MatrixDeterminant, REGULAR, tolerance=3e-5),
    "LogMatrixDeterminant": case(lambda x: ops.LogMatrixDeterminant(x)[1], REGULAR, tolerance=3e-5),
    "Cholesky": case(ops.Cholesky, POSITIVE, tolerance=1e-4),
    **{f"MatrixSolve_{int(a)}": case(lambda x, y, a=a: ops.MatrixSolve(x, y, adjoint=a), REGULAR,
                                     RIGHT, tolerance=3e-5) for a in (False, True)},
    "MatrixSolve_complex": case(ops.MatrixSolve, C, C2, tolerance=3e-5),
    **{f"MatrixTriangularSolve_{int(lower)}{int(a)}":
       case(lambda x, y, lower=lower, a=a: ops.MatrixTriangularSolve(x, y, lower=lower, adjoint=a),
            REGULAR, RIGHT, tolerance=3e-5) for lower, a in BOOLS},
    "MatrixTriangularSolve_broadcast":
        case(ops.MatrixTriangularSolve, REGULAR[:1], RIGHT, tolerance=3e-5),
    "SelfAdjointEigV2": case(lambda x: ops.SelfAdjointEigV2(x)[0], POSITIVE, tolerance=1e-4),
    "SelfAdjointEigV2_values":
        case(lambda x: ops.SelfAdjointEigV2(x, compute_v=False)[0], POSITIVE, tolerance=1e-4),
    "SelfAdjointEigV2_vectors":
        case(lambda x: ops.Square(ops.SelfAdjointEigV2(x)[1]), POSITIVE, tolerance=1e-4),
    **{f"SparseTensorDenseMatMul_{int(a)}{int(b)}":
       case(_sparse(a, b), [1.0, 2.0, 3.0],
            (np.array(WIDE, np.float32)[:, :2] if a else CUBE[0, :3, :2]).T
            if b else (np.array(WIDE, np.float32) if a else CUBE[0, :3]))
       for a, b in BOOLS},
    **{f"Einsum {equation}": case(_einsum(equation), *operands)
       for equation, operands in _EINSUMS.items()},
    "Einsum_complex": case(_einsum("ij,kj->ik"), C, C2),
    **{op: case(getattr(ops, op), WAVE)
       for op in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")},
}  # fmt: skip
