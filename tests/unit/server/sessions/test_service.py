"""What the session service promises beyond REST: leases with a clock that the test moves."""

import asyncio
import math
import re
import threading
import time

import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.sessions.direct.direct_session import DirectSession
from server.metrics import Metrics
from server.rest.session_docs import half_plus_two_graph
from server.sessions import service as service_module
from server.sessions.requests import CreateRequest, ModelSource
from server.sessions.service import SessionService, check_lease_seconds
from server.sessions.session_errors import SessionGoneError
from server.settings import Settings
from server.steps.priorities import Priorities
from server.steps.step_request import StepRequest
from server.steps.step_runner import StepRunner, deadline_of
from tests.faults import JumpingClock
from tests.unit.runtime.sessions.graphs import loop_graph
from tests.unit.server.sessions.fake_clock import FakeClock


def no_models(source, options):
    raise NotFoundError(f"No model {source.name}")


def scenario_with(clock, scenario, **settings):
    async def run():
        values = Settings(**settings)
        metrics = Metrics()
        runner = StepRunner(Priorities(values), metrics, values.rest.max_answer_bytes)
        openers = {"open_model": no_models, "open_folder": no_models}
        service = SessionService(values, runner, metrics, **openers, clock=clock.clock)
        try:
            await scenario(service)
        finally:
            await service.close_all()

    asyncio.run(run())


def step(request_id="r", **changes):
    values = {
        "feeds": {},
        "fetches": ["half"],
        "received_at": time.monotonic(),
        "request_id": request_id,
    }
    return StepRequest(**(values | changes))


async def run(service, opened, request):
    """The fetched values of one step."""
    answer = await service.runner.run(opened.session, request, service.get(opened.id))
    return answer.values


CREATE = CreateRequest(graph_def=half_plus_two_graph(), lease_seconds=10)


def test_every_use_renews_the_lease():
    clock = FakeClock()

    async def scenario(service):
        opened = await service.create(CREATE)
        for use in (
            lambda: run(service, opened, step()),
            lambda: service.extend(opened.id, pb.GraphDef(), None),
        ):
            clock.now += 9
            await use()
            assert opened.lease.expires_at(clock.now) == clock.now + 10
        clock.now += 9
        service.keep_alive(opened.id, 100)
        assert opened.lease.expires_at(clock.now) == clock.now + 100
        assert opened.last_used_at == clock.clock.wall()

    scenario_with(clock, scenario)


def test_an_idle_session_expires_and_its_id_says_so():
    clock = FakeClock()

    async def scenario(service):
        opened = await service.create(CREATE)
        clock.now = 10
        assert service.open_sessions() == []
        await service.reap()
        assert opened.session.is_closed
        with pytest.raises(SessionGoneError, match="Session lease expired at 2023-11-14T22:13:30"):
            await run(service, opened, step())
        await service.close(opened.id)  # closing what is gone is fine

    scenario_with(clock, scenario)


def test_closing_a_session_that_expired_a_moment_ago_is_fine():
    clock = FakeClock()

    async def scenario(service):
        opened = await service.create(CREATE)
        clock.now = 10
        await service.close(opened.id)
        assert opened.session.is_closed
        with pytest.raises(SessionGoneError, match="Session lease expired at"):
            service.get(opened.id)

    scenario_with(clock, scenario)


def test_a_lease_does_not_run_out_during_a_step():
    clock = FakeClock()

    async def scenario(service):
        opened = await service.create(CREATE)
        request = step()
        opened.begin_step(request)
        clock.now = 1000
        await service.reap()
        assert service.get(opened.id) is opened
        opened.end_step(request)
        clock.now = 1009
        assert service.get(opened.id) is opened

    scenario_with(clock, scenario)


@pytest.mark.parametrize("years", [-55, -1, 1, 200])
def test_setting_the_wall_clock_ends_no_lease_and_lengthens_none(years):
    clock = JumpingClock()

    async def scenario(service):
        opened = await service.create(CREATE)
        shown = clock.clock.wall_at(opened.lease.expires_at(clock.now))
        clock.jump(years * 365 * 86400)
        assert clock.clock.wall_at(opened.lease.expires_at(clock.now)) == pytest.approx(
            shown + years * 365 * 86400
        )
        clock.advance(9)
        await service.reap()
        assert await run(service, opened, step(feeds={"x": [4.0]}, fetches=["y"]))
        clock.advance(9)
        service.keep_alive(opened.id, None)
        clock.advance(10)
        await service.reap()
        with pytest.raises(SessionGoneError, match="Session lease expired at "):
            service.get(opened.id)

    scenario_with(clock, scenario)


def test_failed_creation_leaves_no_place_taken():
    async def scenario(service):
        for _ in range(3):
            with pytest.raises(NotFoundError, match="No model m"):
                await service.create(CreateRequest(model=ModelSource("m")))
        await service.create(CREATE)

    scenario_with(FakeClock(), scenario, sessions={"max_open": 1})


@pytest.mark.parametrize(
    ("options_ms", "header_ms", "config_ms", "default_ms", "expected_ms"),
    [(5, 6, 7, 8, 5), (0, 6, 7, 8, 6), (0, 0, 7, 8, 7), (-1, 0, -1, 8, 8), (0, 0, 0, 0, 0)],
)
def test_the_deadline_is_the_nearest_to_the_request_that_is_set(
    options_ms, header_ms, config_ms, default_ms, expected_ms
):
    async def scenario(service):
        config = pb.ConfigProto(operation_timeout_in_ms=config_ms)
        opened = await service.create(CreateRequest(config=config))
        asked = step(
            options=pb.RunOptions(timeout_in_ms=options_ms), timeout_ms=header_ms, received_at=100
        )
        deadline = deadline_of(asked, opened)
        assert deadline == (100 + expected_ms / 1000 if expected_ms else None)

    unlimited = {"default_timeout_ms": default_ms, "max_step_seconds": 0}
    scenario_with(FakeClock(), scenario, sessions=unlimited)


def test_steps_are_counted_by_priority_and_outcome():
    async def scenario(service):
        opened = await service.create(CREATE)
        assert await run(service, opened, step(priority="low")) == [0.5]
        with pytest.raises(InvalidArgumentError):
            await run(service, opened, step(fetches=["nope"]))
        text = service._metrics.exposition().decode()
        assert 'runstep_steps_total{code="OK",priority="low"} 1.0' in text
        assert 'runstep_steps_total{code="INVALID_ARGUMENT",priority="normal"} 1.0' in text

    scenario_with(FakeClock(), scenario)


def test_a_session_whose_caller_left_while_it_was_made_is_destroyed(monkeypatch):
    """A gRPC client that cancels CreateSession never learns the handle."""
    clock = FakeClock()
    made, goes_on, destroyed = threading.Event(), threading.Event(), threading.Event()
    make, destroy = SessionService._make, DirectSession.destroy

    def held(self, request, options):
        opened = make(self, request, options)
        made.set()
        assert goes_on.wait(30)
        return opened

    def noting(self):
        destroy(self)
        destroyed.set()

    monkeypatch.setattr(SessionService, "_make", held)
    monkeypatch.setattr(DirectSession, "destroy", noting)

    async def scenario(service):
        creating = asyncio.ensure_future(service.create(CREATE))
        await asyncio.to_thread(made.wait, 30)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        goes_on.set()
        assert await asyncio.to_thread(destroyed.wait, 10)
        assert service.open_sessions() == []

    scenario_with(clock, scenario, sessions={"max_open": 1})


@pytest.mark.parametrize(("graph", "nodes"), [(loop_graph(), 13), (half_plus_two_graph(), 0)])
def test_the_collector_is_told_of_the_loops_that_a_closed_session_leaves(monkeypatch, graph, nodes):
    left = []
    monkeypatch.setattr(service_module, "cycles_were_left", left.append)

    async def scenario(service):
        opened = await service.create(CreateRequest(graph_def=graph))
        await service.close(opened.id)
        assert left == ([nodes] if nodes else [])

    scenario_with(FakeClock(), scenario)


@pytest.mark.parametrize("seconds", [0.001, 1, 3600])
def test_a_lease_may_be_as_long_as_the_settings_say(seconds):
    assert check_lease_seconds(seconds, 3600) == seconds


@pytest.mark.parametrize("seconds", [0, -1, 3600.5, math.inf, math.nan])
def test_other_leases_are_refused(seconds):
    message = f"lease_seconds must be more than 0 and at most 3600, got {seconds:g}"
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        check_lease_seconds(seconds, 3600)


@pytest.mark.parametrize("seconds", [True, "1", None])
def test_a_lease_is_a_number(seconds):
    with pytest.raises(InvalidArgumentError, match="lease_seconds must be a number, got"):
        check_lease_seconds(seconds, 3600)
