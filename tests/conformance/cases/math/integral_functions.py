"""Special integral functions, on both sides of the limits between their series."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

POINTS = np.array([-3, -0.5, 0, 1e-6, 0.3, 0.5, 0.7, 1, 1.4, 1.5, 1.6, 3, 10, 39, 41, 60, np.nan])

ODD_POINTS = np.array(
    [0, 1e-8, -1e-3, 0.4, -0.9, 1.2, 1.49, 1.51, -1.7, 2.5, 4, -5.5, 7.9, 8.1, 20, -12.25,
     np.inf, -np.inf, np.nan]
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *(
        case(
            op,
            POINTS[start:stop].astype(t),
            name=f"{op}_{np.dtype(t)}_{start}",
            tolerance=tolerance,
        )
        for op in ("Expint", "Spence")
        for t, tolerance in ((np.float32, 1e-5), (np.float64, 1e-11))
        for start, stop in ((0, 8), (8, 12), (12, 17))
    ),
    *(
        case(op, point.astype(t), name=f"{op}_{np.dtype(t)}_{index}", tolerance=tolerance)
        for op in ("Dawsn", "FresnelCos", "FresnelSin")
        for t, tolerance in ((np.float32, 1e-5), (np.float64, 1e-11))
        for index, point in enumerate(ODD_POINTS)
    ),
)
