"""The capacity formula: costs, rates, waiting, and constants fitted to what it itself predicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bench.capacity import formula
from bench.capacity.formula import (
    BINARY,
    GRPC,
    JSON,
    Constants,
    Seen,
    Work,
    cores_for,
    fit,
    highest_utilisation,
    mixture_cost,
    not_negative,
    p99,
    per_second,
)
from runtime.executors.duration_estimate import SHORT_SECONDS
from server.connections.plain_requests import PLAIN_BODY_BYTES
from server.steps.step_runner import OFF_LOOP_BYTES

MICRO = 1e-6
CONSTANTS = Constants(
    front={JSON: 30 * MICRO, BINARY: 60 * MICRO, GRPC: 400 * MICRO},
    application=100 * MICRO,
    kilobyte={JSON: 0.6 * MICRO, BINARY: 0.6 * MICRO, GRPC: 1.2 * MICRO},
    read=0.05 * MICRO,
    read_large=0.08 * MICRO,
    write=0.03 * MICRO,
    pool={JSON: 200 * MICRO, BINARY: 200 * MICRO, GRPC: 300 * MICRO},
    company=1.1,
    front_contention=1.2,
    step_contention=1.4,
)
TINY = Work(JSON, 30, 30, 3, 3, 10 * MICRO)
IMAGE = Work(BINARY, 200_000, 4_000, 0, 0, 6000 * MICRO)


def test_a_tiny_request_costs_little_more_than_its_front() -> None:
    numbers, bytes_, step = 3 * 0.05 + 3 * 0.03, 0.06 * 0.6, 1.1 * 10
    assert CONSTANTS.cost(TINY, 1) == pytest.approx((30 + numbers + bytes_ + step) * MICRO)


def test_a_larger_request_passes_the_application_and_a_long_step_the_pool() -> None:
    body, front, step = 204 * 0.6, 60 + 100, 1.1 * 6000 + 200
    assert CONSTANTS.cost(IMAGE, 1) == pytest.approx((body + front + step) * MICRO)
    crowded = 1.2 * (body + front) + 1.4 * step
    assert CONSTANTS.cost(IMAGE, 2) == pytest.approx(crowded * MICRO)


def test_a_large_request_is_read_otherwise_and_has_the_contention_of_steps() -> None:
    work = Work(JSON, 600_000, 4_000, 50_000, 400, 10 * MICRO)
    body, front, step = 50_000 * 0.08 + 400 * 0.03 + 604 * 0.6, 30 + 100, 1.1 * 10
    assert CONSTANTS.cost(work, 1) == pytest.approx((body + front + step) * MICRO)
    crowded = 1.2 * front + 1.4 * (body + step)
    assert CONSTANTS.cost(work, 2) == pytest.approx(crowded * MICRO)


def test_the_sizes_at_which_that_begins() -> None:
    at_most = dataclasses.replace(TINY, sent=(1 << 14) - 1)
    assert at_most.is_plain
    assert not dataclasses.replace(TINY, sent=1 << 14).is_plain
    assert dataclasses.replace(TINY, sent=1 << 20, front=GRPC).is_plain
    assert not dataclasses.replace(TINY, sent=(1 << 18) - 1).is_large
    assert dataclasses.replace(TINY, sent=1 << 18).is_large
    assert dataclasses.replace(TINY, step=0.249e-3).is_on_loop
    assert not dataclasses.replace(TINY, step=0.25e-3).is_on_loop


def test_the_sizes_are_those_of_the_server() -> None:
    assert formula.LARGE_BYTES == OFF_LOOP_BYTES
    assert formula.PLAIN_BYTES == PLAIN_BODY_BYTES
    assert formula.ON_LOOP_SECONDS < SHORT_SECONDS


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


def measurements() -> list[Seen]:
    fronts = [dataclasses.replace(TINY, numbers_read=0, numbers_written=0, front=BINARY)]
    fronts.append(dataclasses.replace(fronts[0], front=GRPC))
    bodies = [dataclasses.replace(each, sent=200_000, received=100_000) for each in fronts]
    middle = Work(JSON, 8_000, 100, 800, 10, 500 * MICRO)
    return [
        *map(seen, (TINY, *fronts, *bodies, middle)),
        seen(Work(JSON, 12_000, 12_000, 1500, 1500, 10 * MICRO)),
        seen(Work(JSON, 40_000, 40_000, 4000, 4000, 10 * MICRO)),
        seen(Work(JSON, 8_000, 100, 800, 10, 100 * MICRO)),
        seen(Work(GRPC, 8_000, 100, 0, 0, 500 * MICRO)),
        seen(dataclasses.replace(middle, step=8e-3)),
        seen(Work(JSON, 1_600_000, 10_000, 150_000, 1000, 6e-3)),
    ]


CROWDED = (
    TINY,
    Work(JSON, 8_000, 100, 800, 10, 500 * MICRO),
    Work(JSON, 8_000, 100, 800, 10, 5e-3),
)


def test_constants_that_made_the_measurements_are_found_again() -> None:
    found = fit(measurements(), [seen(work, 2) for work in CROWDED])
    for field in dataclasses.fields(Constants):
        assert getattr(found, field.name) == pytest.approx(getattr(CONSTANTS, field.name))


def test_measurements_that_are_off_give_constants_that_are_off_little() -> None:
    rng = np.random.default_rng(1)
    alone, crowded = (
        [Seen(each.work, each.seconds * rng.uniform(0.99, 1.01)) for each in exact]
        for exact in (measurements(), [seen(work, 2) for work in CROWDED])
    )
    found = fit(alone, crowded)
    for work in (TINY, IMAGE, CROWDED[1], Work(JSON, 4_000, 4_000, 500, 500, 10 * MICRO)):
        for cores in (1, 2):
            assert found.cost(work, cores) == pytest.approx(CONSTANTS.cost(work, cores), rel=0.05)


def test_no_constant_is_negative() -> None:
    levels, slopes = np.ones(3), np.array([1.0, 2.0, 3.0])
    rising, falling = 1 + 2 * slopes, 4 - slopes
    by_column = np.stack([levels, slopes], axis=1)
    assert not_negative(by_column / rising[:, None]).tolist() == pytest.approx([1.0, 2.0])
    found = not_negative(by_column / falling[:, None]).tolist()
    weights = 1 / falling
    assert found == pytest.approx([weights.sum() / (weights**2).sum(), 0.0])


def test_a_constant_that_no_measurement_shows() -> None:
    without = [each for each in measurements() if each.work.is_on_loop or each.work.front != GRPC]
    with pytest.raises(ValueError, match="no measurement on one core shows pool gRPC"):
        fit(without, [seen(work, 2) for work in CROWDED])


def test_measurements_that_do_not_tell_constants_from_each_other() -> None:
    with pytest.raises(ValueError, match=r"measurements do not tell \d+ constants"):
        fit([seen(TINY), seen(TINY)], [seen(TINY, 2)])
    with pytest.raises(ValueError, match=r"No measurement shows the constants \[1\]"):
        not_negative(np.array([[1.0, 0.0]]))
