"""Rules for outputs that TensorFlow leaves unset, does not determine or rounds earlier."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import (
    Answers,
    _answered,
    _constants,
    _fed,
    same_shapes,
)


def unset_behind(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The first values agree; this runtime has zeros after them, TensorFlow unset memory."""
    if not same_shapes(case, ours, theirs):
        return False
    got, want = (each[0].values[0].ravel() for each in (ours, theirs))  # type: ignore[union-attr]
    count = int(np.flatnonzero(got).max(initial=-1)) + 1
    return 0 < count < got.size and np.array_equal(got[:count], want[:count])


def nothing_chosen(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The indices are empty and all outputs are zero here; TensorFlow leaves its output unset."""
    return (
        same_shapes(case, ours, theirs)
        and not any(value.any() for answer in ours for value in answer.values)  # type: ignore[union-attr]
        and sum(value.dtype.kind == "i" and value.shape == (0,) for value in _given(case)) >= 2
    )


def weights_of_no_batch(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The batch is empty and the gradient of w (fourth output) is zero here; the others agree."""
    x = next(value for value in case.steps[0].feeds.values() if value.ndim == 3)
    return (
        same_shapes(case, ours, theirs)
        and not x.shape[1]
        and not ours[0].values[3].any()  # type: ignore[union-attr]
        and all(
            np.array_equal(got, want)
            for place, (got, want) in enumerate(
                zip(ours[0].values, theirs[0].values, strict=True)  # type: ignore[union-attr]
            )
            if place != 3
        )
    )


def equal_beams(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The probabilities agree, and a step has classes of equal probability."""
    return (
        _answered(ours)
        and all(
            np.allclose(mine.values[-1], other.values[-1], 1e-5, 1e-5)  # type: ignore[union-attr]
            for mine, other in zip(ours, theirs, strict=True)
        )
        and _fed(
            case,
            lambda value: value.ndim == 3 and bool((np.diff(np.sort(value, axis=-1)) == 0).any()),
        )
    )


def single_precision(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree within the error of logarithms and exponentials in single precision."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 1e-5, 2e-6 * max(float(np.abs(want).max(initial=0)), 1), True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def first_agrees(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The first output agrees where it is finite here; the other outputs are not computed."""
    if not same_shapes(case, ours, theirs):
        return False
    got, want = ours[0].values[0], theirs[0].values[0]  # type: ignore[union-attr]
    found = np.isfinite(got)  # NaN for what cannot be factorised
    scale = float(np.abs(want[found]).max(initial=0))
    return bool(np.allclose(got[found], want[found], 1e-4, 1e-5 * scale))


def same_image(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The decoded pixels of both images differ by at most 8 levels."""
    if not _answered(ours) or any(answer.code for answer in theirs):
        return False
    pairs = [
        (_pixels(got), _pixels(want))
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    return all(got.shape == want.shape and (np.abs(got - want) <= 8).all() for got, want in pairs)


def _pixels(value: np.ndarray) -> np.ndarray:
    """Return the pixels of an image or of encoded images, int64."""
    if not value.dtype.hasobject:
        return value.astype(np.int64)
    images = [np.asarray(Image.open(io.BytesIO(item))) for item in value.ravel().tolist()]
    return np.stack(images).astype(np.int64) if images else np.zeros(value.shape, np.int64)


def _given(case: Case) -> list[np.ndarray]:
    return [*_constants(case), *(value for step in case.steps for value in step.feeds.values())]
