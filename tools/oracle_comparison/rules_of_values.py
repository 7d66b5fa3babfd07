"""Rules for documented differences of values of the same shape (docs/kernel_differences.md)."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.node_inputs import inputs_of
from tools.oracle_comparison.rules_of_difference import Answers, _answered, _fed, same_shapes
from tools.oracle_comparison.seeds import is_single, subject

SMALLEST_HALF = 2.0**-24  # the spacing of float16 numbers near 0


def far_from_zero(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return same_shapes(case, ours, theirs) and _fed(
        case, lambda value: bool(np.any(np.abs(value.astype(np.float64)) > 100))
    )


def up_to_the_last_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A recurrent cell's outputs agree in the time steps below seq_len_max (the int64 input)."""
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
    """The outputs agree within the rounding error of sums with cancellation in float32."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 2e-2, 1e-3 * float(np.abs(want).max(initial=0)), True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def one_step_of_signed(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Outputs of int8 differ by one: oneDNN rounds means, TensorFlow's plain kernel truncates."""
    return one_step(case, ours, theirs) and theirs[0].values[0].dtype == np.int8


def one_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got.astype(np.float64), want.astype(np.float64), 1e-6, 1)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def last_digit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree within two units in the last place."""
    return same_shapes(case, ours, theirs) and all(
        np.allclose(got, want, 2 * float(np.finfo(want.dtype).eps), 0, True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def same_up_to_signs(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The eigenvalues agree; eigenvectors are not compared, as they are not unique."""
    if not same_shapes(case, ours, theirs):
        return False
    pairs = zip(ours[0].values, theirs[0].values, strict=True)  # type: ignore[union-attr]
    return all(
        np.allclose(_eigenvalues(got, want.ndim), _eigenvalues(want, want.ndim), 1e-3, 1e-4, True)
        for got, want in list(pairs)[:1]
    )


def _eigenvalues(value: np.ndarray, ranks: int) -> np.ndarray:
    """Return the eigenvalues: version 1 gives them as the first row, version 2 as an output."""
    rows = ranks > 1 and value.shape[-2] == value.shape[-1] + 1
    return value[..., 0, :] if rows else value


def numbers_that_do_not_fit(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Casts of floats to integers agree except for NaN and numbers beyond the integers' range."""
    if not same_shapes(case, ours, theirs) or not is_single(case):
        return False
    return all(
        _agree_where_they_fit(given, got, want)
        for step, mine, other in zip(case.steps, ours, theirs, strict=True)
        for given in inputs_of(case, subject(case, "Cast"), step)["x"]
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _agree_where_they_fit(given: np.ndarray, got: np.ndarray, want: np.ndarray) -> bool:
    if want.dtype.kind not in "iu" or given.dtype.kind not in "fcV":
        return False
    numbers = np.trunc(given.astype(np.complex128).real)
    info = np.iinfo(want.dtype)
    fits = (numbers >= info.min) & (numbers <= info.max)  # false for NaN
    return bool((got == want)[fits].all())


def complex_and_not_finite(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Complex outputs agree where both are finite; where only one is, it is this runtime's.

    If a fed number is not finite, either may be: a quotient by infinity may be 0 or NaN.
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
    """A fed value is not finite, and the outputs agree where neither is NaN.

    Some algorithms multiply the zeros of the padding by infinity, others skip them.
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
    """A NaN is fed, whose order in comparisons is not determined."""
    return same_shapes(case, ours, theirs) and _fed(
        case, lambda value: value.dtype.kind in "fV" and bool(np.isnan(value.astype(float)).any())
    )


def nan_there(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree except where TensorFlow has NaN."""
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
    """16-bit floats agree roughly: TensorFlow rounds intermediates, this runtime the result.

    Where only one of both is infinite, the other is near the largest number of the type; where only
    TensorFlow has NaN, a product of two given numbers exceeds it (infinity less infinity). All
    other outputs are equal.
    """
    if not same_shapes(case, ours, theirs):
        return False
    pairs = [
        (got, want)
        for one, other in zip(ours, theirs, strict=True)
        for got, want in zip(one.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    halves = [(got, want) for got, want in pairs if _is_half(want.dtype)]
    others = [(got, want) for got, want in pairs if not _is_half(want.dtype)]
    return (
        bool(halves)
        and all(_roughly(case, got, want) for got, want in halves)
        and all(_nearly(got, want) for got, want in others)
    )


def _is_half(dtype: np.dtype) -> bool:
    return dtype.itemsize == 2 and dtype.kind in "fV"


def _nearly(got: np.ndarray, want: np.ndarray) -> bool:
    if want.dtype.kind not in "fc":
        return bool((got == want).all())
    return bool(np.allclose(got, want, 1e-4, 1e-5, True))


def _roughly(case: Case, got: np.ndarray, want: np.ndarray) -> bool:
    largest = float(ml_dtypes.finfo(want.dtype).max)
    here, there = got.astype(np.float64), want.astype(np.float64)
    both = _both(here, there)
    scale = float(np.abs(there[np.isfinite(there)]).max(initial=0))
    if not np.allclose(here[both], there[both], 0.05, 0.05 * scale + SMALLEST_HALF):
        return False
    odd = ~both & ~((here == there) | (np.isnan(here) & np.isnan(there)))
    if np.isnan(here[odd]).any():
        return False
    unknown = np.isnan(there[odd])
    if unknown.any() and not _fed(case, lambda v: _is_half(v.dtype) and _overflows(v, largest)):
        return False
    one, two = here[odd][~unknown], there[odd][~unknown]
    same_sign = np.sign(one) == np.sign(two)
    return bool((same_sign & (np.minimum(np.abs(one), np.abs(two)) > 0.9 * largest)).all())


def _overflows(value: np.ndarray, largest: float) -> bool:
    return bool((np.abs(value.astype(np.float64)) >= np.sqrt(largest)).any())


def singular(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The factorisation failed: an output here is not finite; TensorFlow's may be unset."""
    return same_shapes(case, ours, theirs) and any(
        not np.isfinite(value).all()
        for answer in ours
        for value in answer.values  # type: ignore[union-attr] # both answered
    )


def later_values_of_the_first(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The first output agrees; the others are reserve spaces for TensorFlow's gradients."""
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
    """This runtime fails, or an output of either is not finite or exceeds 1000."""
    return any(isinstance(answer, str) or answer.code for answer in ours) or any(
        not isinstance(answer, str)
        and any(
            not np.isfinite(each).all() or np.abs(each).max(initial=0) > 1e3
            for each in answer.values
        )
        for answer in (*ours, *theirs)
    )


def cancelled_variance(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The decay `rho` of a centred RMSProp is 0, and the answers agree to three digits.

    The mean square is then the square of the mean, and their difference is what rounding leaves.
    """
    if not same_shapes(case, ours, theirs):
        return False
    nodes = [node for node in case.graph.node if node.op.endswith("ApplyCenteredRMSProp")]
    decays = [
        decay
        for step in case.steps
        for node in nodes
        for decay in inputs_of(case, node, step)["rho"]
    ]
    return bool(decays) and all(
        not decay.any() and np.allclose(got.astype(np.float64), want.astype(np.float64), 1e-3)
        for decay in decays
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def overflowing(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The answers agree wherever both are finite, and somewhere one of them is not."""
    if not same_shapes(case, ours, theirs):
        return False
    pairs = [
        (got.astype(np.complex128), want.astype(np.complex128))
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    ]
    both = [np.isfinite(got) & np.isfinite(want) for got, want in pairs]
    return not all(map(np.all, both)) and all(
        np.allclose(got[here], want[here], 1e-2, 1e-3 * _largest(want[here]))
        for (got, want), here in zip(pairs, both, strict=True)
    )
