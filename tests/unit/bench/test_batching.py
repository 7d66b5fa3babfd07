"""Rounds of the forms of batching."""

from __future__ import annotations

from bench.batching import MODES, in_turn, medians


def test_every_form_comes_first_in_some_round() -> None:
    orders = [in_turn(number) for number in range(3)]
    assert {order[0] for order in orders} == set(MODES)
    assert all(sorted(order) == sorted(MODES) for order in orders)


def test_ratios_are_of_the_same_round() -> None:
    def turns(*rates: float) -> list[dict[str, float]]:
        return [{"per_second": rate, "p99_ms": 1 / rate} for rate in rates]

    found = medians({"none": turns(100, 50, 110), "adaptive": turns(99, 48, 121)})
    assert found["adaptive"] == {"per_second": 99, "p99_ms": 1 / 99, "of_none": 0.99}
    assert found["none"]["of_none"] == 1
