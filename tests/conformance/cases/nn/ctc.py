"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(15)
LOGITS = (RNG.normal(size=(6, 2, 4)) * 2).astype(np.float32)
LENGTHS = np.array([6, 4], np.int32)
INDICES = np.array([[0, 0], [0, 1], [0, 2], [1, 0]])
VALUES = np.array([0, 1, 1, 2], np.int32)

GREEDY: tuple[tuple[np.ndarray, np.ndarray, dict[str, Any]], ...] = (
    (LOGITS, LENGTHS, {}),
    (LOGITS, LENGTHS, {"merge_repeated": True}),
    (LOGITS, LENGTHS, {"blank_index": 0}),
    (LOGITS, LENGTHS, {"blank_index": -2, "merge_repeated": True}),
    (LOGITS.astype(np.float64), LENGTHS, {}),
    (LOGITS, LENGTHS * 0, {}),
    (LOGITS, LENGTHS - 10, {}),
    (LOGITS[0], LENGTHS, {}),
    (LOGITS, LENGTHS[:1], {}),
    (LOGITS, LENGTHS + 1, {}),
    (LOGITS, LENGTHS[None], {}),
    (LOGITS, LENGTHS, {"blank_index": 5}),
    (LOGITS, LENGTHS, {"blank_index": -5}),
    (LOGITS[:0], LENGTHS, {}),
)


def loss(*inputs: np.ndarray, **attrs: Any) -> Case:
    return case("CTCLoss", *inputs, message=True, **attrs)


FLAGS = (
    "preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs",
)  # fmt: skip
LONG = np.array([[0, n] for n in range(7)] + [[1, 0]])

CASES = (
    *(case("CTCGreedyDecoder", x, n, message=True, **attrs) for x, n, attrs in GREEDY),
    *(
        loss(LOGITS, INDICES, VALUES, LENGTHS, **{FLAGS[0]: collapse, FLAGS[1]: merge})
        for collapse in (False, True)
        for merge in (False, True)
    ),
    loss(LOGITS.astype(np.float64), INDICES, VALUES, LENGTHS, tolerance=1e-6),
    loss(LOGITS, LONG, np.zeros(8, np.int32), LENGTHS),
    loss(LOGITS, LONG, np.zeros(8, np.int32), LENGTHS, **{FLAGS[2]: True}),
    loss(LOGITS, INDICES[:2], VALUES, LENGTHS),
    loss(LOGITS, INDICES, VALUES[None], LENGTHS),
    loss(LOGITS, INDICES, VALUES, LENGTHS[:1]),
    loss(LOGITS, INDICES, VALUES, LENGTHS + 2),
    loss(LOGITS, INDICES, VALUES - 1, LENGTHS),
    loss(LOGITS, INDICES + 9, VALUES, LENGTHS),
    loss(LOGITS, INDICES[:3], VALUES[:3], LENGTHS),
    loss(LOGITS, LONG, np.zeros(8, np.int32), LENGTHS, **{FLAGS[0]: True}),
    loss(LOGITS, LONG[[0, 1, 2, 3, 7]], np.zeros(5, np.int32), LENGTHS),
    loss(LOGITS[:, :0], INDICES[:0], VALUES[:0], LENGTHS[:0]),
    loss(LOGITS, INDICES[::-1], VALUES, LENGTHS),
    loss(LOGITS, np.repeat(INDICES, 2, axis=0), np.repeat(VALUES, 2), LENGTHS),
    loss(LOGITS, INDICES, VALUES, -LENGTHS),
)
