"""The kinds of queue other than FIFOQueue: with padding, in random order, in order of priority.

TF: tensorflow/core/kernels/{padding_fifo_queue,random_shuffle_queue_op,priority_queue}.cc
"""

from __future__ import annotations

import heapq
import itertools

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.philox import Philox, WordSequence
from runtime.framework.resources.queues import Element, Queue


class PaddingFIFOQueue(Queue):
    """A first-in-first-out queue; kernels pad elements that are dequeued together to one shape."""

    kind = "PaddingFIFOQueue"


class RandomShuffleQueue(Queue):
    """A queue in random order; unless it is closed, `min_after_dequeue` elements remain in it."""

    kind = kind_of_one = "RandomShuffleQueue"

    def __init__(
        self,
        name: str,
        component_types: tuple[DataType, ...],
        shapes: tuple[PartialShape, ...],
        capacity: int,
        min_after_dequeue: int,
        seed: int,
        seed2: int,
    ) -> None:
        super().__init__(name, component_types, shapes, capacity)
        self.min_after_dequeue = min_after_dequeue
        self.seeds = (seed, seed2)
        self._random = WordSequence(Philox.from_seeds(seed, seed2))
        self._pool: list[Element] = []

    def _size(self) -> int:
        return len(self._pool)

    def _put(self, element: Element) -> None:
        self._pool.append(element)

    def _take(self) -> Element:
        pool = self._pool
        index = self._random.take() % len(pool)
        pool[index], pool[-1] = pool[-1], pool[index]
        return pool.pop()

    def _put_back(self, elements: list[Element]) -> None:
        self._pool.extend(elements)

    def _available(self) -> int:
        kept = 0 if self._is_closed else self.min_after_dequeue
        return max(len(self._pool) - kept, 0)


class PriorityQueue(Queue):
    """A queue in ascending order of the first component, the priority.

    Elements of equal priority are dequeued in the order in which they were added.
    """

    kind = kind_of_one = "PriorityQueue"

    def __init__(
        self,
        name: str,
        component_types: tuple[DataType, ...],
        shapes: tuple[PartialShape, ...],
        capacity: int,
    ) -> None:
        super().__init__(name, component_types, shapes, capacity)
        self._heap: list[tuple[int, int, Element]] = []
        self._arrivals = itertools.count()

    def _size(self) -> int:
        return len(self._heap)

    def _put(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(np.asarray(element[0])), next(self._arrivals), element))

    def _take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def _put_back(self, elements: list[Element]) -> None:
        for element in elements:
            self._put(element)
