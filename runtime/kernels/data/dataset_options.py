"""Datasets that return their input's elements: prefetching, options, statistics, thread pools.

Elements are computed when they are requested, so settings of threads and buffers have no effect.

TF: tensorflow/core/kernels/data/{prefetch,options,model,optimize,finalize}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/{threadpool,stats_aggregator,sleep}_dataset_op.cc
"""

from __future__ import annotations

import threading
from typing import ClassVar

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework import op_def_registry
from runtime.framework.attr_value import raw_bytes
from runtime.framework.data.dataset import (
    UNKNOWN,
    AlignedDataset,
    Dataset,
    DatasetIterator,
    Element,
    UnaryIterator,
    as_dataset,
    scalar_argument,
)
from runtime.framework.data.dataset_rewrites import serialized_options
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.dataset_thread_pool import DatasetThreadPool
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.state.resource_variables import as_handle

_MAX_THREADS = 65536


class PassThroughDataset(AlignedDataset):
    """A dataset with the same elements as its input; the inputs `tuning` are ignored."""

    def __init__(
        self,
        input_dataset: Dataset,
        *tuning: TensorValue,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the input's elements."""
        return _PassThroughIterator(self, context, prefix)


class _PassThroughIterator(UnaryIterator):
    def get_next(self, context: OpKernelContext) -> Element | None:
        return self.next_input(context)


class NonSerializableDataset(PassThroughDataset):
    """NonSerializableDataset: the input's elements, declared to have the shapes `output_shapes`."""

    kind = "NonSerializable"

    def __init__(
        self, input_dataset: Dataset, *, output_types: Types, output_shapes: Shapes
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        self.output_shapes = output_shapes


def _pass_through_class(name: str) -> type[PassThroughDataset]:
    """Return a new subclass of PassThroughDataset that is called `name` in messages."""
    return type(f"{name}Dataset", (PassThroughDataset,), {"kind": name})


class ModelDataset(PassThroughDataset):
    """ModelDataset: the input's elements; nothing is tuned."""

    kind = "Model"

    def __init__(
        self,
        input_dataset: Dataset,
        *,
        cpu_budget: int,
        ram_budget: int,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        for name, budget in (("CPU", cpu_budget), ("RAM", ram_budget)):
            if budget < 0:
                raise InvalidArgumentError(f"{name} budget must be positive but is {budget}.")


class PrefetchDataset(PassThroughDataset):
    """PrefetchDataset: the input's elements, which are computed when they are requested."""

    kind = "Prefetch"

    def __init__(
        self,
        input_dataset: Dataset,
        buffer_size: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        if scalar_argument(buffer_size, "buffer_size") < -1:
            raise InvalidArgumentError(
                "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning"
            )


class ThreadsDataset(PassThroughDataset):
    """PrivateThreadPoolDataset: the input's elements; `num_threads` is only checked."""

    kind = "PrivateThreadPool"
    argument: ClassVar[str] = "num_threads"

    def __init__(
        self,
        input_dataset: Dataset,
        count: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        self.check(scalar_argument(count, self.argument))

    def check(self, count: int) -> None:
        """Raise InvalidArgumentError if `count` is out of range.

        As in TensorFlow, only the low 32 bits of `count` are used.
        """
        number = int(np.int64(count).astype(np.int32))
        if number < 0:
            raise InvalidArgumentError("`num_threads` must be >= 0")
        if number >= _MAX_THREADS:
            raise InvalidArgumentError(f"`num_threads` must be < {_MAX_THREADS}")


class ThreadPoolDataset(AlignedDataset):
    """ThreadPoolDataset: the input's elements; the pool must exist but is not used."""

    kind = "ThreadPool"

    def __init__(
        self,
        context: OpKernelContext,
        input_dataset: Dataset,
        thread_pool: ResourceHandle,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        handle = as_handle(thread_pool)
        if handle.type_name != DatasetThreadPool.type_name:
            raise InvalidArgumentError(
                "Trying to access a handle's resource using the wrong type. The handle points to a "
                f"resource (name '{handle.name}') of type '{handle.type_name}' but you are trying "
                f"to access the resource as type '{DatasetThreadPool.type_name}'"
            )
        context.resources.look_up(handle.container, DatasetThreadPool, handle.name)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the input's elements."""
        return _PassThroughIterator(self, context, prefix)


class MaxIntraOpParallelismDataset(ThreadsDataset):
    """MaxIntraOpParallelismDataset: the input's elements.

    `max_intra_op_parallelism` is only checked.
    """

    kind = "MaxIntraOpParallelism"
    argument = "max_intra_op_parallelism"

    def check(self, count: int) -> None:
        """Raise InvalidArgumentError if `count` is negative."""
        if count < 0:
            raise InvalidArgumentError("`max_intra_op_parallelism` must be >= 0")


class OptimizeDataset(PassThroughDataset):
    """OptimizeDataset, OptimizeDatasetV2: the input's elements.

    The names of optimizations are ignored.
    """

    kind = "Optimize"

    def __init__(
        self,
        context: OpKernelContext,
        input_dataset: Dataset,
        *names: np.ndarray,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        arguments = op_def_registry.look_up(context.node.op).input_arg[1:]
        for argument, given in zip(arguments, names, strict=True):
            if given.ndim != 1:
                raise InvalidArgumentError(f"{argument.name} must be a vector")


class RewriteDataset(PassThroughDataset):
    """RewriteDataset: the input's elements, which a rewrite would not change."""

    kind = "Rewrite"

    def __init__(
        self,
        input_dataset: Dataset,
        rewrite_name: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        if np.ndim(rewrite_name):
            raise InvalidArgumentError("rewrite_name must be a scalar")


class OptionsDataset(PassThroughDataset):
    """OptionsDataset: the input's elements, with options for the pipelines that contain it."""

    kind = "Options"

    def __init__(
        self,
        input_dataset: Dataset,
        *,
        serialized_options: str,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        try:
            pb.Options.FromString(raw_bytes(serialized_options))
        except DecodeError:
            raise InvalidArgumentError(
                "Could not parse serialized_options as valid Options."
            ) from None


class SleepDataset(PassThroughDataset):
    """SleepDataset: the input's elements, with a pause before each element."""

    kind = "Sleep"

    def __init__(
        self,
        input_dataset: Dataset,
        sleep_microseconds: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types=output_types, output_shapes=output_shapes)
        self.pause = scalar_argument(sleep_microseconds, "sleep_microseconds") / 1e6  # seconds
        if self.pause < 0:
            raise InvalidArgumentError("`sleep_microseconds` must be >= 0")
        if self.pause > threading.TIMEOUT_MAX:  # it would end beyond the clock's range: no pause
            self.pause = 0.0

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that pauses before each element."""
        return _SleepIterator(self, context, prefix)


class _SleepIterator(UnaryIterator):
    def __init__(self, dataset: SleepDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._pause = dataset.pause

    def get_next(self, context: OpKernelContext) -> Element | None:
        cancelled = threading.Event()
        token = context.cancellation.add_callback(cancelled.set)
        cancelled.wait(self._pause)
        context.cancellation.remove_callback(token)
        return self.next_input(context)


class AssertNextDataset(PassThroughDataset):
    """AssertNextDataset, AssertPrevDataset: the input's elements.

    TensorFlow checks the result of its pipeline optimizer with these ops. Pipelines are not
    optimized here, so the ops check nothing.
    """

    kind = "AssertNext"


class ChooseFastestDataset(Dataset):
    """ChooseFastestDataset: the elements of the first input.

    All inputs must have the same elements.
    """

    kind = "ChooseFastest"

    def __init__(self, *inputs: TensorValue, output_types: Types, output_shapes: Shapes) -> None:
        super().__init__(output_types, output_shapes)
        self._inputs = [as_dataset(each) for each in inputs]
        self._cardinality = UNKNOWN
        for number, each in enumerate(self._inputs):
            if (
                each.cardinality not in (UNKNOWN, self._cardinality)
                and self._cardinality != UNKNOWN
            ):
                raise InvalidArgumentError(
                    "All inputs to ChooseFastestDataset must have compatible cardinalities. "
                    f"Input {number} has cardinality: {each.cardinality}, while all prior inputs "
                    f"have cardinality: {self._cardinality}."
                )
            if self._cardinality == UNKNOWN:
                self._cardinality = each.cardinality

    @property
    def cardinality(self) -> int:
        """The common cardinality of the inputs whose cardinality is known."""
        return self._cardinality

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the first input's elements."""
        return self._inputs[0].iterate(context, prefix)


def dataset_variant(input_handle: Dataset) -> Dataset:
    """WrapDatasetVariant, UnwrapDatasetVariant: return the dataset itself."""
    return as_dataset(input_handle)


def get_options(dataset: Dataset) -> np.ndarray:
    """GetOptions: return the merged options of a pipeline as a serialized Options message."""
    return string_tensor([serialized_options(as_dataset(dataset))], ())


_PASS_THROUGH = {
    "BytesProducedStatsDataset": "BytesProducedStats",
    "ExperimentalBytesProducedStatsDataset": "BytesProducedStats",
    "ExperimentalLatencyStatsDataset": "LatencyStats",
    "FinalizeDataset": "Finalize",
    "LatencyStatsDataset": "LatencyStats",
}
KERNELS = (
    *(KernelDef(op, _pass_through_class(name)) for op, name in _PASS_THROUGH.items()),
    KernelDef("AssertNextDataset", AssertNextDataset),
    KernelDef("ModelDataset", ModelDataset),
    KernelDef("AssertPrevDataset", AssertNextDataset),
    KernelDef("ChooseFastestDataset", ChooseFastestDataset),
    KernelDef("ExperimentalAssertNextDataset", AssertNextDataset),
    KernelDef("ExperimentalChooseFastestDataset", ChooseFastestDataset),
    KernelDef("ExperimentalMaxIntraOpParallelismDataset", MaxIntraOpParallelismDataset),
    KernelDef("ExperimentalNonSerializableDataset", NonSerializableDataset),
    KernelDef("ExperimentalPrivateThreadPoolDataset", ThreadsDataset),
    KernelDef("ExperimentalSleepDataset", SleepDataset),
    KernelDef("ExperimentalThreadPoolDataset", ThreadPoolDataset),
    KernelDef("GetOptions", get_options),
    KernelDef("MaxIntraOpParallelismDataset", MaxIntraOpParallelismDataset),
    KernelDef("NonSerializableDataset", NonSerializableDataset),
    KernelDef("OptimizeDataset", OptimizeDataset),
    KernelDef("OptimizeDatasetV2", OptimizeDataset),
    KernelDef("OptionsDataset", OptionsDataset),
    KernelDef("PrefetchDataset", PrefetchDataset),
    KernelDef("PrivateThreadPoolDataset", ThreadsDataset),
    KernelDef("RewriteDataset", RewriteDataset),
    KernelDef("SleepDataset", SleepDataset),
    KernelDef("ThreadPoolDataset", ThreadPoolDataset),
    KernelDef("UnwrapDatasetVariant", dataset_variant),
    KernelDef("WrapDatasetVariant", dataset_variant),
)
