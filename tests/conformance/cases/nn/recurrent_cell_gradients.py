"""Gradients of the fused LSTM and GRU cells."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(19)
BATCH, INPUTS, CELLS, TIME = 2, 3, 4, 5


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


W, B = normal(INPUTS + CELLS, 4 * CELLS), normal(4 * CELLS)
STATE = (normal(BATCH, CELLS), normal(BATCH, CELLS), W, *(normal(CELLS) for _ in range(3)), B)
ONE = tuple(np.tanh(normal(BATCH, CELLS)) for _ in range(8))
ALL = tuple(np.tanh(normal(TIME, BATCH, CELLS)) for _ in range(9))
X, SEQUENCE = normal(BATCH, INPUTS), normal(TIME, BATCH, INPUTS)
GRU = (
    X, normal(BATCH, CELLS), normal(INPUTS + CELLS, 2 * CELLS), normal(INPUTS + CELLS, CELLS),
    normal(2 * CELLS), normal(CELLS), *ONE[:4],
)  # fmt: skip


def only(whole: Case, indices: tuple[int, ...]) -> Case:
    """The case with only some outputs: TensorFlow leaves unused peepholes' gradients unset."""
    steps = tuple(
        dataclasses.replace(step, fetches=tuple(step.fetches[index] for index in indices))
        for step in whole.steps
    )
    return dataclasses.replace(whole, steps=steps)


CASES = (
    case("LSTMBlockCellGrad", X, *STATE, *ONE, use_peephole=True),
    only(case("LSTMBlockCellGrad", X, *STATE, *ONE, use_peephole=False), (0, 1)),
    case(
        "LSTMBlockCellGrad",
        *(each.astype(np.float16) for each in (X, *STATE, *ONE)),
        use_peephole=True,
        tolerance=0.05,
    ),
    *(
        case(op, np.int64(TIME), SEQUENCE, *STATE, *ALL, use_peephole=True)
        for op in ("BlockLSTMGrad", "BlockLSTMGradV2")
    ),
    *(
        case(
            op,
            np.int64(TIME),
            *(e.astype(np.float16) for e in (SEQUENCE, *STATE, *ALL)),
            use_peephole=True,
            tolerance=0.05,
            name=f"{op}_half",
        )
        for op in ("BlockLSTMGrad", "BlockLSTMGradV2")
    ),
    *(
        only(case(op, np.int64(TIME), SEQUENCE, *STATE, *ALL, use_peephole=False), (0, 1, 2, 3, 7))
        for op in ("BlockLSTMGrad", "BlockLSTMGradV2")
    ),
    case("GRUBlockCellGrad", *GRU),
)
