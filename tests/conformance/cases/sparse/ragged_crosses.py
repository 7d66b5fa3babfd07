"""RaggedCross."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case


def int64(values: object) -> np.ndarray:
    return np.array(values, np.int64)


LETTERS = np.array([b"a", b"b", b"c"], object)
SPLITS = int64([0, 2, 3])
INDICES, NUMBERS, SHAPE = int64([[0, 0], [1, 0], [1, 1]]), int64([1, 2, 3]), int64([2, 2])
DENSE = int64([[5], [6]])
INPUTS = (LETTERS, SPLITS, INDICES, NUMBERS, SHAPE, DENSE)
TEXT = {
    "input_order": "RSD", "hashed_output": False, "num_buckets": 0, "hash_key": 0,
    "out_values_type": DataType.STRING, "out_row_splits_type": DataType.INT64,
}  # fmt: skip
HASH = {**TEXT, "hashed_output": True, "hash_key": 956888297470, "out_values_type": DataType.INT64}


def crossed(*inputs: Any, message: bool = False, **attrs: Any) -> Case:
    return case("RaggedCross", *([each] for each in inputs), message=message, **{**TEXT, **attrs})


def with_input(place: int, value: np.ndarray) -> Case:
    """Return a case with one input replaced."""
    return crossed(*INPUTS[:place], value, *INPUTS[place + 1 :], message=True)


CASES = (
    *(crossed(*INPUTS, input_order=order) for order in ("RSD", "DSR", "SRD")),
    *(crossed(*INPUTS, **{**HASH, "num_buckets": buckets}) for buckets in (0, 100)),
    # the type of the output, not `hashed_output`, decides whether values are hashed
    crossed(*INPUTS, **{**HASH, "hashed_output": False}),
    *(
        crossed(*INPUTS, message=True, input_order=order)
        for order in ("RSX", "RRD", "RS", "RSDD")
    ),
    *(
        with_input(1, int64(splits))
        for splits in (
            [0, 2, 5], [1, 2, 3], [0, 3, 2], [0, 2], [0, 2, 3, 3], [[0, 2, 3]], [0, -1, 3],
            [0, 2, 2], [0, 0, 3],
        )
    ),
    *(with_input(2, each) for each in (INDICES[:, 0], INDICES[:, :1])),
    *(with_input(4, int64(shape)) for shape in ([2, 2, 2], [[2, 2]], [3, 2])),
    *(with_input(5, each) for each in (DENSE[0], DENSE[:, :0], int64([[5], [6], [7]]))),
    with_input(0, LETTERS.reshape(3, 1)),
    case("RaggedCross", [], [], [], [], [], [], **{**TEXT, "input_order": ""}),
    *(
        case("RaggedCross", [], [], [indices], [NUMBERS[:count]], [SHAPE], [], name=f"rows_{name}",
             **{**TEXT, "input_order": "S"})
        for name, indices, count in (
            ("out_of_order", int64([[1, 0], [0, 1]]), 2), ("negative", int64([[-1, 0], [0, 1]]), 2),
            ("beyond", int64([[0, 0], [7, 1], [1, 0]]), 3),
            ("of_fewer_values", int64([[0, 0], [1, 1], [1, 1]]), 2),
            ("of_nothing", int64([[], []]), 0),
        )
    ),
)  # fmt: skip
