"""Exponentials, logarithms, roots; gradients of factors; names that old graphs use."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case, from_producer

RNG = np.random.default_rng(21)
FLOATS, COMPLEXES = (np.float32, np.float64), (np.complex64, np.complex128)
GENERAL = RNG.normal(size=(2, 3, 4, 4)) + 3 * np.eye(4)
COMPLEX = GENERAL + 0.5j * RNG.normal(size=GENERAL.shape)
ROTATION = np.array([[0.0, 1], [-1, 0]])
DEFECTIVE = np.array([[2.0, 1], [0, 2]])
NEGATIVE = np.array([[-1.0, 0], [0, 4]])
LARGE = 20 * RNG.normal(size=(3, 3))
TOLERANCE = {np.dtype("f"): 1e-4, np.dtype("F"): 1e-4, np.dtype("d"): 1e-8, np.dtype("D"): 1e-8}


def function(op: str, matrix: np.ndarray) -> Case:
    return case(op, matrix, tolerance=TOLERANCE[matrix.dtype])


def exponential(matrix: np.ndarray) -> Case:
    """Return a case of MatrixExponential in an older GraphDef; newer ones may not contain it."""
    return from_producer(26, function("MatrixExponential", matrix))


def factor_gradient(dtype: type, *shape: int, op: str = "CholeskyGrad") -> Case:
    # Not factored here: the last digits of a factor, and so the digest, are the machine's.
    factor = np.tril(RNG.normal(size=shape) / 4) + np.eye(shape[-1])
    return case(op, factor.astype(dtype), RNG.normal(size=shape).astype(dtype), tolerance=1e-4)


NARROW = np.ones((2, 3), np.complex64)
CASES = (
    *(function("MatrixSquareRoot", (GENERAL @ GENERAL.swapaxes(-1, -2)).astype(t)) for t in FLOATS),
    *(function("MatrixSquareRoot", COMPLEX.astype(t)) for t in COMPLEXES),
    *(function("MatrixLogarithm", COMPLEX.astype(t)) for t in COMPLEXES),
    *(exponential((GENERAL / 2).astype(t)) for t in FLOATS),
    *(exponential((COMPLEX / 2).astype(t)) for t in COMPLEXES),
    exponential(LARGE), exponential(ROTATION), exponential(DEFECTIVE),
    exponential(np.zeros((2, 0, 0))), exponential(np.zeros((2, 2, 2))),
    *(function("MatrixSquareRoot", m) for m in (ROTATION, DEFECTIVE, NEGATIVE, np.eye(3))),
    *(function("MatrixLogarithm", m + 0j) for m in (ROTATION, DEFECTIVE, NEGATIVE, np.eye(3))),
    function("MatrixSquareRoot", np.zeros((2, 0, 0))), function("MatrixLogarithm", NARROW),
    function("MatrixSquareRoot", NARROW), function("MatrixSquareRoot", NARROW[0]),
    *(factor_gradient(t, 2, 4, 4) for t in FLOATS), factor_gradient(np.float64, 3, 3),
    from_producer(12, factor_gradient(np.float64, 2, 3, 3, op="BatchCholeskyGrad")),
    from_producer(10, case("SelfAdjointEig", np.diag([1.0, 2, 4]))),
    from_producer(10, case("BatchSelfAdjointEig", np.stack([np.diag([1.0, 2]), np.eye(2)]))),
    from_producer(13, case("BatchMatrixBandPart", GENERAL, np.int64(1), np.int64(0))),
    from_producer(13, case("BatchMatrixDiag", np.array([[1, 2], [3, 4]], "f"))),
    from_producer(13, case("BatchMatrixDiagPart", np.array([[[1, 2], [3, 4]]], "i"))),
    from_producer(13, case("BatchMatrixSetDiag", GENERAL[0], GENERAL[0, :, 0])),
    exponential(np.stack([LARGE, np.full((3, 3), np.inf), np.full((3, 3), np.nan)])),
)  # fmt: skip
