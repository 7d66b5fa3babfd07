"""Pad, MirrorPad, Tile."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

MATRIX = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
WORDS = np.array([b"a", b"bb"], object)
NONE = np.zeros((0, 2), np.int32)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip
MIRRORED = tuple(t for t in TYPES if t not in (np.uint16, np.uint32, np.uint64, np.bool_))
GRADIENT = np.arange(1, 21, dtype=np.float32).reshape(4, 5)
PADDED = (
    (MATRIX, [[1, 0], [0, 2]]), (MATRIX, np.int64([[0, 0], [1, 1]])), (np.float32(3), NONE),
    (MATRIX[:0], [[1, 1], [0, 0]]), (MATRIX, [[0, 0], [0, 0]]), (MATRIX, [[1, 0]]),
    (MATRIX, [[1, -1], [0, 0]]), (MATRIX, [1, 2]), (MATRIX, [[1, 2, 3], [1, 2, 3]]),
)  # fmt: skip

CASES = (
    *(case("Pad", value, paddings, message=True) for value, paddings in PADDED),
    *(case("Pad", MATRIX.astype(t), [[0, 1], [1, 0]]) for t in TYPES),
    case("Pad", WORDS, [[1, 1]]),
    *(case("PadV2", value, paddings, -1.5, message=True) for value, paddings in PADDED),
    case("PadV2", WORDS, [[1, 1]], "pad"),
    case("PadV2", MATRIX, [[0, 1], [1, 0]], [1.0], message=True),
    *(
        case("MirrorPad", value, paddings, mode=mode, message=True)
        for mode in ("REFLECT", "SYMMETRIC")
        for value, paddings in (
            (MATRIX, [[1, 1], [0, 2]]), (MATRIX, np.int64([[0, 0], [2, 1]])), (np.float32(3), NONE),
            (MATRIX, [[2, 0], [0, 0]]), (MATRIX, [[0, 3], [0, 0]]), (MATRIX, [[-1, 0], [0, 0]]),
            (MATRIX, [[1, 0]]), (MATRIX, [1, 0]), (WORDS, [[1, 1]]),
        )
    ),
    *(case("MirrorPad", MATRIX.astype(t), [[0, 1], [1, 0]], mode="REFLECT") for t in MIRRORED),
    *(
        case("MirrorPadGrad", GRADIENT, paddings, mode=mode, message=True)
        for mode in ("REFLECT", "SYMMETRIC")
        for paddings in (
            [[1, 1], [0, 2]], np.int64([[0, 0], [2, 1]]), [[2, 2], [0, 0]], [[0, 3], [0, 0]],
            [[-1, 0], [0, 0]], [[1, 0]], [[0, 2], [1, 0]], [[1, 1], [2, 2]],
        )
    ),
    *(
        case("Tile", value, multiples, message=True)
        for value, multiples in (
            (MATRIX, [2, 1]), (MATRIX, np.int64([2, 3])), (MATRIX, [0, 2]), (WORDS, [3]),
            (np.float32(1), np.zeros(0, np.int32)), (MATRIX[:0], [2, 2]), (MATRIX, [1, 1]),
            (MATRIX, [2]), (MATRIX, [2, -1]), (MATRIX, 2), (MATRIX, [[2, 2]]),
        )
    ),
    *(case("Tile", MATRIX.astype(t), [2, 2]) for t in TYPES if t not in (np.uint16,)),
)  # fmt: skip
