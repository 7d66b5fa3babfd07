"""Invalid or unusual sparse tensors, ranges, orders and options.

As in `unusual_inputs`, each was found by comparing random cases (`make oracle`).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401 # numpy knows bfloat16 by name
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case, from_producer

CELLS = np.array([[0, 1], [2, 0]], np.int64)
SIZES = np.array([3, 4], np.int64)
TWO = np.array([1.5, -2], np.float32)
NO_RANK = (np.zeros((1, 0), np.int64), TWO[:1], np.zeros(0, np.int64))


def of_sparse_tensors() -> list[Case]:
    start = np.zeros(2, np.int64)
    cube = np.array([[0, 0, 1], [2, 1, 0]], np.int64)
    bins = (np.array([3, 2, 2], np.int64), np.int64(4), np.zeros(0, np.float32))
    twice, outside = np.array([[0, 0], [0, 0]], np.int64), np.array([[0, 7]], np.int64)
    rank6 = (np.zeros((1, 6), np.int64), TWO[:1], np.ones(6, np.int64))
    return [
        case(
            "SparseSliceGrad", TWO, CELLS, start, CELLS[::-1], name="SliceGrad_order", message=True
        ),
        case("SparseSliceGrad", TWO, CELLS[:1], start, CELLS, name="SliceGrad_more", message=True),
        case(
            "SparseReduceSum", CELLS, TWO, SIZES, [[0]], name="SparseReduceSum_axes", message=True
        ),
        case("SparseAdd", *NO_RANK, *NO_RANK, np.float32(0), name="SparseAdd_rank_0", message=True),
        case("SparseSparseMaximum", *NO_RANK, *NO_RANK, name="Maximum_rank_0", message=True),
        case("SparseDenseCwiseMul", *NO_RANK, np.float32(2), name="CwiseMul_rank_0", message=True),
        case("SparseDenseCwiseMul", *rank6, np.float32(2), name="CwiseMul_rank_6", message=True),
        case("SetSize", twice, TWO, SIZES, name="SetSize_repeated", message=True),
        case("SetSize", twice, TWO, SIZES, name="SetSize_unchecked", validate_indices=False),
        case("SetSize", outside, TWO[:1], SIZES, name="SetSize_outside", validate_indices=False),
        case("SparseBincount", cube, np.array([1, 3], np.int64), *bins, name="Bincount_rank_3"),
    ]


def of_ranges() -> list[Case]:
    unsigned = np.array([[1, 2], [3, 250]], np.uint8)
    ends = [np.float32(each) for each in (0, 6, 3, 2)]
    both = {"T1": DataType.QUINT8, "T2": DataType.QUINT8}
    kinds = [DataType.QUINT8, DataType.QUINT8, *[DataType.FLOAT] * 4]
    halves = np.array([-3, -0.5, 0.2, 0.5, 7], np.float32)
    return [
        case(
            "QuantizedMatMul", unsigned, unsigned, *ends, name="QuantizedMatMul_range",
            message=True, dtypes=kinds, Toutput=DataType.QINT32, **both,
        ),
        case(
            "QuantizedBiasAdd", unsigned, unsigned[0], *ends[:2], np.float32(45), np.float32(2),
            name="QuantizedBiasAdd_range", dtypes=kinds, out_type=DataType.QINT32, **both,
        ),
        case(
            "QuantizeV2", halves, np.float32(1), np.float32(1), T=DataType.QINT32,
            mode="MIN_FIRST", name="QuantizeV2_qint32",
        ),
        case(
            "QuantizeAndDequantizeV3", halves, np.float32(0), np.float32(1), [8],
            name="QuantizeAndDequantizeV3_bits", message=True,
        ),
        from_producer(
            1,
            case(
                "AdjustContrast", np.ones((1, 2, 2, 3), np.float32), np.float32(1), np.float32(4),
                np.float32(-1), name="AdjustContrast_empty_range",
            ),
        ),
    ]  # fmt: skip


def of_values() -> list[Case]:
    square = np.array([[2, 5], [1, 3]], np.float32)
    points = np.array([97, 98], np.int32)
    text = {"errors": "replace", "output_encoding": "UTF-8"}
    texts = np.empty((0, 2), object)
    return [
        case("CholeskyGrad", square, square.T.copy(), name="CholeskyGrad_upper"),
        case("UnravelIndex", [-7, 5], [2, 3], name="UnravelIndex_negative"),
        case("Fingerprint", texts, b"farmhash64", name="Fingerprint_no_rows"),
        case("StringUpper", ["a\x00b", "c"], encoding="utf-8", name="StringUpper_zero"),
        case("UnicodeEncode", points, np.array([0, 1], np.int64), name="UnicodeEncode_rest",
             message=True, **text),
        case("UnicodeEncode", points, np.array([[0, 2]], np.int64), name="UnicodeEncode_rank",
             message=True, **text),
        case("InplaceAdd", np.zeros((0, 2), np.float32), [1], np.ones((1, 2), np.float32),
             name="InplaceAdd_no_rows"),
        case("InplaceAdd", [[True]], [0], [[True]], name="InplaceAdd_bool", message=True),
        case("NonDeterministicInts", [2.0], name="NonDeterministicInts_float", message=True),
        case("DebugIdentityV3", TWO, name="DebugIdentityV3_gated", gated_grpc=True,
             tensor_name="x:0"),
        case("DebugNanCount", TWO, name="DebugNanCount_gated", gated_grpc=True,
             tensor_name="x:0"),
        case("ResizeBicubicGrad", np.ones((2, 2, 2, 3), np.float32),
             np.ones((1, 4, 5, 1), np.float32), name="ResizeBicubicGrad_channels"),
        case("UnravelIndex", [6], [2, 3], name="UnravelIndex_outside", message=True),
    ]  # fmt: skip


def of_scalars() -> list[Case]:
    square = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    least, none = np.int64(-(2**63)), np.zeros(0, np.float32)
    sound = np.array([[[0.5], [-1]]], np.float32)
    parts = (CELLS, TWO, SIZES)
    return [
        case("MatrixBandPart", square, least, np.int64(0), name="MatrixBandPart_least"),
        case("Sigmoid", np.array([-1000 + 1j, 2j], np.complex64), name="Sigmoid_complex"),
        case("KMC2ChainInitialization", none, np.int64(1), name="KMC2_empty", message=True),
        case("AudioSummaryV2", b"a", sound, np.float32(0), name="AudioSummaryV2_rate_0"),
        case("TensorSummaryV2", b"a", TWO, [b""], name="TensorSummaryV2_metadata", message=True),
        case("SparseSplit", np.array([1], np.int64), *parts, num_split=2,
             name="SparseSplit_vector", message=True),
    ]  # fmt: skip


def of_declared_shape() -> Case:
    """Assign to an uninitialised variable fails for a value of another shape than declared."""
    graph = Graph()
    held = graph.add("VariableV2", name="held", dtype=np.float32, shape=(3,))[0]
    graph.add("Assign", held, TWO, name="set")
    return Case("Assign_declared", graph.graph_def, (Step({}, (), ("set",)),))


def slice_of_variable() -> Case:
    """Assign one value to a longer slice."""
    graph = Graph()
    held = graph.add("VariableV2", name="held", dtype=np.float32, shape=(2,))[0]
    assigned = graph.add("Assign", held, TWO, name="set")[0]
    begin, end, one = (np.array([each], np.int32) for each in (0, 2, 1))
    sliced = graph.add("StridedSliceAssign", assigned, begin, end, one, TWO[:1], name="part")
    return Case("StridedSliceAssign_one", graph.graph_def, (Step({}, (sliced[0][0],)),))


def closed_queue(name: str, count: Any, **attrs: Any) -> Case:
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=(DataType.FLOAT,), shapes=((),))
    graph.add("QueueEnqueueManyV2", queue[0], [TWO], name="put")
    taken = graph.add(
        "QueueDequeueManyV2", queue[0], count, name="take", component_types=(DataType.FLOAT,),
        **attrs,
    )  # fmt: skip
    steps = (Step({}, (), ("put",)), Step({}, (taken[0][0],)))
    return Case(name, graph.graph_def, steps, message=True)


def unordered_take() -> Case:
    graph = Graph()
    kinds = (np.float32, np.float32)
    places = np.array([1, 0], np.int32)
    taken = graph.add("MapUnstage", np.int64(1), places, name="take", dtypes=kinds)
    return Case("MapUnstage_order", graph.graph_def, (Step({}, (taken[0][0],)),), message=True)


def with_variable(name: str, op: str, *inputs: Any, **attrs: Any) -> Case:
    """A case that runs the op on a variable [4, 2] and then reads the variable."""
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=np.float32, shape=None, shared_name="v")[0]
    value = np.arange(8, dtype=np.float32).reshape(4, 2)
    graph.add("AssignVariableOp", handle, value, name="init", dtype=np.float32)
    read = graph.add("ReadVariableOp", handle, name="read", dtype=np.float32)[0]
    graph.add(op, handle, *inputs, name="op", **attrs)
    return Case(
        name,
        graph.graph_def,
        (Step({}, (), ("init",)), Step({}, (), ("op",)), Step({}, (read[0],))),
    )


def before_it_is_filled(name: str, default: Any) -> Case:
    graph = Graph()
    attrs = {"key_dtype": DataType.INT64, "value_dtype": DataType.INT64, "shared_name": "t"}
    table = graph.add("HashTableV2", **attrs)[0]
    found = graph.add("LookupTableFindV2", table, np.array([1], np.int64), default)
    return Case(name, graph.graph_def, (Step({}, (found[0][0],)),), message=True)


def filled_with_nothing() -> Case:
    graph = Graph()
    attrs = {"key_dtype": DataType.INT64, "value_dtype": DataType.INT64, "shared_name": "t"}
    table = graph.add("HashTableV2", **attrs)[0]
    none = np.zeros(0, np.int64)
    graph.add("InitializeTableV2", table, none, none, name="fill")
    return Case(
        "InitializeTableV2_empty", graph.graph_def, (Step({}, (), ("fill",)),), message=True
    )


def ftrl_of_nan() -> Case:
    """Ftrl with a NaN in the linear slot, which does not compare as greater than l1."""
    graph = Graph()
    handles = []
    for number, value in enumerate(([1, 2], [0.5, 0.5], [np.nan, 1])):
        handle = graph.add("VarHandleOp", dtype=np.float32, shape=(2,), shared_name=f"v{number}")[0]
        start = np.array(value, np.float32)
        graph.add("AssignVariableOp", handle, start, name=f"init{number}", dtype=np.float32)
        handles.append(handle)
    rates = [np.float32(each) for each in (0.1, 0.5, 0.1, -0.5)]
    graph.add("ResourceApplyFtrl", *handles, TWO, *rates, name="op")
    read = graph.add("ReadVariableOp", handles[0], name="read", dtype=np.float32)[0]
    inits = ("init0", "init1", "init2")
    steps = (Step({}, (), inits), Step({}, (), ("op",)), Step({}, (read[0],)))
    return Case("ResourceApplyFtrl_nan", graph.graph_def, steps)


def of_dense_numbers() -> list[Case]:
    """Signed zeros, poles, and dimensions of size 0."""
    zeros = np.array([0, -0.0, np.nan, np.nan, 0, -0.0, 1])
    halves = [zeros.astype(t) for t in ("float16", "bfloat16", "float32")]
    columns = [np.stack([each, np.ones_like(each)], axis=1) for each in halves]
    poles = np.array([0, -1, -2, 1], np.float32)
    roots = np.array([0, -0.0, np.inf, np.nan, 2])
    image, weights = np.ones((1, 4, 5, 2), np.float32), np.ones((3, 3, 2, 1), np.float32)
    window = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    return [
        *(case("UniqueV2", each, [0], name=f"UniqueV2_rows_{each.dtype}") for each in columns),
        *(
            case("ListDiff", each, each[at], name=f"ListDiff_{each.dtype}_{at}")
            for each in halves
            for at in ([0], [5, 6], [2])
        ),
        *(
            case("Zeta", np.full(4, order, np.float32), poles, name=f"Zeta_poles_{order}")
            for order in (1, 1.5, 2, 3, 4)
        ),
        *(
            case("Polygamma", np.full(4, order, np.float32), poles, name=f"Polygamma_poles_{order}")
            for order in (1, 2, 3)
        ),
        *(
            case("BesselY1", np.array([0, -0.0, -1], t), name=f"BesselY1_zero_{t}")
            for t in ("float16", "float32", "float64")
        ),
        *(
            case(op, roots.astype(t), np.zeros(5, t), name=f"{op}_of_zero_{t}")
            for op in ("SqrtGrad", "RsqrtGrad")
            for t in ("float16", "float32", "float64", "complex64")
        ),
        case("PadV2", np.array(b"a", object), np.zeros((0, 2), np.int32), b"p", name="PadV2_text"),
        case("ReverseV2", np.zeros((0, 2), np.int16), np.int32(0), name="ReverseV2_no_vector"),
        case("Einsum", [np.zeros((2, 0)), np.ones((3, 4))], equation="ij,jk->ik", name="ij_0"),
        case("Einsum", [np.ones((2, 3)), np.ones((0, 4))], equation="ij,jk->ik", name="jk_0"),
        case("Conv2D", np.zeros((1, 4, 5, 0)), np.ones((3, 3, 2, 3)), name="Conv2D_no_channels",
             **window),
        case("MaxPoolWithArgmax", np.ones((1, 1, 4, 4, 1)), ksize=[1, 2, 2, 1],
             strides=[2, 2, 2, 1], padding="SAME", name="Argmax_batch_first", message=True),
        case("DepthwiseConv2dNativeBackpropInput", [1, 4, 5, 2], weights, image, **window,
             dilations=[1, 1, 1], name="DepthwiseInput_dilations"),
        case("DepthwiseConv2dNativeBackpropInput", [1, 4, 5, 2], weights, image, **window,
             dilations=[1, 0, 1, 1], name="DepthwiseInput_no_dilation"),
        case("DepthwiseConv2dNativeBackpropFilter", image, [3, 3, 2, 1], image, **window,
             dilations=[1, 1, 1], name="DepthwiseFilter_dilations"),
        case("ScaleAndTranslateGrad", image, image[:, :0], [1.0, 1.0], [0.0, 0.0],
             name="ScaleAndTranslateGrad_empty"),
        case("ScaleAndTranslateGrad", image, image, [1.0, 0.0], [0.0, 0.0],
             name="ScaleAndTranslateGrad_scale", message=True),
        *(
            case(op, np.ones(5, np.float32), pooling_ratio=[1.0, 1.5, 1.5, 2.0], seed=1,
                 name=f"{op}_ratio_first", message=True)
            for op in ("FractionalMaxPool", "FractionalAvgPool")
        ),
    ]  # fmt: skip


def strides_of_padded() -> Case:
    graph = Graph()
    x = graph.placeholder(np.float32, "x")
    inputs = (x, np.zeros((4, 2), np.int32), np.ones((3, 3, 2, 1), np.float32))
    strides = {"strides": [1, 1, 1, 2], "padding": "SAME"}
    graph.add("FusedPadConv2D", *inputs, name="result", mode="REFLECT", **strides)
    ones = {**strides, "strides": [1, 1, 1, 1]}
    graph.add("FusedPadConv2D", *inputs, name="empty", mode="REFLECT", **ones)
    steps = (
        Step({"x:0": np.ones((1, 4, 5, 2), np.float32)}, ("result:0",)),
        Step({"x:0": np.ones((1, 4, 5, 0), np.float32)}, ("empty:0",)),
        Step({"x:0": np.ones((0, 4, 5, 2), np.float32)}, ("empty:0",)),
    )
    return Case("FusedPadConv2D_strides", graph.graph_def, steps, message=True)


def padded_elsewhere() -> Case:
    """FusedPadConv2D with padding of batches or channels, and with five dimensions."""
    graph = Graph()
    x, filter = graph.placeholder(np.float32, "x"), np.ones((3, 3, 2, 1), np.float32)
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID", "mode": "SYMMETRIC"}
    for name, row in (("batches", 0), ("rows", 1), ("channels", 3)):
        margins = np.zeros((4, 2), np.int32)
        margins[row] = 1, 0
        graph.add("FusedPadConv2D", x, margins, filter, name=name, **attrs)
    image = np.arange(80, dtype=np.float32).reshape(1, 4, 5, 2, 2)
    fed = [({"x:0": image[..., 0]}, name) for name in ("batches", "rows", "channels")]
    steps = tuple(Step(feeds, (f"{name}:0",)) for feeds, name in (*fed, ({"x:0": image}, "rows")))
    return Case("FusedPadConv2D_elsewhere", graph.graph_def, steps)


def resized_in_double() -> Case:
    graph = Graph()
    x = graph.placeholder(np.float64, "x")
    inputs = (x, np.array([5, 7], np.int32), np.zeros((4, 2), np.int32), np.ones((1, 1, 1, 1)))
    attrs = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "SAME"}
    graph.add("FusedResizeAndPadConv2D", *inputs, name="result", **attrs)
    image = np.sin(np.arange(12.0)).reshape(1, 3, 4, 1)
    return Case("Resized_in_double", graph.graph_def, (Step({"x:0": image}, ("result:0",)),))


def of_masks_and_orders() -> list[Case]:
    none, mean = np.zeros(0, np.int32), "StatelessParameterizedTruncatedNormal"
    fixed = (np.int32([2]), np.int32([1, 2]))
    return [
        *(
            case("StridedSlice", np.ones((2, 3), np.float32), none, none, none, ellipsis_mask=mask,
                 name=f"StridedSlice_ellipses_{mask}", message=True)
            for mask in (3, 4)
        ),
        case("Transpose", np.ones((2, 3), np.float32), np.int64([1, 2**32]), name="Transpose_32"),
        *(
            case(mean, *fixed, *np.float32(ends), name=f"TruncatedNormal_{at}", message=True)
            for at, ends in enumerate(
                ((np.inf, 1, 0, 3), (np.nan, 1, 0, 3), (0, 1, -np.inf, np.inf))
            )
        ),
    ]  # fmt: skip


def of_peepholes() -> list[Case]:
    """BlockLSTM with peephole weights of a wrong shape, although use_peephole is false."""
    cells = np.ones((2, 4), np.float32)
    state = (np.ones((3, 2, 3), np.float32), cells, cells, np.ones((7, 16), np.float32))
    weights, bias = np.ones(4, np.float32), np.ones(16, np.float32)
    return [
        case(op, np.int64(3), *state, *peepholes, bias, name=f"{op}_{at}", message=True)
        for op in ("BlockLSTM", "BlockLSTMV2")
        for at, peepholes in enumerate(
            ((weights[:1], weights, weights), (weights, weights, weights[None]))
        )
    ]


def of_quantised_numbers() -> list[Case]:
    quint8, qint32 = DataType.QUINT8, DataType.QINT32
    both = [quint8, quint8]
    a = (np.arange(12) * 21).astype(np.uint8).reshape(3, 4)
    image, filters = a.reshape(1, 3, 4, 1), a[:, :2].reshape(2, 1, 1, 3)
    none, ends = np.zeros((0, 4), np.int32), (np.float32([-1, 0]), np.float32([1, 2]))
    gradient = "QuantizeAndDequantizeV4Grad"
    grads = np.float32([[np.nan, 2, np.inf], [1, 2, 3]])
    seen = np.float32([[7, 0.5, 7], [0.5, 9, 0.5]])
    return [
        case("QuantizedConv2D", image, filters, -1.0, -0.7, -1.0, 2.0, dtypes=both,
             strides=[1, 1, 1, 1], padding="SAME", name="QuantizedConv2D_zero_outside"),
        case("QuantizedAdd", a, a, -1.0, 1.0, 2.0, -1.0, dtypes=both, Toutput=qint32,
             name="QuantizedAdd_range", message=True),
        case("QuantizedConcat", [0], [a, a], [-1.0, -1.0], [1.0, 1.0],
             dtypes=[DataType.INT32, *both], name="QuantizedConcat_axis", message=True),
        *(
            case("RequantizationRange", none, low, high, dtypes=[qint32], name=f"None_{low:g}")
            for low, high in ((-1.0, 0.0), (-3.0, 5.0), (0.0, 6.0))
        ),
        case("QuantizeDownAndShrinkRange", none, -1.0, 2.0, dtypes=[qint32], out_type=quint8,
             name="QuantizeDown_none"),
        case("QuantizeV2", seen, -1.0, 2.0, T=quint8, mode="MIN_FIRST", round_mode="HALF_TO_EVEN",
             name="QuantizeV2_rounding", message=True),
        case("QuantizeV2", seen, [-1.0], 2.0, T=quint8, name="QuantizeV2_range_of_one"),
        case("QuantizedMaxPool", image, -1.0, 2.0, dtypes=[quint8], ksize=[1, 2, 2, 2],
             strides=[1, 1, 1, 1], padding="VALID", name="QuantizedMaxPool_depth"),
        case(gradient, grads, seen, 0.0, 1.0, name="V4Grad_not_finite"),
        case(gradient, grads, seen, 0.0, 1.0, axis=3, name="V4Grad_axis", message=True),
        case(gradient, grads, seen, *ends, axis=0, name="V4Grad_rows"),
        case(gradient, grads, seen, *ends, name="V4Grad_scalar", message=True),
        *(
            case("Requantize", a.astype(np.int32), -1.0, 1.0, *wanted, dtypes=[qint32],
                 out_type=quint8, name=f"Requantize_nan_{at}")
            for at, wanted in enumerate(((np.nan, 1.0), (-1.0, np.nan)))
        ),
        case(gradient, grads, seen, *ends, axis=1, name="V4Grad_size", message=True),
        case(gradient, grads, seen, 0.0, ends[1], axis=0, name="V4Grad_vector", message=True),
        case(gradient, grads, seen, ends[0][None], ends[1], name="V4Grad_rank", message=True),
    ]  # fmt: skip


CASES: tuple[Case, ...] = (
    *of_sparse_tensors(), *of_ranges(), *of_values(), unordered_take(), ftrl_of_nan(),
    with_variable("ScatterNd_vector", "ResourceScatterNdAdd", np.array([3, 1], np.int32),
                  np.ones((2, 2), np.float32)),
    before_it_is_filled("LookupTableFindV2_default", np.array([1, 2, 3], np.int64)),
    before_it_is_filled("LookupTableFindV2_unfilled", np.int64(0)),
    filled_with_nothing(), *of_scalars(), of_declared_shape(), slice_of_variable(),
    closed_queue("QueueDequeueManyV2_timeout", np.int32(1), timeout_ms=3),
    closed_queue("QueueDequeueManyV2_vector", np.array([2], np.int32)),
    *of_dense_numbers(), strides_of_padded(), resized_in_double(), padded_elsewhere(),
    *of_masks_and_orders(),
    *of_peepholes(), *of_quantised_numbers(),
)  # fmt: skip
