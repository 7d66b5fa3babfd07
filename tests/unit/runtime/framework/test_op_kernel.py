"""Deferred results: waiting for them in a step that may be cancelled."""

from __future__ import annotations

import pytest

from runtime.foundation.errors import AbortedError, CancelledError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred


def _cancellable(cancellation: CancellationManager) -> tuple[Deferred, Deferred]:
    given = Deferred()
    waiting = given.until_cancelled(
        cancellation, lambda: given.set_error(CancelledError("The wait was cancelled."))
    )
    return given, waiting


def test_a_value_that_comes_in_time_is_the_result_and_a_later_cancel_changes_nothing() -> None:
    cancellation = CancellationManager()
    given, waiting = _cancellable(cancellation)

    assert given.set_value(3)
    cancellation.cancel(CancelledError("The step was cancelled."))

    assert waiting.wait() == 3


def test_the_cancellation_forgets_a_wait_that_is_over() -> None:
    cancellation = CancellationManager()
    given, _ = _cancellable(cancellation)

    given.set_error(AbortedError("no"))

    assert not cancellation._callbacks


@pytest.mark.parametrize("is_cancelled_before", [False, True])
def test_a_wait_ends_with_the_cancellation_of_its_step(is_cancelled_before: bool) -> None:
    cancellation = CancellationManager()
    if is_cancelled_before:
        cancellation.cancel(CancelledError("The step was cancelled."))
    given, waiting = _cancellable(cancellation)
    cancellation.cancel(CancelledError("The step was cancelled."))

    with pytest.raises(CancelledError, match=r"^The wait was cancelled\.$"):
        waiting.wait()
    assert not given.set_value(3)
