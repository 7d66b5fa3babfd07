"""Beam search for the most likely labellings of connectionist temporal classification.

Beams are nodes of a tree of labellings. At each time step, a beam is extended by every class that
gives a labelling more likely than the worst beam. A labelling that is dropped may be added again at
a later time step.

Source: Graves and Jaitly, Towards end-to-end speech recognition (2014), the prefix search.
TF: tensorflow/core/util/ctc/ctc_beam_search.h, kernels/ctc_decoder_ops.cc
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.register_types import SINGLE_AND_DOUBLE
from runtime.kernels.nn.ctc import check_inputs, sparse_labels

_NEVER = -math.inf  # the logarithm of 0
_ROOT = -1  # the label of the empty labelling


@dataclasses.dataclass(slots=True)
class _Beam:
    """A labelling, which ends in `label`, and its log-probabilities.

    `blank` is the log-probability of the paths that end in a blank, `labelled` of the paths that
    end in `label`, and `total` of both.
    """

    label: int = _ROOT
    parent: _Beam | None = None
    children: dict[int, _Beam] = dataclasses.field(default_factory=dict)
    blank: float = _NEVER
    labelled: float = _NEVER
    total: float = _NEVER
    old_blank: float = _NEVER  # this and old_total: the values after the previous time step
    old_total: float = _NEVER

    def labels(self, merge_repeated: bool) -> list[int]:
        """Return the labels from first to last; repeated ones only once if `merge_repeated`."""
        found: list[int] = []
        beam, last = self, _ROOT
        while beam.parent is not None:
            if not merge_repeated or beam.label != last:
                found.append(beam.label)
            last = beam.label
            beam = beam.parent
        return found[::-1]

    def stay(self, log_probabilities: np.ndarray, blank: float) -> None:
        """Update the probabilities for a time step that adds no label."""
        if self.parent is not None:
            if self.parent.total > _NEVER:
                repeats = self.label == self.parent.label
                before = self.parent.old_blank if repeats else self.parent.old_total
                self.labelled = _log_sum(self.labelled, before)
            self.labelled += float(log_probabilities[self.label])
        self.blank = self.old_total + blank
        self.total = _log_sum(self.blank, self.labelled)

    def forget(self) -> None:
        """Prevent this beam from being extended at this time step.

        Called for a beam that was dropped and is not added again.
        """
        self.old_blank = self.old_total = _NEVER

    def reset(self) -> None:
        """Clear the probabilities, because this beam is dropped."""
        self.blank = self.labelled = self.total = _NEVER


def _log_sum(first: float, second: float) -> float:
    low, high = min(first, second), max(first, second)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


class _Search:
    """The beams of one sequence."""

    def __init__(self, beam_width: int) -> None:
        self._width = beam_width
        self._order = itertools.count()  # breaks ties in the heap
        root = _Beam(blank=0.0, total=0.0)
        self.beams = [root]

    def step(self, logits: np.ndarray) -> None:
        """Process the `logits` `[classes]` of one time step; the last class is the blank."""
        wide = logits.astype(np.float64)
        largest = wide.max()
        probabilities = wide - (largest + np.log(np.exp(wide - largest).sum()))
        labels, blank = probabilities[:-1], float(probabilities[-1])
        branches = self.beams
        for beam in branches:
            check_task()
            beam.old_blank, beam.old_total = beam.blank, beam.total
        for beam in branches:
            check_task()
            beam.stay(labels, blank)
        heap = [(beam.total, -next(self._order), beam) for beam in branches]
        heapq.heapify(heap)
        for beam in branches:
            check_task()
            if self._is_candidate(heap, beam.old_total):
                self._grow(heap, beam, labels)
        self.beams = [beam for _, _, beam in sorted(heap, key=lambda each: each[:2], reverse=True)]

    def _is_candidate(self, heap: list[tuple[float, int, _Beam]], total: float) -> bool:
        return total > _NEVER and (len(heap) < self._width or total > heap[0][0])

    def _grow(self, heap: list[tuple[float, int, _Beam]], beam: _Beam, labels: np.ndarray) -> None:
        totals = labels + beam.old_total
        if beam.label != _ROOT:
            totals[beam.label] = labels[beam.label] + beam.old_blank
        bound = heap[0][0] if len(heap) == self._width else _NEVER
        likely = np.flatnonzero(totals > bound).tolist()
        for label in sorted({*likely, *beam.children}) if beam.children else likely:
            check_task()
            total = float(totals[label])
            child = beam.children.get(label)
            if child is not None and child.total > _NEVER:
                continue
            if not self._is_candidate(heap, total):
                if child is not None:
                    child.forget()
                continue
            if child is None:
                child = beam.children[label] = _Beam(label, beam)
            child.blank, child.labelled, child.total = _NEVER, total, total
            entry = (total, -next(self._order), child)
            if len(heap) == self._width:
                heapq.heapreplace(heap, entry)[2].reset()
            else:
                heapq.heappush(heap, entry)


def ctc_beam_search_decoder(
    context: OpKernelContext,
    inputs: np.ndarray,
    sequence_length: np.ndarray,
    *,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
) -> tuple[np.ndarray, ...]:
    """CTCBeamSearchDecoder: find the `top_paths` most likely labellings of each row of a batch.

    `inputs` `[time, batch, classes]` are logits. Each path is a sparse tensor. Returns the indices
    of every path, then the values, then the shapes, and the log-probabilities `[batch, top_paths]`.
    """
    check_inputs(inputs, sequence_length, FailedPreconditionError)
    if top_paths > beam_width:
        raise InvalidArgumentError("requested more paths than the beam width.")
    paths: list[list[np.ndarray]] = [[] for _ in range(top_paths)]
    scores = np.empty((inputs.shape[1], top_paths), inputs.dtype)
    for row in range(inputs.shape[1]):
        search = _Search(beam_width)
        for time in range(int(sequence_length[row])):
            context.cancellation.check()
            search.step(inputs[time, row])
        if len(search.beams) < top_paths:
            raise InvalidArgumentError("Less leaves in the beam search than requested.")
        for path, beam in enumerate(search.beams[:top_paths]):
            paths[path].append(np.array(beam.labels(merge_repeated), np.int64))
            scores[row, path] = beam.total
    decoded = [sparse_labels(path) for path in paths]
    return (*(part for kind in zip(*decoded, strict=True) for part in kind), scores)


KERNELS = (
    KernelDef(
        "CTCBeamSearchDecoder", ctc_beam_search_decoder, {"T": SINGLE_AND_DOUBLE}, expensive=True
    ),
)
