"""The configurations of bench.capacity: none is both fitted and predicted; and their turns."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bench.capacity import run
from bench.capacity.run import FITTED, HELD_OUT, IMAGE, Configuration, Measured, warm_up


def test_what_is_predicted_was_not_fitted() -> None:
    assert len(HELD_OUT) >= 3
    assert set(FITTED) & set(HELD_OUT) == set()
    assert len(set(FITTED)) == len(FITTED)


def test_the_name_of_a_request_says_what_differs() -> None:
    names = [each.name for each in (*FITTED, *HELD_OUT) if each.cores == 1]
    assert len(set(names)) == len(names)
    assert "gru, 8 rows, gRPC" in names


@pytest.mark.parametrize(
    ("cores", "cost", "callers", "seconds"),
    [
        (1, 1e-4, 16, 1.2),
        (1, 4e-3, 9, 1.2),
        (1, 0.03, 4, 4.0),
        (2, 0.03, 8, 4.0),
        (2, 1.0, 8, 400 / 3),
    ],
)
def test_few_requests_are_under_way_when_a_turn_ends(
    monkeypatch: pytest.MonkeyPatch, cores: int, cost: float, callers: int, seconds: float
) -> None:
    def one_turn(of: Measured, callers: int, seconds: float) -> dict[str, float]:
        return {"seconds": cost}

    monkeypatch.setattr(run, "one_turn", one_turn)
    monkeypatch.setattr(run, "wait_until_idle", lambda processor_time: None)
    of = Measured(Configuration(cores, (IMAGE,)), cast(Any, None), [], [], 16, 1.2)
    warm_up(of)
    assert (of.callers, of.turn_seconds) == (callers, pytest.approx(seconds))
    assert of.callers * cost / cores <= 0.0301 * of.turn_seconds
