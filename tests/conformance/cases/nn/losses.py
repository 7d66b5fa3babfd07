"""Cross entropies."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(11)
LOGITS = (RNG.normal(size=(4, 5)) * 3).astype(np.float32)
LABELS = RNG.dirichlet(np.ones(5), size=4).astype(np.float32)
CLASSES = np.array([0, 4, 2, 2])
UNUSUAL = np.array([[1, 2, 3], [0, 0, np.inf], [-np.inf, 0, 1], [np.nan, 0, 0]], np.float32)
ONE_HOT = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float64)

DENSE = (
    (LOGITS, LABELS), (LOGITS, LABELS[:1]), (LOGITS[:1], LABELS), (LOGITS, LABELS[:, :1]),
    (LOGITS[0], LABELS), (UNUSUAL, ONE_HOT), (LOGITS[:0], LABELS[:0]),
    (LOGITS[:, :0], LABELS[:, :0]), (LOGITS[0], LABELS[0]), (LOGITS, LABELS[:, :2]),
    (LOGITS[None], LABELS[None]),
)  # fmt: skip
SPARSE = (
    (LOGITS, CLASSES), (LOGITS, CLASSES.astype(np.int32)), (UNUSUAL, CLASSES % 3),
    (LOGITS[:0], CLASSES[:0]), (LOGITS, CLASSES[:1]), (LOGITS, CLASSES[None]),
    (LOGITS[0], CLASSES), (LOGITS, CLASSES + 1), (LOGITS, -CLASSES), (LOGITS[:, :0], CLASSES),
)  # fmt: skip

CASES = (
    *(case("SoftmaxCrossEntropyWithLogits", *inputs, message=True) for inputs in DENSE),
    *(
        case("SoftmaxCrossEntropyWithLogits", LOGITS.astype(t), LABELS.astype(t), tolerance=loose)
        for t, loose in zip(FLOATS, (0.01, 0.05, None), strict=True)
    ),
    *(case("SparseSoftmaxCrossEntropyWithLogits", *inputs, message=True) for inputs in SPARSE),
    *(
        case("SparseSoftmaxCrossEntropyWithLogits", LOGITS.astype(t), CLASSES, tolerance=loose)
        for t, loose in zip(FLOATS, (0.01, 0.05, None), strict=True)
    ),
)
