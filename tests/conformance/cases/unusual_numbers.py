"""Unusual numbers, attributes and shapes of maths, pooling, quantising and random ops.

As in `unusual_inputs`, each was found by comparing random cases (`make oracle`).
"""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

F32 = np.float32
SEED = np.array([11, -7], np.int64)
IMAGE = np.arange(16, dtype=np.uint8).reshape(1, 2, 4, 2)
SIZE = np.array([120, 200, 3], np.int32)
BOX = np.array([[[0.1, 0.2, 0.8, 0.7]]], F32)


def of_arithmetic() -> list[Case]:
    sums = np.array([[1, 2], [2**31 - 1, 5], [4, 0], [-5, -6]], np.int32)
    holes = np.array([[1, np.nan], [3, 4], [5, 6]])
    energies = np.abs(np.sin(np.arange(2 * 65, dtype=F32))).reshape(1, 2, 65)
    energies[0, 1, 50] = -1
    return [
        case("SegmentMean", sums, np.array([0, 0, 2, 2]), name="SegmentMean_wraps"),
        *(
            case("MatrixSolveLs", matrix, np.ones((3, 1)), np.float64(np.inf), fast=True,
                 name=f"MatrixSolveLs_infinite_{number}")
            for number, matrix in enumerate((holes, np.nan_to_num(holes)))
        ),
        case("Pow", np.zeros((0, 3), np.int32), np.int32([[2, -1, 2]]), name="Pow_of_nothing"),
        case("Mfcc", energies, np.int32(22050), tolerance=1e-4, name="Mfcc_below_zero"),
        *(
            case("UnravelIndex", np.int64(indices), np.int64(dims), message=True,
                 name=f"UnravelIndex_dims_{number}")
            for number, (indices, dims) in enumerate(
                (([0], [-8]), ([0], [2, -2]), ([3], [0, -2]), ([3], [-2, 0]), ([5], [-2]))
            )
        ),
        case("UnsortedSegmentJoin", np.array(b"a", object), np.int64([0, 1]), np.int64(2),
             name="UnsortedSegmentJoin_rank", message=True),
        *(
            case(op, np.array(b"a\0b", object), *numbers, name=f"{op}_nul")
            for op, numbers in (
                ("ShardedFilename", (np.int32(3), np.int32(10))),
                ("ShardedFilespec", (np.int32(4),)),
            )
        ),
    ]  # fmt: skip


def of_pooling() -> list[Case]:
    windows = (
        ([1, 2, 2, 1], [0, 1, 1, 1]), ([1, 2, 2, 1], [1, 1, 1, 2]), ([1, 1, 1, 2], [1, 1, 1, 1]),
        ([1, 1, 1, 3], [1, 1, 1, 3]),
    )  # fmt: skip
    quantised = [
        case(op, IMAGE, -1.0, 2.0, dtypes=[DataType.QUINT8], ksize=ksize, strides=strides,
             padding="SAME", message=True, name=f"{op}_windows_{number}")
        for op in ("QuantizedMaxPool", "QuantizedAvgPool")
        for number, (ksize, strides) in enumerate(windows)
    ]  # fmt: skip
    x = IMAGE.astype(F32)
    standing = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 0], "padding": "SAME"}
    return [
        *quantised,
        case("QuantizedAvgPool", IMAGE, -1.0, 2.0, dtypes=[DataType.QUINT8],
             name="QuantizedAvgPool_stands", **standing),
        case("AvgPool", x, name="AvgPool_stands", **standing),
        case("MaxPool", x, name="MaxPool_stands", **standing),
        case("MaxPoolWithArgmax", x, name="MaxPoolWithArgmax_stands", **standing),
        case("MaxPoolGradGrad", x, x, x, name="MaxPoolGradGrad_stands", **standing),
    ]  # fmt: skip


def of_quantising() -> list[Case]:
    row = np.array([[-3, -1.5, -0.5, 0, 0.2]], F32)
    low, high = np.array([-3], F32), np.array([0.1], F32)
    two = np.ones(2, F32)
    filters = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    both = [DataType.QUINT8, DataType.QUINT8]

    def convolution(name: str, image: np.ndarray = IMAGE, **given: object) -> Case:
        attrs = {"strides": [1, 1, 1, 1], "padding": "VALID", "message": True, **given}
        return case("QuantizedConv2D", image, filters, 0.0, 6.0, -1.0, 2.0, dtypes=both,
                    name=f"QuantizedConv2D_{name}", **attrs)  # fmt: skip

    whole = np.array([-9 * 10**8, 75 * 10**7], np.int32)
    return [
        case("RequantizationRange", whole, F32(-3), F32(np.nan), dtypes=[DataType.QINT32],
             name="RequantizationRange_nan"),
        *(
            case("QuantizeV2", row, low, high, T=DataType.QINT8, mode=mode, axis=0,
                 name=f"QuantizeV2_one_slice_{mode}")
            for mode in ("SCALED", "MIN_COMBINED", "MIN_FIRST")
        ),
        case("QuantizeV2", row, two, two, T=DataType.QINT8, name="QuantizeV2_two", message=True),
        *(
            case("QuantizeV2", row.repeat(rows, 0), *each, T=DataType.QINT8, axis=axis,
                 mode="MIN_FIRST", name=f"QuantizeV2_slices_{number}", message=True)
            for number, (rows, each, axis) in enumerate((
                (1, (F32(-1), F32(1)), 0), (1, (two, two), 0), (1, (-two, two), 2),
                (2, (-two, two), 0), (2, (-two, two[:1]), 0),
            ))
        ),
        *(
            case("QuantizeAndDequantizeV2", row, F32(0), F32(1), num_bits=bits, range_given=True,
                 signed_input=signed, name=f"V2_bits_{bits}_{signed}", message=True)
            for bits, signed in ((0, False), (-1, True), (62, True), (62, False), (63, False))
        ),
        convolution("depth", strides=[1, 1, 1, -1]),
        convolution("unequal", strides=[1, 1, 2, 1]),
        convolution("dilations", dilations=[1, 2, 2, 1]),
        convolution("batches", dilations=[2, 1, 1, 1]),
        convolution("nothing", IMAGE[:0]),
    ]  # fmt: skip


def of_random_numbers() -> list[Case]:
    three = np.array([4, 2, 0], np.int32)
    ones = np.ones(3)
    philox = np.array([5], np.uint64), np.array([1, 2], np.uint64), np.int32(1)
    counts = np.array([5, 40, 7, 1000, 19], F32)
    chances = np.array([0.1, 0.23, 0.9, 0.005, 0.5], F32)
    classes = np.array([[0.1], [-np.inf], [np.nan]])
    crop = "StatelessSampleDistortedBoundingBox"
    return [
        case("StatelessRandomGammaV2", three, SEED, ones, name="GammaV2_of_nothing"),
        case("StatelessRandomGammaV3", three, *philox, ones, name="GammaV3_of_nothing"),
        case("StatelessRandomPoisson", three, SEED, ones, dtype=DataType.INT32,
             name="Poisson_of_nothing"),
        case("StatelessRandomBinomial", np.array([40, 5], np.int32), SEED, counts, chances,
             dtype=DataType.INT64, name="Binomial_of_few"),
        case("StatelessMultinomial", classes, np.int32(4), SEED, name="Multinomial_of_nothing"),
        *(
            case("StatelessRandomUniformFullInt", three[:rank], SEED.astype(dtype),
                 dtype=DataType.INT32, name=f"FullInt_{dtype.__name__}_{rank}", message=True)
            for dtype in (np.uint32, np.uint64)
            for rank in (2, 3)
        ),
        case("SampleDistortedBoundingBox", SIZE, BOX, min_object_covered=np.nan,
             name="SampleDistortedBoundingBox_nan", message=True),
        case(crop, SIZE, BOX, F32(np.nan), SEED, name="Crop_nan", message=True),
        case(crop, SIZE, BOX, F32(0), SEED, area_range=[np.nan, 1.0], name="Crop_area",
             message=True),
        *(
            _of_skips(op, deltas)
            for op, deltas in (
                ("RngSkip", np.array([-3, 1, 2**62], np.int64)),
                ("RngReadAndSkip", np.array([2**64 - 3, 1, 2**62], np.uint64)),
            )
        ),
    ]  # fmt: skip


def _of_skips(op: str, deltas: np.ndarray) -> Case:
    """Skips of almost 2⁶⁴ blocks, in which TensorFlow loses a carry."""
    graph = Graph()
    state = graph.add("VarHandleOp", dtype=DataType.INT64, shape=None, shared_name="s")[0]
    start = graph.placeholder(DataType.INT64, "start")
    delta = graph.placeholder(DataType.INT64 if op == "RngSkip" else DataType.UINT64, "delta")
    graph.add("AssignVariableOp", state, start, dtype=DataType.INT64, name="init")
    graph.add("ReadVariableOp", state, dtype=DataType.INT64, name="read")
    algorithm = np.int64(1) if op == "RngSkip" else np.int32(1)
    graph.add(op, state, algorithm, delta, name="result")
    steps = []
    for low in (5, -1, -200, 2**63 - 1):
        steps.append(Step({"start:0": np.array([low, 6, 7])}, (), ("init",)))
        for each in deltas:
            steps.append(Step({"delta:0": np.array(each)}, (), ("result",)))
            steps.append(Step({}, ("read:0",)))
    return Case(f"{op}_carries", graph.graph_def, tuple(steps))


CASES = (*of_arithmetic(), *of_pooling(), *of_quantising(), *of_random_numbers())
