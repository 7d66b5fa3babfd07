"""Fractional pooling: with a seed, the cuts equal TensorFlow's."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(8)
IMAGES = RNG.normal(size=(2, 7, 11, 3))
TYPES = (np.float32, np.float64, np.int32, np.int64)
POOLS = ("FractionalMaxPool", "FractionalAvgPool")
FLAGS = (False, True)
SEEDED = {"deterministic": True, "seed": 7, "seed2": 11}
ROWS, COLUMNS = np.int64([0, 2, 3, 5, 7]), np.int64([0, 3, 5, 8, 11])
GRADS = RNG.normal(size=(2, 4, 4, 3))
MAX_GRAD, AVERAGE_GRAD = (f"{op}Grad" for op in POOLS)

ODD = np.array([[np.nan, 3, -np.inf, 2, np.nan, np.nan], [1, 3, -np.inf, -np.inf, 4, np.nan]])
ODD = ODD[np.newaxis, :, :, np.newaxis]
EVEN = np.repeat(ODD[:, :, [1, 0, 3, 2]], 2, axis=3)


def maxima(overlapping: bool) -> np.ndarray:
    """The largest element of each region."""
    result = np.empty(GRADS.shape)
    for row in range(4):
        for column in range(4):
            region = IMAGES[
                :,
                ROWS[row] : ROWS[row + 1] + overlapping,
                COLUMNS[column] : COLUMNS[column + 1] + overlapping,
            ]
            result[:, row, column] = region.max((1, 2))
    return result


CASES = (
    *(
        case(op, (IMAGES * 9).astype(t), pooling_ratio=[1.0, *ratio, 1.0], pseudo_random=pseudo,
             overlapping=overlapping, **SEEDED)
        for op in POOLS
        for t in TYPES
        for ratio in ((1.5, 1.4), (1.0, 2.3), (3.4, 1.0))
        for pseudo in FLAGS
        for overlapping in FLAGS
    ),
    *(
        case(op, IMAGES.astype(np.float32), pooling_ratio=ratio, **SEEDED)
        for op in POOLS
        for ratio in ([1.0, 8.0, 1.5, 1.0], [2.0, 1.5, 1.5, 1.0], [1.0, 1.5, 1.5, 2.0])
    ),
    case("FractionalMaxPool", IMAGES[0].astype(np.float32), pooling_ratio=[1.0, 1.5, 1.5, 1.0]),
    *(
        case(MAX_GRAD, IMAGES.astype(t), maxima(overlapping).astype(t), GRADS.astype(t), ROWS,
             COLUMNS, overlapping=overlapping)
        for t in (np.float32, np.float64)
        for overlapping in FLAGS
    ),
    case(MAX_GRAD, IMAGES, maxima(False) + 1, GRADS, ROWS, COLUMNS, message=True),
    case(MAX_GRAD, IMAGES, maxima(False), GRADS, ROWS[:0], COLUMNS),
    case(MAX_GRAD, np.ones((1, 4, 4, 1)), np.ones((1, 2, 2, 1)), np.ones((1, 2, 2, 1)),
         np.int64([0, 2, 4]), np.int64([0, 2, 4]), overlapping=True),
    *(
        case(AVERAGE_GRAD, np.int64(IMAGES.shape), GRADS.astype(t), ROWS, COLUMNS,
             overlapping=overlapping)
        for t in (np.float32, np.float64)
        for overlapping in FLAGS
    ),
    *(
        case(AVERAGE_GRAD, np.int64(IMAGES.shape), (GRADS * 5).astype(t), ROWS, COLUMNS,
             overlapping=overlapping)
        for t in (np.int32, np.int64)
        for overlapping in FLAGS
    ),
    case(AVERAGE_GRAD, np.int64([2, 7, 11]), GRADS, ROWS, COLUMNS),
    case(
        "FractionalAvgPool",
        np.int64([[[2**63 - 1], [-15], [-4], [8]], [[7], [-7], [1], [5]]])[np.newaxis],
        pooling_ratio=[1.0, 2.0, 2.0, 1.0], deterministic=True, seed=7, seed2=11,
    ),
    # NaN is ignored; the gradient goes to it only where it is first. −inf gives the lowest number.
    case("FractionalMaxPool", ODD, pooling_ratio=[1.0, 1.0, 2.0, 1.0], **SEEDED),
    case(MAX_GRAD, ODD, ODD[:, :, 1::2], np.ones((1, 2, 3, 1)), np.int64([0, 1, 2]),
         np.int64([0, 2, 4, 6]), message=True),
    case(MAX_GRAD, EVEN, EVEN[:, :, ::2], np.ones((1, 2, 2, 2)), np.int64([0, 1, 2]),
         np.int64([0, 2, 4])),
)  # fmt: skip
