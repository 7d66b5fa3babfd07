"""Datasets that draw random numbers (shuffles, samples, random sources), and seed generators.

If seeds are given, the order is the same as in TensorFlow, except in GlobalShuffleDataset.

TF: tensorflow/core/kernels/data/{shuffle_dataset,random_seed}_op.cc,
tensorflow/core/kernels/data/experimental/{random_dataset,sampling_dataset}_op.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
    note_element,
    scalar_argument,
    wrapped,
)
from runtime.framework.data.seed_generator import RandomWords, SeedGenerator
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.tensor_value import TensorValue

_numbers = itertools.count()  # makes names unique; next() is atomic, so no lock is needed


def _generator(
    seed: TensorValue,
    seed2: TensorValue,
    reshuffles: bool,
    handle: TensorValue = None,
) -> SeedGenerator:
    """Return the seed generator that `handle` refers to.

    Returns a new generator if `handle` is None or refers to no generator.
    """
    resource = handle.resource if isinstance(handle, ResourceHandle) else None
    if isinstance(resource, SeedGenerator):
        return resource
    return SeedGenerator(scalar_argument(seed, "seed"), scalar_argument(seed2, "seed2"), reshuffles)


def anonymous_seed_generator(
    seed: np.ndarray, seed2: np.ndarray, reshuffle: np.ndarray
) -> tuple[ResourceHandle, None]:
    """AnonymousSeedGenerator: return (the only handle of a new generator, its deleter)."""
    seeds = (scalar_argument(seed, "seed"), scalar_argument(seed2, "seed2"))
    return _anonymous(SeedGenerator(*seeds, scalar_argument(reshuffle, "reshuffle"))), None


def anonymous_random_seed_generator(
    seed: np.ndarray, seed2: np.ndarray
) -> tuple[ResourceHandle, None]:
    """AnonymousRandomSeedGenerator: return (the only handle of a new generator, its deleter).

    The generator returns new seeds for every pass.
    """
    return _anonymous(_generator(seed, seed2, True)), None


def dummy_seed_generator() -> ResourceHandle:
    """DummySeedGenerator: return a handle that refers to no generator."""
    return ResourceHandle("", "", SeedGenerator.type_name)


def _anonymous(generator: SeedGenerator) -> ResourceHandle:
    name = f"AnonymousSeedGenerator{next(_numbers)}"
    return ResourceHandle("", name, SeedGenerator.type_name, resource=generator)


def delete_seed_generator(handle: ResourceHandle, deleter: TensorValue) -> None:
    """DeleteSeedGenerator: do nothing, because a generator lives as long as its handles."""


class ShuffleDataset(UnaryDataset):
    """ShuffleDataset, ShuffleAndRepeatDataset: the input's elements in random order.

    This is the kernel of all versions of both ops. Each element is drawn from a buffer of at most
    `buffer_size` elements. `count` is the number of passes over the input; −1 means endless
    repetition.
    """

    kind = "Shuffle"

    def __init__(
        self,
        context: OpKernelContext,
        input_dataset: Dataset,
        buffer_size: np.ndarray,
        *seeds_and_count: TensorValue,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.buffer_size = scalar_argument(buffer_size, "buffer_size")
        self.count = 1
        if context.node.op.startswith("ShuffleAndRepeat"):
            self.count = scalar_argument(seeds_and_count[2], "count")
        if self.buffer_size <= 0 and self.buffer_size != UNKNOWN:
            raise InvalidArgumentError(
                "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            )
        if self.count == 0 or self.count < -1:
            raise InvalidArgumentError("count must be greater than zero or equal to -1.")
        self.generator = self._seed_generator(context, seeds_and_count)

    def _seed_generator(self, context: OpKernelContext, arguments: Element) -> SeedGenerator:
        if context.node.op == "ShuffleDatasetV2":
            return _generator(0, 0, True, arguments[0])
        handle = arguments[-1] if isinstance(arguments[-1], ResourceHandle) else None
        reshuffles = context.attr("reshuffle_each_iteration")
        return _generator(arguments[0], arguments[1], reshuffles, handle)

    @property
    def cardinality(self) -> int:
        """The input's cardinality times `count`."""
        available = self.input.cardinality
        if self.count < 0:
            return 0 if available == 0 else INFINITE
        return available if available < 0 else wrapped(available * self.count)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over one pass, which has an order of its own."""
        return _ShuffleIterator(self, context, prefix)


class _ShuffleIterator(DatasetIterator):
    """Draws elements from a buffer, which has a slice for each pass over the input.

    Elements are drawn from the oldest slice only, so that passes do not mix.
    """

    state = ("input", "rounds", "has_elements", "ring", "slices")

    def __init__(self, dataset: ShuffleDataset, context: OpKernelContext, prefix: str) -> None:
        self._dataset = dataset
        self._prefix = prefix
        self._words = RandomWords(dataset.generator.next_seeds())
        self.input: DatasetIterator | None = dataset.input.iterate(context, prefix)
        self.rounds = 0  # number of completed passes over the input
        self.has_elements = False  # whether the input has returned any element
        self.ring: list[Element] = []  # the buffer, oldest slice first
        self.slices = [0]  # number of buffered elements of each pass, oldest first

    def get_next(self, context: OpKernelContext) -> Element | None:
        self._fill(context)
        while len(self.slices) > 1 and not self.slices[0]:
            self.slices.pop(0)
            self._words = RandomWords(self._dataset.generator.next_seeds())
        if not self.ring:
            return None
        drawn = self._words.take() % self.slices[0]
        # The slice's first element takes the place of the element drawn.
        element = self.ring[drawn]
        self.ring[drawn] = self.ring[0]
        self.ring.pop(0)
        self.slices[0] -= 1
        return element

    def _fill(self, context: OpKernelContext) -> None:
        size = self._dataset.buffer_size
        while self.input is not None and (size == UNKNOWN or len(self.ring) < size):
            context.cancellation.check()
            element = self.input.get_next(context)
            if element is not None:
                self.has_elements = True
                self.ring.append(element)
                note_element(context, element)
                self.slices[-1] += 1
                continue
            self.rounds += 1
            count = self._dataset.count
            is_last = not self.has_elements if count < 0 else self.rounds >= count
            self.input = None if is_last else self._dataset.input.iterate(context, self._prefix)
            if not is_last:
                self.slices.append(0)

    def save(self) -> State:
        own = {"seeds": self._words.seeds, "taken": self._words.taken}
        return {**super().save(), **own, "generator": self._dataset.generator.position}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self._words = RandomWords(saved["seeds"], saved["taken"])
        self._dataset.generator.go_back(saved["generator"])  # changes the following passes


class GlobalShuffleDataset(UnaryDataset):
    """GlobalShuffleDataset: all elements of the input in random order.

    The input must have random access.
    """

    kind = "GlobalShuffle"

    def __init__(
        self,
        input_dataset: Dataset,
        seed: np.ndarray,
        seed2: np.ndarray,
        seed_generator: ResourceHandle,
        *,
        reshuffle_each_iteration: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        if not self.input.has_random_access:
            raise FailedPreconditionError(
                "`global_shuffle` requires all upstream transformations be compatible with random "
                f"access. Got: Dataset type {self.input.kind} does not support random access."
            )
        if problem := self.input.global_shuffle_problem:
            raise FailedPreconditionError(problem)
        if self.input.cardinality <= 0:
            raise InvalidArgumentError(
                "`global_shuffle` requires the input dataset to have a non-empty finite "
                f"cardinality. Got cardinality {self.input.cardinality}."
            )
        self.generator = _generator(seed, seed2, reshuffle_each_iteration, seed_generator)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over one pass, which has an order of its own."""
        return _GlobalShuffleIterator(self)


class _GlobalShuffleIterator(DatasetIterator):
    state = ("position",)

    def __init__(self, dataset: GlobalShuffleDataset) -> None:
        self._dataset = dataset
        self.position = 0
        self._shuffle(dataset.generator.next_seeds())

    def _shuffle(self, seeds: tuple[int, int]) -> None:
        self._seeds = seeds
        random = np.random.default_rng([seed & ((1 << 64) - 1) for seed in seeds])
        self._order = random.permutation(self._dataset.cardinality)

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.position >= len(self._order):
            return None
        self.position += 1
        index = int(self._order[self.position - 1])
        return self._dataset.input.element_at(context, index)

    def save(self) -> State:
        return {**super().save(), "seeds": self._seeds}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self._shuffle(saved["seeds"])


class RandomDataset(Dataset):
    """RandomDataset: an endless sequence of 32-bit random numbers."""

    kind = "Random"

    def __init__(
        self, seed: np.ndarray, seed2: np.ndarray, *, output_types: Types, output_shapes: Shapes
    ) -> None:
        super().__init__(output_types, output_shapes)
        self.generator = _generator(seed, seed2, False)

    @property
    def cardinality(self) -> int:
        """Always INFINITE."""
        return INFINITE

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the random numbers."""
        return _RandomIterator(self)


class RandomDatasetV2(RandomDataset):
    """RandomDatasetV2: an endless sequence of 32-bit random numbers.

    If `rerandomize_each_iteration` is true, each pass has other numbers.
    """

    def __init__(
        self,
        seed: np.ndarray,
        seed2: np.ndarray,
        seed_generator: ResourceHandle,
        *,
        rerandomize_each_iteration: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(seed, seed2, output_types=output_types, output_shapes=output_shapes)
        self.generator = _generator(seed, seed2, rerandomize_each_iteration, seed_generator)


class _RandomIterator(DatasetIterator):
    def __init__(self, dataset: RandomDataset) -> None:
        self._data_type = dataset.output_types[0]
        self._words = RandomWords(dataset.generator.next_seeds())

    def get_next(self, context: OpKernelContext) -> Element:
        return (np.asarray(self._words.take(), self._data_type.numpy),)

    def save(self) -> State:
        return {"seeds": self._words.seeds, "taken": self._words.taken}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        self._words = RandomWords(saved["seeds"], saved["taken"])


class SamplingDataset(UnaryDataset):
    """SamplingDataset: a sample of the input; each element is kept with probability `rate`."""

    kind = "Sampling"

    def __init__(
        self,
        input_dataset: Dataset,
        rate: np.ndarray,
        seed: np.ndarray,
        seed2: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.rate = scalar_argument(rate, "rate")
        self.seeds = _generator(seed, seed2, False).seeds

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the cardinality depends on the random numbers."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements that are kept."""
        return _SamplingIterator(self, context, prefix)


class _SamplingIterator(UnaryIterator):
    def __init__(self, dataset: SamplingDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._rate = dataset.rate
        self._words = RandomWords(dataset.seeds)

    def get_next(self, context: OpKernelContext) -> Element | None:
        while (element := self.next_input(context)) is not None:
            # 23 random bits as a float in [0, 1).
            if (self._words.take() & 0x7FFFFF) / (1 << 23) < self._rate:
                return element
        return None

    def save(self) -> State:
        return {**super().save(), "seeds": self._words.seeds, "taken": self._words.taken}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self._words = RandomWords(saved["seeds"], saved["taken"])


KERNELS = (
    KernelDef("AnonymousRandomSeedGenerator", anonymous_random_seed_generator),
    KernelDef("AnonymousSeedGenerator", anonymous_seed_generator),
    KernelDef("DeleteRandomSeedGenerator", delete_seed_generator),
    KernelDef("DeleteSeedGenerator", delete_seed_generator),
    KernelDef("DummySeedGenerator", dummy_seed_generator),
    KernelDef("ExperimentalRandomDataset", RandomDataset),
    KernelDef("GlobalShuffleDataset", GlobalShuffleDataset),
    KernelDef("RandomDataset", RandomDataset),
    KernelDef("RandomDatasetV2", RandomDatasetV2),
    KernelDef("SamplingDataset", SamplingDataset),
    KernelDef("ShuffleAndRepeatDataset", ShuffleDataset),
    KernelDef("ShuffleAndRepeatDatasetV2", ShuffleDataset),
    KernelDef("ShuffleDataset", ShuffleDataset),
    KernelDef("ShuffleDatasetV2", ShuffleDataset),
    KernelDef("ShuffleDatasetV3", ShuffleDataset),
)
