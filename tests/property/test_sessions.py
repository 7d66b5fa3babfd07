"""Any sequence of calls on sessions, by two owners and with faults, against a small model.

The server runs in this process, over REST and over gRPC. Its clocks are in the machine's hands: the
monotonic one passes, the wall clock jumps.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.property.session_wires import GONE, GrpcWire, RefusedError, RestWire, Wire

T = TypeVar("T")
OWNERS = ("one", "other")
MOST_SESSIONS = 4
SMALL = st.integers(-8, 8).map(float)


def base_graph() -> pb.GraphDef:
    """A variable, a step in two parts, and a step that waits until it is cancelled."""
    graph = Graph()
    v = graph.add("VarHandleOp", name="v", dtype="float32", shape=(), shared_name="v")[0]
    graph.add("AssignVariableOp", v, np.float32(0), name="init", dtype="float32")
    graph.add("ReadVariableOp", v, name="read", dtype="float32")
    delta = graph.placeholder("float32", "delta", ())
    graph.add("AssignAddVariableOp", v, delta, name="add", dtype="float32")
    graph.add("ReadVariableOp", v, name="added", dtype="float32", control=["add"])
    a, b = graph.placeholder("float32", "a", ()), graph.placeholder("float32", "b", ())
    twice = graph.add("AddV2", a, a, name="twice")[0]
    graph.add("AddV2", twice, b, name="sum")
    queue = graph.add("FIFOQueueV2", name="q", component_types=[DataType.FLOAT])[0]
    graph.add("QueueDequeueV2", queue, name="wait", component_types=[DataType.FLOAT])
    return graph.graph_def


def extension(number: int) -> pb.GraphDef:
    """`extra_<number>`: the variable plus `number`."""
    graph = Graph()
    graph.add("AddV2", ("read:0", DataType.FLOAT), np.float32(number), name=f"extra_{number}")
    graph.graph_def.node[0].name = f"number_{number}"
    graph.graph_def.node[1].input[1] = f"number_{number}"
    return graph.graph_def


@dataclasses.dataclass(eq=False)
class Session:
    """What the model knows of one session."""

    id: str
    owner: str
    name: str
    expires: float
    value: float | None = None  # of the variable; None before it is initialised
    version: int = 0
    callables: dict[int, str] = dataclasses.field(default_factory=dict)  # handle → fetch
    released: list[int] = dataclasses.field(default_factory=list)
    parts: dict[str, float | None] = dataclasses.field(default_factory=dict)  # handle → first feed
    waiting: dict[str, asyncio.Task[list[float]]] = dataclasses.field(default_factory=dict)
    is_closed: bool = False


class Sessions(RuleBasedStateMachine):
    """The rules; a subclass chooses the wire."""

    wire_class: type[Wire]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.wire = self.wire_class()
        self.sessions: list[Session] = []
        self.count = 0

    # What a rule does with the server

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    def refused(self, call: Coroutine[Any, Any, object]) -> str:
        """The code of the error of a call."""
        with pytest.raises(RefusedError) as caught:
            self.do(call)
        return caught.value.code

    def is_open(self, session: Session) -> bool:
        return not session.is_closed and (
            bool(session.waiting) or self.wire.clock.now < session.expires
        )

    def used(self, session: Session) -> None:
        session.expires = self.wire.clock.now + self.wire.lease_seconds

    def call(
        self, session: Session, call: Coroutine[Any, Any, T], expected: str | None = None
    ) -> T | None:
        """Make a call, which must fail with `expected`, or because the session is gone."""
        if not self.is_open(session):
            assert self.refused(call) == GONE
            return None
        if expected is None:
            result = self.do(call)
            self.used(session)
            return result
        code = self.refused(call)
        assert code == expected, (code, expected)
        # Whether a refused call renews the lease is not promised, so this one does.
        assert self.do(self.wire.run(session.id, {"a": 1}, ["twice"])) == [2]
        self.used(session)
        return None

    def some(self, data: st.DataObject) -> Session:
        owner = data.draw(st.sampled_from(OWNERS), "owner")
        own = [each for each in self.sessions if each.owner == owner]
        return data.draw(st.sampled_from(own or self.sessions), "session")

    # Life

    @initialize()
    def start(self) -> None:
        self.do(self.wire.start())

    @precondition(lambda self: sum(map(self.is_open, self.sessions)) < MOST_SESSIONS)
    @rule(owner=st.sampled_from(OWNERS))
    def create(self, owner: str) -> None:
        self.count += 1
        name = f"{owner} {self.count}"
        session_id = self.do(self.wire.create(base_graph(), name))
        assert session_id not in [each.id for each in self.sessions]
        session = Session(session_id, owner, name, 0.0)
        self.used(session)
        self.sessions.append(session)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        session = self.some(data)
        was_open = self.is_open(session)
        if was_open or isinstance(self.wire, RestWire):  # closing twice is fine over REST
            self.do(self.wire.close(session.id))
        else:
            assert self.refused(self.wire.close(session.id)) == GONE
        session.is_closed = True
        for task in session.waiting.values():
            assert self.code_of(task) in ("CANCELLED", "ABORTED")
        session.waiting.clear()

    def code_of(self, task: asyncio.Task[list[float]]) -> str:
        async def ended() -> str:
            try:
                await task
            except RefusedError as error:
                return error.code
            except asyncio.CancelledError:
                return "CANCELLED"
            raise AssertionError("the step ended without an error")

        return self.do(ended())

    @rule(part=st.sampled_from([0.01, 0.5, 0.999, 1.0, 3.0]), reaped=st.booleans())
    def time_passes(self, part: float, reaped: bool) -> None:
        self.wire.clock.advance(part * self.wire.lease_seconds)
        if reaped:
            self.do(self.wire.reap())

    @rule(days=st.sampled_from([-20_000, -1, 1, 20_000]))
    def somebody_sets_the_wall_clock(self, days: int) -> None:
        self.wire.clock.wall = 1_700_000_000.0 + days * 86400

    @invariant()
    def the_open_sessions_are_listed(self) -> None:
        if hasattr(self.wire, "server"):
            names = sorted(each.name for each in self.sessions if self.is_open(each))
            assert self.do(self.wire.open_names()) == names

    # Steps

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def initialise(self, data: st.DataObject) -> None:
        session = self.some(data)
        if self.call(session, self.wire.run(session.id, {}, [], ["init"])) is not None:
            session.value = 0.0

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), delta=SMALL)
    def add(self, data: st.DataObject, delta: float) -> None:
        session = self.some(data)
        expected = "NOT_FOUND" if session.value is None else None
        got = self.call(session, self.wire.run(session.id, {"delta": delta}, ["added"]), expected)
        if got is not None and session.value is not None:
            session.value += delta
            assert got == [session.value]

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        session = self.some(data)
        expected = "FAILED_PRECONDITION" if session.value is None else None
        got = self.call(session, self.wire.run(session.id, {}, ["read"]), expected)
        assert got in (None, [session.value])

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), name=st.sampled_from(["none", "read:7", "read:0:0"]))
    def fetch_what_is_not_there(self, data: st.DataObject, name: str) -> None:
        session = self.some(data)
        call = self.wire.run(session.id, {}, [name])
        if not self.is_open(session):
            assert self.refused(call) == GONE
            return
        assert self.refused(call) in ("INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE")
        self.do(self.wire.run(session.id, {"a": 1}, ["twice"]))
        self.used(session)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def a_deadline_passes(self, data: st.DataObject) -> None:
        session = self.some(data)
        call = self.wire.run(session.id, {}, ["wait"], timeout_ms=1)
        self.call(session, call, "DEADLINE_EXCEEDED")

    # The graph

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), off=st.sampled_from([0, 0, 0, 1, -1]))
    def extend(self, data: st.DataObject, off: int) -> None:
        session = self.some(data)
        expected = "ABORTED" if off else None
        call = self.wire.extend(session.id, extension(session.version), session.version + off)
        version = self.call(session, call, expected)
        if version is not None:
            session.version += 1
            assert version == session.version

    @precondition(lambda self: any(each.version for each in self.sessions))
    @rule(data=st.data())
    def run_what_was_added(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.version]))
        number = data.draw(st.integers(0, session.version - 1), "number")
        expected = "FAILED_PRECONDITION" if session.value is None else None
        got = self.call(session, self.wire.run(session.id, {}, [f"extra_{number}"]), expected)
        if got is not None and session.value is not None:
            assert got == [session.value + number]

    # Callables

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), fetch=st.sampled_from(["added", "twice"]))
    def make_callable(self, data: st.DataObject, fetch: str) -> None:
        session = self.some(data)
        feed = {"added": "delta", "twice": "a"}[fetch]
        handle = self.call(session, self.wire.make_callable(session.id, [feed], [fetch]))
        if handle is not None:
            assert handle not in session.callables
            session.callables[handle] = fetch

    @precondition(lambda self: any(each.callables for each in self.sessions))
    @rule(data=st.data(), value=SMALL)
    def run_callable(self, data: st.DataObject, value: float) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.callables]))
        handle = data.draw(st.sampled_from(sorted(session.callables)), "handle")
        adds = session.callables[handle] == "added"
        expected = "NOT_FOUND" if adds and session.value is None else None
        call = self.wire.run_callable(session.id, handle, {"": value})
        got = self.call(session, call, expected)
        if got is None:
            return
        if adds and session.value is not None:
            session.value += value
        assert got == [session.value if adds else 2 * value]

    @precondition(lambda self: any(each.callables for each in self.sessions))
    @rule(data=st.data())
    def release_callable(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.callables]))
        handle = data.draw(st.sampled_from(sorted(session.callables)), "handle")
        self.call(session, self.wire.release_callable(session.id, handle))
        if self.is_open(session):
            del session.callables[handle]
            session.released.append(handle)

    @precondition(lambda self: any(each.released for each in self.sessions))
    @rule(data=st.data(), again=st.booleans())
    def use_a_released_callable(self, data: st.DataObject, again: bool) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.released]))
        handle = data.draw(st.sampled_from(session.released), "handle")
        if again:
            call: Coroutine[Any, Any, object] = self.wire.release_callable(session.id, handle)
        else:
            call = self.wire.run_callable(session.id, handle, {"": 1.0})
        self.call(session, call, "INVALID_ARGUMENT")

    # Partial runs

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def begin_parts(self, data: st.DataObject) -> None:
        session = self.some(data)
        call = self.wire.begin_parts(session.id, ["a", "b"], ["twice", "sum"])
        handle = self.call(session, call)
        if handle is not None:
            session.parts[handle] = None

    @precondition(lambda self: any(each.parts for each in self.sessions))
    @rule(data=st.data(), value=SMALL)
    def run_part(self, data: st.DataObject, value: float) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.parts]))
        handle = data.draw(st.sampled_from(sorted(session.parts)), "handle")
        first = session.parts[handle]
        if first is None:
            call = self.wire.run(session.id, {"a": value}, ["twice"], part=handle)
        else:
            call = self.wire.run(session.id, {"b": value}, ["sum"], part=handle)
        got = self.call(session, call)
        if got is None:
            return
        if first is None:
            session.parts[handle] = value
            assert got == [2 * value]
            return
        assert got == [2 * first + value]
        del session.parts[handle]
        again = self.wire.run(session.id, {"b": value}, ["sum"], part=handle)
        self.call(session, again, "INVALID_ARGUMENT")

    # Steps that wait

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def begin_to_wait(self, data: st.DataObject) -> None:
        session = self.some(data)
        self.count += 1
        request_id = f"request-{self.count}"
        call = self.wire.run(session.id, {}, ["wait"], request_id=request_id)
        if not self.is_open(session):
            assert self.refused(call) == GONE
            return
        session.waiting[request_id] = self.do(self.begun(session, call))

    async def begun(
        self, session: Session, call: Coroutine[Any, Any, list[float]]
    ) -> asyncio.Task[list[float]]:
        service = self.wire.server.services.sessions
        steps = service.get(session.id).steps
        task = asyncio.ensure_future(call)
        while service.get(session.id).steps == steps and not task.done():
            await asyncio.sleep(0)
        return task

    @precondition(lambda self: any(each.waiting for each in self.sessions))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from([each for each in self.sessions if each.waiting]))
        request_id = data.draw(st.sampled_from(sorted(session.waiting)), "request")
        task = session.waiting.pop(request_id)
        before = self.wire.server.services.sessions.get(session.id).session
        self.do(self.wire.cancel(session.id, request_id, task))
        assert self.code_of(task) == "CANCELLED"
        assert self.wire.server.services.sessions.get(session.id).session is before
        self.do(self.until_ended(session))
        self.used(session)

    async def until_ended(self, session: Session) -> None:
        opened = self.wire.server.services.sessions.get(session.id)
        while sum(map(len, opened._running.values())) > len(session.waiting):
            await asyncio.sleep(0)

    def teardown(self) -> None:
        if hasattr(self.wire, "server"):
            for session in self.sessions:
                for task in session.waiting.values():
                    task.cancel()
            self.do(self.wire.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


class RestSessions(Sessions):
    """What only REST has."""

    wire_class = RestWire
    wire: RestWire

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def keep_alive(self, data: st.DataObject) -> None:
        session = self.some(data)
        self.call(session, self.wire.keep_alive(session.id))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def cancel_what_does_not_run(self, data: st.DataObject) -> None:
        session = self.some(data)
        call = self.wire._post(f"/{session.id}:cancel", {"request_id": "nobody's"})
        self.call(session, call, "NOT_FOUND")

    @rule(verb=st.sampled_from(["run", "extend", "keepAlive", "close", "makeCallable"]))
    def guess_an_id(self, verb: str) -> None:
        guessed = "x" * 22
        body: dict[str, object] = {"options": {}} if verb == "makeCallable" else {}
        if verb == "extend":
            body = {"graph_def": ""}
        assert self.refused(self.wire._post(f"/{guessed}:{verb}", body)) == "NOT_FOUND"


class GrpcSessions(Sessions):
    """The same sessions through the master service."""

    wire_class = GrpcWire


def check(machine: type[Sessions], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_sessions_over_rest_follow_the_model() -> None:
    check(RestSessions, 20)


def test_sessions_over_grpc_follow_the_model() -> None:
    check(GrpcSessions, 6)
