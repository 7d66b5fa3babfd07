"""The best states of sequences against all sequences, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError, InvalidArgumentError
from runtime.foundation.running_task import set_running_task
from runtime.framework.dtypes import DataType
from runtime.op_packages.text import constrained_sequence as module
from runtime.op_packages.text.constrained_sequence import constrained_sequence
from tests.unit.runtime.op_packages.text.test_text_memory import check

NOTHING = np.empty(0, np.float32)
STATES = 3


def found(
    scores: np.ndarray,
    lengths: list[int],
    allowed: np.ndarray = NOTHING,
    weights: np.ndarray = NOTHING,
    *,
    viterbi: bool = True,
    log: bool = True,
    ends: bool = True,
) -> list[list[int]]:
    states, splits = constrained_sequence(
        scores, np.array(lengths), allowed.astype(np.bool_), weights.astype(np.float32),
        Tsplits=DataType.INT64, use_viterbi=viterbi, use_log_space=log,
        use_start_and_end_states=ends,
    )  # fmt: skip
    assert states.dtype == np.int32
    return [row.tolist() for row in np.split(states, splits[1:-1])]


def score_of(
    path: tuple[int, ...], scores: np.ndarray, allowed: np.ndarray, weights: np.ndarray
) -> float:
    way = [STATES, *path, STATES]
    if not all(allowed[pair] for pair in itertools.pairwise(way)):
        return -np.inf
    return sum(scores[step, state] for step, state in enumerate(path)) + sum(
        weights[pair] for pair in itertools.pairwise(way)
    )


@pytest.mark.parametrize("at_once", [1, 1 << 17])
@pytest.mark.parametrize("log", [True, False])
def test_the_best_of_all_sequences(
    log: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    source = np.random.default_rng(6)
    scores = source.standard_normal((20, 4, STATES))
    lengths = source.integers(0, 5, 20).tolist()
    weights = source.standard_normal((STATES + 1, STATES + 1))
    allowed = source.random((STATES + 1, STATES + 1)) < 0.8
    given = (scores, weights) if log else (np.exp(scores), np.exp(weights))
    answers = found(given[0].astype(np.float32), lengths, allowed, given[1], log=log)
    assert [len(each) for each in answers] == lengths
    for each, length, answer in zip(scores, lengths, answers, strict=True):
        paths = list(itertools.product(range(STATES), repeat=length))
        totals = [score_of(path, each, allowed, weights) for path in paths]
        best = list(paths[int(np.argmax(totals))])
        assert answer == (best if max(totals) > -np.inf else [-1] * length)


def test_the_greedy_way_ends_where_no_transition_is_allowed() -> None:
    allowed = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]])
    scores = np.array([[[5, 0, 1], [0, 1, 9], [1, 1, 1], [2, 2, 2]]], np.float32)
    assert found(scores, [4], allowed, viterbi=False) == [[0, 1, -1, -1]]
    assert found(scores, [1], allowed, viterbi=False) == [[0]]
    assert found(scores[0], [4], allowed[:3, :3], viterbi=False, ends=False) == [[0, 1, -1, -1]]


def test_of_equal_states_the_last_is_taken() -> None:
    scores = np.zeros((1, 3, STATES), np.float32)
    for viterbi in (True, False):
        assert found(scores, [3], viterbi=viterbi) == [[2, 2, 2]]


def test_no_states() -> None:
    assert found(np.empty((2, 3, 0), np.float32), [1, 3]) == [[-1], [-1, -1, -1]]
    assert found(np.empty((2, 0, 3), np.float32), [0, 0]) == [[], []]


@pytest.mark.parametrize(
    ("shape", "lengths", "allowed", "weights", "words"),
    [
        ((2,), [1], (0,), (0,), "must be of rank 2 or 3"),
        ((1, 2, 3), [1, 1], (0,), (0,), "Found 2 length elements for a batch size of 1"),
        ((1, 2, 3), [3], (0,), (0,), "too short for the longest sequence length: it has 2 steps"),
        ((1, 2, 3), [-1], (0,), (0,), "must have a length >= 0, got -1"),
        ((1, 2, 3), [1], (3, 4), (0,), r"allowed_transitions must have shape \[4, 4\]"),
        ((1, 2, 3), [1], (0,), (4,), r"transition_weights must have shape \[4, 4\]"),
        ((1, 2, 3), [1], (0,), (4, 4), "must not contain negative values"),
    ],
)
def test_arguments_that_do_not_fit(
    shape: tuple[int, ...],
    lengths: list[int],
    allowed: tuple[int, ...],
    weights: tuple[int, ...],
    words: str,
) -> None:
    scores = np.zeros(shape, np.float32)
    with pytest.raises(InvalidArgumentError, match=words):
        found(scores, lengths, np.ones(allowed), -np.ones(weights), log=False)


@pytest.mark.parametrize("viterbi", [True, False])
@pytest.mark.parametrize("shape", [(1, 3000, 4), (4, 5, 400), (300, 40, 3), (2000, 2, 40)])
def test_the_memory_bound_holds(shape: tuple[int, ...], viterbi: bool) -> None:
    inputs = [
        np.random.default_rng(7).random(shape, np.float32),
        np.full(shape[0], shape[1]),
        np.ones((shape[2] + 1,) * 2, np.bool_),
        np.ones((shape[2] + 1,) * 2, np.float32),
    ]
    attrs = {"use_viterbi": viterbi, "use_log_space": True, "use_start_and_end_states": True}
    check("ConstrainedSequence", inputs, attrs | {"Tsplits": "int64"})


def test_a_cancelled_step_ends() -> None:
    set_running_task([CancelledError("the step was cancelled")])
    try:
        for viterbi in (True, False):
            with pytest.raises(CancelledError):
                found(np.zeros((1, 1, 1), np.float32), [1], viterbi=viterbi)
    finally:
        set_running_task(())
