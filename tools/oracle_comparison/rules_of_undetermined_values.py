"""Rules for outputs whose values TensorFlow does not determine, each with its condition."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import numpy as np
from google.protobuf.message import DecodeError
from PIL import Image

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, Case, Step
from tools.oracle_comparison.node_inputs import inputs_of
from tools.oracle_comparison.rules_of_difference import Answers, same_shapes


def _nodes(case: Case, *ops: str) -> list[pb.NodeDef]:
    return [node for node in case.graph.node if node.op in ops]


def _any_input(case: Case, op: str, argument: str, test: Callable[[np.ndarray], bool]) -> bool:
    """Return whether `test` is true for a value that reaches an argument of a node of the op."""
    return any(
        test(value)
        for step in case.steps
        for node in _nodes(case, op)
        for value in inputs_of(case, node, step).get(argument, [])
    )


def _values(
    case: Case, ours: Answers, theirs: list[Answer]
) -> Iterator[tuple[Step, np.ndarray, np.ndarray]]:
    for step, mine, other in zip(case.steps, ours, theirs, strict=True):
        for got, want in zip(mine.values, other.values, strict=True):  # type: ignore[union-attr]
            yield step, got, want


def not_initialised(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A tensor is made without values (`init` false), and is zero here."""
    empty = [
        node for node in _nodes(case, "Empty", "EmptyLike", "FakeParam") if not node.attr["init"].b
    ]
    return (
        bool(empty)
        and same_shapes(case, ours, theirs)
        and all(got.dtype.hasobject or not got.any() for _, got, _ in _values(case, ours, theirs))
    )


def unset_variable(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A temporary variable is read before it is assigned: zero here."""
    return same_shapes(case, ours, theirs) and all(
        not got[got != want].any() for _, got, want in _values(case, ours, theirs)
    )


def rounded_integers(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Round of int32 or int64: 0 in TensorFlow, the input here."""
    whole = (DataType.INT32, DataType.INT64)
    return (
        any(node.attr["T"].type in whole for node in _nodes(case, "Round"))
        and same_shapes(case, ours, theirs)
        and not any(want.any() for _, _, want in _values(case, ours, theirs))
        and all(
            np.array_equal(got, given)
            for step, got, _ in _values(case, ours, theirs)
            for given in inputs_of(case, _nodes(case, "Round")[0], step)["x"]
        )
    )


def any_order(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """`sorted` is false and both have the same values in another order, or a NaN is compared."""
    nodes = _nodes(case, "TopK", "TopKV2")
    if not same_shapes(case, ours, theirs):
        return False
    if any(_any_input(case, node.op, "input", _has_nan) for node in nodes):
        return True
    first = [(mine.values[0], other.values[0]) for mine, other in zip(ours, theirs, strict=True)]  # type: ignore[union-attr]
    return not all(node.attr["sorted"].b for node in nodes) and all(
        np.array_equal(np.sort(got, axis=-1), np.sort(want, axis=-1)) for got, want in first
    )


def _has_nan(value: np.ndarray) -> bool:
    return value.dtype.kind in "fV" and bool(np.isnan(value.astype(np.float64)).any())


def not_sorted(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A row of the sequence is not in ascending order, or has a NaN."""

    def unsorted(value: np.ndarray) -> bool:
        if value.dtype.hasobject:
            return False
        numbers = value.astype(np.float64)
        return bool((~(np.diff(numbers, axis=-1) >= 0)).any())

    return same_shapes(case, ours, theirs) and any(
        _any_input(case, op, "sorted_inputs", unsorted) for op in ("LowerBound", "UpperBound")
    )


def gaps(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both differ only where this runtime has the default value of RaggedTensorToTensor."""
    if not same_shapes(case, ours, theirs):
        return False
    return all(
        np.isin(got[got != want], default.ravel()).all()
        for step, got, want in _values(case, ours, theirs)
        for node in _nodes(case, "RaggedTensorToTensor")
        for default in inputs_of(case, node, step)["default_value"]
    )


def other_metadata(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The metadata of a TensorSummaryV2 can't be parsed."""

    def unreadable(value: np.ndarray) -> bool:
        try:
            pb.SummaryMetadata.FromString(value.ravel().tolist()[0])
        except (DecodeError, IndexError):
            return True
        return False

    return same_shapes(case, ours, theirs) and _any_input(
        case, "TensorSummaryV2", "serialized_summary_metadata", unreadable
    )


def chosen_points(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """At most as many centres are chosen as there are points.

    Which ones, or in which order, depends on the random sequence.
    """

    def leaves_a_choice(step: Step) -> bool:
        (node,) = _nodes(case, "KmeansPlusPlusInitialization")
        given = inputs_of(case, node, step)
        pairs = zip(given["points"], given["num_to_sample"], strict=True)
        return any(points.ndim == 2 and int(count) <= len(points) for points, count in pairs)

    return same_shapes(case, ours, theirs) and all(map(leaves_a_choice, case.steps))


def permuted(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both have the same elements in another order, as far as steps give elements at all."""
    pairs = [(got, want) for _, got, want in _values(case, ours, theirs)]
    return same_shapes(case, ours, theirs) and sorted(
        repr(got.tolist()) for got, _ in pairs
    ) == sorted(repr(want.tolist()) for _, want in pairs)


def other_order(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Each output has the same elements in another order."""
    return same_shapes(case, ours, theirs) and all(
        sorted(map(repr, got.tolist())) == sorted(map(repr, want.tolist()))
        for _, got, want in _values(case, ours, theirs)
    )


def equal_scores(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The scores of CombinedNonMaxSuppression agree, and others only where a score is given twice.

    TensorFlow sorts the boxes of all classes with an algorithm that is not stable.
    """
    if not same_shapes(case, ours, theirs):
        return False
    for mine, other, step in zip(ours, theirs, case.steps, strict=True):
        boxes, scores, classes, counts = mine.values  # type: ignore[union-attr]
        boxes_there, scores_there, classes_there, counts_there = other.values
        if not (np.array_equal(scores, scores_there) and np.array_equal(counts, counts_there)):
            return False
        (node,) = _nodes(case, "CombinedNonMaxSuppression")
        (given,) = inputs_of(case, node, step)["scores"]
        differs = (classes != classes_there) | (boxes != boxes_there).any(-1)
        for image, place in np.argwhere(differs).tolist():
            if np.count_nonzero(given[image] == scores[image, place]) < 2:
                return False
    return True


def signed_zeros(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Rows of 16-bit floats have zeros of both signs, whose hashes TensorFlow compares first."""

    def has_both(value: np.ndarray) -> bool:
        if value.dtype.itemsize != 2 or value.dtype.kind not in "fV":
            return False
        zeros = np.signbit(value.astype(np.float32)[value == 0])
        return bool(zeros.any() and not zeros.all())

    return all(isinstance(each, Answer) and not each.code for each in ours) and any(
        _any_input(case, op, "x", has_both) for op in ("UniqueV2", "UniqueWithCountsV2")
    )


def by_speed(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A dataset may give its elements in any order (`sloppy`)."""
    return any(
        node.attr["sloppy"].b or node.attr["deterministic"].s == b"false"
        for node in case.graph.node
        if "sloppy" in node.attr or "deterministic" in node.attr
    )


def on_a_pixel(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A position of a crop is that of a pixel, up to rounding; other boxes agree."""
    if not same_shapes(case, ours, theirs):
        return False
    for step, got, want in _values(case, ours, theirs):
        (node,) = _nodes(case, "CropAndResizeGradBoxes")
        given = inputs_of(case, node, step)
        (grads,), (image,), (boxes,) = given["grads"], given["image"], given["boxes"]
        rounded = np.zeros(len(boxes), bool)
        for axis in (0, 1):
            last, crop = image.shape[1 + axis] - 1, grads.shape[1 + axis]
            low, high = boxes[:, axis] * last, boxes[:, axis + 2] * last
            places = np.linspace(low, high, crop) if crop > 1 else (low + high)[None] / 2
            off = np.abs(places - np.rint(places))
            rounded |= (off < 2e-5 * max(last, 1)).any(0)
        if not np.allclose(got[~rounded], want[~rounded], 1e-4, 1e-4 * np.abs(want).max()):
            return False
    return True


def same_summary_images(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The summaries have the same tags and, decoded, the same images."""
    return same_shapes(case, ours, theirs) and all(
        _images(got) == _images(want) for _, got, want in _values(case, ours, theirs)
    )


def _images(summary: np.ndarray) -> list[tuple[str, int, int, int, bytes]]:
    return [
        (
            each.tag,
            each.image.height,
            each.image.width,
            each.image.colorspace,
            np.asarray(Image.open(io.BytesIO(each.image.encoded_image_string))).tobytes(),
        )
        for each in pb.Summary.FromString(summary.item()).value
    ]
