"""SpaceToDepth, SpaceToBatch and their inverses."""

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, Graph, Step, as_tensor, case

IMAGE = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4)
BATCH = np.arange(48, dtype=np.float32).reshape(4, 2, 3, 2)
SERIES = np.arange(12, dtype=np.float32).reshape(2, 6)


def nd_case(op: str, value: np.ndarray, blocks: object, margins: object) -> Case:
    """A case with a constant block shape, which TensorFlow's shape inference requires."""
    graph = Graph()
    given = graph.placeholder(value.dtype, "input_0")
    output, _ = graph.add(op, given, as_tensor(blocks), as_tensor(margins), name="result")[0]
    name = f"{op}_{value.dtype}_{np.shape(value)}_{np.asarray(blocks).tolist()}"
    name += f"_{np.asarray(margins).tolist()}"
    return Case(name, graph.graph_def, (Step({given[0]: value}, (output,)),))


TYPES = (
    np.bool_, np.int8, np.uint8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float64,
    np.complex64,
)  # fmt: skip

REAL = TYPES[1:-1]

CASES = (
    *(
        case(op, value, block_size=size, message=True)
        for op in ("DepthToSpace", "SpaceToDepth")
        for value, size in (
            (IMAGE, 2), (IMAGE[:0], 2), (IMAGE, 3), (IMAGE[0], 2),
            (np.tile(IMAGE, (2, 1, 1, 2)), 2),
        )
    ),
    *(
        case(op, IMAGE, block_size=2, data_format="NCHW")  # TensorFlow has no CPU kernel for it
        for op in ("DepthToSpace", "SpaceToDepth")
    ),
    *(
        case(op, IMAGE.astype(t), block_size=2)
        for op in ("DepthToSpace", "SpaceToDepth")
        for t in TYPES
    ),
    *(
        nd_case("SpaceToBatchND", value, blocks, paddings)
        for value, blocks, paddings in (
            (IMAGE, [2, 2], [[0, 0], [0, 0]]), (IMAGE, [2, 3], [[1, 1], [0, 2]]),
            (IMAGE, np.int64([2]), np.int64([[0, 0]])), (SERIES, [3], [[0, 0]]),
            (SERIES, [4], [[2, 0]]), (IMAGE, [1, 1, 2], np.zeros((3, 2), np.int32)),
            (IMAGE, np.zeros(0, np.int32), np.zeros((0, 2), np.int32)),
            (IMAGE, [2, 3], [[0, 0], [0, 0]]), (IMAGE, [2, 2], [[0, 0]]),
            (IMAGE, [0, 2], [[0, 0], [0, 0]]),
            (IMAGE, [2, 2], [[-1, 1], [0, 0]]), (IMAGE, 2, [[0, 0]]),
            (SERIES, [2, 2], [[0, 0], [0, 0]]),
        )
    ),
    *(nd_case("SpaceToBatchND", IMAGE.astype(t), [2, 2], [[0, 0], [1, 1]]) for t in REAL),
    *(
        nd_case("BatchToSpaceND", value, blocks, crops)
        for value, blocks, crops in (
            (BATCH, [2, 2], [[0, 0], [0, 0]]), (BATCH, [2, 2], [[1, 0], [1, 2]]),
            (BATCH, np.int64([4]), np.int64([[1, 1]])),
            (BATCH, [1, 2, 2], np.zeros((3, 2), np.int32)),
            (BATCH, [2, 2], [[2, 2], [0, 0]]),
            (BATCH, [3, 2], [[0, 0], [0, 0]]), (BATCH, [2, 2], [[3, 2], [0, 0]]),
            (BATCH, [2, 2], [[-1, 0], [0, 0]]), (BATCH, [2, 2], [[0, 0]]),
            (BATCH, [2, -2], [[0, 0], [0, 0]]),
            (SERIES, [2, 2], [[0, 0], [0, 0]]), (BATCH, 2, [[0, 0]]),
        )
    ),
    *(nd_case("BatchToSpaceND", BATCH.astype(t), [2, 2], [[0, 1], [1, 1]]) for t in REAL),
    *(
        case("SpaceToBatch", value, paddings, block_size=2, message=True)
        for value, paddings in (
            (IMAGE, [[0, 0], [0, 0]]), (IMAGE, [[1, 1], [0, 2]]), (IMAGE, [[1, 0], [0, 0]]),
            (IMAGE[0], [[0, 0], [0, 0]]),
        )
    ),
    *(
        case("BatchToSpace", value, crops, block_size=2, message=True)
        for value, crops in (
            (BATCH, [[0, 0], [0, 0]]), (BATCH, [[1, 0], [1, 2]]), (BATCH[:3], [[0, 0], [0, 0]]),
            (BATCH[0], [[0, 0], [0, 0]]),
        )
    ),
)  # fmt: skip
