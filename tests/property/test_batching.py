"""Whatever arrives, leaves, runs late or fails, each caller gets what it gets alone."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.signature_batches import Begun
from tests.unit.server.steps.batching.batching_fakes import POISON, House


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A request of `rows` rows of `width` numbers; one that is bad fails every step it is in."""

    rows: int
    width: int
    priority: str
    is_bad: bool


ARRIVALS = st.builds(
    Arrival,
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from(["normal", "normal", "low"]),
    st.sampled_from([False] * 5 + [True]),
)
# A caller leaves when it disconnects, cancels, or its deadline passes: its place in the list.
LEAVES = st.tuples(st.just("leave"), st.integers(0, 20))
ENDS = st.tuples(st.just("end"), st.integers(0, 3))
TIMES = st.tuples(st.just("time"), st.floats(0, 2))
EVENTS = st.lists(st.one_of(ARRIVALS, LEAVES, ENDS, TIMES), min_size=1, max_size=40)
PARAMETERS = st.one_of(
    st.none(),
    st.builds(
        BatchParameters,
        st.just(8),
        st.sampled_from([0, 1_000_000]),
        st.integers(1, 4),
        st.integers(1, 3),
        st.just("batches"),
        st.sampled_from([(), (8,), (2, 4, 8)]),
        st.booleans(),
    ),
    st.builds(
        BatchParameters,
        st.just(8),
        st.sampled_from([0, 1_000_000]),
        st.integers(1, 4),
        st.integers(1, 3),
        st.just("batches"),
        st.sampled_from([(), (3,), (1, 2, 3)]),
        st.booleans(),
        st.just(True),
        st.just(3),
    ),
)


class Callers:
    """The callers of a house, and what each must get."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.present: list[tuple[Arrival, np.ndarray, Begun]] = []
        self.gone: list[Begun] = []
        self._next = 0

    def arrive(self, arrival: Arrival) -> None:
        count = arrival.rows * arrival.width
        x = np.arange(self._next, self._next + count, dtype=np.float64)
        self._next += count
        x = x.reshape(arrival.rows, arrival.width)
        if arrival.is_bad:
            x[-1, -1] = POISON
        try:
            begun = self.house.begin(*x.tolist(), priority=arrival.priority)
        except (UnavailableError, ResourceExhaustedError):
            return
        assert begun is not None
        self.present.append((arrival, x, begun))

    def leave(self, place: int) -> None:
        if self.present:
            _, _, begun = self.present.pop(place % len(self.present))
            begun.leave()
            self.gone.append(begun)

    def check(self) -> None:
        for arrival, x, begun in self.present:
            assert begun.future.done()
            error = begun.future.exception()
            if arrival.is_bad:
                assert isinstance(error, InvalidArgumentError)
            else:
                assert error is None
                (value,) = begun.future.result()
                # Rows that are padded for others are longer, and what is added is not theirs.
                assert value[:, : arrival.width].tolist() == (x * 2).tolist()
                assert len(value) == arrival.rows


async def play(parameters: BatchParameters | None, events: list[Any]) -> None:
    house = House(parameters, -1)
    callers = Callers(house)
    for event in events:
        match event:
            case Arrival():
                callers.arrive(event)
            case ("leave", place):
                callers.leave(place)
            case ("end", place):
                running = house.session.running()
                if running:
                    running[place % len(running)].end()
                    await house.pass_time()
            case ("time", seconds):
                await house.pass_time(seconds)
    for _ in range(60):  # as long as every timeout; what waits for a full batch runs too
        await house.pass_time(2)
        await house.end_all()
        if all(begun.future.done() for _, _, begun in callers.present):
            break
    callers.check()
    for priority in ("normal", "low"):
        assert house.scheduler.lane(house.priorities.resolve(priority).pool).running == 0


@given(PARAMETERS, EVENTS)
@settings(max_examples=150, deadline=None)
def test_each_caller_gets_its_own_rows(
    parameters: BatchParameters | None, events: list[Any]
) -> None:
    asyncio.run(play(parameters, events))
