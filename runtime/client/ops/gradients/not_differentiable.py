"""Ops that TensorFlow registers as not differentiable, beside those that `runtime.graph` names.

Backpropagation ends at them without an error.

TF: the calls of NotDifferentiable in tensorflow/python/ops
"""

from __future__ import annotations

NOT_DIFFERENTIABLE = frozenset((
    "AsString", "Assign", "AssignAdd", "AssignSub", "AudioMicrofrontend", "AudioSummary",
    "AudioSummaryV2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "CTCBeamSearchDecoder",
    "CTCGreedyDecoder", "DecodeBase64", "DecodePaddedRaw", "DecodeProtoV2", "DecodeRaw",
    "DeleteSessionTensor", "DenseToDenseSetOperation", "DenseToSparseSetOperation",
    "DrawBoundingBoxes", "EditDistance", "EmptyTensorMap", "EncodeBase64", "EncodeProto",
    "ExtractGlimpse", "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient", "FixedLengthRecordReader",
    "GenerateBoundingBoxProposals", "GenerateVocabRemapping", "GetSessionHandle",
    "GetSessionHandleV2", "GetSessionTensor", "HSVToRGB", "HashTable", "HashTableV2",
    "HistogramSummary", "IdentityReader", "ImageSummary", "InitializeTable",
    "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "InitializeTableV2",
    "Invert", "LMDBReader", "LeftShift", "LoadAndRemapMatrix", "LookupTableFind",
    "LookupTableFindV2", "LookupTableInsert", "LookupTableInsertV2", "LookupTableSize",
    "LookupTableSizeV2", "LoopCond", "MergeSummary", "Multinomial", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2", "MutableHashTableV2", "NonMaxSuppression",
    "NonMaxSuppressionV2", "NonMaxSuppressionWithOverlaps", "ParameterizedTruncatedNormal",
    "ParseTensor", "PopulationCount", "PyFunc", "PyFuncStateless", "Queue", "QueueClose",
    "QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo", "QueueEnqueue", "QueueEnqueueMany",
    "QueueSize", "RaggedRange", "RandomCrop", "RandomIndexShuffle", "RandomShuffle",
    "ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted", "ReaderRead", "ReaderReadUpTo",
    "ReaderReset", "ReaderRestoreState", "ReaderSerializeState", "ReduceDataset", "ReduceJoin",
    "RegexReplace", "ResizeBilinearGrad", "RightShift", "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2", "ScalarSummary", "ScatterAdd", "ScatterDiv", "ScatterMul",
    "ScatterNdAdd", "ScatterNdDiv", "ScatterNdMul", "ScatterNdSub", "ScatterNdUpdate",
    "ScatterSub", "SdcaFprint", "SdcaOptimizer", "SdcaOptimizerV2", "SdcaShrinkL1",
    "SerializeTensor", "SetSize", "SparseAddGrad", "SparseConcat", "SparseMatrixNNZ",
    "SparseMatrixZeros", "SparseToSparseSetOperation", "Stack", "StackClose", "StackPop",
    "StackPush", "StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomNormal",
    "StatelessRandomNormalV2", "StatelessRandomPoisson", "StatelessRandomShuffle",
    "StatelessRandomUniform", "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt",
    "StatelessRandomUniformIntV2", "StatelessRandomUniformV2", "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2", "StringJoin", "StringSplit", "StringToHashBucket",
    "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber", "TFRecordReader",
    "TPUReplicatedInput", "TensorArray", "TensorArrayClose", "TensorArrayCloseV2",
    "TensorArrayCloseV3", "TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3",
    "TensorArrayGradWithShape", "TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3",
    "TensorArrayV2", "TensorArrayV3", "TensorListConcatLists", "TensorListElementShape",
    "TensorListLength", "TensorListPushBackBatch", "TensorSummary", "TensorSummaryV2",
    "TextLineReader", "Timestamp", "VarIsInitializedOp", "VariableShape", "WholeFileReader",
    "XlaVariadicReduce",
))  # fmt: skip
