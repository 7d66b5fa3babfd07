"""Decompositions, inverses, solutions. Factors are unique up to a phase: products are compared."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, Graph, Step, case

FLOATS = (np.float32, np.float64)
COMPLEXES = (np.complex64, np.complex128)
TYPES = (*FLOATS, *COMPLEXES)
DEFINITE = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]])
GENERAL = np.array([[1, 2, 0], [3, 1, 4], [5, 1, 2]])
BATCH = np.stack([GENERAL, DEFINITE])
TALL = np.array([[1, 2], [3, 4], [5, 7]])
RHS = np.array([[1, 2], [3, 4], [0, 5]])
OFF = 1j * np.array([[0, 1, -2], [-1, 0, 1], [2, -1, 0]])
TOLERANCE = {np.float32: 1e-4, np.complex64: 1e-4}
SQUARE_OPS = (
    "Cholesky", "MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "SelfAdjointEigV2",
    "Lu",
)  # fmt: skip
NARROW = np.ones((2, 3), np.float32)
SINGULAR = np.ones((2, 2), np.float32)
EMPTY = (np.zeros((0, 0), np.float32), np.zeros((2, 0, 0), np.float32))
NAN = np.array([[np.nan, 1], [1, 1]], np.float32)


def of_type(matrix: np.ndarray, dtype: type) -> np.ndarray:
    """Return the matrix as `dtype`; a complex 3 x 3 one gets an imaginary part."""
    if np.dtype(dtype).kind == "c" and matrix.shape[-2:] == (3, 3):
        return (matrix + OFF).astype(dtype)
    return matrix.astype(dtype)


def recomposed(op: str, matrix: np.ndarray, **attrs: object) -> Case:
    """Return a case that multiplies the factors of Qr, Svd, SelfAdjointEigV2 or Eig again."""
    graph = Graph()
    placeholder = graph.placeholder(from_numpy(matrix.dtype), "x")
    factors = graph.add(op, placeholder, name="result", **attrs)
    if op == "Qr":
        product = graph.add("BatchMatMulV2", *factors)[0]
    elif op == "Svd":
        values = graph.add("MatrixDiag", factors[0])[0]
        scaled = graph.add("BatchMatMulV2", factors[1], values)[0]
        product = graph.add("BatchMatMulV2", scaled, factors[2], adj_y=True)[0]
    else:
        values = graph.add("MatrixDiag", factors[0])[0]
        scaled = graph.add("BatchMatMulV2", factors[1], values)[0]
        inverse = graph.add("MatrixInverse", factors[1])[0]
        product = graph.add("BatchMatMulV2", scaled, inverse)[0]
    fetches = (product[0],) if op == "Eig" else (product[0], factors[0][0])
    fetches = fetches[:1] if op == "Qr" else fetches
    name = f"{op}_recomposed_{matrix.dtype}_{matrix.shape}_{len(attrs)}".replace(" ", "")
    return Case(name, graph.graph_def, (Step({"x:0": matrix}, fetches),), tolerance=1e-4)


def values_only(op: str, matrix: np.ndarray, **attrs: object) -> Case:
    """Return a case that fetches only the values; TensorFlow leaves the vectors undefined."""
    graph = Graph()
    placeholder = graph.placeholder(from_numpy(matrix.dtype), "x")
    output = graph.add(op, placeholder, name="result", **attrs)[0]
    step = Step({"x:0": matrix}, (output[0],))
    name = f"{op}_values_{matrix.dtype}_{matrix.shape}".replace(" ", "")
    return Case(name, graph.graph_def, (step,), tolerance=1e-4)


NOT_FINITE = (
    ("nan_first", [[np.nan, 1], [1, 1]]),
    ("nan_last", [[1, 2, 3], [4, 5, 6], [7, 8, np.nan]]),
    ("nan_of_a_batch", [[[1, 2], [3, 4]], [[np.nan, np.nan], [1, 2]]]),
    ("infinite", [[np.inf, 1], [1, 1]]),
    ("infinite_twice", [[np.inf, 0], [0, -np.inf]]),
)


def squares() -> list[Case]:
    cases = [
        case(op, of_type(matrix, t), name=f"{op}_{label}_{np.dtype(t)}", tolerance=TOLERANCE.get(t))
        for op in SQUARE_OPS[:4]
        for t in TYPES
        for label, matrix in (("definite", DEFINITE), ("batch", np.stack([DEFINITE, DEFINITE * 2])))
    ]
    cases += [case(op, NARROW, name=f"{op}_narrow", message=True) for op in SQUARE_OPS]
    cases += [
        case(op, np.ones(1, np.float32), name=f"{op}_vector", message=True) for op in SQUARE_OPS
    ]
    cases += [
        case(op, each, name=f"{op}_empty_{each.ndim}") for op in SQUARE_OPS[:5] for each in EMPTY
    ]
    return [
        *cases,
        *(case(op, BATCH.astype(np.float64)) for op in SQUARE_OPS[1:4]),
        case("Cholesky", np.array([[1, 2], [2, 1]], np.float32)),
        case("Cholesky", np.stack([SINGULAR * [[1, 2], [2, 1]], SINGULAR + np.eye(2)]).astype("f")),
        case("Cholesky", np.array([[4, 99], [2, 3]], np.float32)),
        case("MatrixInverse", SINGULAR, message=True),
        case("MatrixInverse", GENERAL.astype(np.float16), adjoint=True),
        case("Eig", GENERAL.astype("f"), Tout=DataType.COMPLEX128, message=True),
        case("MatrixInverse", of_type(GENERAL, np.complex64), adjoint=True),
        case("LogMatrixDeterminant", SINGULAR),
        case("LogMatrixDeterminant", np.array([[0, 1], [1, 0]], np.float32)),
        case("Lu", GENERAL.astype(np.float64)),
        case("Lu", BATCH.astype(np.complex128), output_idx_type=DataType.INT64),
        case("Lu", SINGULAR, message=True),
        *(
            case(op, np.array(matrix, np.float64), name=f"{op}_{label}", message=True)
            for op in ("MatrixInverse", "Lu")
            for label, matrix in NOT_FINITE[:3]
        ),
        *(
            case(op, np.array(matrix, t), name=f"{op}_{label}_{np.dtype(t)}")
            for op in ("MatrixDeterminant", "LogMatrixDeterminant")
            for t in (np.float32, np.float64)
            for label, matrix in NOT_FINITE
        ),
    ]


def solvers() -> list[Case]:
    flags = (False, True)
    cases = [
        case("MatrixSolve", of_type(GENERAL, t), RHS.astype(t), adjoint=adjoint)
        for t in TYPES
        for adjoint in flags
    ]
    cases += [
        case(
            "MatrixTriangularSolve",
            of_type(DEFINITE, t),
            RHS.astype(t),
            lower=lower,
            adjoint=adjoint,
        )
        for t in TYPES
        for lower in flags
        for adjoint in flags
    ]
    cases += [
        case("MatrixSolveLs", matrix.astype(t), rhs.astype(t), np.float64(0.5), tolerance=1e-4)
        for t in TYPES
        for matrix, rhs in ((TALL, RHS), (TALL.T, RHS[:2]))
    ]
    cases += [
        case("MatrixSolveLs", matrix.astype("d"), rhs.astype("d"), np.float64(0.0), fast=fast)
        for fast in flags
        for matrix, rhs in ((TALL, RHS), (TALL.T, RHS[:2]))
    ]
    ones = np.ones
    bad = (
        (SINGULAR, ones((2, 1), "f")),
        (ones((2, 2), "f"), ones((3, 1), "f")),
        (ones((2, 2), "f"), ones(2, "f")),
        (NARROW, ones((2, 1), "f")),
        (ones((2, 2, 2), "f"), ones((3, 2, 1), "f")),
    )
    cases += [case("MatrixSolve", *each, message=True) for each in bad]
    cases += [case("MatrixTriangularSolve", *each, message=True) for each in bad[1:]]
    return [
        *cases,
        case("MatrixSolve", BATCH.astype("d"), np.stack([RHS, RHS + 1]).astype("d")),
        case("MatrixSolve", EMPTY[0], ones((0, 1), "f")),
        *(
            case(
                "MatrixSolve",
                np.array(matrix, np.float64),
                np.ones(np.shape(matrix)),
                name=f"MatrixSolve_{label}",
                message=True,
            )
            for label, matrix in NOT_FINITE[:3]
        ),
        case("MatrixSolve", SINGULAR + np.eye(2, dtype="f"), ones((2, 0), "f")),
        case("MatrixTriangularSolve", np.array([[0, 0], [1, 1]], "f"), np.array([[1], [2]], "f")),
        case("MatrixTriangularSolve", BATCH.astype("d"), RHS.astype("d")),
        case("MatrixTriangularSolve", EMPTY[0], ones((0, 1), "f")),
        case("MatrixSolveLs", TALL.astype("f"), ones((2, 1), "f"), np.float64(0), message=True),
        case("MatrixSolveLs", TALL.astype("f"), ones((3, 1), "f"), np.float64(-1), message=True),
        case("MatrixSolveLs", TALL.astype("f"), ones((3, 1), "f"), np.array([1.0]), message=True),
        case("MatrixSolveLs", ones((3, 0), "f"), ones((3, 1), "f"), np.float64(0)),
        case("MatrixSolveLs", TALL.astype("f"), ones((3, 1), "f"), np.float64("nan"), message=True),
        case("Svd", np.array([[[1, 2], [3, 4]], [[np.nan, 2], [5, 4]]], "d"), compute_uv=False),
        *(
            case("MatrixSolveLs", odd, ones((3, 1), odd.dtype), np.float64(0), fast=False)
            for t in ("d", "F")
            for odd in (np.where(np.eye(3, 2) == 1, np.nan, TALL).astype(t),)
        ),
        case("MatrixSolveLs", TALL.astype("f"), ones((3, 1), "f"), np.float64("inf")),
        case("MatrixSolveLs", TALL.T.astype("d"), ones((2, 1), "d"), np.float64("inf")),
    ]


def decompositions() -> list[Case]:
    cases = [recomposed("Qr", of_type(matrix, t)) for t in TYPES for matrix in (GENERAL, TALL.T)]
    cases += [recomposed("Svd", of_type(matrix, t)) for t in TYPES for matrix in (BATCH, TALL)]
    cases += [recomposed("SelfAdjointEigV2", of_type(DEFINITE, t)) for t in TYPES]
    cases += [
        recomposed("Eig", of_type(GENERAL, t), Tout=DataType.COMPLEX64)
        for t in (np.float32, np.complex64)
    ]
    cases += [
        recomposed("Eig", of_type(BATCH, t), Tout=DataType.COMPLEX128)
        for t in (np.float64, np.complex128)
    ]
    cases += [values_only("SelfAdjointEigV2", of_type(DEFINITE, t), compute_v=False) for t in TYPES]
    cases += [
        values_only("Svd", matrix.astype("d"), compute_uv=False)
        for matrix in (TALL, TALL.T, GENERAL)
    ]
    return [
        *cases,
        case("Qr", TALL.astype("d"), full_matrices=True),
        case("Qr", np.zeros((0, 2), "f")),
        case("Qr", np.zeros((2, 0), "f"), full_matrices=True),
        case("Qr", TALL.astype(np.float16), tolerance=0.02),
        case("Qr", np.ones(1, "f"), message=True),
        case("Svd", np.zeros((0, 2), "f")),
        case("Svd", np.zeros((2, 0), "f"), full_matrices=True),
        case("Svd", NAN),
        case("Svd", np.ones(1, "f"), message=True),
        case("SelfAdjointEigV2", NAN, message=True),
        case("Eig", NAN, Tout=DataType.COMPLEX64, message=True),
        case("Eig", NARROW, Tout=DataType.COMPLEX64, message=True),
        case("Eig", EMPTY[0], Tout=DataType.COMPLEX64),
        values_only(
            "Eig", np.array([[2, 1], [0, 3]], "d"), Tout=DataType.COMPLEX128, compute_v=False
        ),
    ]


def old_names() -> list[Case]:
    """Return cases of op names from before GraphDef version 13."""
    rhs, scale = np.stack([RHS, RHS]).astype("d"), np.float64(0.5)
    calls = (
        ("BatchCholesky", np.stack([DEFINITE, DEFINITE]).astype("d")),
        ("BatchMatrixDeterminant", BATCH.astype("d")),
        ("BatchMatrixInverse", BATCH.astype("d")),
        ("BatchMatrixSolve", BATCH.astype("d"), rhs),
        ("BatchMatrixSolveLs", BATCH.astype("d"), rhs, scale),
        ("BatchMatrixTriangularSolve", BATCH.astype("d"), rhs),
    )
    cases = []
    for op, *inputs in calls:
        graph = Graph()
        graph.graph_def.versions.producer = 12
        output = graph.add(op, *inputs, name="result")[0]
        cases.append(Case(f"{op}_old", graph.graph_def, (Step({}, (output[0],)),)))
    for op, fetched in (("BatchSelfAdjointEigV2", 0), ("BatchSvd", 0)):
        graph = Graph()
        graph.graph_def.versions.producer = 12
        outputs = graph.add(op, np.stack([DEFINITE, DEFINITE]).astype("d"), name="result")
        cases.append(Case(f"{op}_old", graph.graph_def, (Step({}, (outputs[fetched][0],)),)))
    return cases


def crosses() -> list[Case]:
    left, right = np.array([[1, 2, 3], [0, 1, 0]]), np.array([[2, 0, 1], [1, 0, 0]])
    return [
        *(
            case("Cross", left.astype(t), right.astype(t))
            for t in (*FLOATS, np.float16, np.int8, np.int32, np.int64, np.uint8)
        ),
        case("Cross", np.ones((1, 2), "f"), np.ones((1, 2), "f"), message=True),
        case("Cross", np.ones((1, 3), "f"), np.ones(3, "f"), message=True),
        case("Cross", np.float32(1), np.float32(1), message=True),
    ]


CASES: tuple[Case, ...] = (
    *squares(),
    *solvers(),
    *decompositions(),
    *old_names(),
    *crosses(),
)
