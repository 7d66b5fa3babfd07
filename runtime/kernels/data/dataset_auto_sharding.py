"""AutoShardDataset, which rewrites a pipeline so that each worker gets a part of the elements.

The policy FILE inserts a ShardDataset where the pipeline reads file names. DATA inserts a
ShardDataset at the end of the pipeline. HINT replaces each ShardDataset whose number of shards is
SHARD_HINT.

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
from runtime.framework.data.dataset import Dataset, as_dataset, scalar_argument
from runtime.framework.data.dataset_rewrites import (
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
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.dataset_graphs import GraphDataset
from runtime.kernels.data.dataset_rebatching import SplitBatchesDataset
from runtime.kernels.data.dataset_sharding import SHARD_HINT, ShardDataset

_POLICIES = pb.DistributeOptions.AutoShardPolicy
# The sets below contain names of ops without their version suffix, such as V2.
_READERS = frozenset({"FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"})
_FUNCTION_DATASETS = frozenset({
    "ExperimentalParallelInterleaveDataset", "FlatMapDataset", "InterleaveDataset",
    "LegacyParallelInterleaveDataset", "ParallelInterleaveDataset",
})  # fmt: skip
_COMBINING = frozenset({"ConcatenateDataset", "ZipDataset"})
_PASS_THROUGH = frozenset({
    "AssertNextDataset", "BatchDataset", "CacheDataset", "ExperimentalMapAndBatchDataset",
    "ExperimentalParseExampleDataset", "ExperimentalRebatchDataset", "FilterDataset",
    "FinalizeDataset", "MapAndBatchDataset", "MapDataset", "MaxIntraOpParallelismDataset",
    "ModelDataset", "OptimizeDataset", "OptionsDataset", "PaddedBatchDataset",
    "ParallelBatchDataset", "ParallelMapDataset", "ParseExampleDataset", "PrefetchDataset",
    "PrivateThreadPoolDataset", "RebatchDataset", "RepeatDataset", "RewriteDataset",
    "ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset", "SkipDataset", "TakeDataset",
    "UnbatchDataset", "WindowDataset",
})  # fmt: skip
_TENSOR_SOURCES = frozenset({"TensorDataset", "TensorSliceDataset"})
_UNSHARDABLE = _TENSOR_SOURCES | {"GeneratorDataset", "RangeDataset"}
# If these datasets are at the end of a pipeline, the policy DATA inserts the shard before them.
_TRAILING = frozenset({"FinalizeDataset", "OptionsDataset", "PrefetchDataset"})


def _is_one_of(op: str, names: frozenset[str]) -> bool:
    return re.sub(r"V\d+$", "", op) in names


@dataclasses.dataclass(frozen=True)
class _InsertedNode:
    """The node of a dataset that a rewrite inserts."""

    node_def: pb.NodeDef

    @property
    def name(self) -> str:
        return self.node_def.name

    @property
    def op(self) -> str:
        return self.node_def.op

    def attr(self, name: str) -> Any:
        return from_proto(self.node_def.attr[name])


def _inserted_node(op: str, types: Types, shapes: Shapes, **attrs: Any) -> _InsertedNode:
    node_def = pb.NodeDef(name=f"{op}/_rewritten", op=op)
    for name, value in {**attrs, "output_types": types}.items():
        node_def.attr[name].CopyFrom(to_proto(value))
    node_def.attr["output_shapes"].list.shape.extend(map(shape_to_proto, shapes))
    return _InsertedNode(node_def)


def _rebuilt(step: StepState, dataset: Dataset, inputs: Iterable[TensorValue]) -> Dataset:
    """Return the dataset that the node of `dataset` creates from `inputs`."""
    assert dataset.origin is not None
    node = dataset.origin.node
    kernel = KernelDef(node.op, type(dataset))
    context = (OpKernelContext(node, step),) if kernel.needs_context else ()
    return as_dataset(bind(kernel, node)(*context, *inputs))


def _with_inputs(step: StepState, dataset: Dataset, inputs: Sequence[Dataset]) -> Dataset:
    """Return `dataset` with `inputs` as its input datasets.

    Returns `dataset` itself if it has these inputs already.
    """
    if isinstance(dataset, GraphDataset):
        return dataset.with_input(_with_inputs(step, dataset.input, inputs))
    if all(one is other for one, other in zip(inputs, inputs_of(dataset), strict=True)):
        return dataset
    assert dataset.origin is not None
    given, made = dataset.origin.inputs, iter(inputs)
    return _rebuilt(
        step, dataset, (each if dataset_in(each) is None else next(made) for each in given)
    )


@dataclasses.dataclass(frozen=True)
class _Sharding:
    """Rewrites pipelines for the worker at `index` of `num_workers` workers.

    `step` has the functions of the pipeline.
    """

    step: StepState
    num_workers: int
    index: int
    num_replicas: int

    def by_file(self, dataset: Dataset) -> tuple[Dataset, str]:
        """Rewrite a pipeline to read only the worker's files; return it and a failure's reason.

        The reason is an empty string if the whole pipeline was rewritten. Otherwise the rewrites
        that were made before the failure are kept, as in TensorFlow.
        """
        op, inputs = op_of(dataset), inputs_of(dataset)
        if isinstance(dataset, GraphDataset):
            made, reason = self._within_graph(dataset).by_file(dataset.input)
            return dataset.with_input(made), reason
        if op == "AssertCardinalityDataset":  # the worker's part has another number of elements
            return self.by_file(inputs[0])
        if _is_one_of(op, _UNSHARDABLE):
            return dataset, f"Found an unshardable source dataset: {op}"
        if _is_one_of(op, _COMBINING):
            return self._inputs_by_file(dataset, len(inputs))
        if _is_one_of(op, _READERS):
            return self._reader_by_file(dataset)
        if _is_one_of(op, _FUNCTION_DATASETS):
            if (with_shard := self._shard_after_tensors(dataset)) is not None:
                return with_shard, ""
            if self._has_reader(dataset):
                return self._reader_by_file(dataset)
            if _is_one_of(op_of(inputs[0]), _PASS_THROUGH) and self._has_reader(inputs[0]):
                made, reason = self._reader_by_file(inputs[0])
                return _with_inputs(self.step, dataset, [made, *inputs[1:]]), reason
        elif not _is_one_of(op, _PASS_THROUGH):
            return dataset, _not_shardable(op)
        return self._inputs_by_file(dataset, 1)

    def _within_graph(self, dataset: GraphDataset) -> _Sharding:
        return dataclasses.replace(self, step=dataset.step_for(self.step))

    def _inputs_by_file(self, dataset: Dataset, count: int) -> tuple[Dataset, str]:
        """Shard the first `count` inputs by file; return the dataset and a failure's reason.

        The reason is an empty string if nothing failed. Inputs after the first failure are left
        unchanged.
        """
        inputs, reason = inputs_of(dataset), ""
        for number in range(count):
            if not reason:
                inputs[number], reason = self.by_file(inputs[number])
        return _with_inputs(self.step, dataset, inputs), reason

    def _reader_by_file(self, dataset: Dataset) -> tuple[Dataset, str]:
        """Shard the file names that `dataset` reads; return the dataset and a failure's reason.

        The reason is an empty string if nothing failed. A shuffle before the shard could give
        several workers the same file. Therefore shuffles are removed, and the first one is inserted
        after the shard.
        """
        if isinstance(dataset, GraphDataset):
            made, reason = self._within_graph(dataset)._reader_by_file(dataset.input)
            return dataset.with_input(made), reason
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
                source, shuffle = self._without_shuffles(source, op)
        source = self.shard(source)
        if shuffle is not None and shuffle.origin is not None:
            source = _rebuilt(self.step, shuffle, (source, *shuffle.origin.inputs[1:]))
        return _rebuilt(self.step, dataset, (source, *rest)), ""

    def _without_shuffles(self, dataset: Dataset, op: str) -> tuple[Dataset, Dataset | None]:
        """Return the pipeline without shuffles of type `op`, and the first shuffle or None."""
        if isinstance(dataset, GraphDataset):
            made, shuffle = self._without_shuffles(dataset.input, op)
            return dataset.with_input(made), shuffle
        found = [self._without_shuffles(each, op) for each in inputs_of(dataset)]
        shuffles = [shuffle for _, shuffle in found if shuffle is not None]
        if op_of(dataset) == op:
            return found[0][0], shuffles[-1] if shuffles else dataset
        made = _with_inputs(self.step, dataset, [each for each, _ in found])
        return made, shuffles[-1] if shuffles else None

    def _shard_after_tensors(self, dataset: Dataset) -> Dataset | None:
        """Insert a shard after an input that maps tensors to datasets, and return the dataset.

        Such an input is an interleave or a flat map over a tensor source; datasets of _PASS_THROUGH
        may follow it. Returns None if `dataset` has no such input.
        """
        first, *rest = inputs_of(dataset)
        op = op_of(first)
        made: Dataset | None = None
        if _is_one_of(op, _FUNCTION_DATASETS) and op_of(inputs_of(first)[0]) in _TENSOR_SOURCES:
            made = self.shard(first)
        elif _is_one_of(op, _PASS_THROUGH):
            made = self._shard_after_tensors(first)
        return None if made is None else _with_inputs(self.step, dataset, [made, *rest])

    def _has_reader(self, dataset: Dataset) -> bool:
        """Return whether the dataset's function, or a function nested in it, reads files."""
        function = _function_of(dataset.origin.node.node_def if dataset.origin else pb.NodeDef())
        if not function:
            return False
        library = dataset.step_for(self.step).function_definitions([function])
        return _reads_files({each.signature.name: each for each in library.function}, function)

    def by_data(self, dataset: Dataset) -> Dataset:
        """Return the pipeline, rewritten to keep one of every `num_workers` elements."""
        if isinstance(dataset, GraphDataset):
            return dataset.with_input(self.by_data(dataset.input))
        if op_of(dataset) in _TRAILING:
            first, *rest = inputs_of(dataset)
            return _with_inputs(self.step, dataset, [self.by_data(first), *rest])
        if op_of(dataset) == "RebatchDatasetV2":
            dataset = self._as_legacy_rebatch(dataset)
        return self.shard(dataset)

    def by_hint(self, dataset: Dataset) -> Dataset:
        """Return the pipeline with the worker's shard in place of each shard of SHARD_HINT."""
        if isinstance(dataset, GraphDataset):
            return dataset.with_input(self.by_hint(dataset.input))
        made = _with_inputs(self.step, dataset, [self.by_hint(each) for each in inputs_of(dataset)])
        if isinstance(made, ShardDataset) and made.num_shards == SHARD_HINT:
            return self.shard(made.input)
        return made

    def shard(self, dataset: Dataset) -> Dataset:
        """Return a ShardDataset of the worker's part of `dataset`, with `require_non_empty` set."""
        given = (dataset, np.int64(self.num_workers), np.int64(self.index))
        shapes = dataset.output_shapes
        node = _inserted_node("ShardDataset", dataset.output_types, shapes, require_non_empty=True)
        return as_dataset(bind(KernelDef("ShardDataset", ShardDataset), node)(*given))

    def _as_legacy_rebatch(self, dataset: Dataset) -> Dataset:
        """Return a RebatchDataset in place of `dataset`, which is a RebatchDatasetV2.

        RebatchDataset splits each batch independently of other batches. Raises InvalidArgumentError
        if `num_replicas` is less than 1.
        """
        if self.num_replicas < 1:
            raise InvalidArgumentError(
                "Cannot rewrite RebatchDatasetV2 to legacy RebatchDataset with invalid "
                f"num_replicas argument. `num_replicas` is {self.num_replicas}, but expected to "
                "be >= 1."
            )
        shapes = tuple(each and (-1, *each[1:]) for each in dataset.output_shapes)
        node = _inserted_node("RebatchDataset", dataset.output_types, shapes, use_fallback=True)
        given = (inputs_of(dataset)[0], np.int64(self.num_replicas))
        return as_dataset(bind(KernelDef("RebatchDataset", SplitBatchesDataset), node)(*given))


def _function_of(node: pb.NodeDef) -> str:
    """Return the name of the function `f` of a dataset's node, or an empty string."""
    return node.attr["f"].func.name if "f" in node.attr else ""


def _reads_files(functions: dict[str, pb.FunctionDef], name: str) -> bool:
    return any(
        _is_one_of(node.op, _READERS)
        or (_is_one_of(node.op, _FUNCTION_DATASETS) and _reads_files(functions, _function_of(node)))
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
    input_dataset: Dataset,
    num_workers: np.ndarray,
    index: np.ndarray,
    *,
    auto_shard_policy: int,
    num_replicas: int,
) -> Dataset:
    """AutoShardDataset: return the worker's part of a pipeline.

    The policy in the pipeline's options takes precedence over the attribute `auto_shard_policy`.
    The policy AUTO shards by file if that is possible, otherwise by data. Raises NotFoundError if
    the policy is FILE and sharding by file is not possible.
    """
    workers = scalar_argument(num_workers, "num_workers")
    own = scalar_argument(index, "index")
    if workers < 1:
        raise InvalidArgumentError("num_workers must be greater than zero.")
    if not 0 <= own < workers:
        raise InvalidArgumentError(f"index must be between 0 and {workers - 1}")
    if num_replicas < 0:
        raise InvalidArgumentError("num_replicas should be >= 0")
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
    input_dataset: Dataset,
    num_workers: np.ndarray,
    index: np.ndarray,
    *,
    auto_shard_policy: int,
) -> Dataset:
    """ExperimentalAutoShardDataset: do the same as AutoShardDataset, with `num_replicas` 0."""
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
