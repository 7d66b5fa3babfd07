"""ConstrainedSequence: the best states of sequences, among transitions that are allowed.

Each step of a sequence has a score for each state. The Viterbi algorithm finds the states whose
scores and transition weights are best together, the greedy one the best state of each step in turn.
Of states that are equally good, the last is taken.

TF: tensorflow_text/core/kernels/constrained_sequence.cc, constrained_sequence_kernel.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements, shape_of, size_of, total_in

_ERROR = -1  # the state of a step that no allowed sequence reaches
_LOWEST = np.finfo(np.float32).min  # a state must have at least this score
_AT_ONCE = 1 << 17  # transitions whose scores are computed together


@dataclasses.dataclass(frozen=True, slots=True)
class _Transitions:
    """What transitions cost. The matrices are `[states, states]`, from the first to the second.

    With start and end states they have one more row (before the first step) and one more column
    (after the last step). None: all are allowed, or weigh nothing.
    """

    allowed: np.ndarray | None
    weights: np.ndarray | None
    join: Callable[[np.ndarray, np.ndarray], np.ndarray]  # np.add of logarithms, or np.multiply
    has_ends: bool

    def to_states(self, sources: np.ndarray | int, scores: np.ndarray) -> np.ndarray:
        """Return scores `[…, states]` with those of the transitions from a source; -inf: none."""
        states = scores.shape[-1]
        if self.weights is not None:
            scores = self.join(scores, self.weights[sources, :states])
        if self.allowed is not None:
            scores = np.where(self.allowed[sources, :states], scores, -np.inf)
        return scores

    def to_end(self, scores: np.ndarray) -> np.ndarray:
        """Return scores `[…, states]` with those of the transitions to the end; -inf: none."""
        states = scores.shape[-1]
        if not self.has_ends:
            return scores
        if self.weights is not None:
            scores = self.join(scores, self.weights[:states, states])
        if self.allowed is not None:
            scores = np.where(self.allowed[:states, states], scores, -np.inf)
        return scores


def _last_best(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the last best places along the last axis, and their scores.

    A place with a score below `_LOWEST`, or NaN, is none; without any, the place is `_ERROR`.
    """
    if not scores.shape[-1]:
        return np.full(scores.shape[:-1], _ERROR), np.full(scores.shape[:-1], _LOWEST)
    reversed_scores = np.where(scores >= _LOWEST, scores, -np.inf)[..., ::-1]
    found = np.argmax(reversed_scores, axis=-1)
    best = np.take_along_axis(reversed_scores, found[..., None], -1)[..., 0]
    place = np.where(best >= _LOWEST, scores.shape[-1] - 1 - found, _ERROR)
    return place, np.maximum(best, _LOWEST)


# --- the greedy algorithm -------------------------------------------------------------------------


def _greedy(scores: np.ndarray, active: np.ndarray, transitions: _Transitions) -> np.ndarray:
    """Return the states `[batch, steps]`; the first `active[t]` sequences have a step t."""
    batch, steps, states = scores.shape
    found = np.full((batch, steps), _ERROR, np.int32)
    before = np.full(batch, states)
    for step in range(steps):
        check_task()
        rows, going_on = active[step], active[step + 1]
        candidates = scores[:rows, step]
        if step or transitions.has_ends:
            # an error remains one; its transitions are those of some state until then
            candidates = transitions.to_states(before[:rows], candidates)
            ending = transitions.to_end(candidates[going_on:])
            candidates = np.concatenate([candidates[:going_on], ending])
        place, _ = _last_best(candidates)
        before = np.where(before[:rows] == _ERROR, _ERROR, place)
        found[:rows, step] = before
    return found


# --- the Viterbi algorithm ------------------------------------------------------------------------


def _viterbi(
    scores: np.ndarray, active: np.ndarray, transitions: _Transitions, is_log: bool
) -> np.ndarray:
    """Return the states `[batch, steps]`; the first `active[t]` sequences have a step t."""
    batch, steps, states = scores.shape
    sources = np.empty((steps, batch, states), np.int32)  # the best state before; or _ERROR
    ends = np.full(batch, _ERROR)
    reached, totals = np.empty((0, states), np.bool_), np.empty((0, states), np.float64)
    for step in range(steps):
        check_task()
        rows, going_on = active[step], active[step + 1]
        at_step = scores[:rows, step]
        if step:
            places, best = _best_sources(totals[:rows], reached[:rows], at_step, transitions)
            reached = places != _ERROR
            sources[step, :rows] = places
        else:
            best, reached = _first_scores(at_step, transitions)
        totals = _scaled(best.astype(np.float64), is_log)
        leaving = transitions.to_end(totals[going_on:].astype(np.float32))
        ends[going_on:rows] = _last_best(np.where(reached[going_on:], leaving, -np.inf))[0]
    return _paths(sources, ends, active)


def _first_scores(scores: np.ndarray, transitions: _Transitions) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the first step `[batch, states]`, and which states are reached."""
    states = scores.shape[-1]
    reached = np.ones(scores.shape, np.bool_)
    if not transitions.has_ends:
        return scores, reached
    if transitions.allowed is not None:
        reached &= transitions.allowed[states, :states]
    if transitions.weights is not None:
        scores = transitions.join(scores, transitions.weights[states, :states])
    return np.where(reached, scores, _LOWEST), reached


def _best_sources(
    totals: np.ndarray, reached: np.ndarray, scores: np.ndarray, transitions: _Transitions
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each state of a step `[batch, states]` the best state before, and its score.

    Each sum or product is rounded to float32, the scores before are float64.
    """
    rows, states = scores.shape
    places = np.empty((rows, states), np.int32)
    best = np.empty((rows, states), np.float32)
    width = max(_AT_ONCE // max(rows * states, 1), 1)
    for first in range(0, states, width):
        check_task()
        some = slice(first, min(first + width, states))
        joined = transitions.join(scores[:, some, None], totals[:, None]).astype(np.float32)
        if transitions.weights is not None:
            joined = transitions.join(joined, transitions.weights[:states, some].T)
        is_open = reached[:, None]
        if transitions.allowed is not None:
            is_open = is_open & transitions.allowed[:states, some].T
        joined = np.where(is_open, joined, -np.inf)
        places[:, some], best[:, some] = _last_best(joined)
    return places, best


def _scaled(totals: np.ndarray, is_log: bool) -> np.ndarray:
    """Return the scores of a step `[batch, states]`, divided by the greatest unless logarithms."""
    if is_log or not totals.shape[-1]:
        return totals
    # as std::max_element, which takes a NaN for the greatest only if it comes first
    greatest = np.where(np.isnan(totals[:, 0]), np.nan, np.fmax.reduce(totals, axis=-1))
    divisor = np.where(greatest > 0, greatest, 1)
    scaled: np.ndarray = totals / divisor[:, None]
    return scaled


def _paths(sources: np.ndarray, ends: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the states `[batch, steps]` that lead to the last state of each sequence."""
    steps, batch, _ = sources.shape
    found = np.full((batch, steps), _ERROR, np.int32)
    states = ends
    for step in reversed(range(steps)):
        rows = active[step]
        found[:rows, step] = states[:rows]
        if step:
            before = sources[step, np.arange(rows), states[:rows]] if sources.size else _ERROR
            states[:rows] = np.where(states[:rows] == _ERROR, _ERROR, before)
    return found


# --- the kernel -----------------------------------------------------------------------------------


def _lengths(sequence_lengths: np.ndarray, batch: int, steps: int) -> np.ndarray:
    if sequence_lengths.size != batch:
        raise InvalidArgumentError(
            "There should be exactly one length for every batch element. Found "
            f"{sequence_lengths.size} length elements for a batch size of {batch}"
        )
    lengths: np.ndarray = sequence_lengths.reshape(-1).astype(np.int64)
    if batch and lengths.max() > steps:
        raise InvalidArgumentError(
            "The scores tensor is too short for the longest sequence length: it has "
            f"{steps} steps, expected {lengths.max()}"
        )
    if batch and lengths.min() < 0:
        raise InvalidArgumentError(f"A sequence must have a length >= 0, got {lengths.min()}")
    return lengths


def _constraint(matrix: np.ndarray, states: int, has_ends: bool, name: str) -> np.ndarray | None:
    """Return the matrix, or None if it is empty, which constrains nothing."""
    if not matrix.size:
        return None
    size = states + 1 if has_ends else states
    if matrix.shape != (size, size):
        raise InvalidArgumentError(
            f"{name} must have shape [{size}, {size}] when num_states is {states} and "
            f"use_start_and_end_states is {has_ends}, got {list(matrix.shape)}"
        )
    return matrix


def constrained_sequence(
    scores: np.ndarray,
    sequence_lengths: np.ndarray,
    allowed_transitions: np.ndarray,
    transition_weights: np.ndarray,
    *,
    Tsplits: DataType,  # noqa: N803 # the op's name
    use_viterbi: bool,
    use_log_space: bool,
    use_start_and_end_states: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """ConstrainedSequence: return the states of all sequences, int32, and the row splits.

    `scores` are `[batch, steps, states]` or, of one sequence, `[steps, states]`. A step that no
    allowed sequence reaches has state -1. Raises InvalidArgumentError if a length is more than
    the steps, if a matrix has not the size of the states, or if weights that are not logarithms
    are negative.
    """
    if scores.ndim not in (2, 3):
        raise InvalidArgumentError(
            f"The score tensor must be of rank 2 or 3, got shape {list(scores.shape)}"
        )
    batched = scores if scores.ndim == 3 else scores[None]
    batch, steps, states = batched.shape
    lengths = _lengths(sequence_lengths, batch, steps)
    has_ends = use_start_and_end_states
    weights = _constraint(transition_weights, states, has_ends, "transition_weights")
    if weights is not None and not use_log_space and not (weights >= 0).all():
        raise InvalidArgumentError(
            "The transition weights tensor must not contain negative values."
        )
    transitions = _Transitions(
        _constraint(allowed_transitions, states, has_ends, "allowed_transitions"),
        weights,
        np.add if use_log_space else np.multiply,
        has_ends,
    )
    order = np.argsort(-lengths, kind="stable")
    longest = int(lengths.max(initial=0))
    # how many sequences have each step, and none behind the longest
    active = np.searchsorted(-lengths[order], -np.arange(longest + 1))
    ordered = batched[order, :longest]
    with np.errstate(all="ignore"):
        if use_viterbi:
            found = _viterbi(ordered, active, transitions, use_log_space)
        else:
            found = _greedy(ordered, active, transitions)
    back = np.empty_like(found)
    back[order] = found
    row_splits = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return back[np.arange(longest) < lengths[:, None]], row_splits.astype(Tsplits.numpy)


def _memory(
    scores: TensorValue, sequence_lengths: TensorValue, *_: TensorValue, use_viterbi: bool
) -> int:
    shape = shape_of(scores)
    step = elements(scores) // max(shape[-2], 1) if len(shape) > 1 else 0
    steps = elements(scores) // max(shape[-1], 1) if shape else 0
    transitions = max(_AT_ONCE, step) if use_viterbi else step
    sources = elements(scores) * 4 if use_viterbi else 0
    return (
        size_of(scores)
        + sources
        + 40 * transitions
        + 40 * step
        + 24 * steps
        + 64 * elements(sequence_lengths)
        + 4 * total_in(sequence_lengths)
    )


KERNELS = (KernelDef("ConstrainedSequence", constrained_sequence, expensive=True, memory=_memory),)
