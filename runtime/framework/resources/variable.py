"""Variables: an array and whether anybody else can see it.

A read hands out the array itself and notes that it is shared; an update in place copies first
unless the array is exclusive. So a fetched value never changes afterwards, and sessions share
weights until one of them assigns.

Guarantees: thread-safe; `update` is atomic against other updates and assigns of this variable.

TF: tensorflow/core/framework/resource_var.h (Var); the copy-on-read mode is ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import FailedPreconditionError
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import Resource, variable_changes


class Variable(Resource):
    """A mutable tensor with a name, that resource handles lead to."""

    type_name = "N10tensorflow3VarE"
    __slots__ = ("_array", "_exclusive", "_forked", "_lock", "dtype", "generation", "name")

    def __init__(self, dtype: DataType, name: str = "") -> None:
        self._lock = threading.RLock()  # guards _array and _exclusive
        self._array: np.ndarray | None = None
        self._exclusive = False
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
        self._exclusive = False
        array = self._array
        if array is None:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")
        return array

    def peek(self) -> np.ndarray | None:
        """The value for looking at its shape and dtype only: it stays exclusive."""
        return self._array

    def assign(self, value: np.ndarray) -> None:
        """Take `value` as it is; somebody else may hold it too."""
        with self._lock:
            self._array = np.asarray(value)
            self._exclusive = False
            self.generation += 1
            variable_changes.note()

    def update(self, change: Callable[[np.ndarray], np.ndarray | None]) -> np.ndarray:
        """Let `change` write into the value, which is copied first unless exclusive.

        `change` gets a writable array; it writes in place and returns None, or returns a fresh
        array that replaces it. Returns the value after the change (do not keep it: it may be
        written again; `read` gives one to keep).
        """
        with self._lock:
            array = self._array
            if array is None:
                raise FailedPreconditionError(f"Attempting to use uninitialized value {self.name}")
            if not self._exclusive or not array.flags.writeable:
                array = array.copy()
            self._exclusive = True  # before the change: a read during it clears the flag again
            self._array = array
            replaced = change(array)
            if replaced is not None:
                self._array = array = np.asarray(replaced)
            self.generation += 1
            variable_changes.note()
            return array

    def forget(self) -> None:
        """Back to uninitialised."""
        with self._lock:
            self._array = None
            self._exclusive = False
            self.generation += 1
            variable_changes.note()

    def fork(self) -> Variable:
        """A variable with the same array, shared until one of the two writes."""
        copy = type(self)(self.dtype, self.name)
        with self._lock:
            self._exclusive = False
            copy._array = copy._forked = self._forked = self._array
            copy.generation = self.generation
        return copy

    @property
    def bytes_held(self) -> int:
        """Bytes of the value, 0 while it is the one of another manager too."""
        array = self._array
        return array.nbytes if array is not None and array is not self._forked else 0


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
