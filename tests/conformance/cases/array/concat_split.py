"""Concatenation, stacking, splitting."""

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, Graph, Step, case

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
WORDS = np.array([[b"a", b"bb"], [b"", b"d"]], object)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint32, np.uint64, np.float16,
    ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip
JOINS = (
    ([MATRIX, MATRIX], 0), ([MATRIX, MATRIX], 1), ([MATRIX, MATRIX, MATRIX], -1),
    ([MATRIX, MATRIX[:, :1]], 1), ([MATRIX, MATRIX[:0]], 0), ([WORDS, WORDS], 1),
    ([MATRIX, MATRIX[:1]], 1), ([MATRIX, MATRIX[0]], 0), ([MATRIX, MATRIX], 2),
    ([MATRIX[0], np.float32(1)], 0),
    ([MATRIX, MATRIX], -3), ([MATRIX, MATRIX], [0]), ([MATRIX, MATRIX], [0, 1]),
    ([np.float32(1), np.float32(2)], 0), ([MATRIX[:0], MATRIX[:0]], 0),
    ([MATRIX[0], MATRIX[0, :0]], 0), ([MATRIX, MATRIX], [[1]]),
)  # fmt: skip


def parallel_concat(values: list[np.ndarray], shape: tuple[int, ...]) -> Case:
    """Fed through placeholders of known shape: the op's shape inference requires them."""
    graph = Graph()
    parts = [graph.placeholder(value.dtype, f"input_{i}", value.shape)
             for i, value in enumerate(values)]  # fmt: skip
    output, _ = graph.add("ParallelConcat", parts, shape=shape, name="result")[0]
    feeds = {name: value for (name, _), value in zip(parts, values, strict=True)}
    return Case(f"ParallelConcat_{len(values)}_{shape}", graph.graph_def, (Step(feeds, (output,)),))


CASES = (
    *(
        parallel_concat(values, shape)
        for values, shape in (
            ([MATRIX[:1], MATRIX[1:]], (2, 3)), ([MATRIX[:1]], (1, 3)),
            ([CUBE[:1]] * 3, (3, *CUBE.shape[1:])), ([MATRIX[:1, :0]] * 2, (2, 0)),
        )
    ),
    *(case("ConcatV2", values, axis, message=True) for values, axis in JOINS),
    *(case("Concat", axis, values, message=True) for values, axis in JOINS if np.ndim(axis) == 0),
    *(case("ConcatV2", [CUBE.astype(t), CUBE.astype(t)], np.int64(1)) for t in TYPES),
    *(
        case("ConcatOffset", axis, [np.int32(s) for s in shapes], message=True)
        for axis, shapes in (
            (1, ([2, 3], [2, 5], [2, 1])), (-1, ([2, 3], [2, 5])), (0, ([2, 3], [2, 5])),
            (2, ([2, 3], [2, 5])), (0, ([2, 3], [2])), (0, ([2], 3)), ([0], ([2], [3])),
        )
    ),
    *(
        case("Pack", values, axis=axis, message=True)
        for values, axis in (
            ([MATRIX, MATRIX], 0), ([MATRIX, MATRIX], 1), ([MATRIX, MATRIX], -1), ([MATRIX], 2),
            ([np.float32(1), np.float32(2)], 0), ([MATRIX, MATRIX[0]], 0), ([MATRIX, MATRIX], 3),
            ([WORDS, WORDS], 1), ([MATRIX[:0], MATRIX[:0]], 0), ([MATRIX, MATRIX], -4),
            ([np.array(b"a", object), np.array(b"b", object)], 0),
        )
    ),
    *(case("Pack", [MATRIX.astype(t), MATRIX.astype(t)], axis=1) for t in TYPES),
    *(
        case("Unpack", value, num=num, axis=axis, message=True)
        for value, num, axis in (
            (MATRIX, 2, 0), (MATRIX, 3, 1), (MATRIX, 3, -1), (CUBE, 4, 2), (WORDS, 2, 0),
            (WORDS[0], 2, 0), (MATRIX[0], 3, 0), (MATRIX, 3, 0), (MATRIX, 2, 2),
            (MATRIX[:, :0], 2, 0),
        )
    ),
    *(case("Unpack", MATRIX.astype(t), num=2, axis=0) for t in TYPES),
    *(
        case("Split", dim, value, num_split=num, message=True)
        for dim, value, num in (
            (0, MATRIX, 2), (1, MATRIX, 3), (-1, CUBE, 2), (1, MATRIX, 2), (2, MATRIX, 2),
            (-3, MATRIX, 2), (0, WORDS, 2), (0, MATRIX, 1), (0, MATRIX[:0], 3), ([0], MATRIX, 2),
            (0, np.float32(1), 1),
        )
    ),
    *(case("Split", 1, CUBE.astype(t), num_split=3) for t in TYPES),
    *(
        case("SplitV", value, sizes, dim, num_split=np.size(sizes), message=True)
        for value, sizes, dim in (
            (MATRIX, [1, 2], 1), (MATRIX, [1, -1], 1), (MATRIX, [0, 3], -1), (MATRIX, [1, 1], 1),
            (MATRIX, [4, -1], 1), (MATRIX, [-1, -1], 1), (MATRIX, [1, 2], 2), (WORDS, [1, 1], 0),
            (MATRIX, np.int64([2, 1, 0]), 1), (MATRIX, [-2, 5], 1), (MATRIX, [3], 1),
            (MATRIX, [2], 1), (MATRIX, [-1], 1),
        )
    ),
    *(
        case("SplitV", MATRIX, np.int32([1, 1]), np.int32(dim), num_split=2, message=True)
        for dim in ([0], [0, 1], [])
    ),
)  # fmt: skip
