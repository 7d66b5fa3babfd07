"""Floating-point errors are ignored without a warning, also where that was set before."""

from __future__ import annotations

import contextvars
import threading
import warnings

import numpy as np
import pytest

from runtime.foundation.float_errors import float_errors_ignored, ignore_float_errors

ZERO = np.zeros(1, np.float32)


def divide() -> np.ndarray:
    with float_errors_ignored():
        quotient: np.ndarray = ZERO / ZERO
    return quotient


def test_an_error_is_ignored_and_the_state_is_restored() -> None:
    with np.errstate(all="raise"):
        assert np.isnan(divide()).all()
        with pytest.raises(FloatingPointError):
            ZERO / ZERO


def test_a_context_that_ignores_errors_enters_nothing() -> None:
    def ignored() -> tuple[bool, dict[str, str]]:
        ignore_float_errors()
        before = np.geterr()
        with float_errors_ignored():
            return before == np.geterr(), dict(before)

    is_same, state = contextvars.copy_context().run(ignored)
    assert is_same and set(state.values()) == {"ignore"}
    assert set(np.geterr().values()) != {"ignore"}, "another context is as it was"


def test_another_thread_ignores_errors_by_itself() -> None:
    found: list[np.ndarray] = []

    def run() -> None:
        ignore_float_errors()
        thread = threading.Thread(target=lambda: found.append(divide()))
        thread.start()
        thread.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # would end the thread without a result
        contextvars.copy_context().run(run)
    assert np.isnan(found[0]).all()
