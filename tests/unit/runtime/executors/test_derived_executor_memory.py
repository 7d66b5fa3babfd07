"""What holds derived values and the arrays of variables, and until when."""

from __future__ import annotations

import gc
import weakref

from runtime.api import DirectSession
from tests.unit.runtime.executors.derived_sessions import (
    change,
    derived_in,
    executor_of,
    forks_of,
    scale_session,
    y_of,
)

VALUE_BYTES = 8


def array_of(session: DirectSession, name: str) -> weakref.ref[object]:
    return weakref.ref(derived_in(session).arrays["vw".index(name)])


def test_an_old_array_is_freed_by_the_write_that_replaces_it() -> None:
    session = scale_session()
    change(session, "add_v")  # into a copy, because the graph keeps the first array
    y_of(session)
    old, kept = array_of(session, "v"), array_of(session, "w")
    values = weakref.ref(derived_in(session))
    change(session, "add_v")
    assert old() is None
    assert values() is None
    assert kept() is not None
    assert session.resources.derived == {}


def test_values_of_another_step_remain() -> None:
    session = scale_session()
    y_of(session)
    session.run({}, ["ru"])
    change(session, "add_v")
    assert [use.values.values[0].tolist() for use in session.resources.derived.values()] == [[5, 5]]


def test_the_values_of_a_closed_session_are_freed() -> None:
    origin = scale_session()
    (session,) = forks_of(origin, 1)
    change(session, "add_v")
    y_of(session)
    values = weakref.ref(derived_in(session))
    session.destroy()
    assert values() is None


def test_an_executor_keeps_the_values_of_its_template() -> None:
    origin = scale_session()
    one, other = forks_of(origin, 2)
    y_of(one)
    values = weakref.ref(derived_in(one))
    one.destroy()
    assert values() is not None
    y_of(other)
    assert derived_in(other) is values()
    change(other, "add_v")
    y_of(other)
    assert derived_in(other) is not values()
    assert values() is not None


def test_an_evicted_step_is_freed() -> None:
    session = scale_session()
    y_of(session)
    executor = weakref.ref(executor_of(session))
    session.executor_cache.clear()
    gc.collect()
    assert executor() is None
    assert len(session.resources.derived) == 1
    y_of(session)
    assert len(session.resources.derived) == 1


def test_bytes_held_counts_values_of_the_session_only() -> None:
    origin = scale_session()
    one, other = forks_of(origin, 2)
    assert [y_of(each) for each in (one, other)] == [[5, 50]] * 2
    assert one.bytes_held == other.bytes_held == 0
    change(one, "add_v")
    of_variable = one.bytes_held
    y_of(one)
    assert one.bytes_held == of_variable + VALUE_BYTES
    assert other.bytes_held == 0


def test_an_array_of_a_variable_counts_once() -> None:
    session = scale_session()
    before = session.resources.bytes_held
    session.run({}, ["rv"])
    assert session.resources.bytes_held == before
