"""lgamma, digamma, zeta, polygamma, incomplete gamma and beta, inverse error functions."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

NAN, INF = np.nan, np.inf
POINTS = np.array([-2.5, -1.5, -1, 0, 1e-5, 0.25, 0.5, 0.75, 1, 1.5, 2, 3.7, 9.5, 30, INF, NAN])
PROBABILITIES = np.array([0, 1e-10, 1e-3, 0.1, 0.3, 0.5, 0.6, 0.9, 0.999, 1, 1.5, -0.5, NAN])
PAIRS = {
    "Zeta": ([2, 3, 1, 0.5, 2, 2, 2.5, 5, 20], [1, 2, 1, 1, -0.5, 0, -1.5, 0.1, 3]),
    "Polygamma": ([0, 1, 2, 1.5, -1, 1, 1, 4, 3], [1, 2, 3, 1, 1, 0, -0.5, 7, 0.2]),
    "Igamma": (
        [1, 2, 0.5, 0, -1, 1, 3, 10, INF, 1, 0, 4, 50, 50],
        [1, 2, 0.1, 1, 1, 0, -1, 30, 1, INF, 0, 2, 40, 70],
    ),
    "Igammac": (
        [1, 2, 0.5, -1, 1, 3, 10, INF, 1, 4, 50, 50],
        [1, 2, 0.1, 1, 0, -1, 30, 1, INF, 2, 40, 70],
    ),
}
BETAINC = (
    [1, 2, 0.5, 0, -1, 1, 3, 10, 1, 1, 5, 40],
    [1, 2, 0.1, 1, 1, 0, 2, 3, 1, 1, 0.5, 60],
    [0.5, 0.2, 0.3, 0.5, 0.5, 0.5, 0, 1, 1.5, -0.5, 0.9, 0.4],
)
WIDTHS = (np.float32, np.float64)
ENDS = np.array([NAN, INF, -INF, 0, -1, 0.5])

CASES: tuple[Case, ...] = (
    *(
        case(op, POINTS.astype(t), name=f"{op}_{np.dtype(t)}")
        for op in ("Lgamma", "Digamma")
        for t in (np.float16, *WIDTHS)
    ),
    *(case("Erfinv", (2 * PROBABILITIES - 1).astype(t)) for t in WIDTHS),
    *(case("Ndtri", PROBABILITIES.astype(t)) for t in WIDTHS),
    *(
        case(op, *(np.array(each, t) for each in pair), tolerance=1e-4 if t is np.float32 else 1e-9)
        for op, pair in PAIRS.items()
        for t in WIDTHS
    ),
    *(case(op, np.full((2, 1), 2, np.float32), np.array([1.5, 3], np.float32)) for op in PAIRS),
    *(case(op, [1.0, 2.0], [1.0, 2.0, 3.0], message=True) for op in PAIRS),
    *(case(op, np.float32(2), np.zeros(0, np.float32)) for op in PAIRS),
    *(case("Betainc", *(np.array(each, t) for each in BETAINC), tolerance=1e-4) for t in WIDTHS),
    case("Betainc", np.float32(2), [1.0, 2.0], np.float32(0.5)),
    case("Betainc", np.float32(2), np.float32(3), np.float32(0.5)),
    case("Betainc", [1.0, 2.0], [1.0], [0.5, 0.2], message=True),
    # Near the zeros of lgamma, and samples or shapes that are 0, negative, infinite or NaN.
    *(
        case("Lgamma", np.array([1, 2, 1.001, 2.03, 0.97], t), name=f"zeros_{t.__name__}")
        for t in WIDTHS
    ),
    *(
        case(op, ENDS[:, None].astype(t), ENDS.astype(t), name=f"{op}_ends_{t.__name__}")
        for op in ("Igamma", "Igammac", "IgammaGradA")
        for t in WIDTHS
    ),
    *(
        case(
            "RandomGammaGrad",
            np.array([[1], [1e-10], [2.5], [INF], [NAN]], t),
            np.array([0, 1e4, INF, 1], t),
            name=f"far_{t.__name__}",
            tolerance=1e-4,
        )
        for t in WIDTHS
    ),
)
