"""Connectionist temporal classification: greedy decoding and the loss.

TF: tensorflow/core/kernels/ctc_decoder_ops.cc, ctc_loss_op.cc, util/ctc/ctc_loss_calculator.h
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError, OpError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_to_dense import check_sorted_indices


def ctc_greedy_decoder(
    inputs: np.ndarray, sequence_length: np.ndarray, *, merge_repeated: bool, blank_index: int
) -> tuple[np.ndarray, ...]:
    """CTCGreedyDecoder: choose the most likely class of each time step, and remove blanks.

    `inputs` `[time, batch, classes]` are logits. Returns the decoded labels as a sparse tensor
    (indices, values, shape) and minus the sum of the chosen logits `[batch, 1]`.
    """
    check_inputs(inputs, sequence_length, FailedPreconditionError)
    classes = inputs.shape[2]
    if not -classes <= blank_index < classes:
        raise InvalidArgumentError(
            f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}"
        )
    blank = blank_index % classes
    best = inputs.argmax(axis=2)
    seen = np.arange(inputs.shape[0])[:, None] < sequence_length
    scores = np.where(seen, inputs.max(axis=2), inputs.dtype.type(0)).sum(axis=0)
    kept = seen & (best != blank)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    decoded = [best[kept[:, row], row] for row in range(inputs.shape[1])]
    return *sparse_labels(decoded), -scores[:, None]


def sparse_labels(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of labels as a sparse tensor: indices `[n, 2]`, values `[n]`, shape `[2]`.

    All three are int64.
    """
    lengths = [len(row) for row in rows]
    first = np.repeat(np.arange(len(rows)), lengths)
    second = np.concatenate([np.arange(length) for length in (0, *lengths)])
    indices = np.stack([first, second], axis=1).astype(np.int64)
    values = np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64)
    return indices, values, np.array([len(rows), max(lengths, default=0)], np.int64)


def check_inputs(inputs: np.ndarray, sequence_length: np.ndarray, mismatch: type[OpError]) -> None:
    """Raise an error unless `inputs` is `[time, batch, classes]` and the lengths fit.

    Raises `mismatch` if the number of lengths is not the batch size, or if a length exceeds the
    time. Raises InvalidArgumentError if a rank is wrong or `inputs` is empty.
    """
    if inputs.ndim != 3:
        raise InvalidArgumentError("inputs is not a 3-Tensor")
    if inputs.size == 0:
        raise InvalidArgumentError("inputs must not be empty")
    if sequence_length.ndim != 1:
        raise InvalidArgumentError("sequence_length is not a vector")
    if inputs.shape[1] != sequence_length.shape[0]:
        raise mismatch(
            "len(sequence_length) != batch_size.  len(sequence_length):  "
            f"{sequence_length.shape[0]} batch_size: {inputs.shape[1]}"
        )
    too_long = np.flatnonzero(sequence_length > inputs.shape[0])
    if too_long.size:
        raise mismatch(f"sequence_length({too_long[0]}) <= {inputs.shape[0]}")


def ctc_loss(
    inputs: np.ndarray,
    labels_indices: np.ndarray,
    labels_values: np.ndarray,
    sequence_length: np.ndarray,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """CTCLoss: return the loss `[batch]`, and its gradient with respect to `inputs`.

    `inputs` `[time, batch, classes]` are logits; the last class is the blank. `labels_indices` and
    `labels_values` are a sparse tensor `[batch, length]` of labels.
    """
    _check_loss_inputs(inputs, labels_indices, labels_values, sequence_length)
    time, batch, classes = inputs.shape
    rows = _label_rows(labels_indices, labels_values, batch, time, classes - 1)
    loss = np.zeros(batch, inputs.dtype)
    gradient = np.zeros_like(inputs)
    for row, labels in enumerate(rows):
        steps = int(sequence_length[row])
        if len(labels) > steps:
            if not ignore_longer_outputs_than_inputs:
                raise InvalidArgumentError(
                    "Not enough time for target transition sequence (required: "
                    f"{len(labels)}, available: {steps}){row}You can turn this error into a "
                    "warning by using the flag ignore_longer_outputs_than_inputs"
                )
            continue
        if preprocess_collapse_repeated:
            labels = [label for label, _ in itertools.groupby(labels)]
        if steps > 0:
            loss[row], gradient[:steps, row] = _sequence_loss(
                inputs[:steps, row], labels, ctc_merge_repeated
            )
    return loss, gradient


def _check_loss_inputs(
    inputs: np.ndarray,
    labels_indices: np.ndarray,
    labels_values: np.ndarray,
    sequence_length: np.ndarray,
) -> None:
    if inputs.ndim != 3:
        raise InvalidArgumentError("inputs is not a 3-Tensor")
    if sequence_length.ndim != 1:
        raise InvalidArgumentError("sequence_length is not a vector")
    if labels_indices.ndim != 2:
        raise InvalidArgumentError("labels_indices is not a matrix")
    if labels_indices.shape[1] != 2:
        raise InvalidArgumentError("labels_indices must have 2 columns")
    if labels_values.ndim != 1:
        raise InvalidArgumentError("labels_values is not a vector")
    if inputs.shape[1] == 0:
        raise InvalidArgumentError("batch_size must not be 0")
    if labels_indices.shape[0] != labels_values.shape[0]:
        raise InvalidArgumentError(
            "labels_indices and labels_values must contain the same number of rows, but saw "
            f"shapes: {shape_text(labels_indices.shape)} vs. {shape_text(labels_values.shape)}"
        )
    check_inputs(inputs, sequence_length, InvalidArgumentError)
    negative = np.flatnonzero(sequence_length < 0)
    if negative.size:
        raise InvalidArgumentError(f"seq_len({negative[0]}) < 0")


def _label_rows(
    indices: np.ndarray, values: np.ndarray, batch: int, time: int, blank: int
) -> list[list[int]]:
    """Return the labels of each row; the first label that is `blank` or greater ends the row.

    Raises InvalidArgumentError if the sparse tensor or a row is invalid.
    """
    bound = max(time, int(indices[:, 1].max(initial=-1)) + 1)
    try:
        check_sorted_indices(indices, (batch, bound))
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"label SparseTensor is not valid: {error.message}") from None
    rows: list[list[int]] = [[] for _ in range(batch)]
    for row, value in zip(indices[:, 0].tolist(), values.tolist(), strict=True):
        rows[row].append(value)
    for row, labels in enumerate(rows):
        if not labels:
            raise InvalidArgumentError(f"Labels length is zero in batch {row}")
        if min(labels) < 0:
            raise InvalidArgumentError(
                f"All labels must be nonnegative integers, batch: {row} labels: "
                f"{','.join(map(str, labels))}"
            )
        kept = list(itertools.takewhile(lambda label: label < blank, labels))
        if any(label < blank for label in labels[len(kept) :]):
            raise InvalidArgumentError(
                "Saw a non-null label (index >= num_classes - 1) following a null label, "
                f"batch: {row} num_classes: {blank + 1} labels: {','.join(map(str, labels))}"
            )
        rows[row] = kept
    return rows


def _sequence_loss(
    logits: np.ndarray, labels: list[int], merge_repeated: bool
) -> tuple[float, np.ndarray]:
    """Return −log of the probability of `labels`, and its gradient with respect to `logits`.

    `logits` is `[time, classes]`.
    """
    wide = logits.astype(np.float64)
    shifted = wide - wide.max(axis=1, keepdims=True)
    log_y = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    blank = logits.shape[1] - 1
    path = np.full(2 * len(labels) + 1, blank)
    path[1::2] = labels
    # True at a label that a path may reach from the label before, without the blank between them.
    skips = np.zeros(path.size, bool)
    skips[3::2] = np.array(labels[1:]) != np.array(labels[:-1]) if merge_repeated else True
    stays = (path == blank) | merge_repeated
    emitted = log_y[:, path]
    alpha = _forward(emitted, skips, stays)
    turned = np.roll(skips[::-1], 2)
    beta = _forward(emitted[::-1, ::-1], turned, stays[::-1])[::-1, ::-1] - emitted
    log_p = np.logaddexp.reduce(alpha[-1, -2:])
    if log_p == -np.inf:  # there are too few time steps for the labels
        return np.inf, np.exp(log_y)
    if np.isnan(log_p):
        return np.nan, np.full(wide.shape, np.nan)
    occupancy = np.zeros_like(wide)
    np.add.at(occupancy.T, path, np.exp(alpha + beta - log_p).T)
    return -float(log_p), np.exp(log_y) - occupancy


def _forward(emitted: np.ndarray, skips: np.ndarray, stays: np.ndarray) -> np.ndarray:
    """Return the log-probability of each position of the path at each time: `[time, positions]`.

    `emitted` has the log-probability of the label at each position. `skips` is true at a position
    that may be reached from two positions before, `stays` at one that may be repeated.
    """
    alpha = np.full(emitted.shape, -np.inf)
    alpha[0, :2] = emitted[0, :2]
    for step in range(1, len(emitted)):
        before = alpha[step - 1]
        reached = np.where(stays, before, -np.inf)
        reached[1:] = np.logaddexp(reached[1:], before[:-1])
        reached[2:] = np.logaddexp(reached[2:], np.where(skips[2:], before[:-2], -np.inf))
        alpha[step] = reached + emitted[step]
    return alpha


KERNELS = (
    KernelDef("CTCGreedyDecoder", ctc_greedy_decoder),
    KernelDef("CTCLoss", ctc_loss, expensive=True),
)
