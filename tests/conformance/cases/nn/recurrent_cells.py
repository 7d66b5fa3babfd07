"""Fused LSTM and GRU cells."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(14)
BATCH, INPUTS, CELLS, TIME = 2, 3, 4, 5


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


X, CS, H = normal(BATCH, INPUTS), normal(BATCH, CELLS), normal(BATCH, CELLS)
W, B = normal(INPUTS + CELLS, 4 * CELLS), normal(4 * CELLS)
PEEPHOLES = (normal(CELLS), normal(CELLS), normal(CELLS))
SEQUENCE = normal(TIME, BATCH, INPUTS)
STATE = (CS, H, W, *PEEPHOLES, B)
GRU = (
    X, H, normal(INPUTS + CELLS, 2 * CELLS), normal(INPUTS + CELLS, CELLS), normal(2 * CELLS),
    normal(CELLS),
)  # fmt: skip
ATTRS: tuple[dict[str, Any], ...] = (
    {}, {"use_peephole": True}, {"cell_clip": 0.5}, {"cell_clip": -1.0}, {"forget_bias": 0.0},
)  # fmt: skip
REFUSED = (
    (X, CS[:1], H, W, *PEEPHOLES, B), (X, CS, H[:1], W, *PEEPHOLES, B),
    (X, CS, H, W[:3], *PEEPHOLES, B), (X, CS, H, W[:, :8], *PEEPHOLES, B),
    (X, CS, H, W, *PEEPHOLES, B[:3]), (X, CS, H[:, :2], W, *PEEPHOLES, B),
)  # fmt: skip


def replaced(inputs: tuple[np.ndarray, ...], at: int, by: np.ndarray) -> tuple[np.ndarray, ...]:
    return (*inputs[:at], by, *inputs[at + 1 :])


def without_first_output(whole: Case) -> Case:
    """The case without the input gate, which TensorFlow leaves unset after seq_len_max."""
    steps = tuple(dataclasses.replace(step, fetches=step.fetches[1:]) for step in whole.steps)
    return dataclasses.replace(whole, steps=steps)


CASES = (
    *(case("LSTMBlockCell", X, *STATE, **attrs) for attrs in ATTRS),
    case("LSTMBlockCell", *(each.astype(np.float16) for each in (X, *STATE)), tolerance=0.02),
    *(case("LSTMBlockCell", *inputs, message=True) for inputs in REFUSED),
    case("LSTMBlockCell", X[:0], CS[:0], H[:0], *STATE[2:], message=True),
    case(
        "LSTMBlockCell", X, CS[:, :0], H[:, :0], W[:INPUTS, :0], *PEEPHOLES, B[:0], message=True,
    ),
    *(case("BlockLSTM", np.int64(TIME), SEQUENCE, *STATE, **attrs) for attrs in ATTRS),
    *(case("BlockLSTMV2", np.int64(TIME), SEQUENCE, *STATE, **attrs) for attrs in ATTRS[:4]),
    *(
        without_first_output(case(op, np.int64(3), SEQUENCE, *STATE))
        for op in ("BlockLSTM", "BlockLSTMV2")
    ),
    *(
        case(
            op, np.int64(TIME), *(e.astype(np.float16) for e in (SEQUENCE, *STATE)),
            tolerance=0.05,
        )
        for op in ("BlockLSTM", "BlockLSTMV2")
    ),
    case("GRUBlockCell", *GRU),
    *(
        case("GRUBlockCell", *replaced(GRU, at, GRU[at][:2]), message=True)
        for at in range(2, 6)
    ),
    case("GRUBlockCell", *replaced(GRU, 1, H[:1]), message=True),
    case("GRUBlockCell", *replaced(GRU, 2, GRU[2][:, :2]), message=True),
    case("GRUBlockCell", *replaced(GRU, 3, GRU[3][:, :2]), message=True),
)  # fmt: skip
