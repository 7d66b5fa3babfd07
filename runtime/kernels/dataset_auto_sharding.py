"""AutoShardDataset: a pipeline rewritten so that each worker gets a part of its own.

By files, a ShardDataset goes in where the names of files are read; by data, at the end; by hint,
where the pipeline asks for it.

TF: tensorflow/core/kernels/data/experimental/auto_shard_dataset_op.cc,
tensorflow/core/grappler/optimizers/data/auto_shard.cc
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.attr_value import from_proto, to_proto
from runtime.framework.dataset import Dataset, as_dataset, scalar_argument
from runtime.framework.dataset_rewrites import (
    SHUFFLES,
    dataset_in,
    inputs_of,
    is_rewritable,
    op_of,
    options_of,
)
from runtime.framework.dtypes import Types
from runtime.framework.kernel_registry import bind
from runtime.framework.op_kernel import KernelDef, OpKernelContext, StepState
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_codec import shape_to_proto
from runtime.kernels.dataset_graphs import GraphDataset
from runtime.kernels.dataset_rebatching import SplitBatchesDataset
from runtime.kernels.dataset_sharding import SHARD_HINT, ShardDataset

_POLICIES = pb.DistributeOptions.AutoShardPolicy
# Ops by their names without a version.
_READERS = frozenset({"FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"})
_OF_FUNCTIONS = frozenset({
    "ExperimentalParallelInterleaveDataset", "FlatMapDataset", "InterleaveDataset",
    "LegacyParallelInterleaveDataset", "ParallelInterleaveDataset",
})  # fmt: skip
_JOINING = frozenset({"ConcatenateDataset", "ZipDataset"})
_PASSED = frozenset({
    "AssertNextDataset", "BatchDataset", "CacheDataset", "ExperimentalMapAndBatchDataset",
    "ExperimentalParseExampleDataset", "ExperimentalRebatchDataset", "FilterDataset",
    "FinalizeDataset", "MapAndBatchDataset", "MapDataset", "MaxIntraOpParallelismDataset",
    "ModelDataset", "OptimizeDataset", "OptionsDataset", "PaddedBatchDataset",
    "ParallelBatchDataset", "ParallelMapDataset", "ParseExampleDataset", "PrefetchDataset",
    "PrivateThreadPoolDataset", "RebatchDataset", "RepeatDataset", "RewriteDataset",
    "ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset", "SkipDataset", "TakeDataset",
    "UnbatchDataset", "WindowDataset",
})  # fmt: skip
_OF_TENSORS = frozenset({"TensorDataset", "TensorSliceDataset"})
_UNSHARDABLE = _OF_TENSORS | {"GeneratorDataset", "RangeDataset"}
# What is put at the end of a pipeline stays there when its elements are shared out.
_AT_THE_END = frozenset({"FinalizeDataset", "OptionsDataset", "PrefetchDataset"})


def _is_of(op: str, names: frozenset[str]) -> bool:
    return re.sub(r"V\d+$", "", op) in names


@dataclasses.dataclass(frozen=True)
class _MadeNode:
    """The node of a dataset that a rewrite put in."""

    node_def: pb.NodeDef

    @property
    def name(self) -> str:
        return self.node_def.name

    @property
    def op(self) -> str:
        return self.node_def.op

    def attr(self, name: str) -> Any:
        return from_proto(self.node_def.attr[name])


def _made_node(op: str, types: Types, shapes: Shapes, **attrs: Any) -> _MadeNode:
    node_def = pb.NodeDef(name=f"{op}/_rewritten", op=op)
    for name, value in {**attrs, "output_types": types}.items():
        node_def.attr[name].CopyFrom(to_proto(value))
    node_def.attr["output_shapes"].list.shape.extend(map(shape_to_proto, shapes))
    return _MadeNode(node_def)


def _remade(step: StepState, dataset: Dataset, inputs: Iterable[Any]) -> Dataset:
    """What the dataset's node makes of other inputs."""
    assert dataset.origin is not None
    node = dataset.origin.node
    kernel = KernelDef(node.op, type(dataset))
    context = (OpKernelContext(node, step),) if kernel.needs_context else ()
    return as_dataset(bind(kernel, node)(*context, *inputs))


def _over(step: StepState, dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    """The dataset made of other datasets; itself if they are its own."""
    if isinstance(dataset, GraphDataset):
        return dataset.over(_over(step, dataset.input, inputs))
    if all(one is other for one, other in zip(inputs, inputs_of(dataset), strict=True)):
        return dataset
    assert dataset.origin is not None
    given, made = dataset.origin.inputs, iter(inputs)
    return _remade(
        step, dataset, (each if dataset_in(each) is None else next(made) for each in given)
    )


@dataclasses.dataclass(frozen=True)
class _Sharding:
    """The rewrites, for one worker of several; `step` knows the functions of the pipeline."""

    step: StepState
    num_workers: int
    index: int
    num_replicas: int

    def by_file(self, dataset: Dataset) -> tuple[Dataset, str]:
        """The pipeline with whole files for the worker, and why it is not done (empty if it is).

        What was done before such a reason was met stays done, as in TensorFlow.
        """
        op, inputs = op_of(dataset), inputs_of(dataset)
        if isinstance(dataset, GraphDataset):
            made, reason = self._inside(dataset).by_file(dataset.input)
            return dataset.over(made), reason
        if op == "AssertCardinalityDataset":  # what it expects is no longer true
            return self.by_file(inputs[0])
        if _is_of(op, _UNSHARDABLE):
            return dataset, f"Found an unshardable source dataset: {op}"
        if _is_of(op, _JOINING):
            return self._first_by_file(dataset, len(inputs))
        if _is_of(op, _READERS):
            return self._reading(dataset)
        if _is_of(op, _OF_FUNCTIONS):
            if (made_behind := self._behind_lists(dataset)) is not None:
                return made_behind, ""
            if self._has_reader(dataset):
                return self._reading(dataset)
            if _is_of(op_of(inputs[0]), _PASSED) and self._has_reader(inputs[0]):
                made, reason = self._reading(inputs[0])
                return _over(self.step, dataset, [made, *inputs[1:]]), reason
        elif not _is_of(op, _PASSED):
            return dataset, _not_shardable(op)
        return self._first_by_file(dataset, 1)

    def _inside(self, dataset: GraphDataset) -> _Sharding:
        return dataclasses.replace(self, step=dataset.step_for(self.step))

    def _first_by_file(self, dataset: Dataset, count: int) -> tuple[Dataset, str]:
        """The dataset over its first inputs sharded by files, up to one that cannot be."""
        inputs, reason = inputs_of(dataset), ""
        for number in range(count):
            if not reason:
                inputs[number], reason = self.by_file(inputs[number])
        return _over(self.step, dataset, inputs), reason

    def _reading(self, dataset: Dataset) -> tuple[Dataset, str]:
        """A dataset that reads the files that its input names, over the worker's part of them.

        Shuffles before that would give workers the same files; the first one comes after it.
        """
        if isinstance(dataset, GraphDataset):
            made, reason = self._inside(dataset)._reading(dataset.input)
            return dataset.over(made), reason
        assert dataset.origin is not None
        first, *rest = dataset.origin.inputs
        source, shuffle = dataset_in(first), None
        if source is None:
            return dataset, (
                "Unable to shard this input. You may need to wrap the inputs to your reader "
                f"dataset in a TensorSliceDataset. The reader is {op_of(dataset)}"
            )
        for op in SHUFFLES:
            if shuffle is None:
                source, shuffle = self._without(source, op)
        source = self.shard(source)
        if shuffle is not None and shuffle.origin is not None:
            source = _remade(self.step, shuffle, (source, *shuffle.origin.inputs[1:]))
        return _remade(self.step, dataset, (source, *rest)), ""

    def _without(self, dataset: Dataset, op: str) -> tuple[Dataset, Dataset | None]:
        """The pipeline without shuffles of an op, and that of them which came first."""
        if isinstance(dataset, GraphDataset):
            made, shuffle = self._without(dataset.input, op)
            return dataset.over(made), shuffle
        found = [self._without(each, op) for each in inputs_of(dataset)]
        shuffles = [shuffle for _, shuffle in found if shuffle is not None]
        if op_of(dataset) == op:
            return found[0][0], shuffles[-1] if shuffles else dataset
        made = _over(self.step, dataset, [each for each, _ in found])
        return made, shuffles[-1] if shuffles else None

    def _behind_lists(self, dataset: Dataset) -> Dataset | None:
        """The dataset with a shard behind a function's datasets of slices of a tensor.

        None where no such function leads to it.
        """
        first, *rest = inputs_of(dataset)
        op = op_of(first)
        made: Dataset | None = None
        if _is_of(op, _OF_FUNCTIONS) and op_of(inputs_of(first)[0]) in _OF_TENSORS:
            made = self.shard(first)
        elif _is_of(op, _PASSED):
            made = self._behind_lists(first)
        return None if made is None else _over(self.step, dataset, [made, *rest])

    def _has_reader(self, dataset: Dataset) -> bool:
        """Whether the dataset's function, or one that it hands on, reads files."""
        function = _function_of(dataset.origin.node.node_def if dataset.origin else pb.NodeDef())
        if not function:
            return False
        library = dataset.step_for(self.step).function_definitions([function])
        return _reads({each.signature.name: each for each in library.function}, function)

    def by_data(self, dataset: Dataset) -> Dataset:
        """The pipeline with one element of every `num_workers`."""
        if isinstance(dataset, GraphDataset):
            return dataset.over(self.by_data(dataset.input))
        if op_of(dataset) in _AT_THE_END:
            first, *rest = inputs_of(dataset)
            return _over(self.step, dataset, [self.by_data(first), *rest])
        if op_of(dataset) == "RebatchDatasetV2":
            dataset = self._rebatched(dataset)
        return self.shard(dataset)

    def by_hint(self, dataset: Dataset) -> Dataset:
        """The pipeline whose own shards, where they are hints, are the worker's."""
        if isinstance(dataset, GraphDataset):
            return dataset.over(self.by_hint(dataset.input))
        made = _over(self.step, dataset, [self.by_hint(each) for each in inputs_of(dataset)])
        if isinstance(made, ShardDataset) and made.num_shards == SHARD_HINT:
            return self.shard(made.input)
        return made

    def shard(self, dataset: Dataset) -> Dataset:
        """The worker's part of a dataset's elements; each worker has to have one."""
        given = (dataset, np.int64(self.num_workers), np.int64(self.index))
        shapes = dataset.output_shapes
        node = _made_node("ShardDataset", dataset.output_types, shapes, require_non_empty=True)
        return as_dataset(bind(KernelDef("ShardDataset", ShardDataset), node)(*given))

    def _rebatched(self, dataset: Dataset) -> Dataset:
        """Equal parts of batches, which do not depend on what other workers get."""
        if self.num_replicas < 1:
            raise InvalidArgumentError(
                "Cannot rewrite RebatchDatasetV2 to legacy RebatchDataset with invalid "
                f"num_replicas argument. `num_replicas` is {self.num_replicas}, but expected to "
                "be >= 1."
            )
        shapes = tuple(each and (-1, *each[1:]) for each in dataset.output_shapes)
        node = _made_node("RebatchDataset", dataset.output_types, shapes, use_fallback=True)
        given = (inputs_of(dataset)[0], np.int64(self.num_replicas))
        return as_dataset(bind(KernelDef("RebatchDataset", SplitBatchesDataset), node)(*given))


def _function_of(node: pb.NodeDef) -> str:
    """The name of the function `f` of a dataset's node; empty when it has none."""
    return node.attr["f"].func.name if "f" in node.attr else ""


def _reads(functions: dict[str, pb.FunctionDef], name: str) -> bool:
    return any(
        _is_of(node.op, _READERS)
        or (_is_of(node.op, _OF_FUNCTIONS) and _reads(functions, _function_of(node)))
        for node in functions[name].node_def
        if node.input
    )


def _not_shardable(op: str) -> str:
    return (
        f"Did not find a shardable source, walked to a node which is not a dataset: {op}. "
        "Consider either turning off auto-sharding or switching the auto_shard_policy to DATA to "
        "shard this dataset. You can do this by creating a new `tf.data.Options()` object then "
        "setting `options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA` "
        "before applying the options object to the dataset via `dataset.with_options(options)`."
    )


def auto_shard_dataset(
    context: OpKernelContext,
    input_dataset: Any,
    num_workers: Any,
    index: Any,
    *,
    auto_shard_policy: int,
    num_replicas: int,
) -> Dataset:
    """AutoShardDataset: the worker's part of a pipeline; the pipeline's own policy counts first.

    Without a policy files are shared out if the pipeline reads files, else its elements.
    """
    workers = scalar_argument(num_workers, "num_workers")
    own = scalar_argument(index, "index")
    if workers < 1:
        raise InvalidArgumentError("num_workers must be greater than zero.")
    if not 0 <= own < workers:
        raise InvalidArgumentError(f"index must be between 0 and {workers - 1}")
    if auto_shard_policy not in _POLICIES.values():
        raise InvalidArgumentError("auto_shard_policy is invalid.")
    dataset = as_dataset(input_dataset)
    policy = options_of(dataset).distribute_options.auto_shard_policy or auto_shard_policy
    if (
        not is_rewritable(dataset)
        or policy == pb.DistributeOptions.OFF
        or (policy == pb.DistributeOptions.FILE and workers == 1)
    ):
        return dataset
    sharding = _Sharding(context.step, workers, own, num_replicas)
    if policy == pb.DistributeOptions.DATA:
        return sharding.by_data(dataset)
    if policy == pb.DistributeOptions.HINT:
        return sharding.by_hint(dataset)
    made, reason = sharding.by_file(dataset)
    if reason and policy == pb.DistributeOptions.FILE:
        raise NotFoundError(reason)
    return sharding.by_data(made) if reason else made


def experimental_auto_shard_dataset(
    context: OpKernelContext,
    input_dataset: Any,
    num_workers: Any,
    index: Any,
    *,
    auto_shard_policy: int,
) -> Dataset:
    """ExperimentalAutoShardDataset: the same, which knows no number of replicas."""
    return auto_shard_dataset(
        context,
        input_dataset,
        num_workers,
        index,
        auto_shard_policy=auto_shard_policy,
        num_replicas=0,
    )


KERNELS = (
    KernelDef("AutoShardDataset", auto_shard_dataset),
    KernelDef("ExperimentalAutoShardDataset", experimental_auto_shard_dataset),
)
