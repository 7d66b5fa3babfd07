"""Tensor arrays, which TensorFlow 1 loops write and read, and which live as long as one step.

Guarantees: thread-safe (each array has one lock); an item can be written only once, except in
arrays of gradients, which sum the values that are written to an item; an operation on several items
is atomic.

TF: tensorflow/core/kernels/tensor_array.h (TensorArray)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.partial_shapes import PartialShape, is_compatible, is_fully_defined, merge
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue

_ITEM_BYTES = 72  # of an item without a value, and of the reference to it


class _Item:
    __slots__ = ("is_cleared", "is_read", "shape", "value")

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape  # the shape of the value; None if the item was not written
        self.value: TensorValue = None  # None, with a `shape`, if the item is zeros or was cleared
        self.is_read = False
        self.is_cleared = False


class TensorArray(Resource):
    """An array of tensors of the same dtype."""

    type_name = "N10tensorflow11TensorArrayE"

    def __init__(
        self,
        name: str,
        dtype: DataType,
        size: int,
        element_shape: PartialShape = None,
        *,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        identical_element_shapes: bool = False,
        adds_writes: bool = False,
        marked_size: int = 0,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self._lock = threading.RLock()  # guards everything below
        self.element_shape = element_shape
        self._dynamic_size = dynamic_size
        self._clear_after_read = clear_after_read
        self._identical_element_shapes = identical_element_shapes
        self._adds_writes = adds_writes
        self._marked_size = marked_size  # the size recorded by the last split or scatter
        self._is_closed = False
        self._gradients: dict[str, TensorArray] = {}
        self._items = [_Item() for _ in range(size)]
        self._held_bytes = HeldBytes()  # of the values

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the items, and the arrays of gradients."""
        size = self._held_bytes.bytes + _ITEM_BYTES * len(self._items)
        return size, tuple(self._gradients.values())

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report later items to `limit`."""
        self._held_bytes.limit = limit

    def __len__(self) -> int:
        with self._lock:
            self._check_open()
            return len(self._items)

    @property
    def _joined_size(self) -> int:
        """The number of items that a gather or concat of the whole array reads.

        In an array of gradients, this is the size that the forward array had at its last split or
        scatter. TF: TensorArray::PackOrConcatSize
        """
        return self._marked_size if self._adds_writes else len(self)

    def item_shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of all items; of one that was not written, the array's if defined."""
        shape = self.element_shape
        known = shape if shape is not None and is_fully_defined(shape) else ()
        with self._lock:
            return [known if item.shape is None else item.shape for item in self._items]

    @property
    def is_resizable(self) -> bool:
        """Whether a write beyond the end extends the array."""
        return self._dynamic_size

    def check_dtype(self, dtype: DataType, action: str) -> None:
        """Raise InvalidArgumentError if an op's `dtype` is not the dtype of the array."""
        if dtype != self.dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {self.dtype.tf_name} but {action} {dtype.tf_name}."
            )

    def close(self) -> None:
        """Drop the items, and let every later operation raise InvalidArgumentError."""
        with self._lock:
            self._items = []
            self._held_bytes.clear()
            self._is_closed = True

    def gradient(self, source: str, shape_to_prepend: tuple[int, ...] = ()) -> TensorArray:
        """Return the array that accumulates the gradients for `source`; create it at first use.

        For each item that has been written by then, the new array has an item of zeros whose shape
        is `shape_to_prepend` followed by the shape of the written item.
        """
        with self._lock:
            self._check_open()
            found = self._gradients.get(source)
            if found is None:
                self._dynamic_size = False  # both arrays must keep the same size
                inner = self.element_shape
                found = self._gradients[source] = TensorArray(
                    f"{self.name}@{source}",
                    self.dtype,
                    len(self._items),
                    None if inner is None else (*shape_to_prepend, *inner),
                    identical_element_shapes=self._identical_element_shapes,
                    adds_writes=True,
                    marked_size=self._marked_size,
                )
                found.limit_growth(self._held_bytes.limit)
                found._items = [
                    _Item(None if item.shape is None else (*shape_to_prepend, *item.shape))
                    for item in self._items
                ]
            return found

    def narrow(self, element_shape: PartialShape) -> None:
        """Merge `element_shape` into the array's element shape.

        Raises InvalidArgumentError if the two shapes are not compatible.
        TF: TensorArray::SetElementShape
        """
        with self._lock:
            self.element_shape = merge(self.element_shape, element_shape)

    def write(self, index: int, value: TensorValue) -> None:
        """Write one item; in an array of gradients, add `value` to the item.

        Raises InvalidArgumentError if the index is out of range, if the shape is wrong, or if the
        item was read before or (except in an array of gradients) written before. Raises
        ResourceExhaustedError if the array or the step would hold too many bytes.
        """
        with self._lock:
            self._check_open()
            self._ensure_size(index)
            item, shape = self._items[index], np.asarray(value).shape
            self._check_write(index, item, shape)
            if self._identical_element_shapes:
                self.element_shape = merge(self.element_shape, shape)
            known = item.value
            if known is not None:
                value = np.add(np.asarray(known), np.asarray(value))
            self._held_bytes.add((value,))
            if known is not None:
                self._held_bytes.drop((known,))
            item.shape, item.value = shape, value

    def write_parts(self, parts: Sequence[tuple[int, TensorValue]]) -> None:
        """Write `parts`, the (index, value) pairs of one tensor, in one atomic operation.

        The number of parts or the size of the array, whichever is larger, is recorded; a gather or
        concat of the array of gradients later reads that number of items.
        """
        with self._lock:
            if not self._adds_writes:
                self._marked_size = max(len(self._items), len(parts))
            for index, value in parts:
                self.write(index, value)

    def _check_write(self, index: int, item: _Item, shape: tuple[int, ...]) -> None:
        where = f"to TensorArray index {index} because"
        problem = ""
        if item.is_read:
            problem = f"Could not write {where} it has already been read."
        elif item.shape is not None and not self._adds_writes:
            problem = f"Could not write {where} it has already been written to."
        elif not is_compatible(self.element_shape, shape):
            problem = (
                f"Could not write {where} the value shape is {shape_text(shape)} which is "
                "incompatible with the TensorArray's inferred element shape: "
                f"{shape_text(self.element_shape)} (consider setting infer_shape=False)."
            )
        elif item.shape not in (None, shape):
            problem = (
                f"Could not aggregate {where} the existing shape is {shape_text(item.shape)} "
                f"but the new input shape is {shape_text(shape)}."
            )
        if problem:
            raise InvalidArgumentError(f"TensorArray {self.name}: {problem}")

    def _ensure_size(self, index: int) -> None:
        size = len(self._items)
        if index < 0 or (index >= size and not self._dynamic_size):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Tried to write to index {index} but array is not "
                f"resizeable and size is: {size}"
            )
        if index >= size:
            check_allocation((index + 1, _ITEM_BYTES), np.int8)
            self._items += [_Item() for _ in range(index + 1 - size)]

    def read(self, index: int) -> TensorValue:
        """Read one item; return zeros if it was not written and the element shape is known.

        Raises InvalidArgumentError if the index is out of range, if the item was cleared after a
        read, or if it was not written and the element shape is not known.
        """
        with self._lock:
            self._check_open()
            if not 0 <= index < len(self._items):
                raise InvalidArgumentError(
                    f"Tried to read from index {index} but array size is: {len(self._items)}"
                )
            item = self._items[index]
            if item.is_cleared:
                raise InvalidArgumentError(
                    f"TensorArray {self.name}: Could not read index {index} twice because it was "
                    "cleared after a previous read (perhaps try setting clear_after_read = "
                    "false?)."
                )
            value = item.value if item.value is not None else self._zeros(index, item.shape)
            item.is_read = True
            if self._clear_after_read:
                if item.value is not None:
                    self._held_bytes.drop((item.value,))
                item.value, item.is_cleared = None, True
            return value

    def read_many(self, indices: Iterable[int]) -> list[TensorValue]:
        """Return the items at `indices`, read in one atomic operation."""
        with self._lock:
            return [self.read(index) for index in indices]

    def read_joined(self) -> list[TensorValue]:
        """Return, in order, the items that a gather or concat of the whole array reads."""
        with self._lock:
            return self.read_many(range(self._joined_size))

    def _zeros(self, index: int, written: tuple[int, ...] | None) -> np.ndarray:
        shape = self.element_shape if written is None else written
        if not is_fully_defined(shape):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read from TensorArray index {index}.  "
                f"Furthermore, the element shape is not fully defined: {shape_text(shape)}.  "
                "It is possible you are working with a resizeable TensorArray and stop_gradients "
                "is not allowing the gradients to be written.  If you set the full element_shape "
                "property on the forward TensorArray, the proper all-zeros tensor will be "
                "returned instead of incurring this error."
            )
        if self.dtype == DataType.STRING and 0 not in shape:
            raise InvalidArgumentError("tensor_array::TensorSetZero type not supported: string")
        check_allocation(shape, self.dtype.numpy)
        return np.zeros(shape, self.dtype.numpy)

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgumentError(f"TensorArray {self.name} has already been closed.")
