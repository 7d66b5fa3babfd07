"""Rules that recognise the differences documented in docs/kernel_differences.md.

A rule returns whether it explains the difference of both answers to a case; its docstring states
the condition. `known_differences.py` lists the ops to which a rule applies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from runtime.framework.tensor_codec import tensor_from_proto
from tests.conformance.case import Answer, Case

Answers = list[Answer | str]
Rule = Callable[[Case, Answers, list[Answer]], bool]


def _answered(ours: Answers) -> bool:
    return all(not isinstance(answer, str) and not answer.code for answer in ours)


def accepted_here(*words: str) -> Rule:
    """TensorFlow's error contains one of these words; this runtime succeeds."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return _answered(ours) and any(w in answer.message for answer in theirs for w in words)

    return rule


def not_of_32_bits(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A scalar is fed that does not have 32 bits, of which TensorFlow reads 32: int16 or int64."""
    return _fed(
        case,
        lambda value: (
            not value.ndim
            and (
                value.dtype == np.int16
                or (value.dtype == np.int64 and not -(2**31) <= int(value) < 2**31)
            )
        ),
    )


def out_of_order(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Sparse indices are not in ascending order, which TensorFlow requires without a check."""
    return same_shapes(case, ours, theirs) and _fed(
        case,
        lambda value: (
            value.dtype == np.int64
            and value.ndim == 2
            and value.tolist() != sorted(map(list, set(map(tuple, value.tolist()))))
        ),
    )


def refused_here(*words: str) -> Rule:
    """This runtime's error contains one of these words."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return any(
            w in answer.message for answer in ours if not isinstance(answer, str) for w in words
        )

    return rule


def refused_by_both(*words: str) -> Rule:
    """Both errors of a step contain one of these words; TensorFlow may still have side effects."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return any(
            not isinstance(got, str) and w in got.message and w in want.message
            for got, want in zip(ours, theirs, strict=True)
            for w in words
        )

    return rule


def refused_there(*words: str) -> Rule:
    """TensorFlow's error contains one of these words."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return any(word in answer.message for answer in theirs for word in words)

    return rule


def of_nothing(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """An input has no elements; the outputs have the same shapes."""
    return same_shapes(case, ours, theirs) and _fed(case, lambda value: not value.size)


def without_seeds(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Regions or boxes are chosen at random without a seed."""
    return same_shapes(case, ours, theirs) and any(
        node.op.startswith(("Fractional", "SampleDistortedBoundingBox"))
        and "seed" in node.attr
        and not node.attr["seed"].i
        and not node.attr["seed2"].i
        for node in case.graph.node
    )


def strides_over_windows(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The padding is SAME, and a stride is longer than the filter (the second input)."""
    node = next(node for node in case.graph.node if "strides" in node.attr)
    sizes = list(case.steps[0].feeds.values())[1].shape[:3]
    strides = list(node.attr["strides"].list.i)[1:4]
    return (
        same_shapes(case, ours, theirs)
        and node.attr["padding"].s == b"SAME"
        and any(stride > size for stride, size in zip(strides, sizes, strict=False))
    )


def variance_of_epsilon(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Epsilon is negative: variance + epsilon may be 0, and the order of infinities matters."""
    return same_shapes(case, ours, theirs) and any(
        "epsilon" in node.attr and node.attr["epsilon"].f < 0 for node in case.graph.node
    )


def neither_repeats(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The shape of the smaller of the first two inputs is no suffix of the larger one's shape."""
    first, second, *_ = case.steps[0].feeds.values()
    small, large = sorted((first, second), key=lambda each: int(each.size))
    shape = tuple(itertools.dropwhile(lambda size: size == 1, small.shape))
    fits = shape == large.shape[large.ndim - len(shape) :]
    return same_shapes(case, ours, theirs) and not fits


def negative(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return same_shapes(case, ours, theirs) and _fed(case, lambda value: bool((value < 0).any()))


def other_threshold(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The threshold (seventh value) does not have the real type of the values (second value)."""
    real = {"complex64": "float32", "complex128": "float64"}
    values = [value.dtype.name for step in case.steps for value in step.feeds.values()]
    return len(values) == 7 and values[6] != real.get(values[1], values[1])


def _constants(case: Case) -> list[np.ndarray]:
    return [
        tensor_from_proto(node.attr["value"].tensor)
        for node in case.graph.node
        if node.op == "Const"
    ]


def refused_graph(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow refuses the graph, in every step: a constant shape is negative or no integer.

    Here a step fails that reaches it.
    """
    words = ("Invalid value in tensor used for shape", "Input tensor must be int32 or int64, but")
    return all(any(each in answer.message for each in words) for answer in theirs) and any(
        isinstance(answer, Answer) and answer.code == 3 for answer in ours
    )


def negative_window(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A size of the window is negative."""
    return same_shapes(case, ours, theirs) and any(
        min(node.attr["ksize"].list.i) < 0 for node in case.graph.node if "ksize" in node.attr
    )


def unused_shape(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow refuses the graph for a negative constant shape, which no kernel needs."""
    words = "Invalid value in tensor used for shape"
    return _answered(ours) and all(words in answer.message for answer in theirs)


# Messages of TensorFlow's Python for a tensor without elements whose other sizes exceed numpy's.
NO_ROOM = ("", "Could not allocate ndarray")


def too_many_elements(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    here = any(
        "too many elements" in answer.message for answer in ours if isinstance(answer, Answer)
    )
    return any(
        "overflow" in answer.message
        or (here and answer.code == 13 and answer.message.split("\n\t [[")[0].strip() in NO_ROOM)
        for answer in theirs
    )


def same_shapes(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both succeed with the same types and shapes: a part of other rules."""
    return _answered(ours) and all(
        [(v.dtype, v.shape) for v in got.values] == [(v.dtype, v.shape) for v in want.values]  # type: ignore[union-attr]
        for got, want in zip(ours, theirs, strict=True)
    )


def same_entries(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The answers agree up to the order of a table's exported entries (key and value)."""
    return all(
        not isinstance(got, str) and got.code == want.code and _entries(got) == _entries(want)
        for got, want in zip(ours, theirs, strict=True)
    )


def _entries(answer: Answer) -> list[tuple[str, ...]]:
    columns = [[repr(each) for each in np.atleast_1d(value).tolist()] for value in answer.values]
    types = tuple(value.dtype.name for value in answer.values)
    return [types, *sorted(itertools.zip_longest(*columns, fillvalue=""))]


def _fed(case: Case, test: Callable[[np.ndarray], bool]) -> bool:
    """Return whether `test` is true for a fed value or a constant."""
    fed = (value for step in case.steps for value in step.feeds.values())
    return any(test(value) for value in (*fed, *_constants(case)))


def refused_format(_: Case, _ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow refuses the data format; this runtime supports it and may find another error."""
    words = (
        "only supports NHWC",
        "only supports NDHWC",
        "only supportsNDHWC",
        "only supports the NHWC",
        "NHWC tensor",
    )
    return any(word in answer.message for answer in theirs for word in words)


def above_the_limit(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """One of the answers is RESOURCE_EXHAUSTED."""
    both = [answer for answer in (*ours, *theirs) if not isinstance(answer, str)]
    return any(answer.code == 8 for answer in both)


def nothing_changed(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both refuse a step with INVALID_ARGUMENT, TensorFlow after it has changed earlier rows."""
    codes = [0 if isinstance(answer, str) else answer.code for answer in ours]
    return codes == [answer.code for answer in theirs] and 3 in codes
