"""TridiagonalMatMul, TridiagonalSolve, BandedTriangularSolve."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(6)
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def product(*shapes: tuple[int, ...], dtype: type = np.float32, message: bool = False) -> Case:
    imaginary = 1j if np.dtype(dtype).kind == "c" else 0
    inputs = (RNG.normal(size=shape) + imaginary * RNG.normal(size=shape) for shape in shapes)
    return case("TridiagonalMatMul", *(each.astype(dtype) for each in inputs), message=message)


def solve(
    op: str, matrix: tuple[int, ...], rhs: tuple[int, ...], t: type = np.float64, **attrs: Any
) -> Case:
    """Equations with a large main diagonal, so that they are far from singular."""
    left: np.ndarray = RNG.normal(size=matrix).astype(t)
    if len(matrix) > 1 and matrix[-2]:
        main = {"TridiagonalSolve": 1 if matrix[-2] == 3 else 0}.get(
            op, 0 if attrs.get("lower", True) else -1
        )
        left[..., main, :] += 4
    return case(op, left, RNG.normal(size=rhs).astype(t), tolerance=1e-5, **attrs)


def singular(*rows: list[float], **attrs: Any) -> Case:
    rhs = np.array([[1, 4], [2, 5], [3, 6]], "d")
    return case("TridiagonalSolve", np.array(rows, "d"), rhs, tolerance=1e-6, **attrs)


BANDS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 5), (5, 2)), ((2, 4, 3, 6), (2, 4, 6, 1)), ((2, 3, 6), (6, 2)), ((3, 6), (2, 6, 2)),
    ((1, 4), (4, 1)), ((4, 4), (4, 1)), ((3, 1), (1, 1)),
)  # fmt: skip
WRONG_BANDS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3,), (3, 1)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 2, 3), (3, 3, 1)),
)  # fmt: skip
WRONG_DIAGONALS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (3, 1)), ((3, 3), (2, 1)), ((3,), (3, 1)), ((3, 3), (3,)), ((1, 3, 3), (3, 1)),
)  # fmt: skip
CASES = (
    *(
        product(*[(*batch, 1, rows)] * 3, (*batch, rows, 2), dtype=t)
        for t in TYPES
        for batch in ((), (2,), (0,))
        for rows in (0, 1, 2, 5)
    ),
    *(
        product(*shapes, message=True)
        for shapes in (
            ((1, 2), (1, 3), (1, 3), (3, 2)), ((1, 3), (1, 2), (1, 3), (3, 2)),
            ((1, 3), (1, 3), (1, 2), (3, 2)), ((3,), (1, 3), (1, 3), (3, 2)),
            ((2, 3), (2, 3), (2, 3), (3, 2)),
        )
    ),
    *(
        solve("TridiagonalSolve", (*batch, 3, rows), (*batch, rows, 2), t,
              partial_pivoting=pivoting)
        for t in TYPES
        for batch in ((), (2, 3))
        for rows in (0, 1, 2, 6)
        for pivoting in (False, True)
    ),
    *(
        singular(*rows, partial_pivoting=pivoting)
        for rows in (
            ([1, 2, 9], [0, 5, 6], [9, 7, 8]), ([1, 2, 9], [0, 0, 0], [0, 0, 0]),
            ([1, 2, 0], [1, 0.1, 3], [0, 70, 8]), ([1, 2, 0], [1e-9, 0.1, 3], [0, 70, 80]),
        )
        for pivoting in (False, True)
    ),
    singular([1, 2, 0], [1, 0.1, 3], [0, 70, 8], perturb_singular=True),
    singular([1, 2, 0], [1, 1, 3], [0, 7, 8], perturb_singular=True, partial_pivoting=False),
    *(solve("TridiagonalSolve", *shapes) for shapes in WRONG_DIAGONALS),
    *(
        solve("BandedTriangularSolve", *shapes, t, lower=lower, adjoint=adjoint)
        for t in TYPES
        for shapes in BANDS
        for lower in (True, False)
        for adjoint in (True, False)
    ),
    *(solve("BandedTriangularSolve", *shapes) for shapes in WRONG_BANDS),
    case("BandedTriangularSolve", np.array([[1, 0, 3]], "f"), np.ones((3, 1), "f"), message=True),
    case("BandedTriangularSolve", np.ones((0, 3), "f"), np.ones((3, 1), "f")),
    case("BandedTriangularSolve", np.ones((2, 3), "f"), np.ones((3, 0), "f")),
)  # fmt: skip
