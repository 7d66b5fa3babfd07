"""Differences that docs/kernel_differences.md documents: found again, they are not counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.conformance.case import Answer, Case

Answers = list[Answer | str]
Rule = Callable[[Case, Answers, list[Answer]], bool]


def _answered(ours: Answers) -> bool:
    return all(not isinstance(answer, str) and not answer.code for answer in ours)


def _accepted_here(*words: str) -> Rule:
    """TensorFlow refuses with one of these words what this runtime answers."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        return _answered(ours) and any(w in answer.message for answer in theirs for w in words)

    return rule


def _same_shapes(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both answer, with the same types and shapes: the values are not defined."""
    return _answered(ours) and all(
        [(v.dtype, v.shape) for v in got.values] == [(v.dtype, v.shape) for v in want.values]  # type: ignore[union-attr]
        for got, want in zip(ours, theirs, strict=True)
    )


def _fed(case: Case, test: Callable[[np.ndarray], bool]) -> bool:
    return any(test(value) for step in case.steps for value in step.feeds.values())


def _numbers_that_do_not_fit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """NaN, infinities and floats beyond the integer type: what a cast gives is not defined."""
    integers = any("int" in v.dtype.name or v.dtype == bool for a in theirs for v in a.values)

    def beyond(value: np.ndarray) -> bool:
        if value.dtype.kind not in "fcV" or "int" in value.dtype.name:
            return False
        wide = np.abs(value.astype(np.complex128))
        return bool(np.any(~(wide < 128)) or np.any(value.astype(np.complex128).real < 0))

    return integers and _same_shapes(case, ours, theirs) and _fed(case, beyond)


def _complex_and_not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Complex arithmetic with NaN or infinities: parts differ by the order of multiplications."""
    return (
        _same_shapes(case, ours, theirs)
        and any(v.dtype.kind == "c" for answer in theirs for v in answer.values)
        and all(
            bool(np.all(np.isfinite(got) | ~np.isfinite(want)))
            and np.allclose(got[_both(got, want)], want[_both(got, want)], 1e-3)
            for ours_, theirs_ in zip(ours, theirs, strict=True)
            for got, want in zip(ours_.values, theirs_.values, strict=True)  # type: ignore[union-attr]
            if want.dtype.kind == "c"
        )
    )


def _both(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.isfinite(got) & np.isfinite(want)


# (ops, or () for all; rule; what the page says)
RULES: tuple[tuple[tuple[str, ...], Rule, str], ...] = (
    ((), _accepted_here("only supports NHWC", "only supports the NHWC", "only supports NDHWC",
                        "NHWC tensor format for now"), "channels first"),
    (("Tile",), _accepted_here("The input data type is not supported"), "more element types"),
    (("Cast",), _accepted_here("is not supported"), "int4 and float8 casts"),
    (("Cast",), _numbers_that_do_not_fit, "casts that do not fit"),
    (("Empty", "EmptyLike"), _same_shapes, "outputs that TensorFlow leaves unset"),
    (("EncodePng", "EncodeJpeg"), _same_shapes, "other bytes of the same image"),
    ((), _complex_and_not_finite, "complex numbers that are not finite"),
)  # fmt: skip


def reason_for(op: str, case: Case, ours: Answers, theirs: list[Answer]) -> str:
    """What docs/kernel_differences.md says of a difference; empty when it says nothing."""
    for ops, rule, reason in RULES:
        if (not ops or op in ops) and rule(case, ours, theirs):
            return reason
    return ""
