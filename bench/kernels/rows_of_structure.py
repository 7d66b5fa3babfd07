"""Rows of `bench.kernels` for ops that are not elementwise numerics, images or networks.

Arrays, indexing, sorting, segments, sparse and ragged tensors, strings, random numbers, linear
algebra, recurrent cells, quantised numbers, variables and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.kernels.rows import MILLION, Row, f32, i32, i64, one, positive, rng, words
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph


def arrays() -> Iterator[Row]:
    x, image = f32(64, 128, 256), f32(8, 56, 56, 64)
    yield one("arrays", "Transpose", x, np.int32([0, 2, 1]))
    yield one("arrays", "Transpose", image, np.int32([0, 3, 1, 2]), label="to NCHW")
    yield one("arrays", "ConcatV2", [image, image], np.int32(3))
    yield one("arrays", "Split", np.int32(2), x, num_split=4)
    yield one("arrays", "Pack", [x, x])
    yield one(
        "arrays",
        "StridedSlice",
        x,
        np.int32([0, 0, 0]),
        np.int32([64, 128, 256]),
        np.int32([1, 1, 2]),
    )
    yield one("arrays", "Pad", image, np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]))
    mirror = np.int32([[0, 0], [3, 3], [3, 3], [0, 0]])
    yield one("arrays", "MirrorPad", image, mirror, mode="REFLECT")
    yield one("arrays", "Tile", f32(128, 256), np.int32([8, 4]))
    yield one("arrays", "ReverseV2", x, np.int32([2]))
    yield one("arrays", "ReverseSequence", x, i32(128, 64) + 1, seq_dim=1)
    yield one("arrays", "Roll", x, np.int32(3), np.int32(1))
    yield one("arrays", "SpaceToDepth", image, block_size=2)
    yield one("arrays", "DepthToSpace", image, block_size=2)
    crops = np.int32([[0, 0], [0, 0]])
    yield one("arrays", "SpaceToBatchND", image, np.int32([2, 2]), crops)
    yield one("arrays", "MatrixBandPart", f32(64, 128, 128), np.int64(-1), np.int64(0))
    none = np.int32(-1)
    yield one("arrays", "MatrixDiagV3", f32(256, 64), np.int32(0), none, none, np.float32(0))
    yield one("arrays", "MatrixDiagPartV3", f32(256, 64, 64), np.int32([-1, 1]), np.float32(0))
    yield one("arrays", "BroadcastTo", f32(1024, 1), np.int32([1024, 1024]))
    yield one("arrays", "Range", np.int32(0), np.int32(MILLION), np.int32(1))
    yield one("arrays", "Fill", np.int32([1024, 1024]), np.float32(3))
    yield one("arrays", "InvertPermutation", rng.permutation(MILLION).astype(np.int32))
    yield one("arrays", "OneHot", i32(1000, 1024), np.int32(1000), np.float32(1), np.float32(0))


def indexing() -> Iterator[Row]:
    table, zero = f32(50_000, 128), np.int32(0)
    yield one("indexing", "GatherV2", table, i32(50_000, 4096), zero)
    yield one("indexing", "GatherV2", f32(256, 4096), i32(4096, 512), np.int32(1), label="axis 1")
    batched = f32(64, 1000, 32), i32(1000, 64, 50), np.int32(1)
    yield one("indexing", "GatherV2", *batched, batch_dims=1, label="batch_dims 1")
    yield one("indexing", "GatherV2", f32(MILLION), i32(MILLION, MILLION), zero, label="numbers")
    pairs = np.stack([i32(1000, 10_000), i32(1000, 10_000)], 1)
    yield one("indexing", "GatherNd", f32(1000, 1000), pairs)
    yield one("indexing", "ScatterNd", pairs, f32(10_000), np.int32([1000, 1000]))
    rows, updates = i32(50_000, 4096, 1), f32(4096, 128)
    for op in ("TensorScatterAdd", "TensorScatterUpdate", "TensorScatterMax"):
        yield one("indexing", op, table, rows, updates)
    yield one("indexing", "TensorScatterAdd", f32(1000, 1000), pairs, f32(10_000), label="numbers")
    yield one("indexing", "Where", rng.random((1024, 1024)) < 0.1)
    parts = i32(4, 65_536)
    yield one("indexing", "DynamicPartition", f32(65_536, 16), parts, num_partitions=4)
    order = rng.permutation(65_536).astype(np.int32)
    halves = [order[:32_768], order[32_768:]], [f32(32_768, 16), f32(32_768, 16)]
    yield one("indexing", "DynamicStitch", *halves)


def sorting() -> Iterator[Row]:
    numbers = i32(10_000, 100_000)
    yield one("sorting", "TopKV2", f32(MILLION), np.int32(100), label="of a million")
    yield one("sorting", "TopKV2", f32(1000, 1000), np.int32(10), label="of rows")
    yield one("sorting", "TopKV2", f32(64, 10_000), np.int32(10_000), label="all")
    yield one("sorting", "InTopKV2", f32(1000, 1000), i32(1000, 1000), np.int32(5))
    yield one("sorting", "NthElement", f32(1000, 1000), np.int32(500))
    for op in ("Unique", "UniqueWithCounts"):
        yield one("sorting", op, numbers)
    yield one("sorting", "Unique", words(20_000, 1), label="strings")
    yield one("sorting", "ListDiff", numbers, i32(10_000, 5000))
    ordered = np.sort(f32(64, 1000), axis=1)
    for op in ("LowerBound", "UpperBound"):
        yield one("sorting", op, ordered, f32(64, 1000))
    sets = np.sort(i64(1000, 1000, 20)), np.sort(i64(1000, 1000, 20))
    yield one("sorting", "DenseToDenseSetOperation", *sets, set_operation="intersection")


def segments() -> Iterator[Row]:
    data, ordered = f32(50_000, 64), np.sort(i32(1000, 50_000))
    for op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentProd"):
        yield one("segments", op, data, ordered)
    loose, count = i32(1000, 50_000), np.int32(1000)
    for op in ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentProd"):
        yield one("segments", op, data, loose, count)
    flat = f32(MILLION), i32(1000, MILLION), count
    yield one("segments", "UnsortedSegmentSum", *flat, label="numbers")
    rows = i32(50_000, 20_000), np.sort(i32(1000, 20_000))
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        yield one("segments", op, data, *rows)
    gradient = f32(1000, 64), *rows, np.int32(50_000)
    yield one("segments", "SparseSegmentMeanGrad", *gradient)


def sparse_coordinates(rows: int, columns: int, count: int) -> np.ndarray:
    """Return sorted, distinct indices of a matrix, int64 [count, 2]."""
    flat = np.sort(rng.choice(rows * columns, count, replace=False))
    return np.stack([flat // columns, flat % columns], 1).astype(np.int64)


def sparse() -> Iterator[Row]:
    count, shape = 50_000, np.int64([2000, 1000])
    indices, values = sparse_coordinates(2000, 1000, count), f32(count)
    tensor = indices, values, shape
    yield one("sparse", "SparseTensorDenseMatMul", *tensor, f32(1000, 64))
    yield one("sparse", "SparseToDense", indices, shape, values, np.float32(0))
    order = rng.permutation(count)
    yield one("sparse", "SparseReorder", indices[order], values[order], shape)
    other = sparse_coordinates(2000, 1000, count), f32(count), shape
    yield one("sparse", "SparseAdd", *tensor, *other, np.float32(0))
    both = [indices, other[0]], [values, values], [shape, shape]
    yield one("sparse", "SparseConcat", *both, concat_dim=1)
    yield one("sparse", "SparseSlice", *tensor, np.int64([500, 0]), np.int64([500, 500]))
    yield one("sparse", "SparseSplit", np.int64(1), *tensor, num_split=4)
    yield one("sparse", "SparseReduceSum", *tensor, np.int32([1]))
    yield one("sparse", "SparseFillEmptyRows", *tensor, np.float32(0))
    yield one("sparse", "SparseReshape", indices, shape, np.int64([1000, 2000]))
    yield one("sparse", "SparseSoftmax", *tensor)
    yield one("sparse", "SparseDenseCwiseMul", *tensor, f32(2000, 1000))
    lengths = i64(20, 2000)
    splits = np.concatenate([[0], np.cumsum(lengths)])
    dense = np.int64([-1, 20]), f32(int(splits[-1])), np.float32(0), [splits]
    kinds = {"row_partition_types": ["ROW_SPLITS"]}
    yield one("sparse", "RaggedTensorToTensor", *dense, **kinds)
    starts = i32(100, 5000)
    yield one("sparse", "RaggedRange", starts, starts + i32(20, 5000), np.int32(1))
    gather = [splits], f32(int(splits[-1])), i64(2000, 4000)
    yield one("sparse", "RaggedGather", *gather, OUTPUT_RAGGED_RANK=1)


def strings() -> Iterator[Row]:
    texts, single = words(10_000), words(10_000, 1)
    yield one("strings", "StringSplitV2", texts, b"")
    yield one("strings", "StringSplit", texts, b" ")
    yield one("strings", "StringJoin", [texts, single], separator="-")
    for op in ("StringLower", "StringUpper", "StringStrip", "StringLength", "EncodeBase64"):
        yield one("strings", op, texts)
    yield one("strings", "RegexReplace", texts, b"w[0-9]", b"x")
    yield one("strings", "StaticRegexFullMatch", texts, pattern="w1.*")
    yield one("strings", "Substr", texts, np.int32(1), np.int32(4))
    numbers = np.array([str(n).encode() for n in rng.integers(0, 10**6, 50_000)], object)
    yield one("strings", "StringToNumber", numbers)
    yield one("strings", "AsString", f32(50_000))
    yield one("strings", "AsString", i32(10**6, 50_000), label="int32")
    yield one("strings", "StringToHashBucketFast", texts, num_buckets=1000)
    yield one("strings", "StringToHashBucketStrong", texts, num_buckets=1000, key=[1, 2])
    splits = np.arange(0, 10_001, 5)
    ngrams = {"separator": " ", "left_pad": "", "right_pad": "", "pad_width": 0}
    yield one(
        "strings",
        "StringNGrams",
        single,
        splits,
        ngram_widths=[2],
        preserve_short_sequences=False,
        **ngrams,
    )
    yield one("strings", "UnicodeDecode", texts, input_encoding="UTF-8")
    utf16 = {"input_encoding": "UTF-8", "output_encoding": "UTF-16-BE"}
    yield one("strings", "UnicodeTranscode", texts, **utf16)
    yield one("strings", "ReduceJoin", texts.reshape(100, 100), np.int32([1]))
    yield one("strings", "UnsortedSegmentJoin", texts, i32(100, 10_000), np.int32(100))
    raw = np.array([f32(64).tobytes() for _ in range(1000)], object)
    yield one("strings", "DecodeRaw", raw, out_type=DataType.FLOAT)
    lines = np.array([b"%d,%d.5,w%d" % (n, n, n) for n in range(5000)], object)
    defaults = [np.int32([0]), np.float32([0]), np.array([b""], object)]
    yield one("strings", "DecodeCSV", lines, defaults)
    yield one("strings", "EditDistance", *edits(), *edits())


def edits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the indices, values and shape of a SparseTensor: 1000 sequences of 20 numbers."""
    rows, columns = np.meshgrid(np.arange(1000), np.arange(20), indexing="ij")
    indices = np.stack([rows.ravel(), columns.ravel()], 1)
    return indices, i32(5, 20_000), np.int64([1000, 20])


def randoms() -> Iterator[Row]:
    shape, key, counter, philox = (
        np.int32([1024, 1024]),
        np.uint64([7]),
        np.uint64([0, 0]),
        np.int32(1),
    )
    for op in ("Uniform", "Normal"):
        yield one("random", f"StatelessRandom{op}V2", shape, key, counter, philox)
    yield one("random", "StatelessTruncatedNormalV2", shape, key, counter, philox)
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        yield one("random", op, shape, dtype=DataType.FLOAT, seed=1, seed2=2)
    yield one("random", "RandomUniformInt", shape, np.int32(0), np.int32(99), seed=1, seed2=2)
    yield one("random", "RandomGamma", np.int32([10]), positive(10_000), seed=1, seed2=2)
    yield one("random", "RandomPoissonV2", np.int32([10]), positive(10_000), seed=1, seed2=2)
    yield one("random", "Multinomial", f32(64, 1000), np.int32(100), seed=1, seed2=2)
    yield one("random", "RandomShuffle", f32(100_000, 4), seed=1, seed2=2)
    classes = {"num_true": 1, "num_sampled": 100, "unique": True, "range_max": 10_000}
    yield one("random", "LogUniformCandidateSampler", i64(9999, 128, 1), seed=1, seed2=2, **classes)


def linear_algebra() -> Iterator[Row]:
    square = f32(32, 64, 64)
    definite = square @ square.swapaxes(1, 2) + 64 * np.eye(64, dtype=np.float32)
    yield one("linear algebra", "Cholesky", definite)
    for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Qr", "Svd"):
        yield one("linear algebra", op, square)
    yield one("linear algebra", "SelfAdjointEigV2", definite)
    yield one("linear algebra", "MatrixSolve", definite, f32(32, 64, 8))
    yield one("linear algebra", "MatrixTriangularSolve", definite, f32(32, 64, 8))
    diagonals = positive(64, 3, 256) + np.float32([[0], [3], [0]])
    yield one("linear algebra", "TridiagonalSolve", diagonals, f32(64, 256, 4))
    signal = (f32(64, 4096) + 1j * f32(64, 4096)).astype(np.complex64)
    for op in ("FFT", "IFFT"):
        yield one("linear algebra", op, signal)
    yield one("linear algebra", "FFT2D", signal.reshape(4, 256, 256))
    yield one("linear algebra", "RFFT", f32(64, 4096), np.int32([4096]))
    yield one("linear algebra", "IRFFT", signal[:, :2049], np.int32([4096]))
    spectrum = {"window_size": 400, "stride": 160}
    yield one("linear algebra", "AudioSpectrogram", f32(16_000, 4), **spectrum)


def recurrent() -> Iterator[Row]:
    batch, units, steps = 16, 128, 32
    state, wide = f32(batch, units), f32(2 * units, 4 * units) * np.float32(0.05)
    peep, bias = f32(units), f32(4 * units)
    weights = wide, peep, peep, peep, bias
    sequence = f32(steps, batch, units)
    block = np.int64(steps), sequence, state, state, *weights
    yield one("recurrent", "BlockLSTMV2", *block)
    yield one("recurrent", "LSTMBlockCell", state, state, state, *weights)
    history = [f32(steps, batch, units) for _ in range(9)]
    yield one("recurrent", "BlockLSTMGradV2", *block, *history, use_peephole=False)
    gates = f32(2 * units, 2 * units), f32(2 * units, units), f32(2 * units), f32(units)
    yield one("recurrent", "GRUBlockCell", state, state, *gates)
    time, classes = 100, 50
    logits, lengths = f32(time, batch, classes), np.full(batch, time, np.int32)
    rows, columns = np.meshgrid(np.arange(batch), np.arange(20), indexing="ij")
    labels = np.stack([rows.ravel(), columns.ravel()], 1), i32(classes - 1, batch * 20)
    yield one("recurrent", "CTCLoss", logits, *labels, lengths)
    yield one("recurrent", "CTCGreedyDecoder", logits, lengths)
    beam = f32(50, 4, 20), np.full(4, 50, np.int32)
    yield one("recurrent", "CTCBeamSearchDecoder", *beam, beam_width=10, top_paths=1)


def quantised() -> Iterator[Row]:
    x, low, high = f32(MILLION), np.float32(-4), np.float32(4)
    yield one("quantised", "QuantizeV2", x, low, high, T=DataType.QUINT8)
    for op in ("FakeQuantWithMinMaxVars",):
        yield one("quantised", op, x, low, high)
    yield one("quantised", "QuantizeAndDequantizeV3", x, low, high, np.int32(8))


def variable_row(op: str, count: int, *inputs: Any, label: str = "", **attrs: Any) -> Row:
    """Return a row of an op on `count` variables of floats [50000, 64], then `inputs`."""
    graph = Graph()
    handles, assigned = [], []
    for index in range(count):
        handle = graph.add(
            "VarHandleOp", dtype=DataType.FLOAT, shape=[50_000, 64], shared_name=f"v{index}"
        )
        graph.add(
            "AssignVariableOp",
            handle[0],
            positive(50_000, 64),
            name=f"assign_{index}",
            dtype=DataType.FLOAT,
        )
        handles.append(handle[0])
        assigned.append(f"assign_{index}")
    graph.add(op, *handles, *inputs, name="result", **attrs)
    return Row("variables", f"{op} {label}".strip(), graph.graph_def, tuple(assigned))


def variables() -> Iterator[Row]:
    gradient, rows, updates = f32(50_000, 64), i32(50_000, 4096), f32(4096, 64)
    rate = np.float32(0.01)
    yield variable_row("ResourceApplyGradientDescent", 1, rate, gradient)
    beta, epsilon = np.float32(0.9), np.float32(1e-7)
    yield variable_row("ResourceApplyAdam", 3, beta, beta, rate, beta, beta, epsilon, gradient)
    yield variable_row("ResourceApplyMomentum", 2, rate, gradient, beta)
    yield variable_row("ResourceSparseApplyAdagrad", 2, rate, updates, rows)
    yield variable_row("ResourceScatterAdd", 1, rows, updates, dtype=DataType.FLOAT)
    yield variable_row("ResourceGather", 1, rows, dtype=DataType.FLOAT)
    yield variable_row("AssignAddVariableOp", 1, gradient, dtype=DataType.FLOAT)
    for label, keys in (("int64", np.arange(10_000)), ("strings", words(10_000, 2))):
        graph = Graph()
        keys = np.unique(keys)
        kinds = {"key_dtype": DataType.STRING if label == "strings" else DataType.INT64}
        table = graph.add("HashTableV2", value_dtype=DataType.INT64, shared_name="t", **kinds)[0]
        values = np.arange(len(keys))
        graph.add("LookupTableImportV2", table, keys, values, name="fill")
        asked = rng.permutation(keys)
        graph.add("LookupTableFindV2", table, asked, np.int64(-1), name="result")
        yield Row("variables", f"LookupTableFindV2 {label}", graph.graph_def, ("fill",))


FAMILIES: tuple[Callable[[], Iterator[Row]], ...] = (
    arrays,
    indexing,
    sorting,
    segments,
    sparse,
    strings,
    randoms,
    linear_algebra,
    recurrent,
    quantised,
    variables,
)
