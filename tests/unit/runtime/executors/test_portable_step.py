"""Which ops a step may run in another process."""

from __future__ import annotations

from runtime.executors.portable_step import NOT_PORTABLE_OPS
from runtime.graph.function_library import op_info
from runtime.registrations import kernel_registry

# Reviewed ops: not stateful by their signature, although their kernels use the step's context.
# They read its cancellation, its functions or their node's name; a dataset does nothing until it
# is iterated.
REVIEWED = frozenset(
    (
        "ExperimentalParallelInterleaveDataset", "MapDefun",
        "XlaReduce", "XlaReduceWindow",
        "XlaScatter", "XlaSelectAndScatter", "XlaVariadicReduce", "XlaVariadicReduceV2",
        "XlaVariadicSort",
        "AutoShardDataset", "CTCBeamSearchDecoder", "DatasetCardinality", "DatasetFingerprint",
        "DatasetFromGraph", "ExperimentalAutoShardDataset",
        "DatasetToGraph", "DatasetToGraphV2", "For", "GatherNd", "GetElementAtIndex",
        "HistogramSummary", "LegacyParallelInterleaveDatasetV2", "OptimizeDataset",
        "OptimizeDatasetV2", "ParallelInterleaveDataset",
        "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3",
        "ParallelInterleaveDatasetV4", "PartitionedCall", "Placeholder", "PlaceholderV2",
        "RaggedTensorToVariantGradient", "RandomIndexShuffle", "ShuffleAndRepeatDataset",
        "ShuffleDataset", "StatelessCase",
        "StatelessIf", "StatelessSampleDistortedBoundingBox", "StatelessWhile", "SymbolicGradient",
        "TensorMapLookup", "TensorSummary",
    )
)  # fmt: skip


def test_every_op_whose_kernel_sees_the_step_was_looked_at() -> None:
    registry = kernel_registry()
    seeing = set()
    for op in registry.ops:
        info = op_info(op)
        if info is None or info.is_stateful or any(each.is_ref for each in info.inputs):
            continue
        if any(kernel.needs_context for kernel in registry.kernels_of(op)):
            seeing.add(op)
    assert seeing - NOT_PORTABLE_OPS <= REVIEWED, "may they run in another process?"
