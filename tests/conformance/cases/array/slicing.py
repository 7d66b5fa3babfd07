"""Slice, StridedSlice and its gradient."""

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
WORDS = np.array([b"a", b"bb", b"ccc"], object)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip

# value, begin, end, strides, masks
STRIDED = (
    (CUBE, [0, 1, 2], [2, 3, 5], [1, 1, 1], {}),
    (CUBE, [0, 3, 4], [3, 0, -6], [2, -1, -2], {}),
    (CUBE, [-1], [-3], [-1], {}),
    (CUBE, [5, -9], [9, 9], [1, 1], {}),
    (CUBE, [0, 9], [9, -9], [1, -1], {}),
    (CUBE, [1, 1], [2, 2], [1, 2], {"begin_mask": 1, "end_mask": 2}),
    (CUBE, [1, 1], [2, 2], [-1, -2], {"begin_mask": 3, "end_mask": 3}),
    (CUBE, [1], [0], [1], {"shrink_axis_mask": 1}),
    (CUBE, [-1, 2], [0, 0], [1, 1], {"shrink_axis_mask": 3}),
    (CUBE, [1, 2, 3], [2, 3, 4], [1, 1, 1], {"shrink_axis_mask": 7}),
    (CUBE, [0, 2], [0, 3], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}),
    (CUBE, [0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    (CUBE, [0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 3}),
    (CUBE, [0, 0], [0, 0], [1, 1], {"new_axis_mask": 3, "shrink_axis_mask": 1}),
    (CUBE, [1, 0, 0, 0, 2], [2, 4, 0, 5, 3], [1, 1, 1, 1, 1], {"ellipsis_mask": 4}),
    (CUBE, [1, 0, 0], [2, 0, 0], [1, 1, 1], {"ellipsis_mask": 2, "new_axis_mask": 4}),
    (CUBE, [0], [0], [1], {"ellipsis_mask": 1, "new_axis_mask": 1, "shrink_axis_mask": 1}),
    (CUBE, [], [], [], {}),
    (CUBE, [2], [1], [1], {}),
    (CUBE, [1], [2], [1], {"shrink_axis_mask": 1, "begin_mask": 1}),
    (CUBE, [1], [2], [2], {"shrink_axis_mask": 1}),
    (CUBE, [1], [2], [1], {"shrink_axis_mask": 1, "end_mask": 1}),
    (CUBE, [0, 0, 0, 1, 1], [0, 0, 0, 2, 2], [1, 1, 1, 1, 1], {"ellipsis_mask": 4}),
    (CUBE[:, :0], [0, 0], [2, 3], [1, 1], {}),
    (np.float32(3), [], [], [], {}),
    (np.float32(3), [0], [0], [1], {"new_axis_mask": 1}),
    (WORDS, [1], [2], [1], {"shrink_axis_mask": 1}),
    (WORDS, [0], [3], [2], {}),
    # errors
    (CUBE, [3], [4], [1], {"shrink_axis_mask": 1}),
    (CUBE, [0, -5], [0, 4], [1, 1], {"shrink_axis_mask": 2}),
    (CUBE, [0], [1], [0], {}),
    (CUBE, [0], [1], [-1], {"shrink_axis_mask": 1}),
    (CUBE, [0, 0], [1], [1], {}),
    (CUBE, [[0]], [[1]], [[1]], {}),
    (CUBE, [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], {}),
    (CUBE, [0, 0], [1, 1], [1, 1], {"ellipsis_mask": 3}),
    (CUBE[:0], [0], [1], [1], {"shrink_axis_mask": 1}),
)


def strided(index: int, dtype: type = np.int32) -> Case:
    value, begin, end, strides, masks = STRIDED[index]
    vectors = [np.array(each, dtype) for each in (begin, end, strides)]
    name = f"StridedSlice_{index}_{np.dtype(dtype)}"
    return case("StridedSlice", value, *vectors, message=True, name=name, **masks)


CASES = (
    *(
        case("Slice", value, begin, size, message=True)
        for value, begin, size in (
            (CUBE, [0, 1, 2], [2, 2, 2]), (CUBE, [1, 0, 0], [-1, -1, -1]),
            (CUBE, [3, 0, 0], [0, 4, 5]), (CUBE, [3, 0, 0], [-1, 4, 5]),
            (CUBE, np.int64([0, 0, 4]), np.int64([1, 1, 1])), (WORDS, [1], [2]),
            (np.float32(2), np.zeros(0, np.int32), np.zeros(0, np.int32)),
            (CUBE, [0, 0], [1, 1]), (CUBE, [4, 0, 0], [0, 0, 0]), (CUBE, [0, -1, 0], [1, 1, 1]),
            (CUBE, [0, 2, 0], [1, 3, 1]), (CUBE, [0, 2, 0], [1, -2, 1]), (CUBE, 0, 1),
        )
    ),
    *(case("Slice", CUBE.astype(t), [1, 1, 1], [2, 2, 2]) for t in TYPES),
    *(strided(index) for index in range(len(STRIDED))),
    *(strided(index, np.int64) for index in (0, 1, 13)),
    strided(0, np.int16),
    *(
        case("StridedSlice", CUBE.astype(t), [2, 0], [0, 3], [-1, 2], shrink_axis_mask=2)
        for t in TYPES
    ),
    *(
        case("StridedSliceGrad", np.int32(shape), *vectors, gradient, message=True, **masks)
        for shape, vectors, gradient, masks in (
            ([3, 4], ([0, 1], [2, 3], [1, 1]), CUBE[0, :2, :2], {}),
            ([3, 4], ([2, 3], [0, 0], [-1, -2]), CUBE[0, :2, :2], {}),
            ([3, 4], ([1], [2], [1]), CUBE[0, 0, :4], {"shrink_axis_mask": 1}),
            ([3], ([0, 0], [0, 3], [1, 2]), CUBE[0, :1, :2], {"new_axis_mask": 1}),
            ([3], ([1], [2], [1]), CUBE[0, 0, 0], {"shrink_axis_mask": 1}),
            ([3, 4], ([0, 1], [2, 3], [1, 1]), CUBE[0], {}),
            ([[3, 4]], ([0, 1], [2, 3], [1, 1]), CUBE[0, :2, :2], {}),
            ([3, 0], ([0], [2], [1]), CUBE[0, :2, :0], {}),
        )
    ),
    *(
        case(
            "TensorStridedSliceUpdate", CUBE[0].astype(dtype), *vectors,
            np.asarray(update, dtype), message=True, **masks,
        )
        for vectors, update, masks in (
            (([0, 1], [2, 3], [1, 1]), [[1, 2], [3, 4]], {}),
            (([0, 1], [2, 3], [1, 1]), [[1], [3]], {}),
            (([3, 4], [0, 0], [-1, -2]), 7, {}),
            (([1, 2], [2, 3], [1, 1]), 9, {"shrink_axis_mask": 3}),
            (([1, 0], [2, 0], [1, 1]), [[8]], {"ellipsis_mask": 2, "new_axis_mask": 1}),
            (([2], [1], [1]), 5, {}),
            (([0, 1], [2, 3], [1, 1]), [1, 2, 3], {}),
            (([9], [9], [1]), 5, {"shrink_axis_mask": 1}),
        )
        for dtype in (np.float32, np.int32)
    ),
)  # fmt: skip
