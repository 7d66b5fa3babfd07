"""Batches are started, run and answered, with a session and a clock that the test drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from runtime.api import process_account
from runtime.errors import InvalidArgumentError
from server.steps.batching.parameters import BatchParameters
from tests.unit.server.steps.batching.batching_fakes import POISON, House

LATE = 1_000_000_000  # microseconds: the timeout that never passes
Scenario = Callable[[House], Coroutine[Any, Any, None]]


def with_house(parameters: BatchParameters | None, scenario: Scenario, *shape: int) -> House:
    async def run() -> House:
        house = House(parameters, *shape)
        await scenario(house)
        return house

    return asyncio.run(run())


def text_of(house: House) -> str:
    registry = CollectorRegistry()
    registry.register(house.metrics)
    return generate_latest(registry).decode()


def result(begun: Any) -> Any:
    (value,) = begun.future.result(timeout=0)
    return value.tolist()


def test_steps_that_wait_run_as_one_and_each_gets_its_rows() -> None:
    async def scenario(house: House) -> None:
        first, second = house.waits(1, 2), house.waits(3)
        assert house.session.started == []
        await house.pass_time(1)
        assert [step.rows for step in house.session.started] == [[1, 2, 3]]
        await house.end_all()
        assert (result(first), result(second)) == ([2, 4], [6])

    house = with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario)
    text = text_of(house)
    session = ":tensorflow:serving:batching_session"
    assert f"{session}:wrapped_run_count 1.0" in text
    waited = f'{session}:queuing_latency_sum{{thread_pool_name="model_server_batch_threads"}}'
    assert f"{waited} 2e+06" in text  # microseconds
    assert f"{session}:processed_batch_size_sum 3.0" in text
    labels = '{model="m",priority="normal",signature="serving_default"}'
    assert f"runstep_batch_rows_total{labels} 3.0" in text


def test_no_more_batches_run_than_there_are_threads() -> None:
    async def scenario(house: House) -> None:
        begun = [house.waits(value) for value in range(5)]
        await house.pass_time()
        assert [step.rows for step in house.session.started] == [[0.0], [1.0]]
        house.session.started[0].end()
        await house.pass_time()
        assert len(house.session.started) == 3
        await house.end_all()
        assert [result(each) for each in begun] == [[0], [2], [4], [6], [8]]

    with_house(BatchParameters(1, num_batch_threads=2), scenario)


def test_a_batch_is_filled_up_to_an_allowed_size() -> None:
    async def scenario(house: House) -> None:
        begun = house.waits(5, 6, 7)
        await house.pass_time()
        assert house.session.started[0].rows == [5, 6, 7, 5]
        await house.end_all()
        assert result(begun) == [10, 12, 14]

    house = with_house(BatchParameters(4, allowed_batch_sizes=(2, 4)), scenario)
    padding = ':tensorflow:serving:batching_session:padding_size_sum{execution_batch_size="4"} 1.0'
    assert padding in text_of(house)


def test_low_priority_gets_the_slots_that_would_be_padding_and_no_others() -> None:
    parameters = BatchParameters(
        8, batch_timeout_micros=1_000_000, allowed_batch_sizes=(4, 8), num_batch_threads=1
    )

    async def scenario(house: House) -> None:
        normal = house.waits(1, 2)
        await house.pass_time(0.9)
        low = [house.waits(value, priority="low") for value in (10, 11, 12)]
        await house.pass_time(0.1)
        assert [step.rows for step in house.session.started] == [[1, 2, 10, 11]]
        await house.pass_time(0.9)
        assert [step.rows for step in house.session.started[1:]] == [[12] * 4]
        pools = [step.request.pool for step in house.session.started]
        assert [pool is not None and pool.low_priority for pool in pools] == [False, True]
        await house.end_all()
        assert result(normal) == [2, 4]
        assert [result(each) for each in low] == [[20], [22], [24]]

    with_house(parameters, scenario)


def test_without_padding_low_priority_never_joins_a_normal_batch() -> None:
    async def scenario(house: House) -> None:
        house.waits(1)
        house.waits(2, priority="low")
        house.waits(3)
        await house.pass_time(1)
        assert [step.rows for step in house.session.started] == [[1, 3], [2]]
        await house.end_all()

    with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario)


def test_who_leaves_the_queue_is_not_run() -> None:
    async def scenario(house: House) -> None:
        gone, stays = house.waits(1), house.waits(2)
        gone.leave()
        await house.pass_time(1)
        assert [step.rows for step in house.session.started] == [[2]]
        await house.end_all()
        assert result(stays) == [4]

    with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario)


def test_a_batch_is_cancelled_once_everybody_has_left() -> None:
    async def scenario(house: House) -> None:
        first, second = house.waits(1), house.waits(2)
        await house.pass_time(1)
        (step,) = house.session.started
        assert step.request.cancellation is not None
        first.leave()
        assert not step.request.cancellation.is_cancelled
        second.leave()
        assert step.request.cancellation.is_cancelled
        await house.pass_time()
        assert house.session.started == [step]  # nobody waits for what failed
        after = house.waits(3)
        await house.pass_time(1)
        await house.end_all()
        assert result(after) == [6]

    parameters = BatchParameters(8, batch_timeout_micros=1_000_000, num_batch_threads=1)
    with_house(parameters, scenario)


def test_a_step_that_fails_fails_no_neighbour() -> None:
    async def scenario(house: House) -> None:
        before, bad, after = house.waits(1), house.waits(POISON), house.waits(3)
        await house.pass_time(1)
        await house.end_all()
        assert [step.rows for step in house.session.started] == [[1, -1, 3], [1], [-1], [3]]
        assert (result(before), result(after)) == ([2], [6])
        with pytest.raises(InvalidArgumentError, match="poison"):
            result(bad)

    house = with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario)
    assert "runstep_batch_steps_alone_total{" in text_of(house)


def test_a_large_task_is_split_and_put_together_again() -> None:
    parameters = BatchParameters(
        10, batch_timeout_micros=LATE, enable_large_batch_splitting=True,
        max_execution_batch_size=4, num_batch_threads=3,
    )  # fmt: skip

    async def scenario(house: House) -> None:
        small, large = house.waits(0), house.waits(*range(1, 8))
        await house.pass_time()
        assert [step.rows for step in house.session.started] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        for step in reversed(house.session.started):
            step.end()
        await house.pass_time()
        assert result(small) == [0]
        assert result(large) == [2, 4, 6, 8, 10, 12, 14]

    with_house(parameters, scenario)


def test_a_part_that_fails_fails_its_own_step_only() -> None:
    parameters = BatchParameters(
        10, batch_timeout_micros=LATE, enable_large_batch_splitting=True, max_execution_batch_size=2
    )

    async def scenario(house: House) -> None:
        bad, good = house.waits(1, 2, POISON), house.waits(4)
        await house.end_all()
        assert result(good) == [8]
        with pytest.raises(InvalidArgumentError, match="poison"):
            result(bad)

    with_house(parameters, scenario)


def test_shapes_of_their_own_are_batches_of_their_own_unless_rows_are_padded() -> None:
    async def apart(house: House) -> None:
        house.waits([1, 2])
        house.waits([1, 2, 3])
        await house.pass_time(1)
        assert [step.rows for step in house.session.started] == [[[1, 2]], [[1, 2, 3]]]
        await house.end_all()

    async def padded(house: House) -> None:
        house.waits([1, 2])
        house.waits([3, 4, 5])
        await house.pass_time(1)
        assert [step.rows for step in house.session.started] == [[[1, 2, 1], [3, 4, 5]]]
        await house.end_all()

    with_house(BatchParameters(8, batch_timeout_micros=1_000_000), apart, -1)
    pads = BatchParameters(8, batch_timeout_micros=1_000_000, pad_variable_length_inputs=True)
    with_house(pads, padded, -1)


def test_large_inputs_are_copied_on_another_thread_within_the_memory_of_the_process() -> None:
    wide = np.arange(1 << 16, dtype=np.float64)
    account = process_account
    before = account.used, account._reserved

    async def scenario(house: House) -> None:
        first, second = house.waits(wide), house.waits(wide + 1)
        await house.pass_time(1)
        while not house.session.started:
            await asyncio.sleep(0)
        await house.end_all()
        assert result(first)[0] == (wide * 2).tolist()
        assert result(second)[0] == ((wide + 1) * 2).tolist()

    with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario, -1)
    assert (account.used, account._reserved) == before


def test_an_output_without_the_rows_ends_the_batching_of_the_signature() -> None:
    async def scenario(house: House) -> None:
        first, second = house.waits(1), house.waits(2)
        await house.pass_time(1)
        house.session.started[0].future.set_result([np.float64(7)])
        await house.end_all()
        assert (result(first), result(second)) == ([2], [4])
        assert house.batches.refused == "Batched output tensor has 0 dimensions"
        assert house.begin(3) is None
        assert house.batches.allows_short_step

    with_house(BatchParameters(8, batch_timeout_micros=1_000_000), scenario)
