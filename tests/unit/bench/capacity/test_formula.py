"""The capacity formula: costs, rates, waiting, and constants fitted to what it itself predicts."""

from __future__ import annotations

import dataclasses

import pytest

from bench.capacity.formula import (
    BINARY,
    GRPC,
    JSON,
    Constants,
    Fitted,
    Seen,
    Work,
    cores_for,
    fit,
    fit_plain,
    highest_utilisation,
    mixture_cost,
    p99,
    per_second,
)

MICRO = 1e-6
CONSTANTS = Constants(
    front={JSON: 30 * MICRO, BINARY: 60 * MICRO, GRPC: 400 * MICRO},
    application=100 * MICRO,
    kilobyte={JSON: 0.5 * MICRO, BINARY: 0.6 * MICRO, GRPC: 1.2 * MICRO},
    number=0.03 * MICRO,
    pool={JSON: 200 * MICRO, BINARY: 200 * MICRO, GRPC: 300 * MICRO},
    company=1.1,
    front_contention=1.2,
    step_contention=1.4,
)
TINY = Work(JSON, 30, 30, 6, 10 * MICRO)
IMAGE = Work(BINARY, 600_000, 4_000, 0, 6000 * MICRO)


def test_a_tiny_request_costs_little_more_than_its_front() -> None:
    assert CONSTANTS.cost(TINY, 1) == pytest.approx((30 + 10 + 0.18 + 0.03) * MICRO)


def test_a_large_request_passes_the_application_and_a_long_step_the_pool() -> None:
    body, front, step = 604 * 0.6, 60 + 100, 1.1 * 6000 + 200
    assert CONSTANTS.cost(IMAGE, 1) == pytest.approx((body + front + step) * MICRO)
    crowded = body + 1.2 * front + 1.4 * step
    assert CONSTANTS.cost(IMAGE, 2) == pytest.approx(crowded * MICRO)


def test_the_sizes_at_which_that_begins() -> None:
    at_most = dataclasses.replace(TINY, sent=(1 << 14) - 1)
    assert at_most.is_plain
    assert not dataclasses.replace(TINY, sent=1 << 14).is_plain
    assert dataclasses.replace(TINY, sent=1 << 20, front=GRPC).is_plain
    assert dataclasses.replace(TINY, step=0.099e-3).is_on_loop
    assert not dataclasses.replace(TINY, step=0.1e-3).is_on_loop


def test_a_mixture_costs_the_mean() -> None:
    parts = [(0.75, TINY), (0.25, IMAGE)]
    expected = 0.75 * CONSTANTS.cost(TINY, 2) + 0.25 * CONSTANTS.cost(IMAGE, 2)
    assert mixture_cost(CONSTANTS, parts, 2) == pytest.approx(expected)


def test_rates_and_cores() -> None:
    assert per_second(0.004, 2) == pytest.approx(500)
    assert cores_for(300, 0.004, 0.6) == 2
    assert cores_for(301, 0.004, 0.6) == 3
    assert cores_for(0, 0.004, 0.6) == 1


def test_waiting_grows_with_the_utilisation() -> None:
    assert p99(0.002, 0.001, 0.01) == 0.002
    assert p99(0.002, 0.001, 0.5) == pytest.approx(0.002 + 0.001 * 3.912 / 0.5, rel=1e-3)
    assert p99(0.002, 0.001, 0.9) > 4 * p99(0.002, 0.001, 0.5)
    with pytest.raises(ValueError, match="at least 0 and below 1, got 1"):
        p99(0.002, 0.001, 1)


def test_the_highest_utilisation_is_the_last_that_keeps_the_limit() -> None:
    found = highest_utilisation(0.002, 0.001, 0.010)
    assert p99(0.002, 0.001, found) <= 0.010 < p99(0.002, 0.001, found + 0.01)
    assert highest_utilisation(0.002, 0.001, 0.001) == 0


def seen(work: Work, cores: int = 1) -> Seen:
    return Seen(work, CONSTANTS.cost(work, cores))


def test_constants_that_made_the_measurements_are_found_again() -> None:
    tiny = {front: dataclasses.replace(TINY, front=front) for front in (BINARY, GRPC)}
    tiny = {front: dataclasses.replace(work, numbers=0) for front, work in tiny.items()}
    large = {
        front: dataclasses.replace(work, sent=600_000, received=600_000)
        for front, work in tiny.items()
    }
    json_large = Work(JSON, 40_000, 40_000, 8000, 10 * MICRO)
    short, long = (Work(JSON, size, size, 2000, 10 * MICRO) for size in (4_000, 10_000))
    middle = Work(JSON, 8_000, 100, 800, 150 * MICRO)
    found = fit(
        Fitted(
            tiny={JSON: seen(TINY)} | {front: seen(work) for front, work in tiny.items()},
            large={JSON: seen(json_large)} | {front: seen(work) for front, work in large.items()},
            plain=(seen(short), seen(long)),
            pooled={
                JSON: [seen(middle)],
                GRPC: [seen(dataclasses.replace(middle, front=GRPC, numbers=0))],
            },
            long=seen(dataclasses.replace(middle, step=8e-3)),
            crowded=seen(TINY, 2),
            crowded_steps=[seen(middle, 2), seen(dataclasses.replace(middle, step=5e-3), 2)],
        )
    )
    for field in dataclasses.fields(Constants):
        assert getattr(found, field.name) == pytest.approx(getattr(CONSTANTS, field.name))


def test_bodies_of_one_kind_do_not_tell_numbers_from_bytes() -> None:
    first, second = (Work(JSON, 5 * n, 5 * n, 2 * n, 0) for n in (1000, 2000))
    nothing = Work(JSON, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="more bytes for each number than the other"):
        fit_plain(seen(nothing), seen(first), seen(second))
