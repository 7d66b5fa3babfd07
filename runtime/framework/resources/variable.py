"""Variables: arrays that readers share; an update writes into the array or replaces it by a copy.

A read returns the array itself, without a copy, and marks it as shared. An array is exclusive while
no reader has a reference to it. An update writes into an exclusive array (it writes in place);
otherwise it writes into a copy, which replaces the array. Therefore a fetched value never changes,
and sessions share weights until one of them assigns. A shared array is read-only, so that nobody
can change the variable by writing into what was read.

Guarantees, for any threads:
- a reader gets the whole value from before or after an update, and an array that was read never
  changes;
- updates, assigns and forks of one variable run one after the other; an update of an exclusive
  array makes no copy;
- a read takes no lock, and waits only while an update is writing in place. The wait can't be
  cancelled; it ends when the running `change` ends.

Why reads need no lock: the load or store of one attribute is atomic under the interpreter lock, and
all threads see the stores of a thread in the order in which that thread made them. A reader (1)
loads `_array`, (2) clears `_exclusive`, (3) tests `_in_place`. An update that intends to write in
place (a) sets `_in_place`, (b) tests `_exclusive` again, and clears `_in_place` when the update has
finished. If (2) is before (b), the update makes a copy. If (b) is before (2), the reader finds at
(3) either that the update is running, and waits, or that the update has finished. `_exclusive` is
set only before a newly allocated array is stored, never for an array to which a reader can have a
reference.

TF: tensorflow/core/framework/resource_var.h (Var); TensorFlow has no equivalent of `_exclusive`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InternalError
from runtime.framework.derived_values import DerivedValuesInUse, drop_derived
from runtime.framework.dtypes import DataType
from runtime.framework.held_bytes import value_bytes
from runtime.framework.resource_manager import Resource, variable_changes

T = TypeVar("T")
_generations = itertools.count(1)  # next() is atomic


class ShapeChanges:
    """Counts how often a variable of the process got a shape that it did not have before.

    While the count is the same, every run of a step finds variables of the same sizes.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)  # next() is atomic
        self.count = 0

    def note(self) -> None:
        """Count a change; must be called before a reader can find the new value."""
        self.count = next(self._numbers)


shape_changes = ShapeChanges()


class Variable(Resource):
    """A mutable tensor with a name, to which resource handles refer."""

    type_name = "N10tensorflow3VarE"
    __slots__ = (
        "_array",
        "_counted",
        "_exclusive",
        "_in_place",
        "_is_forked",
        "_is_updating",
        "_lock",
        "derived",
        "dtype",
        "generation",
        "name",
    )

    def __init__(self, dtype: DataType, name: str = "") -> None:
        # Guards writes of the fields below; only `read` clears `_exclusive` without the lock.
        self._lock = threading.RLock()
        self._array: np.ndarray | None = None
        self._exclusive = False  # whether no other object refers to the array
        self._in_place = False  # whether an update may be writing into the array
        self._is_updating = False
        self._is_forked = False  # whether a fork shares the array
        # (generation, bytes): the bytes of the strings or objects in the value of a generation
        self._counted = (-1, 0)
        self.dtype = dtype
        self.name = name
        # Every write sets another number, which no other write of the process gets; a fork has the
        # number of its origin. A cache compares it to see whether the value has changed.
        self.generation = 0
        # What steps of the session have derived from variables, or None; see `drop_derived`.
        self.derived: DerivedValuesInUse | None = None

    @property
    def is_initialized(self) -> bool:
        """Whether the variable has a value."""
        return self._array is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the value, or None if the variable has no value."""
        array = self._array
        return None if array is None else array.shape

    def read(self) -> np.ndarray:
        """Return the array of the value and mark it as shared.

        Raises FailedPreconditionError if the variable has no value.
        """
        array, was_exclusive = self._array, self._exclusive
        self._exclusive = False
        if self._in_place:
            with self._lock:
                self._check_not_updating()
                array, was_exclusive = self._array, True
                self._exclusive = False
        if array is None:
            raise self._uninitialized()
        if was_exclusive:
            array.flags.writeable = False
        return array

    def look(self, function: Callable[[np.ndarray], T]) -> T:
        """Return `function(value)`; an exclusive array remains exclusive if the lock is free.

        The result must not share memory with the array, and `function` must not use a variable.
        Raises FailedPreconditionError if the variable has no value.
        """
        # A shared array never changes, so `function` may read it without the lock.
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
        """Return the array without marking it as shared; only shape and dtype may be read."""
        return self._array

    def assign(
        self,
        value: np.ndarray,
        check: Callable[[tuple[int, ...] | None], None] | None = None,
    ) -> None:
        """Set the value without copying `value`, which becomes read-only.

        The caller may keep references to the array, but must not write into it by another view.
        If `check` is given, it is called first, while the lock is held, with the shape of the old
        value or None; if it raises, the old value remains.
        """
        with self._lock:
            self._check_not_updating()
            if check is not None:
                check(self.shape)
            self._exclusive = self._is_forked = False
            array = np.asarray(value)
            array.flags.writeable = False
            if self.shape != array.shape:
                shape_changes.note()
            self._array = array
            self._note_change()

    def update(self, change: Callable[[np.ndarray], None]) -> None:
        """Update the value: call `change` with the array, or with a copy if the array is shared.

        `change` must write into its argument. If `change` raises, it should do so before it writes,
        because an exclusive array keeps what was written (a copy is dropped). `change` must not use
        this variable, update another variable (see `update_together`) or wait for other threads.

        Raises FailedPreconditionError if the variable has no value, InternalError if `change` of
        this variable calls `update`.
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
                    self._in_place = self._exclusive  # a read may have cleared `_exclusive`
                if self._in_place:
                    change(array)
                else:
                    array = array.copy()
                    change(array)
                    # Set before the array is stored, because every reader of it must clear this.
                    self._exclusive = True
                    self._array = array
                    self._is_forked = False
            finally:
                self._note_change()
                self._in_place = self._is_updating = False

    def forget(self) -> None:
        """Drop the value, so that the variable is uninitialised again."""
        with self._lock:
            self._check_not_updating()
            self._exclusive = self._is_forked = False
            self._array = None
            self._note_change()

    def fork(self) -> Variable:
        """Return a variable that shares the array until one of the two variables is written."""
        # Without `__init__`: opening a session forks every variable of its model.
        copy = object.__new__(type(self))
        copy._lock = threading.RLock()
        copy._exclusive = copy._in_place = copy._is_updating = False
        copy._counted = (-1, 0)
        copy.dtype = self.dtype
        copy.name = self.name
        with self._lock:
            self._check_not_updating()
            copy._array = array = self._array
            if self._exclusive and array is not None:
                array.flags.writeable = False
            self._exclusive = False
            copy._is_forked = self._is_forked = array is not None
            copy.generation = self.generation
        copy.derived = None
        return copy

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the value, or 0 while a fork shares it."""
        array = self._array
        if array is None or self._is_forked:
            return 0, ()
        if array.dtype.hasobject:
            generation, size = self._counted
            if generation != self.generation:
                generation = self.generation
                self._counted = (generation, 0)  # a value may contain a handle of this variable
                size = value_bytes(array)
                self._counted = (generation, size)
            return size, ()
        # Others may be views of the same memory, which then counts once.
        return (array.nbytes, ()) if array.base is None else (0, (array,))

    def _note_change(self) -> None:
        before, self.generation = self.generation, next(_generations)
        variable_changes.note()
        if self.derived:
            drop_derived(self.derived, before)

    def _check_not_updating(self) -> None:
        """Raise InternalError if the calling thread is updating this variable.

        The caller must hold the lock, so that no other thread can be updating it.
        """
        if self._is_updating:
            raise InternalError(f"Variable {self.name} is used within an update of itself")

    def _uninitialized(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")


def update_together(
    variables: Sequence[Variable], change: Callable[[list[np.ndarray]], None]
) -> None:
    """Update several variables: call `change` with their arrays while all variables are locked.

    Every call locks variables in the same order, so calls can't deadlock. A variable may occur
    several times in `variables`. The requirements for `change` and the errors are the same as for
    `Variable.update`.
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
    """Update the variables `order[len(arrays):]`, each within the update of the variable before.

    The innermost update calls `change` with the arrays of all variables. `arrays` has the arrays of
    the variables that are being updated already. This is not a closure,
    because a closure that refers to itself is a reference cycle, which would keep the arrays alive
    until the next garbage collection.
    """
    if len(arrays) == len(order):
        change(arrays)
        return

    def next_variable(array: np.ndarray) -> None:
        arrays.append(array)
        _update_in_order(order, arrays, change)

    order[len(arrays)].update(next_variable)


class RefVariable(Variable):
    """A variable of the op VariableV2, whose output is the variable itself (TF: LegacyVar)."""

    type_name = "N10tensorflow9LegacyVarE"
    __slots__ = ("declared_shape",)

    def __init__(self, dtype: DataType, name: str) -> None:
        super().__init__(dtype, name)
        self.declared_shape: tuple[int, ...] | None = None  # values must have it; None: unknown

    def fork(self) -> RefVariable:
        """Return a variable that shares the array until one of the two variables is written."""
        copy = super().fork()
        assert isinstance(copy, RefVariable)
        copy.declared_shape = self.declared_shape
        return copy


class VariableKey(NamedTuple):
    """The key of a variable in the resource manager, and the variable's element type."""

    container: str
    kind: type[Variable]
    name: str
    dtype: DataType
