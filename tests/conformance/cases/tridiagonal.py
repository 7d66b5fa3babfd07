"""TridiagonalMatMul."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(6)
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def product(*shapes: tuple[int, ...], dtype: type = np.float32, message: bool = False) -> Case:
    imaginary = 1j if np.dtype(dtype).kind == "c" else 0
    inputs = (RNG.normal(size=shape) + imaginary * RNG.normal(size=shape) for shape in shapes)
    return case("TridiagonalMatMul", *(each.astype(dtype) for each in inputs), message=message)


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
)  # fmt: skip
