"""Tensor lists: immutable values whose versions share one Python list.

An operation that changes a list returns a new version and leaves the old version unchanged. The
newest version owns the items. An older version has a reference to the next version, its successor,
and a function that undoes the change between the two; it copies the items only if it is read or
changed again. Therefore the time of setting or pushing one item in a loop does not depend on the
length of the list.

Guarantees: thread-safe; no operation changes the items of another version.

TF: tensorflow/core/kernels/tensor_list.h (TensorList)
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable

import numpy as np

from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue

_ITEM_BYTES = 200  # about the least that an item takes: an array object with one number
_CHECKED_ITEMS = 1 << 16  # the length of a list is checked whenever it passes a multiple of this
_Undo = Callable[[list[TensorValue]], object]


class TensorList:
    """A list of tensors of the same dtype; an item that was never set is None.

    `max_num_elements` is −1 if the length is not limited.
    """

    __slots__ = (
        "_items",
        "_length",
        "_lock",
        "_successor",
        "_undo",
        "element_dtype",
        "element_shape",
        "max_num_elements",
    )

    def __init__(
        self,
        element_dtype: DataType,
        element_shape: PartialShape,
        items: Iterable[TensorValue] = (),
        max_num_elements: int = -1,
    ) -> None:
        self.element_dtype = element_dtype
        self.element_shape = element_shape
        self.max_num_elements = max_num_elements
        self._lock = threading.RLock()  # all versions share this lock, which guards their items
        self._items: list[TensorValue] | None = list(items)  # None if a later version owns them
        self._length = len(self._items)
        self._successor: TensorList | None = None
        self._undo: _Undo | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that holds the list, which is a scalar."""
        return ()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the items, and for an old version also those that only it refers to."""
        with self._lock:
            version = self
            kept: list[object] = []
            while version._successor is not None:
                kept += getattr(version._undo, "keywords", {}).values()
                version = version._successor
            return 0, [*kept, *(version._items or ())]

    def items(self) -> list[TensorValue]:
        """Return a copy of the items."""
        with self._lock:
            return list(self._own_items())

    def item(self, index: int) -> TensorValue:
        """Return the item at `index`, which must be in range."""
        with self._lock:
            return self._own_items()[index]

    def with_item(self, index: int, value: TensorValue) -> TensorList:
        """Return a list in which `value` is the item at `index`, which must be in range."""
        with self._lock:
            items = self._own_items()
            undo = functools.partial(_set, index=index, value=items[index])
            items[index] = value
            return self._new_version(items, undo)

    def pushed(self, value: TensorValue) -> TensorList:
        """Return a list with `value` as one more item at the end.

        Raises ResourceExhaustedError if the list is too long for one tensor.
        """
        with self._lock:
            items = self._own_items()
            if not len(items) % _CHECKED_ITEMS:
                check_allocation((len(items) + 1, _ITEM_BYTES), np.int8)
            items.append(value)
            return self._new_version(items, _drop_last)

    def popped(self) -> tuple[TensorList, TensorValue]:
        """Return (a list without the last item, the last item); this list must not be empty."""
        with self._lock:
            items = self._own_items()
            last = items.pop()
            return self._new_version(items, functools.partial(_append, value=last)), last

    def with_items(self, items: Iterable[TensorValue]) -> TensorList:
        """Return a list of `items` with the element type, shape and limit of this list."""
        return TensorList(self.element_dtype, self.element_shape, items, self.max_num_elements)

    def _new_version(self, items: list[TensorValue], undo: _Undo) -> TensorList:
        """Return a new version that owns `items`, in which the change has been made already.

        `undo` must undo the change. The caller must hold the lock.
        """
        newer = TensorList.__new__(TensorList)
        newer.element_dtype = self.element_dtype
        newer.element_shape = self.element_shape
        newer.max_num_elements = self.max_num_elements
        newer._lock = self._lock
        newer._items, newer._length = items, len(items)
        newer._successor = newer._undo = None
        self._items, self._successor, self._undo = None, newer, undo
        return newer

    def _own_items(self) -> list[TensorValue]:
        """Return the items, which this version then owns; the caller must hold the lock.

        If a later version owns them, copy its items and undo the changes between the versions.
        """
        if self._items is not None:
            return self._items
        undos: list[_Undo] = []
        version = self
        while version._successor is not None and version._undo is not None:
            undos.append(version._undo)
            version = version._successor
        items = list(version._items or ())
        for undo in reversed(undos):
            undo(items)
        self._items, self._successor, self._undo = items, None, None
        return items


def _set(items: list[TensorValue], *, index: int, value: TensorValue) -> None:
    items[index] = value


def _append(items: list[TensorValue], *, value: TensorValue) -> None:
    items.append(value)


def _drop_last(items: list[TensorValue]) -> None:
    items.pop()
