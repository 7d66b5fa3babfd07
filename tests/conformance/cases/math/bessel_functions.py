"""Bessel functions of order 0 and 1, on both sides of the points where expansions change."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

OPS = tuple(
    f"Bessel{kind}{order}{scaled}"
    for kind, scaled in (("I", ""), ("I", "e"), ("K", ""), ("K", "e"), ("J", ""), ("Y", ""))
    for order in (0, 1)
)
POINTS = np.array([1e-6, 0.25, 0.5, 1, 1.75, 2, 2.25, 3, 5, 7.9, 8, 8.1, 12, 25, 60])
EDGES = np.array([-20, -3, -0.5, 0, np.inf, -np.inf, np.nan])

CASES: tuple[Case, ...] = (
    *(
        case(op, POINTS[:-1].astype(t), name=f"{op}_{np.dtype(t)}", tolerance=tolerance)
        for op in OPS
        for t, tolerance in ((np.float32, 1e-4), (np.float64, 1e-11))
    ),
    *(case(op, POINTS[2:9].astype(np.float16), name=f"{op}_half", tolerance=4e-3) for op in OPS),
    *(case(op, EDGES[1:4], name=f"{op}_left") for op in OPS),
    *(case(op, np.float32(1.5), name=f"{op}_scalar") for op in OPS),
    *(case(op, EDGES, name=f"{op}_edges") for op in OPS if op not in ("BesselI0", "BesselI1")),
    # In single precision, the phase of a large argument has few correct digits.
    *(case(op, np.float32([1e4, 3e5, 777, 1e30]), name=f"{op}_far") for op in OPS[-4:]),
)
