"""What a kernel refuses for its sizes is its own error, not one of a session's budget."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import InvalidArgumentError, SessionOptions, new_session
from tests.conformance.case import Case, case

BUDGET = 1 << 28
IMAGE = np.ones((2, 5, 8, 3), np.float32)
SIZES = np.array([1879048192, 1879048192], np.int32)
RESIZES = ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea")
OVERFLOW = "Encountered overflow when multiplying"
CASES = {
    "transform": (
        case("ImageProjectiveTransformV2", IMAGE, np.ones((2, 8), np.float32), SIZES,
             interpolation="BILINEAR"),
        OVERFLOW,
    ),
    "scale": (
        case("ScaleAndTranslate", IMAGE, SIZES, np.ones(2, np.float32), np.zeros(2, np.float32)),
        OVERFLOW,
    ),
    **{op: (case(op, IMAGE, SIZES), OVERFLOW) for op in RESIZES},
    "segments": (
        case("SegmentSum", np.ones((1, 10, 1)), np.int64([1676240524292489355])), OVERFLOW,
    ),
    "sparse segments": (
        case("SparseSegmentSum", np.ones((10, 4)), np.int32([0]), np.int64([2**62 - 1])), OVERFLOW,
    ),
    "unsorted segments": (
        case("UnsortedSegmentSum", np.ones(3), np.int64(898042203), np.int64(8327099846119777499)),
        "Encountered overflow when multiplying | must not be negative",
    ),
    "sobol": (case("SobolSample", 2560, 16384000, 0), "must be less than 2147483647"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_overflow_are_refused_by_the_kernel(name: str) -> None:
    made, message = CASES[name]
    refused_with(made, message)


def refused_with(made: Case, message: str) -> None:
    options = SessionOptions(max_session_bytes=BUDGET, max_step_bytes=BUDGET)
    session = new_session(options)
    try:
        session.create(made.graph)
        step = made.steps[0]
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(step.feeds, step.fetches, step.targets)
    finally:
        session.close()
