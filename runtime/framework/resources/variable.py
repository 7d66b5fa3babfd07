"""Variables: an array that readers share, and that updates change in place or replace by a copy.

A read returns the array itself, without a copy, and marks it as shared. An update writes into the
array only while it is exclusive (no reader has a reference to it); otherwise it writes into a copy,
which replaces the array. So a fetched value never changes, and sessions share weights until one of
them assigns.

Guarantees, for any threads:
- a reader gets the whole value from before or after an update, and the array that it got never
  changes (unless a caller of the session writes into an array that it fed or fetched: these are not
  copied);
- updates, assigns and forks of one variable run one after the other; an update of an exclusive
  array makes no copy;
- a read takes no lock, and waits only while an update is writing in place. The wait can't be
  cancelled; it ends with the `change` that is running.

Why reads need no lock: the load or store of one attribute is atomic under the interpreter lock, and
all threads see the stores of one thread in the order in which it made them. A reader (1) loads
`_array`, (2) clears `_exclusive`, (3) tests `_in_place`. An update that intends to write in place
(a) sets `_in_place`, (b) tests `_exclusive` again, and clears `_in_place` when it has finished. If
(2) is before (b), the update makes a copy. If (b) is before (2), the reader finds at (3) that the
update is running, and waits, or that it has finished. `_exclusive` is set only before a newly
allocated array is stored, never for an array to which a reader can have a reference.

TF: tensorflow/core/framework/resource_var.h (Var); TensorFlow has no equivalent of `_exclusive`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InternalError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import Resource, variable_changes

T = TypeVar("T")


class Variable(Resource):
    """A mutable tensor with a name, to which resource handles refer."""

    type_name = "N10tensorflow3VarE"
    __slots__ = (
        "_array",
        "_exclusive",
        "_in_place",
        "_is_forked",
        "_is_updating",
        "_lock",
        "dtype",
        "generation",
        "name",
    )

    def __init__(self, dtype: DataType, name: str = "") -> None:
        # Guards writes of the fields below, except that a read clears _exclusive without it.
        self._lock = threading.RLock()
        self._array: np.ndarray | None = None
        self._exclusive = False  # no other object refers to the array
        self._in_place = False  # an update may be writing into the array
        self._is_updating = False
        self._is_forked = False  # the array is shared with a fork
        self.dtype = dtype
        self.name = name
        self.generation = 0  # incremented by every write; caches of derived values compare it

    @property
    def is_initialized(self) -> bool:
        """Whether the variable has a value."""
        return self._array is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the value, or None when there is none."""
        array = self._array
        return None if array is None else array.shape

    def read(self) -> np.ndarray:
        """The value, which is marked as shared; FailedPreconditionError when there is none."""
        array = self._array
        self._exclusive = False
        if self._in_place:
            with self._lock:
                self._check_not_updating()
                array = self._array
                self._exclusive = False
        if array is None:
            raise self._uninitialized()
        return array

    def look(self, function: Callable[[np.ndarray], T]) -> T:
        """The result of `function(value)`; an exclusive value stays exclusive if the lock is free.

        The result must not share memory with the array, and `function` must not use a variable.
        Raises FailedPreconditionError when there is no value.
        """
        # `read` marks the array as shared, and a shared array never changes: no lock is needed.
        if not self._exclusive or not self._lock.acquire(blocking=False):
            return function(self.read())
        try:
            self._check_not_updating()
            if self._array is None:
                raise self._uninitialized()
            return function(self._array)
        finally:
            self._lock.release()

    def peek(self) -> np.ndarray | None:
        """The value, only for reading its shape and dtype; it is not marked as shared."""
        return self._array

    def assign(
        self,
        value: np.ndarray,
        check: Callable[[tuple[int, ...] | None], None] | None = None,
    ) -> None:
        """Set the value, without a copy; the caller may keep references to the array.

        `check` is called, with the lock held, with the shape of the old value or None, and may
        raise.
        """
        with self._lock:
            self._check_not_updating()
            if check is not None:
                check(self.shape)
            self._exclusive = self._is_forked = False
            self._array = np.asarray(value)
            self._note_change()

    def update(self, change: Callable[[np.ndarray], None]) -> None:
        """Call `change` with the value, or with a copy of it when readers may have the value.

        `change` writes into the array that it gets. If it raises, it should do so before it writes:
        a copy is then dropped, but an exclusive array keeps what was written. It must not use this
        variable, update another one (see `update_together`) or wait for other threads.

        Raises FailedPreconditionError when there is no value, InternalError when called within a
        `change` of this variable.
        """
        with self._lock:
            if self._is_updating:
                self._check_not_updating()
            array = self._array
            if array is None:
                raise self._uninitialized()
            self._is_updating = True
            try:
                if self._exclusive:
                    self._in_place = True
                    self._in_place = self._exclusive  # a read may have cleared it meanwhile
                if self._in_place:
                    change(array)
                else:
                    array = array.copy()
                    change(array)
                    self._exclusive = True  # set before the array, as its readers clear it
                    self._array = array
                    self._is_forked = False
            finally:
                self.generation += 1
                variable_changes.note()
                self._in_place = self._is_updating = False

    def forget(self) -> None:
        """Drop the value: the variable is uninitialised again."""
        with self._lock:
            self._check_not_updating()
            self._exclusive = self._is_forked = False
            self._array = None
            self._note_change()

    def fork(self) -> Variable:
        """A variable with the same array, which they share until one of them is written."""
        copy = type(self)(self.dtype, self.name)
        with self._lock:
            self._check_not_updating()
            self._exclusive = False
            copy._array = self._array
            copy._is_forked = self._is_forked = self._array is not None
            copy.generation = self.generation
        return copy

    @property
    def bytes_held(self) -> int:
        """The bytes of the value; 0 while a fork shares it."""
        array = self._array
        return 0 if array is None or self._is_forked else array.nbytes

    def _note_change(self) -> None:
        self.generation += 1
        variable_changes.note()

    def _check_not_updating(self) -> None:
        """InternalError within an update. The lock is held, so the update is of this thread."""
        if self._is_updating:
            raise InternalError(f"Variable {self.name} is used within an update of itself")

    def _uninitialized(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")


def update_together(
    variables: Sequence[Variable], change: Callable[[list[np.ndarray]], None]
) -> None:
    """Call `change` with writable arrays of all variables, while all of them are locked.

    Every call locks variables in the same order, so calls can't deadlock. A variable may occur
    several times. The requirements for `change`, and the errors, are those of `Variable.update`.
    """
    if len(variables) == 1:
        variables[0].update(lambda array: change([array]))
        return
    order = sorted(set(variables), key=id)

    def change_in_order(arrays: list[np.ndarray]) -> None:
        by_variable = dict(zip(order, arrays, strict=True))
        change([by_variable[variable] for variable in variables])

    _update_in_order(order, [], change_in_order)


def _update_in_order(
    order: Sequence[Variable], arrays: list[np.ndarray], change: Callable[[list[np.ndarray]], None]
) -> None:
    """Update the variables of `order` that `arrays` does not have yet, each within the one before.

    A function of the module: a closure that refers to itself is a reference cycle, which would keep
    the arrays and what `change` refers to until the next garbage collection.
    """
    if len(arrays) == len(order):
        change(arrays)
        return

    def next_variable(array: np.ndarray) -> None:
        arrays.append(array)
        _update_in_order(order, arrays, change)

    order[len(arrays)].update(next_variable)


class RefVariable(Variable):
    """A variable of VariableV2, whose output is the variable itself (TF: LegacyVar)."""

    type_name = "N10tensorflow9LegacyVarE"
    __slots__ = ("declared_shape",)

    def __init__(self, dtype: DataType, name: str) -> None:
        super().__init__(dtype, name)
        self.declared_shape: tuple[int, ...] | None = None  # required of values; None if unknown

    def fork(self) -> RefVariable:
        """A variable with the same array, which they share until one of them is written."""
        copy = super().fork()
        assert isinstance(copy, RefVariable)
        copy.declared_shape = self.declared_shape
        return copy
