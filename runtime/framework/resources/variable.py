"""Variables: an array, and whether a reader has it.

A read hands out the array itself and marks it as shared; an update writes into the array only while
it is exclusive, and into a copy otherwise, which replaces it. So a fetched value never changes, and
sessions share weights until one of them assigns.

Guarantees, for any threads:
- a reader gets the value before or after an update, whole; what it got never changes (unless a
  caller of the session writes into an array that it fed or fetched: nobody copies those);
- updates, assigns and forks of one variable run one after the other; an update of an exclusive
  array copies nothing;
- a read takes no lock, and waits only for an update that is writing in place at that moment. The
  wait can't be cancelled: it is as long as that one `change`.

Why reads need no lock: loading or storing one attribute is atomic under the interpreter lock, and
all threads see the stores of one thread in their order. A reader (1) loads `_array`, (2) clears
`_exclusive`, (3) looks at `_in_place`. An update that wants to write in place (a) sets `_in_place`,
(b) looks at `_exclusive` again, and clears `_in_place` when the array is whole. Either (2) comes
before (b), and the update copies; or (b) comes before (2), and at (3) the reader sees the update
and waits, or it has ended. `_exclusive` becomes true only before a fresh array is stored, never for
an array that a reader can have.

TF: tensorflow/core/framework/resource_var.h (Var); the copy-on-read mode is ours.
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
    """A mutable tensor with a name, that resource handles lead to."""

    type_name = "N10tensorflow3VarE"
    __slots__ = (
        "_array",
        "_exclusive",
        "_forked",
        "_in_place",
        "_is_updating",
        "_lock",
        "dtype",
        "generation",
        "name",
    )

    def __init__(self, dtype: DataType, name: str = "") -> None:
        # Guards the fields below; only a read clears _exclusive without it.
        self._lock = threading.RLock()
        self._array: np.ndarray | None = None
        self._exclusive = False  # nobody else has the array
        self._in_place = False  # an update may be writing into the array
        self._is_updating = False
        self._forked: np.ndarray | None = None  # the array that another manager has too
        self.dtype = dtype
        self.name = name
        self.generation = 0  # grows with every write; what is derived from the value looks at it

    @property
    def is_initialized(self) -> bool:
        """Whether a value was ever assigned."""
        return self._array is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the value, or None before the first assign."""
        array = self._array
        return None if array is None else array.shape

    def read(self) -> np.ndarray:
        """The value, shared from now on; FailedPreconditionError when there is none."""
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
        """`function` of the value, which stays exclusive where that makes no other reader wait.

        The result must not share memory with the array, and `function` must not use a variable.
        FailedPreconditionError when there is no value.
        """
        # Not under the lock: an array that is shared never changes, and `read` shares it.
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
        """The value for looking at its shape and dtype only: it stays exclusive."""
        return self._array

    def assign(
        self,
        value: np.ndarray,
        check: Callable[[tuple[int, ...] | None], None] | None = None,
    ) -> None:
        """Take `value` as it is; others may hold it too.

        `check` gets the shape of the value so far, None without one, and may raise.
        """
        with self._lock:
            self._check_not_updating()
            if check is not None:
                check(self.shape)
            self._exclusive = False
            self._array = np.asarray(value)
            self._note_change()

    def update(self, change: Callable[[np.ndarray], None]) -> None:
        """Let `change` write into the value, or into a copy of it when a reader has it.

        `change` gets a writable array, and should raise before it writes if at all: after an error
        a copy is dropped, but an exclusive array stays as far as it was written. It must not use
        this variable, nor update another one (see `update_together`), nor wait for other threads.

        Raises FailedPreconditionError when there is no value, InternalError within a `change` of
        this variable.
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
                    self._in_place = self._exclusive  # a read may have come between
                if self._in_place:
                    change(array)
                else:
                    array = array.copy()
                    change(array)
                    self._exclusive = True  # before the array: its readers clear it
                    self._array = array
            finally:
                self.generation += 1
                variable_changes.note()
                self._in_place = self._is_updating = False

    def forget(self) -> None:
        """Back to uninitialised."""
        with self._lock:
            self._check_not_updating()
            self._exclusive = False
            self._array = None
            self._note_change()

    def fork(self) -> Variable:
        """A variable with the same array, shared until one of the two writes."""
        copy = type(self)(self.dtype, self.name)
        with self._lock:
            self._check_not_updating()
            self._exclusive = False
            copy._array = copy._forked = self._forked = self._array
            copy.generation = self.generation
        return copy

    @property
    def bytes_held(self) -> int:
        """Bytes of the value, 0 while it is the one of another manager too."""
        array = self._array
        return array.nbytes if array is not None and array is not self._forked else 0

    def _note_change(self) -> None:
        self.generation += 1
        variable_changes.note()

    def _check_not_updating(self) -> None:
        """The lock is held: an update that still runs is one of the same thread."""
        if self._is_updating:
            raise InternalError(f"Variable {self.name} is used within an update of itself")

    def _uninitialized(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")


def update_together(
    variables: Sequence[Variable], change: Callable[[list[np.ndarray]], None]
) -> None:
    """Call `change` with writable arrays of all variables, locked in one order everywhere.

    One variable may stand there several times. Errors, and what `change` must not do, as in
    `Variable.update`.
    """
    if len(variables) == 1:
        variables[0].update(lambda array: change([array]))
        return
    order = sorted(set(variables), key=id)
    found: list[np.ndarray] = []

    def keep(array: np.ndarray) -> None:
        found.append(array)
        if len(found) < len(order):
            order[len(found)].update(keep)
            return
        arrays = dict(zip(order, found, strict=True))
        change([arrays[variable] for variable in variables])

    order[0].update(keep)


class RefVariable(Variable):
    """A variable of VariableV2, whose output is the variable itself (TF: LegacyVar)."""

    type_name = "N10tensorflow9LegacyVarE"
    __slots__ = ("declared_shape",)

    def __init__(self, dtype: DataType, name: str) -> None:
        super().__init__(dtype, name)
        self.declared_shape: tuple[int, ...] | None = None  # of a value to come, where it is known

    def fork(self) -> RefVariable:
        """A variable with the same array, shared until one of the two writes."""
        copy = super().fork()
        assert isinstance(copy, RefVariable)
        copy.declared_shape = self.declared_shape
        return copy
