"""CTCBeamSearchDecoder, and IsotonicRegression."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

RNG = np.random.default_rng(41)
LOGITS = 2 * RNG.normal(size=(9, 4, 6))
LENGTHS = np.array([9, 5, 1, 0], np.int32)
LONG = 3 * RNG.normal(size=(60, 2, 30))
# With two beams, a dropped labelling that is not added again must not return by its extensions.
NARROW = np.array(
    [[0.19, -2.34, -2.72, -2.61, -1.44, 2.37], [0.06, 0.88, -1.15, -0.78, 3.36, 2.59],
     [-1.1, -3.05, -3.53, 1.62, 0.51, -1.17], [-2.35, -1.36, -2.17, 0.25, -1.08, -1.55],
     [-3.6, 2.55, -0.16, 0.12, 0.09, -0.66]]
)[:, None]  # fmt: skip
FEW = RNG.normal(size=(7, 2, 2))


def search(logits: np.ndarray, lengths: Any, beam_width: int, top_paths: int, **attrs: Any) -> Case:
    inputs = logits.astype(attrs.pop("dtype", "f")), np.array(lengths, np.int32)
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "message": True, **attrs}
    return case("CTCBeamSearchDecoder", *inputs, tolerance=1e-4, **attrs)


def regression(values: Any, dtype: type, data_type: DataType) -> Case:
    return case("IsotonicRegression", np.array(values, dtype), output_dtype=data_type)


ROWS = [[3, 1, 2, 5, 4], [1, 2, 3, 4, 5], [5, 4, 4, 2, 0], [7, 7, 1, 2, 9]]
F32, F64 = DataType.FLOAT, DataType.DOUBLE
CASES = (
    *(
        search(LOGITS, LENGTHS, width, 1, merge_repeated=merge)
        for width in (1, 2, 5, 100)
        for merge in (True, False)
    ),
    search(LOGITS[:, :2], LENGTHS[:2], 3, 3), search(LOGITS[:, :2], LENGTHS[:2], 100, 5),
    search(LOGITS[:, :2], LENGTHS[:2], 20, 2, dtype="d"),
    search(NARROW, [5], 2, 2), search(NARROW, [5], 3, 3), search(LOGITS[:, :0], [9, 5], 2, 1),
    search(LONG, [60, 41], 10, 3), search(LONG, [60, 41], 50, 1, merge_repeated=False),
    search(FEW, [7, 7], 4, 2, merge_repeated=False), search(FEW, [7, 7], 4, 2),
    search(LOGITS, LENGTHS, 2, 3), search(LOGITS[:, :1, :1], [3], 2, 2),
    search(LOGITS, LENGTHS[:3], 2, 1), search(LOGITS, [10, 1, 1, 1], 2, 1),
    search(LOGITS[0], [1, 1, 1, 1], 2, 1), search(LOGITS, [[9, 1, 1, 1]], 2, 1),
    regression(ROWS, np.float32, F32), regression(ROWS, np.float64, F64),
    regression(ROWS, np.int32, F64), regression(ROWS, np.int8, F32),
    regression(RNG.normal(size=(2, 3, 50)), np.float64, F64),
    regression(np.zeros((2, 0)), np.float32, F32), regression([3, 1], np.float32, F32),
    regression(3, np.float32, F32),
)  # fmt: skip
