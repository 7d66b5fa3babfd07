"""Variables under threads: values are whole, and what was read never changes."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import FailedPreconditionError, InternalError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.variable import Variable, update_together
from tests.unit.runtime.framework.resources.concurrent_calls import Concurrent


def _traced(name: str) -> Any:
    field = vars(Variable)[name]

    def get(self: TracedVariable) -> Any:
        self.before_access()
        return field.__get__(self)

    def store(self: TracedVariable, value: Any) -> None:
        self.before_access()
        field.__set__(self, value)

    return property(get, store)


class TracedVariable(Variable):
    """Calls `before_access` before each load or store of a field that reads use without a lock."""

    _array = _traced("_array")
    _exclusive = _traced("_exclusive")
    _in_place = _traced("_in_place")
    before_access: Callable[[], None] = staticmethod(lambda: None)

    def call_at(self, access: int, function: Callable[[], object]) -> None:
        """Call `function` once, before the access with this number, counted from now."""
        left = access

        def count() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                del self.before_access
                function()

        self.before_access = count  # type: ignore[method-assign] # of this object alone


def exclusive(kind: type[Variable] = Variable) -> Variable:
    """A variable [0, 0] that is the only holder of its array."""
    variable = kind(DataType.FLOAT, "v")
    variable.assign(np.zeros(2, np.float32))
    variable.update(lambda array: None)
    return variable


def shared(kind: type[Variable] = Variable) -> Variable:
    """A variable [0, 0] whose array a reader holds, too."""
    variable = exclusive(kind)
    variable.read()
    return variable


def add_one(array: np.ndarray) -> None:
    array += 1


def is_kept(variable: Variable, value: np.ndarray) -> bool:
    """Whether further updates leave `value` as it is."""
    before = value.copy()
    for _ in range(2):
        variable.update(add_one)
    return np.array_equal(before, value)


# Reads


def test_what_was_read_never_changes() -> None:
    variable = exclusive()
    value = variable.read()
    variable.update(add_one)
    assert value.tolist() == [0, 0]
    assert variable.read().tolist() == [1, 1]


def test_an_exclusive_value_is_updated_in_place() -> None:
    variable = exclusive()
    array = variable.peek()
    variable.update(add_one)
    assert variable.peek() is array
    variable.read()
    variable.update(add_one)
    assert variable.peek() is not array
    fresh = variable.peek()
    variable.update(add_one)
    assert variable.peek() is fresh


def test_a_read_during_an_update_in_place_gets_the_value_after_it() -> None:
    variable = exclusive()
    reader = Concurrent(variable, variable.read)
    started = []

    def change(array: np.ndarray) -> None:
        array[0] = 1
        started.append(reader.start())
        array[1] = 1

    variable.update(change)
    assert started == ["waits"]
    assert reader.result().tolist() == [1, 1]
    assert is_kept(variable, reader.result())


def test_a_read_during_an_update_of_a_copy_gets_the_value_before_it() -> None:
    variable = shared()
    reader = Concurrent(variable, variable.read)
    started = []

    def change(array: np.ndarray) -> None:
        array[0] = 1
        started.append(reader.start())
        array[1] = 1

    variable.update(change)
    assert started == ["done"]
    assert reader.result().tolist() == [0, 0]
    assert variable.read().tolist() == [1, 1]


@pytest.mark.parametrize("make", [exclusive, shared])
@pytest.mark.parametrize("second", range(4))
@pytest.mark.parametrize("first", range(4))
def test_updates_between_the_parts_of_a_read(
    make: Callable[[type[Variable]], Variable], first: int, second: int
) -> None:
    variable = make(TracedVariable)
    assert isinstance(variable, TracedVariable)

    def update() -> None:
        variable.update(add_one)
        variable.call_at(second, lambda: variable.update(add_one))

    variable.call_at(first, update)
    value = variable.read()
    variable.before_access = lambda: None  # type: ignore[method-assign] # of this object alone
    assert value[0] == value[1]
    assert is_kept(variable, value)


@pytest.mark.parametrize("make", [exclusive, shared])
@pytest.mark.parametrize("access", range(10))
def test_a_read_between_the_parts_of_an_update(
    make: Callable[[type[Variable]], Variable], access: int
) -> None:
    variable = make(TracedVariable)
    assert isinstance(variable, TracedVariable)
    reader = Concurrent(variable, variable.read)
    started = []
    variable.call_at(access, lambda: started.append(reader.start()))

    def change(array: np.ndarray) -> None:
        for place in range(2):
            array[place] = 1

    variable.update(change)
    while not started:  # the update has fewer parts
        variable.peek()
    assert reader.result().tolist() in ([0, 0], [1, 1])
    assert is_kept(variable, reader.result())
    assert variable.read().tolist() == [3, 3]


def test_a_variable_without_a_value_can_not_be_read() -> None:
    variable = Variable(DataType.FLOAT, "v")
    for use in (variable.read, lambda: variable.look(np.sum), lambda: variable.update(add_one)):
        with pytest.raises(FailedPreconditionError) as caught:
            use()
        assert caught.value.message == "Attempting to use uninitialized value v"


# Looks


def test_a_value_that_is_looked_at_stays_exclusive() -> None:
    variable = exclusive()
    array = variable.peek()
    assert variable.look(np.sum) == 0
    variable.update(add_one)
    assert variable.peek() is array
    assert variable.look(np.sum) == 2


def test_a_look_waits_for_no_other() -> None:
    variable = exclusive()
    other = Concurrent(variable, lambda: variable.look(np.sum))

    def look(array: np.ndarray) -> Any:
        assert other.start() == "done"
        return array.sum()

    assert variable.look(look) == 0
    assert other.result() == 0


def test_an_update_waits_for_a_look() -> None:
    variable = exclusive()
    update = Concurrent(variable, lambda: variable.update(add_one))

    def look(array: np.ndarray) -> list[float]:
        assert update.start() == "waits"
        values: list[float] = array.tolist()
        return values

    assert variable.look(look) == [0, 0]
    update.result()
    assert variable.read().tolist() == [1, 1]


def test_a_look_during_an_update_in_place_sees_the_value_after_it() -> None:
    variable = exclusive()
    looker = Concurrent(variable, lambda: variable.look(lambda array: array.tolist()))

    def change(array: np.ndarray) -> None:
        array[0] = 1
        assert looker.start() == "waits"
        array[1] = 1

    variable.update(change)
    assert looker.result() == [1, 1]


# Forks and assigns


def test_a_fork_during_an_update_gets_the_value_after_it() -> None:
    variable = exclusive()
    forker = Concurrent(variable, variable.fork)

    def change(array: np.ndarray) -> None:
        array[0] = 1
        assert forker.start() == "waits"
        array[1] = 1

    variable.update(change)
    fork = forker.result()
    variable.update(add_one)
    assert fork.read().tolist() == [1, 1]
    assert variable.read().tolist() == [2, 2]


def test_an_assign_checks_the_shape_that_it_replaces() -> None:
    variable = exclusive()
    shapes: list[tuple[int, ...] | None] = []

    def refuse(shape: tuple[int, ...] | None) -> None:
        shapes.append(shape)
        raise InternalError("no")

    with pytest.raises(InternalError, match="no"):
        variable.assign(np.ones(3, np.float32), refuse)
    assert shapes == [(2,)]
    assert variable.read().tolist() == [0, 0]


# Errors and nesting


def broken(array: np.ndarray) -> None:
    array[0] = 1
    raise InternalError("broken")


def test_a_copy_is_dropped_when_an_update_fails() -> None:
    variable = shared()
    with pytest.raises(InternalError, match="broken"):
        variable.update(broken)
    assert variable.read().tolist() == [0, 0]


def test_a_variable_works_on_after_an_update_in_place_failed() -> None:
    variable = exclusive()
    generation = variable.generation
    with pytest.raises(InternalError, match="broken"):
        variable.update(broken)
    assert variable.generation > generation
    variable.update(add_one)
    assert variable.read().tolist() == [2, 1]


@pytest.mark.parametrize("make", [exclusive, shared])
def test_an_update_within_an_update_of_the_same_variable_is_refused(
    make: Callable[[], Variable],
) -> None:
    variable = make()
    uses: list[Callable[[], Any]] = [
        lambda: variable.update(add_one),
        lambda: variable.assign(np.ones(2)),
        variable.fork,
    ]
    for use in uses:
        with pytest.raises(InternalError) as caught:
            variable.update(lambda _, use=use: use())  # type: ignore[misc] # the default's type
        assert caught.value.message == "Variable v is used within an update of itself"
    assert variable.read().tolist() == [0, 0]


def test_a_read_within_an_update_in_place_of_the_same_variable_is_refused() -> None:
    variable = exclusive()
    with pytest.raises(InternalError, match="within an update of itself"):
        variable.update(lambda array: array.put(0, variable.read()))
    assert variable.read().tolist() == [0, 0]


def test_updates_of_two_variables_in_opposite_order_end() -> None:
    one, other = exclusive(), exclusive()
    rounds = 200

    def change(arrays: list[np.ndarray]) -> None:
        for array in arrays:
            array += 1

    def run(variables: list[Variable]) -> None:
        for _ in range(rounds):
            update_together(variables, change)

    threads = [
        threading.Thread(target=run, args=(variables,), daemon=True)
        for variables in ([one, other], [other, one])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.read().tolist() == other.read().tolist() == [2 * rounds] * 2


def test_one_variable_may_stand_in_an_update_twice() -> None:
    variable = exclusive()

    def change(arrays: list[np.ndarray]) -> None:
        assert arrays[0] is arrays[1]
        add_one(arrays[0])

    update_together([variable, variable], change)
    assert variable.read().tolist() == [1, 1]


# Memory


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_update_of_several_variables_keeps_nothing(count: int) -> None:
    variables = [exclusive() for _ in range(count)]
    gradient = np.ones(2, np.float32)
    kept = [weakref.ref(variable.peek()) for variable in variables] + [weakref.ref(gradient)]
    update_together(variables, functools.partial(_add_to_all, gradient))
    del gradient
    for variable in variables:
        variable.assign(np.zeros(2, np.float32))
    assert [each() for each in kept] == [None] * len(kept)


def _add_to_all(gradient: np.ndarray, arrays: list[np.ndarray]) -> None:
    for array in arrays:
        array += gradient


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize(
    "write",
    [
        lambda variable: variable.update(add_one),
        lambda variable: variable.assign(np.ones(2, np.float32)),
        Variable.forget,
    ],
    ids=["update", "assign", "forget"],
)
def test_a_value_that_a_fork_shared_is_freed_with_its_last_user(
    write: Callable[[Variable], object],
) -> None:
    variable = exclusive()
    before = weakref.ref(variable.peek())
    fork = variable.fork()
    assert variable.bytes_held == fork.bytes_held == 0
    write(variable)
    assert variable.bytes_held == (8 if variable.is_initialized else 0)
    assert before() is not None
    write(fork)
    assert before() is None
