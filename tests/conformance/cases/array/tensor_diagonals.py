"""Diag and DiagPart of every rank."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.case import case

TYPES = (
    np.float16, np.float64, np.int32, np.int64, np.complex64, np.complex128,
)  # fmt: skip
NUMBERS = np.arange(1, 65, dtype=np.float32)

CASES = (
    *(
        case("Diag", NUMBERS[: math.prod(shape)].reshape(shape), message=True)
        for shape in ((3,), (2, 3), (2, 1, 2), (0,), (2, 0), (1,), ())
    ),
    *(
        case("DiagPart", NUMBERS[: math.prod(shape)].reshape(shape), message=True)
        for shape in (
            (3, 3), (2, 3, 2, 3), (2, 1, 2, 2, 1, 2), (0, 0), (2, 0, 2, 0), (),
            (3,), (2, 3, 2), (2, 3), (2, 2, 2, 3),
        )
    ),
    *(case("Diag", NUMBERS[:4].astype(t)) for t in TYPES),
    *(case("DiagPart", NUMBERS[:9].reshape(3, 3).astype(t)) for t in TYPES),
)  # fmt: skip
