"""SerializeSparse, SerializeManySparse and DeserializeSparse."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

INDICES, SHAPE = np.int64([[0, 1], [0, 2], [2, 0]]), np.int64([3, 4])
VALUES = np.float32([1, 2, 3])
WORDS = np.array([b"a", b"b", b"c"], object)


def round_trip(write: str, read: str, values: np.ndarray, dtype: DataType, kind: DataType) -> Case:
    graph = Graph()
    written = graph.add(write, INDICES, values, SHAPE, out_type=kind)[0]
    if read == "DeserializeManySparse" and write == "SerializeSparse":
        written = graph.add("Pack", [written, written])[0]
    outputs = graph.add(read, written, dtype=dtype, name="result")
    name = f"{write}_{read}_{dtype.tf_name}_{kind.tf_name}"
    return Case(name, graph.graph_def, (Step({}, tuple(output for output, _ in outputs)),))


def misfit(name: str, *parts: np.ndarray) -> Case:
    """DeserializeSparse of parts that do not fit together: the error message."""
    graph = Graph()
    written = graph.add("SerializeSparse", *parts)[0]
    outputs = graph.add("DeserializeSparse", written, dtype=DataType.FLOAT, name="result")
    step = Step({}, tuple(output for output, _ in outputs))
    return Case(f"misfit_{name}", graph.graph_def, (step,), message=True)


def of_two_ranks(read: str) -> Case:
    """A batch of a matrix and a tensor of rank 3, whose ranks differ."""
    graph = Graph()
    cube = np.concatenate((INDICES, INDICES[:, :1]), 1), np.append(SHAPE, np.int64(3))
    parts = [
        graph.add("SerializeSparse", indices, VALUES, shape)[0]
        for indices, shape in ((INDICES, SHAPE), cube)
    ]
    graph.add(read, graph.add("Pack", parts)[0], dtype=DataType.FLOAT, name="result")
    return Case(f"{read}_ranks", graph.graph_def, (Step({}, ("result:0",)),), message=True)


CASES = (
    *(
        round_trip(write, read, values, dtype, kind)
        for write in ("SerializeSparse", "SerializeManySparse")
        for read in ("DeserializeSparse", "DeserializeManySparse")
        for values, dtype in ((VALUES, DataType.FLOAT), (WORDS, DataType.STRING))
        for kind in (DataType.STRING, DataType.VARIANT)
        if not (read == "DeserializeManySparse" and kind is DataType.VARIANT)
    ),
    round_trip("SerializeSparse", "DeserializeSparse", VALUES, DataType.INT32, DataType.STRING),
    case("SerializeSparse", INDICES[0], VALUES, SHAPE),
    case("SerializeManySparse", INDICES + 9, VALUES, SHAPE),
    case("SerializeManySparse", INDICES[:, :1], VALUES, SHAPE[:1]),
    case("DeserializeSparse", np.array([b"x", b"y"], object), dtype=DataType.FLOAT),
    case("DeserializeSparse", np.array([b"x", b"y", b"z"], object), dtype=DataType.FLOAT),
    case("DeserializeManySparse", np.array([b"x", b"y", b"z"], object), dtype=DataType.FLOAT),
    *(
        case("SerializeManySparse", indices, VALUES, shape, message=True)
        for indices, shape in (
            (INDICES[::-1], SHAPE), (INDICES[[0, 0, 2]], SHAPE),
            (INDICES + np.int64([0, 9]), SHAPE), (INDICES, -SHAPE),
            (INDICES, np.int64([3, 2**63 - 1])), (INDICES[:2], SHAPE),
            (INDICES, np.int64([3, 4, 5])),
        )
    ),
    case("SerializeSparse", INDICES, VALUES[:2], SHAPE),
    case("SerializeSparse", INDICES, VALUES, SHAPE[0], message=True),
    *(
        case("DeserializeManySparse", serialized, dtype=DataType.FLOAT, message=True)
        for serialized in (np.full(shape, b"x", object) for shape in ((), (0, 3), (2, 2), (2, 3)))
    ),
    misfit("rows", INDICES, VALUES[:2], SHAPE),
    misfit("columns", INDICES, VALUES, SHAPE[:1]),
    misfit("type", INDICES, INDICES[:, 0], SHAPE),
    *(of_two_ranks(read) for read in ("DeserializeSparse", "DeserializeManySparse")),
)  # fmt: skip
