"""RaggedTensorToTensor."""

import numpy as np

from tests.conformance.case import case

FLAT = np.float32([1, 2, 3, 4, 5, 6])
SPLITS, ROWIDS, FIRST = "ROW_SPLITS", "VALUE_ROWIDS", "FIRST_DIM_SIZE"
ROWS = np.int64([0, 2, 2, 5, 6])
OUTER = np.int64([0, 1, 4])
WORDS = np.array([b"a", b"b", b"c", b"d", b"e", b"f"], object)
PAIRS = FLAT.reshape(3, 2)
UNKNOWN = np.int64(-1)

# shape, values, default, partitions, types
LAYOUTS = (
    (UNKNOWN, FLAT, 0.0, [ROWS], [SPLITS]),
    (np.int32([-1, -1]), FLAT, -1.0, [ROWS], [SPLITS]),
    (np.int64([4, 2]), FLAT, 0.0, [ROWS], [SPLITS]),
    (np.int64([6, 4]), FLAT, 9.0, [ROWS], [SPLITS]),
    (np.int64([2, -1]), FLAT, 9.0, [ROWS], [SPLITS]),
    (np.int64([0, 0]), FLAT, 9.0, [ROWS], [SPLITS]),
    (UNKNOWN, FLAT, 0.0, [OUTER, ROWS], [SPLITS, SPLITS]),
    (np.int64([-1, 2, 2]), FLAT, 0.0, [OUTER, ROWS], [SPLITS, SPLITS]),
    (UNKNOWN, FLAT, 0.0, [np.int64(4), np.int64([0, 0, 2, 2, 2, 3])], [FIRST, ROWIDS]),
    (UNKNOWN, FLAT, 0.0, [np.int64(2), np.int64([0, 1, 1]), np.int64([0, 0, 1, 1, 1, 2])],
     [FIRST, ROWIDS, ROWIDS]),
    (UNKNOWN, WORDS, "", [ROWS.astype(np.int32)], [SPLITS]),
    (UNKNOWN, PAIRS, 0.0, [np.int64([0, 1, 3])], [SPLITS]),
    (UNKNOWN, PAIRS, [7.0, 8.0], [np.int64([0, 1, 3])], [SPLITS]),
    (np.int64([2, 3, 2]), PAIRS, [7.0], [np.int64([0, 1, 3])], [SPLITS]),
    (np.int64([2, 3, 3]), PAIRS, 7.0, [np.int64([0, 1, 3])], [SPLITS]),
    (UNKNOWN, FLAT[:0], 0.0, [np.int64([0])], [SPLITS]),
    (UNKNOWN, FLAT[:0], 0.0, [np.int64([0, 0, 0])], [SPLITS]),
    (np.int64([2, 2, 2]), FLAT, 0.0, [ROWS], [SPLITS]),
    (UNKNOWN, FLAT, [1.0, 2.0], [ROWS], [SPLITS]),
    (UNKNOWN, FLAT, 0.0, [np.zeros(0, np.int64)], [SPLITS]),
    (np.int64(3), FLAT, 0.0, [ROWS], [SPLITS]),
    (UNKNOWN, FLAT, 0.0, [np.int64(2), np.int64([0, 0, 2, 2, 2, 3])], [FIRST, ROWIDS]),
    (UNKNOWN, FLAT, 0.0, [np.int64([0, 3])], [SPLITS]),
    (UNKNOWN, FLAT, 0.0, [np.int64([0, 9])], [SPLITS]),
    (UNKNOWN, FLAT, 0.0, [np.int64([0, 4, 2, 6])], [SPLITS]),
    (np.int64([-2, 3]), FLAT, 0.0, [ROWS], [SPLITS]),
    # an empty result: partitions are not checked
    (UNKNOWN, FLAT, 0.0, [np.int64(2), np.int64([]), np.int64([0, 0, 1, 1, 1, 2])],
     [FIRST, ROWIDS, ROWIDS]),
    (UNKNOWN, FLAT, 0.0, [OUTER, np.int64([1, 1, -1, -9, -9])], [SPLITS, SPLITS]),
    (np.int64([0, 3]), FLAT, 0.0, [np.int64(2), np.int64([-1, 9])], [FIRST, ROWIDS]),
)  # fmt: skip

CASES = (
    *(
        case("RaggedTensorToTensor", *inputs, row_partition_types=types, message=True)
        for *inputs, types in LAYOUTS
    ),
    # TensorFlow's shape inference raises first here, with another message.
    *(
        case("RaggedTensorToTensor", UNKNOWN, FLAT, 0.0, [ROWS], row_partition_types=[kind])
        for kind in (ROWIDS, "ROW_LENGTHS")
    ),
)
