"""BiasAdd, BiasAddV1, BiasAddGrad."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

X = np.arange(120).reshape(2, 3, 4, 5).astype(np.float32)
TYPES = (
    np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.int64, np.uint32, np.uint64, np.complex64, np.complex128,
)  # fmt: skip
LAST = ((X, 5), (X[0, 0], 5), (X[:0], 5), (X, 4), (X[0, 0, 0], 5), (np.float32(1), 1))
FIRST = ((X, 3), (X[0, 0], 5), (X[0], 4), (X[None], 2), (X[None, None], 1), (X, 5), (X[0, 0, 0], 5))


def bias(size: int, dtype: type = np.float32) -> np.ndarray:
    return (np.arange(size) * 3 + 1).astype(dtype)


CASES = (
    *(case("BiasAdd", x, bias(size), message=True) for x, size in LAST),
    *(case("BiasAdd", x, bias(size), data_format="NCHW", message=True) for x, size in FIRST),
    *(case("BiasAddV1", x, bias(size), message=True) for x, size in LAST),
    case("BiasAdd", X, bias(5)[None], message=True),
    *(case("BiasAdd", X.astype(dtype), bias(5, dtype)) for dtype in TYPES),
    *(
        case("BiasAddGrad", x, data_format=data_format, message=True)
        for x in (X, X[0], X[0, 0], X[None], X[:0], X[..., :0], X[0, 0, 0])
        for data_format in ("NHWC", "NCHW")
    ),
    *(case("BiasAddGrad", X.astype(dtype), data_format="NHWC") for dtype in TYPES),
)
