"""Ops that are rare in new graphs: fused convolutions, in-place updates, debugging, old ops."""

from __future__ import annotations

from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case, from_producer

RNG = np.random.default_rng(31)
F32, I32 = np.float32, np.int32
ROWS = RNG.normal(size=(4, 3)).astype("f")
IMAGE = RNG.normal(size=(2, 5, 6, 3)).astype("f")
EXTREME = np.int16([[[-32768], [5], [32767], [-30]]])
FILTER = RNG.normal(size=(3, 3, 3, 4)).astype("f")
MARGINS = np.array([[0, 0], [1, 2], [2, 1], [0, 0]], I32)
VOLUME = RNG.normal(size=(1, 4, 5, 4, 2)).astype("f")
FILTER_3D = RNG.normal(size=(2, 2, 2, 2, 3)).astype("f")
ODD = np.array([[1, 2, np.nan, -3], [0, np.inf, -np.inf, 0.5]], "f")
WORDS = np.array([[b"a", b"bc"], [b"", b"def"]], object)
CENTERS = np.array([[1, 1, 1], [5, 5, 5], [0, 0, 0]], "f")
STRIDES = {"strides": (1, 1, 1, 1), "padding": "VALID"}
STRIDES_3D = {"strides": (1, 1, 1, 1, 1), "padding": "VALID"}


def inplace(op: str, i: Any, v: np.ndarray, x: np.ndarray = ROWS) -> Case:
    return case(op, x, np.array(i, I32), v)


def summary(value: np.ndarray, **attrs: Any) -> Case:
    return case("DebugNumericSummary", value, tensor_name="x:0", **attrs)


def watched(mode: int, value: np.ndarray = ODD, data_type: DataType = DataType.FLOAT) -> Case:
    attrs = {"tensor_debug_mode": mode, "tensor_id": 7, "output_dtype": data_type}
    return case("DebugNumericSummaryV2", value, message=True, **attrs)


def normalised(dtype: type, scaled: bool) -> Case:
    vectors = [np.abs(RNG.normal(size=3)).astype(dtype) for _ in range(4)]
    attrs = {"variance_epsilon": 0.01, "scale_after_normalization": scaled}
    made = case("BatchNormWithGlobalNormalization", IMAGE.astype(dtype), *vectors, **attrs)
    return from_producer(8, made)


def normalised_gradient(scaled: bool) -> Case:
    vectors = [np.abs(RNG.normal(size=3)).astype("f") for _ in range(3)]
    attrs = {"variance_epsilon": 0.01, "scale_after_normalization": scaled}
    backprop = RNG.normal(size=IMAGE.shape).astype("f")
    op = "BatchNormWithGlobalNormalizationGrad"
    return from_producer(8, case(op, IMAGE.astype("f"), *vectors, backprop, **attrs))


def fused(op: str, *inputs: np.ndarray, **attrs: Any) -> Case:
    """A fused convolution of one image: TensorFlow gives the first image's result for each."""
    graph = Graph()
    image = graph.placeholder(DataType.FLOAT, "x", (1, *IMAGE.shape[1:]))
    graph.add(op, image, *inputs, name="result", **attrs)
    name = "_".join(map(str, (op, *attrs.values()))).replace(" ", "")
    return Case(name, graph.graph_def, (Step({"x:0": IMAGE[:1]}, ("result:0",)),))


def reference() -> Case:
    """An assignment through RefIdentity changes the variable."""
    graph = Graph()
    variable = graph.add("VariableV2", dtype=DataType.FLOAT, shape=(2,), name="v")[0]
    passed = graph.add("RefIdentity", variable)[0]
    value = graph.placeholder(DataType.FLOAT, "x")
    graph.add("Assign", passed, value, name="assign")
    graph.add("AssignAdd", passed, value, name="add")
    x = np.array([1, 2], "f")
    steps = (Step({"x:0": x}, (), ("assign",)), Step({"x:0": x}, ("add:0",)), Step({}, ("v:0",)))
    return Case("RefIdentity", graph.graph_def, steps)


def batched() -> Case:
    """BatchFunction with the function x·x + captured."""
    graph = Graph()
    signature = pb.OpDef(name="body")
    for name in ("x", "captured"):
        signature.input_arg.add(name=name, type=DataType.FLOAT.value)
    signature.output_arg.add(name="y", type=DataType.FLOAT.value)
    function = pb.FunctionDef(signature=signature, ret={"y": "sum:z:0"})
    nodes = ("Mul", "square", ("x", "x")), ("AddV2", "sum", ("square:z:0", "captured"))
    for op, name, inputs in nodes:
        node = function.node_def.add(op=op, name=name, input=inputs)
        node.attr["T"].type = DataType.FLOAT.value
    graph.graph_def.library.function.append(function)
    x, captured = (graph.placeholder(DataType.FLOAT, each) for each in ("x", "captured"))
    attrs = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 0}
    graph.add("BatchFunction", [x], [captured], f=NameAttrList("body", {}), name="result",
              Tout=(DataType.FLOAT,), **attrs)  # fmt: skip
    c = np.array([10], "f")
    steps = tuple(
        Step({"x:0": np.arange(n, dtype=F32), "captured:0": c}, ("result:0",)) for n in (1, 3, 4)
    )
    return Case("BatchFunction", graph.graph_def, steps)


CASES = (
    *(inplace(f"Inplace{op}", [0, -1, 6], ROWS[:3] * 3) for op in ("Update", "Add", "Sub")),
    inplace("InplaceAdd", [1, 1], np.array([[5], [6]], I32), np.array([[1], [2]], I32)),
    inplace("InplaceUpdate", 1, ROWS[:1]), inplace("InplaceUpdate", [1, 2], ROWS[:1]),
    inplace("InplaceUpdate", [1], ROWS[:1, :2]), inplace("InplaceUpdate", [1], ROWS[0]),
    inplace("InplaceUpdate", [0], np.array([True]), np.array([False, False])),
    case("DeepCopy", ROWS), case("DeepCopy", WORDS),
    case("Fingerprint", ROWS, "farmhash64"), case("Fingerprint", WORDS, "farmhash64"),
    case("Fingerprint", WORDS[0], "farmhash64"), case("Fingerprint", WORDS, "other", message=True),
    case("Fingerprint", np.array(b"a", object), "farmhash64"),
    case("Fingerprint", np.array([1, -2], np.int64), "farmhash64"),
    case("Fingerprint", WORDS[:, :1], "farmhash64", name="Fingerprint_column"),
    case("Fingerprint", WORDS[:, 1:, None], "farmhash64", name="Fingerprint_deep_column"),
    case("DebugIdentity", ROWS, tensor_name="x:0"),
    case("DebugIdentityV3", ROWS, tensor_name="x:0"),
    case("DebugNanCount", ODD, tensor_name="x:0"),
    case("DebugNanCount", np.array([1], I32), tensor_name="x:0"),
    summary(ODD), summary(ODD, lower_bound=-2.0, upper_bound=1.5), summary(ROWS[:0]),
    *(
        summary(ODD, lower_bound=low, upper_bound=high)
        for low, high in ((-1, 0.5), (2, 1), (np.inf, -np.inf), (np.nan, np.nan), (0, np.inf))
    ),
    summary(ROWS, mute_if_healthy=True), summary(np.array([True, False])),
    summary(np.array(3, I32)), summary(np.array([np.inf, np.nan], "f")),
    *(watched(mode) for mode in (2, 3, 4, 5, 6, 8)), watched(4, ROWS), watched(8, ROWS),
    watched(5, np.zeros((1, 2, 1, 2, 1, 2, 3), I32), DataType.DOUBLE),
    case("NearestNeighbors", ROWS, CENTERS, np.int64(2), tolerance=1e-4),
    case("NearestNeighbors", ROWS, CENTERS, np.int64(5), tolerance=1e-4),
    case("NearestNeighbors", ROWS[:0], CENTERS, np.int64(1)),
    case("NearestNeighbors", ROWS, CENTERS, np.int64(0)),
    case("QuantizeAndDequantizeV4Grad", ROWS, 3 * ROWS, F32(-1), F32(2)),
    case("QuantizeAndDequantizeV4Grad", ROWS, 3 * ROWS, ROWS[:, 0] - 1, ROWS[:, 0] + 1, axis=0),
    case("QuantizeAndDequantizeV4Grad", ROWS, 3 * ROWS, ROWS[0] - 1, ROWS[0] + 1, axis=1),
    *(
        fused("FusedPadConv2D", MARGINS, FILTER, mode=mode, **attrs)
        for mode in ("REFLECT", "SYMMETRIC")
        for attrs in (STRIDES, {"strides": (1, 2, 2, 1), "padding": "SAME"})
    ),
    *(
        fused("FusedResizeAndPadConv2D", np.array([8, 7], I32), MARGINS, FILTER,
              mode="REFLECT", resize_align_corners=align, **STRIDES)
        for align in (True, False)
    ),
    *(normalised(t, scaled) for t in (np.float32, np.float64) for scaled in (True, False)),
    *(normalised_gradient(scaled) for scaled in (True, False)),
    from_producer(1, case("AdjustContrast", IMAGE, F32(2), F32(-1), F32(1))),
    *(
        from_producer(1, case("AdjustContrast", EXTREME, *map(F32, rest), name=name))
        for name, rest in (
            ("contrast_extreme", (2, -1, 9)), ("contrast_nan_low", (2, np.nan, 9)),
            ("contrast_nan_high", (0.5, -90, np.nan)), ("contrast_crossed", (2, 9, -1)),
        )
    ),
    from_producer(1, case("AdjustContrast", (IMAGE * 50).astype(np.int16), F32(2), F32(-1),
                          F32(9))),
    from_producer(9, case("Conv3DBackpropInput", VOLUME, FILTER_3D, VOLUME[:, 1:, 1:, 1:, :1]
                          * np.ones(3, "f"), **STRIDES_3D)),
    from_producer(9, case("Conv3DBackpropFilter", VOLUME, FILTER_3D, VOLUME[:, 1:, 1:, 1:, :1]
                          * np.ones(3, "f"), **STRIDES_3D)),
    case("NonDeterministicInts", np.array([2, 3], np.int64), shape_only=True),
    case("NonDeterministicInts", np.array([4], np.int32), dtype=DataType.UINT32, shape_only=True),
    reference(), batched(),
)  # fmt: skip
