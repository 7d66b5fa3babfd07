"""ShardDataset: one of several parts of a dataset.

TF: tensorflow/core/kernels/data/shard_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    scalar_argument,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes

SHARD_HINT = -1  # a value of `num_shards` that AutoShardDataset replaces by the number of workers


class ShardDataset(UnaryDataset):
    """ShardDataset: every `num_shards`-th element of the input, beginning at `index`."""

    kind = "Shard"

    def __init__(
        self,
        input_dataset: Dataset,
        num_shards: np.ndarray,
        index: np.ndarray,
        *,
        require_non_empty: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.num_shards = scalar_argument(num_shards, "num_shards")
        self.index = scalar_argument(index, "index")
        self.require_non_empty = require_non_empty
        if self.num_shards == SHARD_HINT:
            return
        if self.num_shards <= 0:
            raise InvalidArgumentError(
                "Number of shards must be greater than zero "
                f"(currently num_shards = {self.num_shards})."
            )
        if not 0 <= self.index < self.num_shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {self.num_shards - 1} "
                f"(currently index = {self.index})."
            )

    @property
    def cardinality(self) -> int:
        """The number of elements of this shard."""
        available = self.input.cardinality
        if available < 0:
            return available
        return available // self.num_shards + (self.index < available % self.num_shards)

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the shard's element at `index`."""
        return self.input.element_at(context, self.index + self.num_shards * index)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the shard.

        Raises FailedPreconditionError if `num_shards` is SHARD_HINT.
        """
        if self.num_shards == SHARD_HINT:
            raise FailedPreconditionError(
                "`tf.data.Dataset.shard(SHARD_HINT, ...)` can only be used in "
                "`tf.distribute.Strategy.experimental_distribute_dataset()` with "
                "`tf.data.experimental.AutoShardPolicy.HINT` policy, or tf.data service with "
                "`tf.data.experimental.service.ShardingPolicy.HINT` processing mode."
            )
        return _ShardIterator(self, context, prefix)


class _ShardIterator(UnaryIterator):
    state = ("input", "seen")

    def __init__(self, dataset: ShardDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self.seen = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        num_shards, index = self._dataset.num_shards, self._dataset.index
        while (element := self.next_input(context)) is not None:
            self.seen += 1
            if (self.seen - 1) % num_shards == index:
                if self._dataset.require_non_empty and self.seen <= num_shards:
                    self._check_following_shards(context)
                return element
        return None

    def _check_following_shards(self, context: OpKernelContext) -> None:
        """Raise InvalidArgumentError unless each of the following shards has an element."""
        own = self.seen
        while self.seen < self._dataset.num_shards:
            if self.next_input(context) is None:
                raise InvalidArgumentError(
                    "Could not apply FILE based sharding: the dataset only has "
                    f"{own} file(s), which is not enough for the required "
                    f"{self._dataset.num_shards} shards/workers. If you are using datasets with "
                    "distribution strategy, consider setting the auto sharding policy to either "
                    "DATA or OFF using the `experimental_distribute.auto_shard_policy` option of "
                    "`tf.data.Options()`. Or, split your input files into a larger number of "
                    "small files such that number of files is greater than number of "
                    "shards/workers."
                )
            self.seen += 1


KERNELS = (KernelDef("ShardDataset", ShardDataset),)
