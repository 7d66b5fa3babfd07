"""Transpose, Reverse and permutations."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array([[b"a", b"bb"], [b"", b"d"]], object)
COMPLEX = (np.arange(4) + 1j * np.arange(4, 0, -1)).astype(np.complex64).reshape(2, 2)
NONE = np.zeros(0, np.int32)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip

CASES = (
    *(
        case(op, value, perm, message=True)
        for op in ("Transpose", "ConjugateTranspose")
        for value, perm in (
            (CUBE, [2, 0, 1]), (CUBE, [0, 1, 2]), (CUBE, np.int64([1, 0, 2])), (WORDS, [1, 0]),
            (COMPLEX, [1, 0]), (np.float32(1), NONE), (CUBE[:, :0], [2, 1, 0]),
            (CUBE, [-1, 0, 1]), (CUBE, [0, 1]), (CUBE, [0, 1, 3]), (CUBE, [0, 0, 1]), (CUBE, 0),
            (CUBE, [0, 1, -4]),
        )
    ),
    *(case("Transpose", CUBE.astype(t), [1, 2, 0]) for t in TYPES),
    *(
        case("InvertPermutation", value, message=True)
        for value in (
            [2, 0, 1], NONE, np.int64([1, 0]), [0, 3], [-1, 0], [1, 1], [[0]], [0, 0, 2],
        )
    ),
    *(
        case("ReverseV2", value, axis, message=True)
        for value, axis in (
            (CUBE, [0]), (CUBE, [1, -1]), (CUBE, NONE), (CUBE, np.int64([0, 1, 2])), (WORDS, [1]),
            (np.float32(2), NONE), (CUBE, [3]), (CUBE, [-4]), (CUBE, [1, 1]), (CUBE, [1, -2]),
            (CUBE, 0), (CUBE, [[0]]), (CUBE[:0], [0]),
        )
    ),
    *(case("ReverseV2", CUBE.astype(t), [0, 2]) for t in TYPES),
    *(
        case("ReverseSequence", value, lengths, seq_dim=seq, batch_dim=batch, message=True)
        for value, lengths, seq, batch in (
            (CUBE, [1, 3], 1, 0), (CUBE, np.int64([0, 2, 1]), 0, 1), (CUBE, [4, 2], 2, 0),
            (CUBE, [1, 2, 2, 0], 0, 2), (WORDS, [2, 1], 1, 0), (CUBE[:, :0], [0, 0], 1, 0),
            (CUBE, [4, 3], 1, 0), (CUBE, [1, -1], 1, 0), (CUBE, [1], 1, 0), (CUBE, [1, 2], 0, 0),
            (CUBE, [1, 2], 3, 0), (CUBE, [1, 2], 1, 3), (CUBE, [[1, 2]], 1, 0),
        )
    ),
    *(case("ReverseSequence", CUBE.astype(t), [3, 2], seq_dim=1) for t in TYPES if t is not bool),
    *(
        case("Roll", value, shift, axis, message=True)
        for value, shift, axis in (
            (CUBE, 1, 0), (CUBE, [1, -2], [1, 2]), (CUBE, [1, 1], [0, -3]), (CUBE, -7, -1),
            (CUBE, np.int64([5]), np.int64([2])), (WORDS, 1, 1), (CUBE[:0], 1, 0), (CUBE, 1, 4),
            (CUBE, [1, 2], 0), (np.float32(1), 1, 0), (CUBE, [[1]], 0), (CUBE, [1], [[0]]),
        )
    ),
    *(case("Roll", CUBE.astype(t), 2, 2) for t in TYPES),
    *(
        case("Reverse", value, dims, message=True)
        for value, dims in (
            (CUBE, [True, False, True]), (WORDS, [False, True]), (CUBE, [True]),
            (np.float32(2), np.zeros(0, bool)), (CUBE, True), (CUBE[0, 0], [True]),
        )
    ),
)  # fmt: skip
