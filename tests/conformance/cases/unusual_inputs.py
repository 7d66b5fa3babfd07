"""Invalid or unusual inputs; each was found by comparing random cases (`make oracle`)."""

from __future__ import annotations

import ml_dtypes  # noqa: F401 # numpy knows bfloat16 by name
import numpy as np

from tests.conformance.case import Case, Graph, Step, case

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def of_nothing_read() -> list[Case]:
    """Without elements to read, TensorFlow does not check all indices and axes."""
    return [
        case("GatherV2", floats(2, 0, 0), [[0]], np.int32(1), name="GatherV2_empty_slices"),
        case("GatherV2", floats(2, 3, 0), [4, INT32_MAX], np.int32(1), name="GatherV2_empty_rows"),
        case("Gather", floats(1, 0), [[0], [2]], name="Gather_empty_rows"),
        case("GatherV2", floats(2, 3, 4), [3], np.int32(1), name="GatherV2_bad", message=True),
        case("ReverseV2", floats(2, 0, 4), [1, 1], name="ReverseV2_empty_twice"),
        case("ReverseV2", floats(0), [2, 2], name="ReverseV2_empty_outside"),
        case("ReverseV2", np.float32(1), [2], name="ReverseV2_scalar"),
        case("Reverse", np.float32(1), [True, False], name="Reverse_scalar"),
        case("Reverse", floats(0, 2), [True, False], name="Reverse_no_rows", message=True),
        case("Reverse", floats(2, 0), [True, False], name="Reverse_no_columns"),
    ]


def of_integers() -> list[Case]:
    wrapping = np.array([[1, INT64_MAX], [2, 1]], np.int64)
    return [
        case("Mean", wrapping, [0], name="Mean_wraps"),
        case("Mean", np.array([-3, 0, -1, 0, -1], np.int64), [0], name="Mean_toward_zero"),
        case("Mean", np.array([-3, -4], np.int8), [0], name="Mean_of_negative_int8"),
        case(
            "DynamicStitch",
            [np.array([0, INT32_MAX], np.int32)],
            [floats(2, 1)],
            name="DynamicStitch_too_many_rows",
            message=True,
        ),
    ]


def of_shapes() -> list[Case]:
    image, four = floats(1, 4, 4, 1), [1, 2, 2, 1]
    pool = {"padding": "VALID"}
    quantized = {"range_given": True, "axis": -1}
    two = np.ones(2, np.float32)
    return [
        case("MaxPoolV2", image, [[v] for v in four], four, name="MaxPoolV2_column", **pool),
        case("MaxPoolV2", image, four, [0, 1, 1, 1], name="MaxPoolV2_batch_stride", **pool),
        case("MaxPool", image, ksize=four, strides=[0, 1, 1, 1], name="MaxPool_batch", **pool),
        case("MaxPool", image, ksize=four, strides=[1, 0, 1, 1], name="MaxPool_zero", **pool),
        case("AvgPool", image, ksize=four, strides=[2, 0, 1, 1], name="AvgPool_batch", **pool),
        case(
            "MaxPoolWithArgmax",
            floats(2, 0, 4, 1),
            ksize=four,
            strides=four,
            name="MaxPoolWithArgmax_empty",
            message=True,
            **pool,
        ),
        case("LRN", image, depth_radius=-2, name="LRN_radius", message=True),
        case(
            "SplitV",
            floats(2, 3),
            [1, 2],
            np.array([1], np.int32),
            num_split=2,
            name="SplitV_vector",
        ),
        case("LinSpace", np.float32(3), np.float32(np.inf), np.int32(4), name="LinSpace_infinite"),
        *(
            case(op, floats(2, 2), low, high, name=f"{op}_{label}", message=True, **quantized)
            for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
            for label, low, high in (
                ("min_vector", -two, two),
                ("max_vector", np.float32(-1), two[:1]),
            )
        ),
        case(
            "QuantizeAndDequantizeV3",
            floats(2, 2),
            -two[:1],
            two[:1],
            np.int32(4),
            name="QuantizeAndDequantizeV3_vectors",
            **quantized,
        ),
        case(
            "MatrixDiagV3",
            floats(2, 3),
            np.int32(0),
            np.int32(-1),
            np.int32(-1),
            np.zeros(1, np.float32),
            name="MatrixDiagV3_padding_vector",
            message=True,
        ),
        lstm("LSTMBlockCell", floats(2, 3)),
        lstm("BlockLSTM", floats(2, 2, 3)),
        splits_that_end_early(),
        empty_slice_assigned(),
        list_with_a_negative_limit(),
    ]


def of_windows() -> list[Case]:
    image, volume, one = floats(1, 4, 4, 1), floats(1, 3, 3, 3, 1), [1, 1, 1, 1]
    patches = {"ksizes": [1, 2, 2, 1], "strides": one, "rates": one, "padding": "VALID"}
    volumes = {"ksizes": [1, 2, 2, 2, 1], "strides": [1] * 5, "padding": "VALID"}
    wrong = [
        case("ExtractImagePatches", image, name=f"ExtractImagePatches_{name}_{what}", **options)
        for name in ("ksizes", "strides", "rates")
        for what, value in (("depth", [1, 1, 1, 2]), ("zero", [1, 0, 1, 1]))
        for options in ({**patches, name: value, "message": True},)
    ]
    pooled = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    outputs = np.array([5, 7, 1, 15], np.float32).reshape(1, 2, 2, 1)
    return [
        *wrong,
        case(
            "ExtractVolumePatches",
            volume,
            name="ExtractVolumePatches_ksizes",
            message=True,
            **{**volumes, "ksizes": [1, 2, 2, 2, 2]},
        ),
        case(
            "ExtractVolumePatches",
            volume,
            name="ExtractVolumePatches_strides",
            message=True,
            **{**volumes, "strides": [1, 1, -1, 1, 1]},
        ),
        case("MaxPoolGradGrad", image, outputs, image + 1, name="MaxPoolGradGrad_else", **pooled),
        case(
            "MaxPoolGradGrad",
            np.ones_like(image),
            np.ones_like(outputs),
            image + 1,
            name="MaxPoolGradGrad_ties",
            **pooled,
        ),
        case(
            "ResizeNearestNeighborGrad",
            floats(1, 0, 2, 1),
            [2, 3],
            name="ResizeNearestNeighborGrad_empty",
        ),
    ]


def of_rows() -> list[Case]:
    halves = np.array([0, -0.0, np.nan, 1, np.nan, 0, np.inf], np.float16)
    lowest = np.array([-np.inf, -np.inf, 1, np.nan], np.float32)
    ids = [0, 0, 2, 3]
    return [
        *(
            case("UniqueWithCounts", halves.astype(dtype), name=f"UniqueWithCounts_{dtype}")
            for dtype in ("float16", "bfloat16", "float32", "float64")
        ),
        *(
            case(op, sign * lowest.astype(dtype), ids, np.int32(4), name=f"{op}_{dtype}_infinite")
            for op, sign in (("UnsortedSegmentMax", 1), ("UnsortedSegmentMin", -1))
            for dtype in ("float16", "bfloat16", "float32", "float64")
        ),
        case(
            "Unique",
            np.array([2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 3], np.uint64),
            name="Unique_large_uint64",
        ),
        case("Unique", np.array([-128, 127, -128], np.int8), name="Unique_all_of_int8"),
        case("GatherNd", floats(2, 3, 0), [[0], [1]], name="GatherNd_empty_rows", message=True),
        case("GatherNd", floats(2, 0), np.zeros((0, 1), np.int32), name="GatherNd_of_nothing"),
        case("UnsortedSegmentProd", floats(2, 0), [0, 9], np.int32(4), name="Segments_empty_rows"),
        case(
            "SparseSegmentMeanGrad",
            floats(0, 2),
            [1, 2],
            [0, 1],
            np.int32(0),
            name="SparseSegmentMeanGrad_no_rows",
        ),
        case(
            "StringNGrams",
            np.array([b"a", b"b", b"c"], object),
            np.array([[0, 1, 3]], np.int64),
            separator="|",
            ngram_widths=[1, 2],
            left_pad="",
            right_pad="",
            pad_width=0,
            preserve_short_sequences=False,
            name="StringNGrams_splits_matrix",
        ),
        case("Lu", np.zeros((2, 0, 0), np.float32), name="Lu_empty"),
        *(
            case(
                "LogUniformCandidateSampler",
                np.array([[wrong]], np.int64),
                num_true=1,
                num_sampled=2,
                unique=False,
                range_max=5,
                message=True,
                name=f"LogUniformCandidateSampler_true_{wrong}",
            )
            for wrong in (-1, 5)
        ),
        case(
            "AllCandidateSampler",
            np.array([[5]], np.int64),
            num_true=1,
            num_sampled=5,
            unique=True,
            message=True,
            name="AllCandidateSampler_true",
        ),
    ]


def lstm(op: str, x: np.ndarray) -> Case:
    state, weights = floats(2, 4), floats(7, 16)
    length = [np.int64(2)] if op == "BlockLSTM" else []
    vector, matrix = floats(4), floats(1, 4)
    inputs = (*length, x, state, state, weights, vector, matrix, vector, floats(16))
    return case(op, *inputs, use_peephole=False, name=f"{op}_peephole_matrix")


def splits_that_end_early() -> Case:
    graph = Graph()
    splits, values = np.array([0, 2, 2], np.int64), floats(6)
    encoded = graph.add("RaggedTensorToVariant", [splits], values, batched_input=False)[0]
    graph.add(
        "RaggedTensorFromVariant",
        encoded,
        input_ragged_rank=1,
        output_ragged_rank=1,
        Tvalues=np.float32,
        Tsplits=np.int64,
        name="result",
    )
    steps = (Step({}, ("result:0", "result:1")),)
    return Case("RaggedTensorToVariant_ends_early", graph.graph_def, steps, message=True)


def list_with_a_negative_limit() -> Case:
    graph = Graph()
    made = graph.add(
        "EmptyTensorList", np.array([2], np.int32), np.int32(-3), element_dtype=np.float32,
        shape_type=np.int32,
    )[0]  # fmt: skip
    pushed = graph.add("TensorListPushBack", made, floats(2), element_dtype=np.float32)[0]
    length = graph.add("TensorListLength", pushed)[0]
    return Case("TensorListPushBack_negative_limit", graph.graph_def, (Step({}, (length[0],)),))


def signs_of_scalars() -> list[Case]:
    """Training ops with hyperparameters of the wrong sign."""
    ftrl = {"lr": 0.1, "l1": 0.1, "l2": 0.1, "lr_power": -0.5}
    adagrad = {"lr": 0.1, "l1": 0.1, "l2": 0.1}
    return [
        *(signed("ResourceSparseApplyFtrl", 3, {**ftrl, name: -ftrl[name]}) for name in ftrl),
        signed("ResourceSparseApplyFtrl", 3, {**ftrl, "lr": 0.0}),
        signed("ResourceSparseApplyFtrl", 3, {**ftrl, "lr": 0.0}, multiply_linear_by_lr=True),
        *(signed("ResourceApplyProximalAdagrad", 2, {**adagrad, n: -0.1}) for n in adagrad),
    ]


def signed(op: str, variables: int, scalars: dict[str, float], **attrs: bool) -> Case:
    graph = Graph()
    value = floats(3, 2) + 1
    handles = []
    for number in range(variables):
        name = f"v{number}"
        handle = graph.add("VarHandleOp", dtype=np.float32, shape=None, shared_name=name)[0]
        graph.add("AssignVariableOp", handle, value, name=f"init{number}", dtype=np.float32)
        handles.append(handle)
    numbers = {name: np.float32(each) for name, each in scalars.items()}
    rates = [numbers["lr"], numbers["l1"], numbers["l2"]]
    if "Sparse" in op:
        rows = np.array([0, 2], np.int32)
        graph.add(op, *handles, value[:2], rows, *rates, numbers["lr_power"], name="op", **attrs)
    else:
        graph.add(op, *handles, *rates, value, name="op", **attrs)
    read = graph.add("ReadVariableOp", handles[0], name="read", dtype=np.float32)[0]
    inits = [f"init{number}" for number in range(variables)]
    steps = (Step({}, (), inits), Step({}, (), ("op",)), Step({}, (read[0],)))
    label = "_".join(f"{name}{each}" for name, each in {**scalars, **attrs}.items())
    return Case(f"{op}_{label}", graph.graph_def, steps, message=True)


def empty_slice_assigned() -> Case:
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=np.float32, shape=None, shared_name="v")[0]
    value = floats(4, 2)
    graph.add("AssignVariableOp", handle, value, name="init", dtype=np.float32)
    read = graph.add("ReadVariableOp", handle, name="read", dtype=np.float32)[0]
    bound, replaced = graph.placeholder(np.int32, "bound"), graph.placeholder(np.float32, "value")
    one = np.array([1], np.int32)
    graph.add("ResourceStridedSliceAssign", handle, bound, bound, one, replaced, name="assign")
    feeds = {"bound:0": np.array([2], np.int32), "value:0": floats(7, 2)}
    steps = (Step({}, (), ("init",)), Step(feeds, (), ("assign",)), Step({}, (read[0],)))
    return Case("ResourceStridedSliceAssign_empty", graph.graph_def, steps)


CASES: tuple[Case, ...] = (
    *of_nothing_read(), *of_integers(), *of_shapes(), *of_windows(), *of_rows(),
    *signs_of_scalars(),
)  # fmt: skip
