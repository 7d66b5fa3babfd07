"""When two answers of the same shapes differ in their values as docs/kernel_differences.md says."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers, _answered, _fed, same_shapes

SMALLEST_HALF = 2.0**-24  # the distance of float16 numbers next to 0


def far_from_zero(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return same_shapes(case, ours, theirs) and _fed(
        case, lambda value: bool(np.any(np.abs(value.astype(np.float64)) > 100))
    )


def up_to_the_last_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A recurrent cell's outputs agree in the steps that it is to take."""
    steps = [int(v) for s in case.steps for v in s.feeds.values() if v.dtype == np.int64]
    return same_shapes(case, ours, theirs) and all(
        np.allclose(
            got[: steps[0]].astype(np.float32),
            want[: steps[0]].astype(np.float32),
            1e-2,
            1e-2,
            True,
        )
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def close(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Apart by no more than rounding in single precision allows for sums of large parts."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 2e-2, 1e-3 * float(np.abs(want).max(initial=0)), True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def one_step_of_signed(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Means of signed integers: oneDNN rounds them, TensorFlow's plain kernel cuts them."""
    return one_step(case, ours, theirs) and theirs[0].values[0].dtype == np.int8


def one_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got.astype(np.float64), want.astype(np.float64), 1e-6, 1)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def last_digit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Floats next to each other."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 2 * float(np.finfo(want.dtype).eps), 0, True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def same_up_to_signs(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Eigenvalues agree; eigenvectors may turn, and any basis will do for equal eigenvalues."""
    if not same_shapes(case, ours, theirs):
        return False
    pairs = zip(ours[0].values, theirs[0].values, strict=True)  # type: ignore[union-attr]
    return all(
        np.allclose(_eigenvalues(got, want.ndim), _eigenvalues(want, want.ndim), 1e-3, 1e-4, True)
        for got, want in list(pairs)[:1]
    )


def _eigenvalues(value: np.ndarray, ranks: int) -> np.ndarray:
    """The first row of what version 1 gives; all of what version 2 gives."""
    rows = ranks > 1 and value.shape[-2] == value.shape[-1] + 1
    return value[..., 0, :] if rows else value


def numbers_that_do_not_fit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """NaN, infinities and floats beyond the integer type: what a cast gives is not defined."""
    integers = any("int" in v.dtype.name or v.dtype == bool for a in theirs for v in a.values)

    def beyond(value: np.ndarray) -> bool:
        if value.dtype.kind not in "fcV" or "int" in value.dtype.name:
            return False
        wide = np.abs(value.astype(np.complex128))
        return bool(np.any(~(wide < 128)) or np.any(value.astype(np.complex128).real < 0))

    return integers and same_shapes(case, ours, theirs) and _fed(case, beyond)


def complex_and_not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Complex arithmetic with NaN or infinities: parts differ by the order of multiplications.

    A quotient by what is fed and not finite may be 0, or have no value.
    """
    fed = _fed(case, lambda value: value.dtype.kind == "c" and not np.isfinite(value).all())
    return (
        same_shapes(case, ours, theirs)
        and any(v.dtype.kind == "c" for answer in theirs for v in answer.values)
        and all(
            (fed or bool(np.all(np.isfinite(got) | ~np.isfinite(want))))
            and np.allclose(got[_both(got, want)], want[_both(got, want)], 1e-3)
            for ours_, theirs_ in zip(ours, theirs, strict=True)
            for got, want in zip(ours_.values, theirs_.values, strict=True)  # type: ignore[union-attr]
            if want.dtype.kind == "c"
        )
    )


def _both(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.isfinite(got) & np.isfinite(want)


def not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    def odd(value: np.ndarray) -> bool:
        if value.dtype.kind not in "fcV" or "int" in value.dtype.name:
            return False
        return not np.isfinite(value.astype(np.complex128)).all()

    return _fed(case, odd) and _answered(ours) and not any(answer.code for answer in theirs)


def nan_of_padding(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Something is not finite, and the answers agree wherever neither is NaN.

    Zeros of the padding, times an infinity: some algorithms multiply them, others pass them over.
    """
    if not same_shapes(case, ours, theirs) or not not_finite(case, ours, theirs):
        return False
    pairs = [
        (got.astype(np.float32), want.astype(np.float32))
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    numbers = [(got, want, ~np.isnan(got) & ~np.isnan(want)) for got, want in pairs]
    return all(
        np.allclose(got[both], want[both], 1e-2, 1e-3 * _largest(want))
        for got, want, both in numbers
    )


def _largest(value: np.ndarray) -> float:
    return float(np.abs(value[np.isfinite(value)]).max(initial=0))


def nan_compared(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A NaN was given, which no comparison orders."""
    return same_shapes(case, ours, theirs) and _fed(
        case, lambda value: value.dtype.kind in "fV" and bool(np.isnan(value.astype(float)).any())
    )


def nan_there(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The only difference: numbers here where TensorFlow has NaN."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got[~np.isnan(want)], want[~np.isnan(want)], 0.05, 0.05, True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(
            (each.astype(np.float64) for each in mine.values),  # type: ignore[union-attr]
            (each.astype(np.float64) for each in other.values),
            strict=True,
        )
    )


def half_intermediates(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Half types: TensorFlow rounds between, this runtime once."""
    if not same_shapes(case, ours, theirs):
        return False
    pairs = [
        (got, want)
        for one, other in zip(ours, theirs, strict=True)
        for got, want in zip(one.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    halves = [
        (g.astype(np.float32), w.astype(np.float32))
        for g, w in pairs
        if w.dtype.itemsize == 2 and w.dtype.kind in "fV"
    ]
    return bool(halves) and all(
        np.allclose(
            g[_both(g, w)],
            w[_both(g, w)],
            0.05,
            0.05 * float(np.abs(w[np.isfinite(w)]).max(initial=0)) + SMALLEST_HALF,
        )
        for g, w in halves
    )


def singular(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A factorisation that failed: NaN here, what was in memory or NaN in TensorFlow."""
    return same_shapes(case, ours, theirs) and any(
        not np.isfinite(value).all()
        for answer in ours
        for value in answer.values  # type: ignore[union-attr] # both answered
    )


def later_values_of_the_first(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The first output agrees; the others hold what TensorFlow leaves for its own gradients."""
    first = [(ours[0], theirs[0])]
    return all(
        not isinstance(got, str)
        and bool(got.values)
        and bool(want.values)
        and np.allclose(
            got.values[0].astype(np.float64), want.values[0].astype(np.float64), 1e-2, 1e-2, True
        )
        for got, want in first
    )


def ill_conditioned(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """One of the two cannot invert the matrix, or both lose most digits."""
    return any(isinstance(answer, str) or answer.code for answer in ours) or any(
        not isinstance(answer, str)
        and any(
            not np.isfinite(each).all() or np.abs(each).max(initial=0) > 1e3
            for each in answer.values
        )
        for answer in (*ours, *theirs)
    )
