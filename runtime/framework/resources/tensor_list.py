"""Tensor lists: values that share one Python list between versions.

Every operation gives a new list and leaves the old one as it was. The newest version owns the
items; an older one knows its successor and how to undo the change that led there, and takes a
copy of its own only when somebody still asks for its items. So a loop that sets or pushes one
item at each turn pays for that item alone.

Guarantees: thread-safe; no operation changes what another holder of a version sees.

TF: tensorflow/core/kernels/tensor_list.h (TensorList)
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable

from runtime.framework.dtypes import DataType
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue

_Undo = Callable[[list[TensorValue]], object]


class TensorList:
    """A list of tensors of one dtype; an item that was never set is None.

    `max_num_elements` is −1 when there is no limit.
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
        self._lock = threading.RLock()  # guards the items of all versions that share them
        self._items: list[TensorValue] | None = list(items)  # None: a successor has them
        self._length = len(self._items)
        self._successor: TensorList | None = None
        self._undo: _Undo | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def shape(self) -> tuple[int, ...]:
        """A list is a scalar tensor."""
        return ()

    def items(self) -> list[TensorValue]:
        """The items, in a list of the caller's own."""
        with self._lock:
            return list(self._own_items())

    def item(self, index: int) -> TensorValue:
        """One item; the index must be in range."""
        with self._lock:
            return self._own_items()[index]

    def with_item(self, index: int, value: TensorValue) -> TensorList:
        """The list with one item replaced; the index must be in range."""
        with self._lock:
            items = self._own_items()
            undo = functools.partial(_set, index=index, value=items[index])
            items[index] = value
            return self._succeed(items, undo)

    def pushed(self, value: TensorValue) -> TensorList:
        """The list with one item more at its end."""
        with self._lock:
            items = self._own_items()
            items.append(value)
            return self._succeed(items, _drop_last)

    def popped(self) -> tuple[TensorList, TensorValue]:
        """The list without its last item, and that item; it must not be empty."""
        with self._lock:
            items = self._own_items()
            last = items.pop()
            return self._succeed(items, functools.partial(_append, value=last)), last

    def with_items(self, items: Iterable[TensorValue]) -> TensorList:
        """A list of the same kind with other items."""
        return TensorList(self.element_dtype, self.element_shape, items, self.max_num_elements)

    def _succeed(self, items: list[TensorValue], undo: _Undo) -> TensorList:
        """Give the items, already changed, to a new version."""
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
        """The items of this version, which may be changed in place; the lock is held."""
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
