"""Queues of a graph: FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue, PriorityQueue.

TF: tensorflow/python/ops/data_flow_ops.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import ShapeLike, TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.initializers import seeds_of
from runtime.framework.dtypes import DataType

# An element of a queue: its only component, a list of components, or {name: component}.
Element: TypeAlias = Any


class QueueBase:
    """A queue whose elements are tuples of components.

    Each component has a fixed type, and may have a fixed shape.
    """

    def __init__(
        self,
        dtypes: Sequence[DataType],
        shapes: Sequence[TensorShape],
        names: str | Sequence[str] | None,
        queue: Tensor,
    ) -> None:
        self.dtypes = list(dtypes)
        self.shapes = list(shapes) or [TensorShape(None) for _ in dtypes]
        self.names = None if names is None else [names] if isinstance(names, str) else list(names)
        self.queue_ref = queue

    @property
    def name(self) -> str:
        """The name of the operation that holds the queue."""
        name: str = self.queue_ref.op.name
        return name

    def enqueue(self, vals: Element, name: str | None = None) -> Operation:
        """Add one element: a list of its components, its only component, or a dict by name."""
        components = self._components(vals, name, 0)
        return self._do("QueueEnqueueV2", components, name or f"{self.name}_enqueue")

    def enqueue_many(self, vals: Element, name: str | None = None) -> Operation:
        """Add `n` elements: each component is `[n, …]`, with one element per row."""
        components = self._components(vals, name, 1)
        return self._do("QueueEnqueueManyV2", components, name or f"{self.name}_EnqueueMany")

    def dequeue(self, name: str | None = None) -> Element:
        """Take the next element; the operation blocks while the queue is empty."""
        return self._take("QueueDequeueV2", name or f"{self.name}_Dequeue", [])

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Element:
        """Take `n` elements, as components `[n, …]`; the operation blocks until there are `n`."""
        return self._take("QueueDequeueManyV2", name or f"{self.name}_DequeueMany", [n])

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Element:
        """Take `n` elements as components `[n, …]`, or fewer if a closed queue has fewer left."""
        return self._take("QueueDequeueUpToV2", name or f"{self.name}_DequeueUpTo", [n])

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Close the queue: it rejects new elements, and its elements can still be dequeued."""
        name = name or f"{self.name}_Close"
        return self._do("QueueCloseV2", cancel_pending_enqueues, name)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Return a bool scalar: whether the queue is closed."""
        return self._tensor("QueueIsClosedV2", name or f"{self.name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, as a scalar tensor."""
        return self._tensor("QueueSizeV2", name or f"{self.name}_Size")

    def _components(self, vals: Element, name: str | None, extra: int) -> list[Tensor]:
        if isinstance(vals, dict):
            if not self.names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self.names) != sorted(vals):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue. Dictionary: "
                    f"{sorted(vals)}, Queue: {sorted(self.names)}"
                )
            vals = [vals[each] for each in self.names]
        elif self.names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        values = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(values) != len(self.dtypes):
            raise ValueError(
                f"Unable to enqueue expected {len(self.dtypes)} components, but got {len(values)}"
            )
        tensors = [
            convert_to_tensor(value, dtype, f"component_{index}")
            for index, (value, dtype) in enumerate(zip(values, self.dtypes, strict=True))
        ]
        for tensor, shape in zip(tensors, self.shapes, strict=True):
            one = tensor.shape[extra:] if extra and tensor.shape.rank else tensor.shape
            if not shape.is_compatible_with(one):
                raise ValueError(f"Shapes {one} and {shape} are incompatible")
        return tensors

    def _take(self, op: str, name: str, count: list[TensorLike]) -> Element:
        found = op_function(op)(self.queue_ref, *count, self.dtypes, name=name)
        tensors: list[Tensor] = found if isinstance(found, list) else [found]
        for tensor, shape in zip(tensors, self.shapes, strict=True):
            if shape.rank is not None:
                known = count[0] if count and isinstance(count[0], int) else None
                rows = known if op == "QueueDequeueManyV2" else None
                sizes = shape.as_list()
                tensor.set_shape(TensorShape([rows, *sizes] if count else sizes))
        if self.names:
            return dict(zip(self.names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors

    def _do(self, op: str, argument: object, name: str) -> Operation:
        operation: Operation = op_function(op)(self.queue_ref, argument, name=name)
        return operation

    def _tensor(self, op: str, name: str) -> Tensor:
        tensor: Tensor = op_function(op)(self.queue_ref, name=name)
        return tensor


class FIFOQueue(QueueBase):
    """A queue from which the oldest element is taken first."""

    def __init__(
        self,
        capacity: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: ShapeLike | Sequence[ShapeLike] = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        """Create a queue of at most `capacity` elements; enqueuing blocks while it is full."""
        types, sizes = _types(dtypes), _shapes(shapes)
        attributes = {"shapes": sizes, "shared_name": shared_name or ""}
        queue = op_function("FIFOQueueV2")(types, capacity=capacity, **attributes, name=name)
        super().__init__(types, sizes, names, queue)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue that pads components dequeued together to the largest of them."""

    def __init__(
        self,
        capacity: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: ShapeLike | Sequence[ShapeLike],
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        """Create the queue. Raises ValueError if a component has no (partial) shape."""
        types, sizes = _types(dtypes), _shapes(shapes)
        if len(types) != len(sizes):
            raise ValueError(
                "Shapes must be provided for all components, but received "
                f"{len(types)} dtypes and {len(sizes)} shapes."
            )
        attributes = {"shapes": sizes, "shared_name": shared_name or ""}
        queue = op_function("PaddingFIFOQueueV2")(types, capacity=capacity, **attributes, name=name)
        super().__init__(types, sizes, names, queue)


class RandomShuffleQueue(QueueBase):
    """A queue from which a random element is taken; all are equally likely.

    It keeps at least `min_after_dequeue` elements until it is closed.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: ShapeLike | Sequence[ShapeLike] = None,
        names: str | Sequence[str] | None = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        """Create a queue of at most `capacity` elements."""
        types, sizes = _types(dtypes), _shapes(shapes)
        queue = op_function("RandomShuffleQueueV2")(
            types,
            shapes=sizes,
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            shared_name=shared_name or "",
            name=name,
            **seeds_of(seed),
        )
        super().__init__(types, sizes, names, queue)


class PriorityQueue(QueueBase):
    """A queue from which the element with the smallest priority is taken first.

    The priority is an int64 scalar, the first component of each element.
    """

    def __init__(
        self,
        capacity: int,
        types: DTypeLike | Sequence[DTypeLike],
        shapes: ShapeLike | Sequence[ShapeLike] = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        """Create a queue of at most `capacity` elements; the shapes must be fully known."""
        given, sizes = _types(types), _shapes(shapes)
        attributes = {"shapes": sizes, "shared_name": shared_name or ""}
        queue = op_function("PriorityQueueV2")(
            component_types=given, capacity=capacity, **attributes, name=name
        )
        super().__init__(
            [DataType.INT64, *given], [TensorShape(()), *sizes] if sizes else [], names, queue
        )


def _types(dtypes: DTypeLike | Sequence[DTypeLike]) -> list[DataType]:
    given = dtypes if isinstance(dtypes, list | tuple) else [dtypes]
    return [as_dtype(each) for each in given]


def _shapes(shapes: Structure) -> list[TensorShape]:
    """Return the shapes of the components, from one shape or a list of shapes."""
    if shapes is None:
        return []
    is_one = isinstance(shapes, TensorShape) or (
        not isinstance(shapes, list | tuple)
        or (len(shapes) > 0 and all(each is None or isinstance(each, int) for each in shapes))
    )
    return [TensorShape(shapes)] if is_one else [TensorShape(each) for each in shapes]
