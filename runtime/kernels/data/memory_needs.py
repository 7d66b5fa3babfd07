"""What the kernels of this room allocate themselves.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple. The elements that an
iterator gives are made by functions, whose nodes have bounds of their own, or are as large as what
the dataset's input gives; batches of them are limited by `check_allocation`.
"""

from __future__ import annotations

import numpy as np

from runtime.framework.data.optional import Optional
from runtime.framework.op_kernel import MemoryNeed, OpKernelContext
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.queues import queue_of
from runtime.kernels.memory_sizes import POINTER, VIEW, dense, number, shape_of, size_of

V = TensorValue


def _inside(value: V) -> int:
    """Return the bytes of the tensors in variants, each with an object of its own."""
    if isinstance(value, np.ndarray):
        if not value.dtype.hasobject:
            return VIEW + value.nbytes
        return sum(map(_inside, value.ravel().tolist())) + VIEW + POINTER * value.size
    if isinstance(value, TensorList):
        zeros = dense(value.element_shape or (), value.element_dtype.numpy)
        items = value.items()
        return sum(zeros + VIEW if each is None else _inside(each) for each in items) + VIEW
    if isinstance(value, Optional):
        return sum(map(_inside, value.components or ())) + VIEW
    if isinstance(value, RaggedTensorVariant):
        return sum(map(_inside, (*value.nested_splits, value.values)))
    return VIEW + size_of(value)


def _zeros_like(x: V) -> int:
    return _inside(x)


def _sum(*inputs: V) -> int:
    # zeros take the place of items that only one list has
    return 4 * sum(map(_inside, inputs))


def _dequeued(context: OpKernelContext, handle: ResourceHandle, n: V) -> int:
    queue, count = queue_of(context, handle), max(number(np.ravel(np.asarray(n))[:1]), 0)
    pairs = list(zip(queue.shapes, queue.component_types, strict=False))
    each = sum(dense(shape or (), kind.numpy) for shape, kind in pairs)
    return count * (2 * each + 4 * POINTER)


def _enqueued(handle: V, *components: V) -> int:
    rows = (shape_of(components[0]) or (0,))[0]
    return rows * (len(components) * (VIEW + POINTER) + VIEW)


# What these give depends on a dataset, a reader or files, not on their inputs.
OF_ELEMENTS = (
    "DatasetCardinality", "DatasetToSingleElement", "DatasetToTFRecord",
    "ExperimentalDatasetToTFRecord", "GetElementAtIndex", "IteratorGetNext",
    "IteratorGetNextAsOptional", "IteratorGetNextSync", "MakeIterator",
    "MultiDeviceIteratorGetNextFromShard", "MultiDeviceIteratorInit", "OneShotIterator",
    "ReaderRead", "ReaderReadUpTo", "ReaderReadUpToV2", "ReaderReadV2",
    "ReduceDataset", "SaveDataset",
)  # fmt: skip

MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "ZerosLike": _zeros_like,
    "AddN": _sum,
    **dict.fromkeys(
        (
            "QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2",
        ),
        _dequeued,
    ),
    **dict.fromkeys(("QueueEnqueueMany", "QueueEnqueueManyV2"), _enqueued),
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3",
            "AnonymousMemoryCache", "AnonymousMultiDeviceIterator",
            "AnonymousMultiDeviceIteratorV3", "AnonymousRandomSeedGenerator",
            "AnonymousSeedGenerator", "AssertCardinalityDataset", "AssertNextDataset",
            "AssertPrevDataset", "AutoShardDataset", "BatchDataset", "BatchDatasetV2",
            "BytesProducedStatsDataset", "CacheDataset", "CacheDatasetV2",
            "CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset", "SnapshotDataset",
            "ExperimentalParseExampleDataset", "ParseExampleDataset", "ParseExampleDatasetV2",
            "ExperimentalThreadPoolDataset", "ThreadPoolDataset",
            "ChooseFastestDataset", "ConcatenateDataset", "DatasetCardinality",
            "DatasetFingerprint", "DatasetFromGraph", "DatasetToGraph",
            "DatasetToGraphV2", "DatasetToSingleElement", "DatasetToTFRecord",
            "DeleteIterator", "DeleteMemoryCache", "DeleteMultiDeviceIterator",
            "DeleteRandomSeedGenerator", "DeleteSeedGenerator",
            "DenseToSparseBatchDataset", "DeserializeIterator",
            "DirectedInterleaveDataset", "DummyMemoryCache", "DummySeedGenerator",
            "ExperimentalAssertNextDataset", "ExperimentalAutoShardDataset",
            "ExperimentalBytesProducedStatsDataset", "ExperimentalChooseFastestDataset",
            "ExperimentalDatasetCardinality", "ExperimentalDatasetToTFRecord",
            "ExperimentalDenseToSparseBatchDataset", "ExperimentalDirectedInterleaveDataset",
            "ExperimentalParallelInterleaveDataset", "ExperimentalSlidingWindowDataset",
            "ExperimentalGroupByReducerDataset", "ExperimentalGroupByWindowDataset",
            "ExperimentalIgnoreErrorsDataset", "ExperimentalIteratorGetDevice",
            "ExperimentalLatencyStatsDataset", "ExperimentalMapAndBatchDataset",
            "ExperimentalMatchingFilesDataset",
            "ExperimentalMaxIntraOpParallelismDataset",
            "ExperimentalNonSerializableDataset",
            "ExperimentalPrivateThreadPoolDataset", "ExperimentalRandomDataset",
            "ExperimentalRebatchDataset", "ExperimentalScanDataset",
            "ExperimentalSleepDataset", "ExperimentalSqlDataset",
            "ExperimentalTakeWhileDataset", "ExperimentalUnbatchDataset",
            "ExperimentalUniqueDataset", "FIFOQueue", "FIFOQueueV2", "FilterDataset",
            "FinalizeDataset", "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2",
            "FixedLengthRecordReader", "FixedLengthRecordReaderV2", "FlatMapDataset",
            "GeneratorDataset", "GetElementAtIndex", "GetOptions",
            "GlobalShuffleDataset", "GroupByReducerDataset", "GroupByWindowDataset",
            "IdentityReader", "IdentityReaderV2", "IgnoreErrorsDataset",
            "InterleaveDataset", "Iterator", "IteratorFromStringHandle",
            "IteratorFromStringHandleV2", "IteratorGetDevice", "IteratorGetNext",
            "IteratorGetNextAsOptional", "IteratorGetNextSync",
            "IteratorToStringHandle", "IteratorV2", "LatencyStatsDataset",
            "LegacyParallelInterleaveDatasetV2", "ListDataset", "LoadDataset",
            "MakeIterator", "MapAndBatchDataset", "MapDataset", "MatchingFilesDataset",
            "MaxIntraOpParallelismDataset", "ModelDataset", "MultiDeviceIterator",
            "MultiDeviceIteratorFromStringHandle",
            "MultiDeviceIteratorGetNextFromShard", "MultiDeviceIteratorInit",
            "MultiDeviceIteratorToStringHandle", "NonSerializableDataset",
            "OneShotIterator", "OptimizeDataset", "OptimizeDatasetV2",
            "OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone",
            "OptionsDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2",
            "PaddingFIFOQueue", "PaddingFIFOQueueV2", "ParallelBatchDataset",
            "ParallelFilterDataset", "ParallelInterleaveDataset",
            "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3",
            "ParallelInterleaveDatasetV4", "ParallelMapDataset", "ParallelMapDatasetV2",
            "PrefetchDataset", "PriorityQueue", "PriorityQueueV2",
            "PrivateThreadPoolDataset", "QueueClose", "QueueCloseV2", "QueueDequeue",
            "QueueDequeueV2", "QueueEnqueue", "QueueEnqueueV2", "QueueIsClosed",
            "QueueIsClosedV2", "QueueSize", "QueueSizeV2", "RandomDataset",
            "RandomDatasetV2", "RandomShuffleQueue", "RandomShuffleQueueV2",
            "RangeDataset", "ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2",
            "ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2",
            "ReaderRead", "ReaderReadUpTo", "ReaderReadUpToV2", "ReaderReadV2",
            "ReaderReset", "ReaderResetV2", "ReaderRestoreState",
            "ReaderRestoreStateV2", "ReaderSerializeState", "ReaderSerializeStateV2",
            "RebatchDataset", "RebatchDatasetV2", "ReduceDataset",
            "RepeatDataset", "RewriteDataset", "SamplingDataset", "SaveDataset",
            "SaveDatasetV2", "ScanDataset", "SerializeIterator", "ShardDataset",
            "ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2", "ShuffleDataset",
            "ShuffleDatasetV2", "ShuffleDatasetV3", "SkipDataset", "SleepDataset",
            "SlidingWindowDataset", "SnapshotChunkDataset", "SnapshotDatasetReader",
            "SnapshotDatasetV2", "SnapshotNestedDatasetReader",
            "SparseTensorSliceDataset", "SqlDataset", "TFRecordDataset",
            "TFRecordDatasetV2", "TFRecordReader", "TFRecordReaderV2", "TakeDataset",
            "TakeWhileDataset", "TensorDataset", "TensorSliceDataset",
            "TextLineDataset", "TextLineReader", "TextLineReaderV2", "UnbatchDataset",
            "UniqueDataset", "UnwrapDatasetVariant", "WholeFileReader",
            "WholeFileReaderV2", "WindowDataset", "WindowOp", "WrapDatasetVariant",
            "ZipDataset",
        ),
        4,
    ),
}  # fmt: skip
