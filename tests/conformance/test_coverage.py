"""Every registered kernel runs in at least one recorded case."""

from __future__ import annotations

import pathlib

from runtime.foundation.errors import OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import kernel_defs
from tests.conformance.shown_types import RecordedNode, answered_nodes, recorded_cases

ROOT = pathlib.Path(__file__).parent.parent.parent
_SESSION_TENSORS = "tests/unit/runtime/sessions/test_state.py"
# What a case cannot hold, for TensorFlow's answer is another one each time or names a device, and
# the test that runs it.
ELSEWHERE = {
    "DeleteSessionTensor": _SESSION_TENSORS,
    "GetSessionHandle": _SESSION_TENSORS,
    "GetSessionHandleV2": _SESSION_TENSORS,
    "GetSessionTensor": _SESSION_TENSORS,
    "_Recv": "tests/unit/runtime/graph/test_partition.py",
    "_Send": "tests/unit/runtime/graph/test_partition.py",
}
# TensorFlow has the op and no kernel that a node of it can reach: nothing to compare with.
WITHOUT_REFERENCE = {"TopK"}
# Answers of TensorFlow 2.21 that are not followed: docs/kernel_differences.md.
DIFFERENT = {"Round"}
# Still without a case. The list only gets shorter.
_WITHOUT_CASE = """
    AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 AnonymousRandomSeedGenerator
    AssertNextDataset AssertPrevDataset AutoShardDataset ChooseFastestDataset DatasetToTFRecord
    DeleteIterator DeleteMemoryCache DeleteRandomSeedGenerator DeleteSeedGenerator
    DeserializeIterator ExperimentalAssertNextDataset ExperimentalAutoShardDataset
    ExperimentalChooseFastestDataset ExperimentalDatasetCardinality ExperimentalDatasetToTFRecord
    ExperimentalIteratorGetDevice ExperimentalMatchingFilesDataset ExperimentalRandomDataset
    ExperimentalScanDataset FixedLengthRecordDataset GlobalShuffleDataset Iterator
    IteratorFromStringHandle IteratorGetDevice MatchingFilesDataset MergeV2Checkpoints
    PaddedBatchDataset ParallelFilterDataset PlaceholderV2 RewriteDataset Select SerializeIterator
    SnapshotChunkDataset SnapshotDatasetReader SnapshotNestedDatasetReader TFRecordDatasetV2
    TensorArrayGradV2 WindowOp _HostRecv _HostSend _SwitchN
    AnonymousMultiDeviceIterator AnonymousMultiDeviceIteratorV3 DebugGradientIdentity
    DebugGradientRefIdentity DebugIdentityV2 DeleteMultiDeviceIterator ExperimentalRebatchDataset
    FixedLengthRecordReader KMC2ChainInitialization KmeansPlusPlusInitialization OrderedMapClear
    SparseMatrixOrderingAMD
"""


def ops_of_kernels_without_a_case() -> set[str]:
    """The ops that have a kernel which no recorded case reaches in a step without an error."""
    kernels = list(kernel_defs())
    registry = KernelRegistry(kernels)
    reached: set[int] = set()
    for _, case, answers in recorded_cases():
        for node in answered_nodes(case, answers):
            try:
                reached.add(id(registry.find(RecordedNode(node))))
            except OpError:  # a call, a placeholder of a function's type
                continue
    return {kernel.op for kernel in kernels if id(kernel) not in reached}


def test_every_kernel_runs_in_a_recorded_case() -> None:
    excused = ELSEWHERE.keys() | WITHOUT_REFERENCE | DIFFERENT | set(_WITHOUT_CASE.split())
    assert ops_of_kernels_without_a_case() <= excused


def test_the_tests_named_for_the_others_have_them() -> None:
    missing = [op for op, path in ELSEWHERE.items() if op not in (ROOT / path).read_text()]
    assert missing == []
