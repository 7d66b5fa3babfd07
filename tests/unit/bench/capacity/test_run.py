"""The configurations of bench.capacity: none is both fitted and predicted."""

from __future__ import annotations

from bench.capacity.run import FITTED, HELD_OUT


def test_what_is_predicted_was_not_fitted() -> None:
    assert len(HELD_OUT) >= 3
    assert set(FITTED) & set(HELD_OUT) == set()
    assert len(set(FITTED)) == len(FITTED)
