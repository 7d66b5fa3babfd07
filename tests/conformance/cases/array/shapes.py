"""Ops on shapes."""

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = MATRIX[:1]
SHAPED = (np.float32(1), MATRIX, np.zeros((0, 4), np.int32), np.array([[b"a"]], object))
TYPES = (np.bool_, np.int8, np.uint64, np.complex128, np.float16, ml_dtypes.bfloat16)

CASES = (
    *(
        case(op, value, out_type=out)
        for op in ("Shape", "Size")
        for value in SHAPED
        for out in (DataType.INT32, DataType.INT64)
    ),
    *(
        case("Empty", shape, dtype=dtype, init=True, message=True)
        for shape in ([2, 3], [0, 4], [-1], 3, [[2]])
        for dtype in (DataType.FLOAT, DataType.STRING, DataType.COMPLEX64)
    ),
    *(case("Rank", value) for value in SHAPED),
    case("ShapeN", list(SHAPED[1:2]) * 2, out_type=DataType.INT64),
    *(case("Reshape", MATRIX.astype(dtype), np.int32([3, -1])) for dtype in TYPES),
    *(
        case("Reshape", MATRIX, np.int64(sizes), message=True)
        for sizes in ([6], [-1], [1, 6, 1], [2, -1, 3], [7], [4, -1], [-1, -1], [-2, 3], [0, -1],
                      [[6]], 6, -1, [])
    ),
    *(
        case("Reshape", np.zeros((0, 3), np.float32), np.int32(sizes), message=True)
        for sizes in ([0], [3, 0], [0, -1], [-1, 2], [2, 2])
    ),
    case("Reshape", MATRIX[:1, :1], np.ones(254, np.int64), message=True),
    case("Reshape", np.array([b"x", b"yy"], object), np.int32([2, 1])),
    case("Reshape", np.array([b"x"], object), np.zeros(0, np.int32)),
    *(
        case("ExpandDims", MATRIX, dim, message=True)
        for dim in (0, 1, 2, -1, -3, 3, -4, np.int64([1]), np.int32([0, 1]))
    ),
    case("ExpandDims", np.array(b"s", object), 0),
    *(
        case("Squeeze", value, squeeze_dims=dims, message=True)
        for value, dims in (
            (ROW, []), (ROW, [0]), (ROW, [-2]), (ROW, [1]), (ROW, [2]), (np.float32(3), []),
            (np.ones((1, 1), np.int8), []), (np.ones((1, 2, 1), np.int8), [0, -1]),
            (np.zeros((1, 0), np.float32), []), (np.array([[b"s"]], object), []),
        )
    ),
    *(
        case("EnsureShape", MATRIX, shape=shape)  # not its message, which names the input edge
        for shape in ((2, 3), (-1, 3), None, (3, 2), (2,), ())
    ),
    *(
        case("BroadcastTo", value, shape, message=True)
        for value, shape in (
            (ROW, [2, 3]), (ROW, [4, 2, 3]), (np.float32(1), [2, 2]), (MATRIX, [2, 3]),
            (MATRIX, [3]), (MATRIX, [4, 3]), (ROW, np.int64([0, 3])), (MATRIX, [[2, 3]]),
            (np.array([b"a"], object), [3]), (np.zeros((0, 1), np.int32), [0, 5]),
            (np.float32(1), np.zeros(0, np.int32)), (ROW, [-1, 3]), (np.float32(2), 3),
        )
    ),
    *(case("BroadcastTo", np.ones((2, 1), dtype), [2, 2]) for dtype in TYPES),
    *(
        case("BroadcastArgs", one, two, message=True)
        for one, two in (
            ([2, 3], [3]), ([1, 3], [2, 1]), ([2], [3]), (np.zeros(0, np.int32), [4]),
            (np.int64([5, 1]), np.int64([7])), ([2], 3), ([0], [1]),
        )
    ),
)  # fmt: skip
