"""Conv."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(3)
X2, F2 = (2, 6, 7, 4), (3, 3, 4, 5)
X3, F3 = (2, 4, 5, 6, 4), (2, 3, 3, 4, 5)
# TensorFlow accumulates in 16 bits where this kernel accumulates in 32.
TOLERANCES = ((np.float16, 0.02), (ml_dtypes.bfloat16, 0.2), (np.float64, None), (np.int32, None))


def convolution(
    x: tuple[int, ...], filter: tuple[int, ...], dtype: Any = np.float32, **attrs: Any
) -> Case:
    given = {"strides": [1] * len(filter), "padding": "SAME", **attrs}
    values = ((RNG.normal(size=shape) * 2).astype(dtype) for shape in (x, filter))
    return case("Conv", *values, **given)


CASES = (
    *(
        convolution(x, filter, **attrs)
        for x, filter in ((X2, F2), (X3, F3), ((2, *X2), F2), ((2, *X3), F3), ((0, *X2[1:]), F2))
        for attrs in (
            {"batch_dims": len(x) - len(filter) + 1},
            {"batch_dims": len(x) - len(filter) + 1, "padding": "VALID"},
        )
    ),
    convolution(X2, F2, strides=[1, 2, 2, 1]),
    convolution(X3, F3, strides=[1, 2, 1, 3, 1], padding="VALID"),
    convolution(X2, F2, dilations=[1, 2, 2, 1]),
    convolution(X2, F2, padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 3, 0, 0, 0]),
    *(
        convolution(X2, F2, dtype=dtype, tolerance=tolerance) for dtype, tolerance in TOLERANCES
    ),
    *(convolution(*each, message=True) for each in ((X2, (3, 3, 2, 5)), ((2, 6, 4), (3, 4, 5)))),
    convolution(X2, (3, 3, 2, 6), groups=2, message=True),
    convolution(X2, F2, strides=[1, 1]),
    convolution(X2, (3, 3, 4, 0), dtype=np.int32, message=True),
    convolution(X2, F2, groups=2, batch_dims=4, message=True),
)  # fmt: skip
