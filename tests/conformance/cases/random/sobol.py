"""SobolSample: every direction number, the first and the last indices, and errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.conformance.case import Case, case

# From about 2³⁰ on an index needs the 31st bit.
SKIPS = (0, 1, 17, 1 << 20, (1 << 29) - 1, (1 << 30) - 4, (1 << 30) - 3, 1 << 30, (1 << 31) - 5)
BAD: tuple[tuple[Any, Any, Any], ...] = (
    (0, 2, 0), (21201, 2, 0), (2, 0, 0), (2, -1, 0), (2, 2, -1), (2, 2, (1 << 31) - 3),
    (2, 2, (1 << 31) - 1), (2560, 16384000, 0), (0, 0, -1), (21201, 0, -1), (2, 0, -1),
    (2560, (1 << 31) - 1, 5), ([2], 2, 0), (2, [2], 0), (2, 2, [0]), ([2], [2], [0]),
)  # fmt: skip


def sobol(dim: Any, num_results: Any, skip: Any, dtype: type = np.float32) -> Case:
    inputs = (np.asarray(each, np.int32) for each in (dim, num_results, skip))
    made = case("SobolSample", *inputs, dtype=np.dtype(dtype), message=True)
    return dataclasses.replace(made, exact=True)


CASES = (
    *(sobol(dim, 40, skip) for dim in (1, 9) for skip in SKIPS[:4]),
    *(sobol(5, 2, skip, t) for skip in SKIPS for t in (np.float32, np.float64)),
    *(sobol(21200, 1, skip, np.float64) for skip in ((1 << 17) - 1, 123456789)),
    *(sobol(*each) for each in BAD),
)  # fmt: skip
