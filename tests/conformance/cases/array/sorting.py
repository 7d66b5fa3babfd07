"""TopK, ApproxTopK and NthElement."""

from typing import Any

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

ROWS = np.float32([[3, 1, 3, 2, 5, 5], [0, -1, np.inf, 7, -np.inf, 7]])
LONG = (np.arange(200, dtype=np.float32) * 37 % 50).reshape(2, 100)  # many equal elements
TYPES = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16,
    np.float64,
)  # fmt: skip


def approximate(name: str, rows: np.ndarray, k: int, **attrs: Any) -> Case:
    """ApproxTopK of a constant, because TensorFlow can't add the op for an unknown shape.

    TensorFlow's CPU kernel supports only the largest elements along the last axis.
    """
    graph = Graph()
    outputs = graph.add("ApproxTopK", rows, k=k, **attrs)
    return Case(name, graph.graph_def, (Step({}, [each for each, _ in outputs]),))


CASES = (
    approximate("approximate", LONG[:, :50], 5),
    approximate("approximate_recall", LONG[:, :50], 5, recall_target=0.5, aggregate_to_topk=False),
    approximate("approximate_all", ROWS.astype(np.float16), 6),
    approximate("approximate_none", ROWS.astype(ml_dtypes.bfloat16), 0),
    *(
        case("TopKV2", value, k, message=True)
        for value, k in (
            (ROWS, 1), (ROWS, 3), (ROWS, 6), (ROWS, 0), (ROWS[0], 2), (ROWS[None], 2), (LONG, 5),
            (LONG, 1), (LONG, 100), (ROWS[:0], 2), (np.zeros(4, np.float32), 2), (ROWS, 7),
            (ROWS, -1),
            (np.float32(1), 1), (ROWS, [1]), (LONG, np.int64(11)), (LONG, np.int16(4)),
        )
    ),
    *(case("TopKV2", LONG.astype(t), 3) for t in TYPES),
    *(case("TopKV2", ROWS[0].astype(t), 4, index_type=DataType.INT64) for t in TYPES),
    *(
        case("NthElement", value, n, reverse=reverse, message=True)
        for reverse in (False, True)
        for value, n in (
            (ROWS, 0), (ROWS, 3), (ROWS, 5), (LONG, 40), (ROWS, 6), (ROWS, -1), (np.float32(1), 0),
            (ROWS, [1]),
        )
    ),
    *(case("NthElement", LONG.astype(t), 7) for t in TYPES),
)  # fmt: skip
