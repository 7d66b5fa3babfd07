"""Turns of the fronts, and the ratios to their echoes."""

from __future__ import annotations

import numpy as np

from bench.fronts.run import Addresses, Call, calls_of, measured

AT = Addresses("http://a", "b", "unix:c", "http://d", "e", "unix:f")


def test_every_call_has_an_echo_that_takes_part() -> None:
    calls = calls_of("half_plus_two", {"x": np.float32([1])}, AT)
    assert {call.echo for call in calls.values()} <= calls.keys()
    assert all(calls[call.echo].echo == call.echo for call in calls.values())
    assert {call.address for call in calls.values()} == set(AT)


def test_the_ratio_is_that_of_the_rates_of_the_same_turn() -> None:
    calls = {name: Call(name, calls_of("m", {"x": np.float32([1])}, AT)["gRPC Predict"].request,
                        "echo") for name in ("echo", "ours")}  # fmt: skip
    rates = {"echo": iter([1.0, 100, 50, 110]), "ours": iter([1.0, 40, 20, 45])}
    done: list[str] = []

    def one_turn(call: Call, seconds: float) -> dict[str, float]:
        done.append(call.address)
        return {"per_second": next(rates[call.address])}

    found = measured(calls, one_turn, 1, 3, lambda: done.append("settled"))
    assert done[:4] == ["echo", "ours", "settled", "echo"]
    assert found == {
        "echo": {"per_second": 100, "of_echo": 1}, "ours": {"per_second": 40, "of_echo": 0.4},
    }  # fmt: skip
