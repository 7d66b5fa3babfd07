"""SparseToDense."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

CASES = (
    *(
        case("SparseToDense", indices, shape, values, default, message=True)
        for indices, shape, values, default in (
            ([[0, 1], [1, 2]], [2, 3], [5.0, 6.0], 0.0), ([1, 3], [5], [1.0, 2.0], -1.0),
            ([1, 3], [5], 7.0, 0.0), (2, [5], 7.0, 0.0),
            (np.int64([[0]]), np.int64([2]), ["x"], ""),
            (np.zeros((0, 2), np.int64), np.int64([2, 2]), np.zeros(0, np.float32), 1.0),
            (2, [5], [7.0], 0.0), ([[1, 2], [0, 1]], [2, 3], [5.0, 6.0], 0.0),
            ([[0, 1], [0, 1]], [2, 3], [5.0, 6.0], 0.0), ([[0, 3]], [2, 3], [5.0], 0.0),
            ([[0, -1]], [2, 3], [5.0], 0.0), ([[0, 1]], [2], [5.0], 0.0),
            ([[0, 1]], [2, 3], [5.0, 6.0], 0.0), ([[0, 1]], [2, 3], [5.0], [0.0]),
            ([[[0]]], [2], [5.0], 0.0), ([0], 2, [5.0], 0.0), ([0], [-2], [5.0], 0.0),
            ([[0, 1, 0]], [2, 3, 0], [5.0], 0.0),
        )
    ),
    *(
        case("SparseToDense", indices, [3], [5.0, 6.0], 0.0, validate_indices=False, message=True)
        for indices in ([2, 0], [1, 1], [1, 3])
    ),
    *(
        case("SparseToDense", [1, 2], [4], np.array([1, 1], t), t(0))
        for t in (np.bool_, np.int8, np.uint8, np.int64, np.float16, ml_dtypes.bfloat16,
                  np.float64, np.complex64)
    ),
    case("SparseToDense", np.zeros((0, 0), np.int64), np.zeros(0, np.int64),
         np.zeros(0, np.float32), np.float32(-4), validate_indices=True,
         name="nothing_in_a_scalar"),
)  # fmt: skip
