"""Arithmetic of sparse tensors."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

INDICES, SHAPE = np.int64([[0, 1], [0, 2], [2, 0]]), np.int64([3, 4])
OTHER = np.int64([[0, 2], [1, 3]])
VALUES, OTHERS = np.float32([1, -2, 3]), np.float32([2, 0.5])
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
TYPES = (np.int32, np.int64, np.float64, np.int16, np.uint8)

# (indices, values, shape) that do not fit together.
MISFITS = (
    (np.zeros((1, 3)), np.zeros(3), [1, 2, 3]),
    (np.zeros((3, 3)), np.zeros(3), [1, 2]),
    (np.zeros(3), np.zeros(3), [1, 2]),
    (np.zeros((3, 2)), np.zeros((3, 1)), [1, 2]),
    (np.zeros((3, 2)), np.zeros(3), [[1, 2]]),
    (np.zeros((3, 2)), np.zeros(3), 3),
)


def misfit(given: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.int64(given[0]), np.float32(given[1]), np.int64(given[2])


CASES = (
    *(
        case("SparseTensorDenseAdd", indices, values, shape, dense, message=True)
        for indices, values, shape, dense in (
            (INDICES, VALUES, SHAPE, DENSE), (INDICES[:0], VALUES[:0], SHAPE, DENSE),
            (INDICES[[0, 0, 1]], VALUES, SHAPE, DENSE), (INDICES, VALUES, SHAPE, DENSE[:, :3]),
            (INDICES + 2, VALUES, SHAPE, DENSE), (INDICES, VALUES.astype(np.complex64), SHAPE,
                                                 DENSE.astype(np.complex64)),
        )
    ),
    *(
        case("SparseTensorDenseMatMul", indices, values, SHAPE, dense, adjoint_a=a, adjoint_b=b,
             message=True)
        for indices, values, dense, a, b in (
            (INDICES, VALUES, DENSE.T, False, False), (INDICES, VALUES, DENSE, True, False),
            (INDICES, VALUES, DENSE, False, True), (INDICES, VALUES, DENSE.T, True, True),
            (INDICES[:0], VALUES[:0], DENSE.T, False, False),
            (INDICES[::-1], VALUES, DENSE.T, False, False),
            (INDICES, VALUES * 1j, DENSE.T * np.complex64(1 + 1j), False, False),
            (INDICES, VALUES * 1j, DENSE * np.complex64(1 + 1j), True, False),
            (INDICES, VALUES * 1j, DENSE * np.complex64(1 + 1j), False, True),
            (INDICES, VALUES.astype(np.float64), DENSE.T.astype(np.float64), False, False),
            (INDICES, VALUES, DENSE, False, False), (INDICES + 1, VALUES, DENSE.T, False, False),
            (INDICES * 4, VALUES, DENSE.T, False, False), (INDICES, VALUES, DENSE[0], False, False),
        )
    ),
    *(
        case("SparseAdd", INDICES, VALUES, SHAPE, OTHER, OTHERS, shape, thresh, message=True)
        for shape, thresh in ((SHAPE, 0.0), (SHAPE, 1.0), (np.int64([3, 5]), 0.0), (SHAPE, [1.0]))
    ),
    *(
        case("SparseAdd", INDICES, VALUES.astype(t), SHAPE, OTHER, OTHERS.astype(t), SHAPE, t(0))
        for t in (np.int32, np.int64, np.float64)
    ),
    # For complex values the threshold is a real number of the same precision.
    case(
        "SparseAdd", INDICES, VALUES * np.complex128(1 + 2j), SHAPE, OTHER,
        OTHERS * np.complex128(2 - 1j), SHAPE, np.float64(2), name="SparseAdd_complex128",
    ),
    *(
        case(op, INDICES, VALUES, SHAPE, indices, OTHERS, shape, message=True)
        for op in ("SparseSparseMaximum", "SparseSparseMinimum")
        for indices, shape in ((OTHER, SHAPE), (INDICES[1:], SHAPE), (OTHER, np.int64([3, 5])))
    ),
    *(
        case(op, INDICES, VALUES, SHAPE, dense, message=True)
        for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
        for dense in (DENSE, DENSE[0], DENSE[:, :1], DENSE[0, 0], np.zeros((4, 4), np.float32), 0.0)
    ),
    *(
        case(op, INDICES, VALUES.astype(t), SHAPE, DENSE.astype(t))
        for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
        for t in TYPES
        if t is not np.uint8
    ),
    *(
        case("SparseSoftmax", indices, values, shape, message=True)
        for indices, values, shape in (
            (INDICES, VALUES, SHAPE), (INDICES, VALUES.astype(np.float64), SHAPE),
            (INDICES[:0], VALUES[:0], SHAPE), (INDICES[:, :1], VALUES, SHAPE[:1]),
            (np.int64([[0, 0, 1], [0, 0, 2], [0, 1, 1]]), VALUES, np.int64([1, 2, 3])),
        )
    ),
    *(
        case("SparseMatMul", a, b, transpose_a=ta, transpose_b=tb, message=True)
        for a, b, ta, tb in (
            (DENSE, DENSE.T, False, False), (DENSE, DENSE, True, False),
            (DENSE, DENSE, False, True),
            (DENSE.astype(ml_dtypes.bfloat16), DENSE.T, False, False), (DENSE, DENSE, False, False),
            (DENSE.astype(ml_dtypes.bfloat16), DENSE.astype(ml_dtypes.bfloat16), True, False),
        )
    ),
    *(
        case("SparseAddGrad", gradient, INDICES, INDICES[1:], INDICES, message=True)
        for gradient in (VALUES, VALUES.astype(np.int64), VALUES[1:])
    ),
    case("SparseAddGrad", VALUES[:1], INDICES, INDICES[:0], INDICES[2:3]),
    *(
        case("SparseAddGrad", VALUES[:count], INDICES[:, :0], INDICES[:1, :0], INDICES[:count, :0])
        for count in (0, 1, 2)
    ),
    case("SparseAddGrad", VALUES, INDICES, INDICES[:, :1], INDICES),
    *(
        case("SparseTensorDenseAdd", *misfit(given), DENSE, message=True) for given in MISFITS
    ),
    case("SparseTensorDenseAdd", INDICES, VALUES, SHAPE, DENSE[0], message=True),
    *(case("SparseSoftmax", *misfit(given), message=True) for given in MISFITS),
    *(
        case("SparseSoftmax", INDICES[:1], VALUES[:1], np.int64(shape), message=True)
        for shape in ([2**62, 2**62], [-1, 2])
    ),
    *(
        case("SparseSparseMinimum", *misfit(given), *misfit(given), message=True)
        for given in MISFITS
    ),
    case("SparseSparseMinimum", INDICES + 5, VALUES, SHAPE, INDICES + 5, VALUES, SHAPE,
         message=True),
)  # fmt: skip
