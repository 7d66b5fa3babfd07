"""Derived values are never stale: every step returns what it returns when nothing is kept.

Random steps of several sessions, some of one template, run in two ways: as they are, and with the
optimiser off, so that every step computes everything. Both must return the same values and errors.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from runtime.api import DirectSession, OpError
from runtime.executors.derived_executor import DerivedExecutor
from tests.unit.runtime.executors.derived_sessions import (
    ONE,
    X,
    change,
    executor_of,
    forks_of,
    in_caller,
)
from tests.unit.runtime.graph.passes.divided_steps import VariableGraph
from tests.unit.runtime.sessions.graphs import direct_session

TWO = np.float32([2, 2])
VARIABLES = ("v", "w", "r")
FETCHES = ("y", "s", "z", "n", "rv", "rw", "read_r", "add_then_read", "initialized")
SECONDS = 30  # to wait for another thread


def graph_def() -> pb.GraphDef:
    """A graph of two resource variables, two handles of one of them, and a reference variable."""
    graph = VariableGraph()
    value = graph.placeholder("float32", "value")
    attrs = {"dtype": "float32"}
    for name in ("v", "w"):
        handle = graph.handle(name)
        graph.add("AssignVariableOp", handle, value, name=f"set_{name}", **attrs)
        graph.add("AssignAddVariableOp", handle, value, name=f"add_{name}", **attrs)
        graph.read(handle, f"r{name}")
    again = graph.handle("v", "v_again", container="localhost")
    graph.add("AssignAddVariableOp", again, value, name="add_again", **attrs)
    graph.add("VarIsInitializedOp", again, name="initialized")
    graph.read(again, "add_then_read", control=["add_again"])
    reference = graph.reference("r")
    graph.add("Assign", reference, value, name="set_r")
    graph.add("AssignAdd", reference, value, name="add_r")
    read_r = graph.add("Identity", reference, name="read_r")[0]
    doubled = graph.add("Mul", ("rv:0", value[1]), TWO, name="doubled")[0]
    s = graph.add("AddV2", doubled, ("rw:0", value[1]), name="s")[0]
    graph.add("Mul", graph.x, s, name="y")
    n = graph.add("Neg", read_r, name="n")[0]
    graph.add("Mul", n, graph.add("Mul", graph.x, ("doubled:0", value[1]), name="m")[0], name="z")
    return graph.graph_def


def config(level: Any) -> pb.ConfigProto:
    made = in_caller()
    made.graph_options.optimizer_options.opt_level = level
    return made


class Sessions:
    """The sessions of one program: one with a graph, two forks of it, and an independent one."""

    def __init__(self, level: Any) -> None:
        origin = self._new(level)
        forks = forks_of(origin, 2, config(level))
        self.all = [origin, *forks, self._new(level)]
        self.buffers = [ONE.copy() for _ in self.all]
        self.extensions = [0 for _ in self.all]

    @staticmethod
    def _new(level: Any) -> DirectSession:
        session = direct_session(graph_def(), config(level))
        for name in VARIABLES:
            change(session, f"set_{name}", ONE)
        return session

    def do(self, number: int, action: tuple[Any, ...]) -> list[Any]:
        """Do one action in a session; return the values, or the error."""
        session = self.all[number]
        match action:
            case ("run", fetches):
                return self._run(session, {"x": X, "value": ONE}, fetches)
            case ("change", target, value):
                return self._run(session, {"value": np.float32([value, value])}, (), (target,))
            case ("buffer", target, value):  # the same array again, with other elements
                self.buffers[number][:] = value
                return self._run(session, {"value": self.buffers[number]}, (), (target,))
            case ("extend",):
                self._extend(session, number)
            case ("clear",):
                session.resources.clear()
            case ("write", fetch):  # a caller writes into what it has fetched
                for found in self._run(session, {"x": X}, (fetch,)):
                    if isinstance(found, np.ndarray):
                        found += 100
        return []

    @staticmethod
    def _run(
        session: DirectSession, feeds: dict[str, Any], fetches: Any, targets: Any = ()
    ) -> list[Any]:
        try:
            return session.run(feeds, fetches, targets)
        except OpError as error:
            return [(error.code, error.message)]

    def _extend(self, session: DirectSession, number: int) -> None:
        more = VariableGraph()
        del more.graph_def.node[:]
        self.extensions[number] += 1
        more.add("Neg", ("s:0", more.x[1]), name=f"extended_{self.extensions[number]}")
        session.extend(more.graph_def)


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(one, other, strict=True)
    )


targets = st.sampled_from(
    ["add_again", *(f"{how}_{name}" for how in ("set", "add") for name in VARIABLES)]
)
actions = st.one_of(
    st.tuples(st.just("run"), st.lists(st.sampled_from(FETCHES), min_size=1, unique=True)),
    st.tuples(st.just("run"), st.sampled_from((["y"], ["s"], ["z"]))),
    st.tuples(st.just("change"), targets, st.integers(-3, 3)),
    st.tuples(st.just("buffer"), targets, st.integers(-3, 3)),
    st.tuples(st.just("write"), st.sampled_from(("s", "y", "n"))),
    st.just(("extend",)),
    st.just(("clear",)),
)


@given(st.lists(st.tuples(st.integers(0, 3), actions), max_size=40))
@settings(max_examples=100, deadline=None)
def test_every_step_returns_what_it_returns_without_kept_values(
    program: list[tuple[int, tuple[Any, ...]]],
) -> None:
    kept, computed = Sessions(pb.OptimizerOptions.L1), Sessions(pb.OptimizerOptions.L0)
    for number, action in program:
        one, other = kept.do(number, action), computed.do(number, action)
        assert same(one, other), (number, action, one, other)
    for number in range(4):
        extended = [f"extended_{1 + each}" for each in range(kept.extensions[number])]
        action = ("run", [*FETCHES[:7], *extended])
        assert same(kept.do(number, action), computed.do(number, action))


def test_the_programs_derive_values() -> None:
    sessions = Sessions(pb.OptimizerOptions.L1)
    assert isinstance(executor_of(sessions.all[0], fetches=("y", "z")), DerivedExecutor)


@pytest.mark.parametrize("fork", [False, True])
def test_a_reader_sees_every_write_that_ended_before_it_began(fork: bool) -> None:
    """Two threads: one adds to v, one reads; then both sessions of the template."""
    sessions = Sessions(pb.OptimizerOptions.L1)
    written, other = sessions.all[1 if fork else 0], sessions.all[2]
    ended = 0  # number of additions that have ended
    failures: list[tuple[int, float]] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            before = ended
            value = float(written.run({}, ["s"])[0][0])  # 2 v + 1, and v is 1 plus the additions
            if not 2 * before + 3 <= value <= 2 * (ended + 1) + 3:
                failures.append((before, value))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(300):
        change(written, "add_v")
        ended += 1
        assert float(other.run({}, ["s"])[0][0]) == 3
    is_over.set()
    reader.join(SECONDS)
    assert failures == []
    assert float(written.run({}, ["s"])[0][0]) == 603
