"""Which requests join a batch, and the adaptive form."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import RunRequest
from runtime.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from server.memory_in_flight import MemoryInFlight
from server.steps.batching.adaptive_size import TRIES
from server.steps.batching.crowd import (
    COUNTED_ARRIVAL,
    RUN_AT_ONCE,
    RUNS_THAT_DECIDE,
    SHORT_SECONDS,
    TOGETHER,
    WORTH_SECONDS,
)
from server.steps.batching.crowd_trial import PHASE
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.signature_batches import MAX_SOURCES, BatchedSignature, SignatureBatches
from tests.unit.server.steps.batching.batching_fakes import HandSession, House
from tests.unit.server.steps.batching.test_batch_scheduler import result, with_house

LATE = BatchParameters(8, batch_timeout_micros=1_000_000_000)


@pytest.mark.parametrize("parameters", [None, LATE], ids=["adaptive", "parameters"])
def test_a_request_of_another_shape_runs_alone(parameters: BatchParameters | None) -> None:
    async def scenario(house: House) -> None:
        assert house.begin([1, 2]) is None  # a row has three numbers
        assert house.begin([[1, 2, 3]]) is None  # another rank
        assert house.begin() is None  # no rows
        assert house.begin([1, 2, 3], options=pb.RunOptions(trace_level=3)) is None
        assert house.begin([1, 2, 3], targets=["init"]) is None

    with_house(parameters, scenario, 3)


def test_scalars_are_refused_with_parameters_as_in_tensorflow_serving() -> None:
    async def refused(house: House) -> None:
        run = RunRequest({"x": np.float32(3)}, ["y"])
        normal = house.priorities.resolve("normal")
        with pytest.raises(InvalidArgumentError, match="must have at least one dimension"):
            house.batches.begin(house.session, run, normal)  # type: ignore[arg-type] # the fake

    async def alone(house: House) -> None:
        run = RunRequest({"x": np.float32(3)}, ["y"])
        normal = house.priorities.resolve("normal")
        assert house.batches.begin(house.session, run, normal) is None  # type: ignore[arg-type] # the fake

    with_house(LATE, refused)
    with_house(None, alone)


def test_the_lists_of_outputs_with_queues_are_bounded() -> None:
    async def scenario(house: House) -> None:
        normal = house.priorities.resolve("normal")

        def begin(*fetches: str) -> Any:
            run = RunRequest({"x": np.zeros(1)}, fetches)
            return house.batches.begin(house.session, run, normal)  # type: ignore[arg-type] # the fake

        assert all(begin(f"y{number}") for number in range(MAX_SOURCES))
        assert begin("another") is None
        assert begin("y0") is not None

    with_house(LATE, scenario)


def test_a_full_queue_is_unavailable() -> None:
    async def scenario(house: House) -> None:
        house.waits(1)
        with pytest.raises(UnavailableError, match="currently 1 batches enqueued"):
            house.waits(2)

    late = BatchParameters(1, batch_timeout_micros=1, max_enqueued_batches=1, num_batch_threads=1)

    async def busy(house: House) -> None:
        house.waits(0)
        await house.pass_time(1)
        await scenario(house)
        await house.end_all()

    with_house(late, busy)


def test_the_copy_of_a_large_request_counts_as_its_memory() -> None:
    wide = [0.0] * (1 << 15)  # 256 KiB

    async def scenario(house: House) -> None:
        memory = MemoryInFlight(1 << 20)
        holding = memory.begin_request()
        house.waits(wide)
        assert holding.size == 2 << 18  # padded to two rows
        with pytest.raises(ResourceExhaustedError, match="max_bytes_in_flight"):
            house.waits(wide, wide, wide)
        await house.end_all()

    with_house(BatchParameters(4, allowed_batch_sizes=(2, 4)), scenario, -1)


def test_an_idle_adaptive_signature_runs_a_step_at_once_and_as_it_is() -> None:
    async def scenario(house: House) -> None:
        begun = house.waits(1)
        (step,) = house.session.started
        assert step.future is begun.future
        house.now += 1
        step.end()
        await house.pass_time()
        assert result(begun) == [2]
        second = house.waits(2)
        assert len(house.session.started) == 2
        await house.end_all()
        assert result(second) == [4]

    with_house(None, scenario)


def test_the_adaptive_form_gathers_what_waits_while_all_threads_are_busy() -> None:
    async def scenario(house: House) -> None:
        threads = house.priorities.resolve("normal").pool.num_threads
        running = [house.waits(0) for _ in range(threads)]
        waiting = [house.waits(1), house.waits(2)]
        await house.pass_time()
        assert len(house.session.started) == threads
        house.session.started[0].end()
        await house.pass_time()
        assert house.session.started[-1].rows == [1, 2]
        await house.end_all()
        assert [result(each) for each in (*running, *waiting)][-2:] == [[2], [4]]

    with_house(None, scenario)


def test_a_refused_signature_is_not_batched_and_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        house = House(LATE)
        signature = BatchedSignature("m", 3, "random", {"x": (-1,)})
        batches = SignatureBatches(house.scheduler, signature, LATE, "it has no outputs")
        assert batches.refused == "it has no outputs"
        assert batches.allows_short_step

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "Signature random of m version 3 is not batched: it has no outputs"
    ]


async def turn_that_counts(house: House) -> None:
    """Let the callers come after whom arrivals are counted, until the next turn of the loop."""
    assert not any(house.batches.arrives() for _ in range(COUNTED_ARRIVAL))
    await asyncio.sleep(0)


def test_short_steps_are_batched_only_while_many_come_together() -> None:
    async def scenario(house: House) -> None:
        batches = house.batches
        await turn_that_counts(house)
        assert [batches.arrives() for _ in range(TOGETHER)] == [False] * (TOGETHER - 1) + [True]
        await asyncio.sleep(0)
        assert batches.is_crowded  # those of the turn before have not been batched yet
        begun = [house.waits(value) for value in range(TOGETHER)]
        assert batches.arrives()
        await asyncio.sleep(0)
        assert batches.is_crowded  # because so many wait
        begun.pop().leave()
        assert not batches.is_crowded
        await house.end_all()

    with_house(None, scenario)


def test_without_a_crowd_most_turns_are_not_counted() -> None:
    async def scenario(house: House) -> None:
        batches = house.batches
        for _ in range(COUNTED_ARRIVAL // TOGETHER):
            assert not any(batches.arrives() for _ in range(TOGETHER))
            await asyncio.sleep(0)
            assert not batches.is_crowded
        assert not any(batches.arrives() for _ in range(COUNTED_ARRIVAL % TOGETHER))
        await asyncio.sleep(0)
        waits = [batches.arrives() for _ in range(TOGETHER)]
        assert waits == [False] * (TOGETHER - 1) + [True]
        await asyncio.sleep(0)
        for callers in (TOGETHER, TOGETHER - 1):  # each turn of a crowd is counted
            assert all(batches.arrives() for _ in range(callers))
            await asyncio.sleep(0)
        assert not batches.is_crowded

    with_house(None, scenario)


def test_steps_that_are_shorter_than_what_a_batch_costs_run_at_once() -> None:
    async def scenario(house: House) -> None:
        batches = house.batches
        batches.note_run(WORTH_SECONDS / 2)
        assert not any(batches.arrives() for _ in range(2 * TOGETHER))
        for _ in range(RUNS_THAT_DECIDE - 2):  # as beside other work
            batches.note_run(10 * WORTH_SECONDS)
        assert not any(batches.arrives() for _ in range(TOGETHER))
        for _ in range(RUNS_THAT_DECIDE + 1):
            batches.note_run(WORTH_SECONDS)
        await turn_that_counts(house)
        assert not any(batches.arrives() for _ in range(TOGETHER - 1))
        waits = [batches.arrives() for _ in range(2 * RUN_AT_ONCE)]
        assert waits.count(False) == 2  # so that it is seen when they become shorter

    with_house(None, scenario)


def test_short_steps_are_not_batched_where_that_does_not_pay() -> None:
    async def scenario(house: House) -> None:
        for rows in (1, 2):  # a batch of two takes ten times as long as one row
            for _ in range(TRIES):
                begun = house.waits(*range(rows))
                house.now += 1 if rows == 1 else 10
                await house.end_all()
                begun.leave()
        assert not any(house.batches.arrives() for _ in range(2 * TOGETHER))

    with_house(None, scenario)


CROWD = 2 * TOGETHER


async def turn_of_a_crowd(
    house: House,
    seconds_in_batch: float,
    seconds_at_once: float,
    step_seconds: float = 2 * WORTH_SECONDS,
) -> int:
    """Let a crowd come and have its answers; return how many of its steps wait for batches."""
    begun = []
    for _ in range(CROWD):
        if house.batches.arrives() and (batched := house.begin(1)) is not None:
            begun.append(batched)
        else:
            house.batches.note_run(step_seconds)
            house.now += seconds_at_once
    house.now += len(begun) * seconds_in_batch
    await house.pass_time()
    while house.session.running():
        for step in house.session.running():
            house.now += 2 * WORTH_SECONDS  # so that large batches pay for the step itself
            step.end()
        await house.pass_time()
    for each in begun:
        each.leave()
    await asyncio.sleep(0)
    return len(begun)


def test_a_crowd_whose_steps_are_through_more_quickly_at_once_is_not_batched() -> None:
    async def scenario(house: House) -> None:
        await turn_that_counts(house)
        turns = [await turn_of_a_crowd(house, 2e-3, 1e-3) for _ in range(6 * PHASE // CROWD)]
        of_phase = PHASE // CROWD
        in_phases = [sum(turns[phase * of_phase :][:of_phase]) > PHASE // 2 for phase in range(6)]
        assert in_phases == [True, False, True, False, False, False]
        assert not house.batches.is_crowded
        assert house.begin(1) is None  # one that takes too long for the loop's thread

    with_house(None, scenario)


def test_a_trial_ends_also_if_steps_are_as_long_as_what_a_batch_costs() -> None:
    async def scenario(house: House) -> None:
        await turn_that_counts(house)
        house.batches.note_run(2 * WORTH_SECONDS)
        of_phase = PHASE // CROWD
        # Now longer, now shorter than that, for half a phase each.
        turns = [
            await turn_of_a_crowd(
                house, 2e-3, 1e-3, WORTH_SECONDS * (2 if 2 * number // of_phase % 2 == 0 else 0.5)
            )
            for number in range(6 * of_phase)
        ]
        in_phases = [sum(turns[phase * of_phase :][:of_phase]) > PHASE // 2 for phase in range(6)]
        assert in_phases == [True, False, True, False, False, False]

    with_house(None, scenario)


def test_a_crowd_whose_steps_are_through_more_quickly_in_batches_is_batched() -> None:
    async def scenario(house: House) -> None:
        await turn_that_counts(house)
        turns = [await turn_of_a_crowd(house, 1e-3, 2e-3) for _ in range(6 * PHASE // CROWD)]
        assert all(turns[-PHASE // CROWD :])

    with_house(None, scenario)


def test_a_short_step_on_a_pool_waits_for_others_only_in_a_crowd() -> None:
    async def scenario(house: House) -> None:
        house.batches.note_run(2 * WORTH_SECONDS)
        assert [house.begin(1) for _ in range(COUNTED_ARRIVAL)] == [None] * COUNTED_ARRIVAL
        await asyncio.sleep(0)
        begun = [house.begin(1) for _ in range(TOGETHER + 1)]
        assert [each is None for each in begun] == [True] * (TOGETHER - 1) + [False] * 2
        await house.end_all()

    with_house(None, scenario)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_step_of_one_row_on_a_pool_shows_that_steps_are_short(rows: int) -> None:
    async def scenario(house: House) -> None:
        begun = house.waits(*range(rows))
        house.now += 0.9 * SHORT_SECONDS
        await house.end_all()
        begun.leave()
        assert (house.begin(1) is None) is (rows == 1)

    with_house(None, scenario)


def test_steps_wait_for_a_turn_only_while_batches_may_pay() -> None:
    async def scenario(house: House) -> None:
        running = house.session.running
        later = [house.waits(number) for number in range(60)]
        sizes = set()
        while 0 < len(running()) < 20:  # batches of two are tried, and take much longer
            sizes |= {len(step.rows) for step in running()}
            for rows in (1, 2):
                house.now += 10 * (rows - 1) + 1
                for step in running():
                    if len(step.rows) == rows:
                        step.end()
            await house.pass_time()
        assert sizes == {1, 2}
        assert not house.batches.is_crowded
        assert house.begin(1) is None  # it runs by itself
        assert all(len(step.rows) == 1 for step in running())
        await house.end_all()
        assert [result(begun) for begun in later] == [[2 * number] for number in range(60)]

    with_house(None, scenario)


def test_with_parameters_no_step_is_short_but_those_of_a_refused_signature() -> None:
    async def scenario(house: House) -> None:
        assert not house.batches.allows_short_step
        assert not any(house.batches.arrives() for _ in range(2 * TOGETHER))

    with_house(LATE, scenario)


@pytest.mark.parametrize("parameters", [None, LATE], ids=["adaptive", "parameters"])
def test_a_session_is_free_without_the_garbage_collector_once_its_version_is_unloaded(
    parameters: BatchParameters | None,
) -> None:
    async def scenario(house: House) -> None:
        house.session = HandSession()
        session = weakref.ref(house.session)
        for priority in ("low", "normal"):
            house.waits(1, priority=priority)
        house.now += 2000
        await house.end_all()
        house.session.started.clear()  # their futures have callbacks
        house.batches.close()
        house.session = HandSession()
        await house.pass_time()
        assert session() is None

    gc.collect()
    gc.disable()
    try:
        with_house(parameters, scenario)
    finally:
        gc.enable()
