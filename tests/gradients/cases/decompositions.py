"""Decompositions, least squares and square roots of matrices; tridiagonal and banded matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

WAVE = np.sin(np.arange(24) ** 2 * 0.37 + 0.3).reshape(2, 3, 4)
TALL, WIDE, SQUARE = WAVE.transpose(0, 2, 1).copy(), WAVE, WAVE[..., :3] + np.diag([1.0, 2.0, 3.0])
IMAGINARY = 0.5j * np.cos(np.arange(24) * 0.9).reshape(2, 3, 4)
C_WIDE = WAVE + IMAGINARY
C_TALL, C_SQUARE = C_WIDE.transpose(0, 2, 1).copy(), SQUARE + IMAGINARY[..., :3]
SHAPES = {"tall": TALL, "wide": WIDE, "square": SQUARE}
COMPLEX = {"tall": C_TALL, "wide": C_WIDE, "square": C_SQUARE}
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(3)
DIAGONALS = WAVE + np.array([[0.0], [3.0], [0.0]])
RIGHT = np.cos(np.arange(16) * 1.1).reshape(2, 4, 2)


def _squares(x: Any) -> Any:
    """|x|², which does not depend on the signs and phases of singular vectors."""
    return ops.Square(ops.ComplexAbs(x, Tout="float64") if x.dtype.numpy.kind == "c" else x)


def _svd(**attrs: Any) -> Body:
    def values_and_vectors(x: Any) -> list[Any]:
        s, u, v = ops.Svd(x, **attrs)
        return [s, _squares(u), _squares(v)] if attrs.get("compute_uv", True) else [s]

    return values_and_vectors


def _qr(x: Any, **attrs: Any) -> list[Any]:
    return [_squares(each) for each in ops.Qr(x, **attrs)]


def _eig(x: Any) -> list[Any]:
    e, v = ops.Eig(x, Tout="complex128")
    return [ops.Square(e), _squares(v)]


def _with(op: str, **attrs: Any) -> Body:
    return lambda *inputs: getattr(ops, op)(*inputs, **attrs)


def _least_squares(a: Any, b: Any) -> Any:
    return ops.MatrixSolveLs(a, b, 0.25)


BOOLS = [(a, b) for a in (False, True) for b in (False, True)]

CASES: dict[str, GradientCase] = {
    **{f"Svd_{name}": case(_svd(), x) for name, x in SHAPES.items()},
    **{f"Svd_complex_{name}": case(_svd(), x) for name, x in COMPLEX.items()},
    **{f"Svd_full_{name}": case(_svd(full_matrices=True), x) for name, x in SHAPES.items()},
    "Svd_values": case(_svd(compute_uv=False), TALL),
    **{f"Qr_{name}": case(_qr, x) for name, x in SHAPES.items()},
    **{f"Qr_complex_{name}": case(_qr, x) for name, x in COMPLEX.items()},
    "Qr_full_wide": case(lambda x: _qr(x, full_matrices=True), WIDE),
    "Eig": case(_eig, SQUARE),
    "Eig_complex": case(_eig, C_SQUARE[1]),
    "Eig_values": case(_with("Eig", compute_v=False, Tout="complex128"), SQUARE),
    "MatrixSquareRoot": case(ops.MatrixSquareRoot, POSITIVE),
    "MatrixSquareRoot_complex": case(ops.MatrixSquareRoot, POSITIVE + IMAGINARY[..., :3]),
    "MatrixSolveLs_tall": case(_least_squares, TALL, RIGHT),
    "MatrixSolveLs_wide": case(_least_squares, WIDE, RIGHT[:, :3]),
    "TridiagonalSolve": case(ops.TridiagonalSolve, DIAGONALS, RIGHT),
    "TridiagonalSolve_complex":
        case(ops.TridiagonalSolve, DIAGONALS + IMAGINARY, RIGHT + 0.5j),
    "TridiagonalMatMul": case(
        ops.TridiagonalMatMul, WAVE[:, :1], WAVE[:, 1:2], WAVE[:, 2:], RIGHT
    ),
    "TridiagonalMatMul_complex": case(
        ops.TridiagonalMatMul, C_WIDE[:, :1], C_WIDE[:, 1:2], C_WIDE[:, 2:], RIGHT + 0.5j
    ),
    **{f"BandedTriangularSolve_{int(lower)}{int(adjoint)}":
       case(_with("BandedTriangularSolve", lower=lower, adjoint=adjoint),
            WAVE[:, :2] + np.array([[0.0], [3.0]] if not lower else [[3.0], [0.0]]), RIGHT)
       for lower, adjoint in BOOLS},
    "BandedTriangularSolve_broadcast":
        case(ops.BandedTriangularSolve, WAVE[:1, :2] + np.array([[3.0], [0.0]]), RIGHT),
}  # fmt: skip
