"""Complex numbers: construction and parts."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

POINTS = np.array([[1 + 2j, -3.5j, 0], [-4, -0.0 - 1j, 3 - 4j]])
WIDTHS = (
    (np.complex64, DataType.COMPLEX64, np.float32, DataType.FLOAT),
    (np.complex128, DataType.COMPLEX128, np.float64, DataType.DOUBLE),
)

CASES: tuple[Case, ...] = (
    *(
        case(op, POINTS.astype(whole), Tout=part_type, name=f"{op}_{np.dtype(whole)}")
        for op in ("Real", "Imag", "Angle", "ComplexAbs")
        for whole, _, _, part_type in WIDTHS
    ),
    *(case("Conj", POINTS.astype(whole)) for whole, _, _, _ in WIDTHS),
    *(
        case("Complex", np.array([1, 2], part), np.array([[3], [4]], part), Tout=whole_type)
        for _, whole_type, part, _ in WIDTHS
    ),
    *(case(op, np.complex64(3 - 4j)) for op in ("Real", "Imag", "Angle", "ComplexAbs", "Conj")),
    case("Complex", np.float32(1), np.float32(2)),
    case("Complex", [1.0, 2.0], [1.0, 2.0, 3.0], message=True),
    case("Complex", np.array([1.0]), np.array([1.0]), Tout=DataType.COMPLEX64),
    case("Real", np.array([1j]), Tout=DataType.FLOAT),
)
