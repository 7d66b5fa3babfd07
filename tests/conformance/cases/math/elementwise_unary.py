"""Element-wise functions of one tensor: every dtype, and numbers at the limits of domains."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

HALVES = (np.float16, ml_dtypes.bfloat16)
FLOATS = (*HALVES, np.float32, np.float64)
COMPLEXES = (np.complex64, np.complex128)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
NUMERIC = (*FLOATS, *COMPLEXES)

DTYPES = {
    **dict.fromkeys(
        ("Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Sigmoid", "Tanh"),
        NUMERIC,
    ),
    **dict.fromkeys(("Sin", "Cos", "Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan"), NUMERIC),
    **dict.fromkeys(("Asinh", "Acosh", "Atanh"), NUMERIC),
    **dict.fromkeys(("Floor", "Ceil", "IsFinite", "IsInf", "IsNan"), FLOATS),
    "Rint": (np.float32, np.float64),
    "Round": FLOATS,
    "Abs": (*FLOATS, *SIGNED),
    "Neg": (*NUMERIC, *SIGNED),
    "Sign": (*NUMERIC, *SIGNED),
    "Square": (*NUMERIC, *SIGNED, *UNSIGNED),
}
# Relative tolerance where TensorFlow's approximation is less accurate than numpy's.
TOLERANCES = {"Rsqrt": 1e-5, "Reciprocal": 1e-5}
REALS = np.array([0.25, 0.5, 0.75, 0.875])
WIDE = np.array(
    [-100, -3.5, -2.5, -1, -0.5, -0.0, 0, 0.5, 1, 1.5, 2.5, 100, np.inf, -np.inf, np.nan]
)
POINTS = np.array([0.5 + 0.25j, 0.25 - 0.75j, -0.5 + 0.5j, 0.75 - 0.125j])
INTEGERS = np.array([3, 0, 100, 127])


def sample(dtype: type) -> np.ndarray:
    kind = np.dtype(dtype).kind
    return {"c": POINTS, "i": INTEGERS, "u": INTEGERS}.get(kind, REALS).astype(dtype)


def check_numerics(op: str, values: list[float]) -> Case:
    graph = Graph()
    placeholder = graph.placeholder(DataType.FLOAT, "x")
    outputs = graph.add(op, placeholder, name="result", message="found")
    step = Step({"x:0": np.array(values, np.float32)}, (outputs[0][0],))
    return Case(f"{op}_{values}", graph.graph_def, (step,), message=True)


NAN, INF = np.nan, np.inf
CASES: tuple[Case, ...] = (
    *(
        case(op, sample(dtype), name=f"{op}_{np.dtype(dtype)}", tolerance=TOLERANCES.get(op))
        for op, dtypes in DTYPES.items()
        for dtype in dtypes
    ),
    *(case(op, WIDE.astype(np.float32), name=f"{op}_wide") for op in DTYPES),
    *(case(op, WIDE.astype(np.float16), name=f"{op}_wide_half") for op in DTYPES if op != "Rint"),
    *(case(op, np.float32(0.5), name=f"{op}_scalar") for op in DTYPES),
    *(case(op, np.zeros((2, 0), np.float32), name=f"{op}_empty") for op in DTYPES),
    *(
        case(op, np.array([-128, 127], np.int8), name=f"{op}_wraps")
        for op in ("Abs", "Neg", "Square", "Sign")
    ),
    case("Square", np.array([200], np.uint8), name="Square_wraps_unsigned"),
    *(case(op, np.array([2], np.int32), name=f"{op}_int32") for op in ("Reciprocal", "Inv")),
    case("Round", np.array([2], np.int8), name="Round_int8"),
    *(
        check_numerics(op, values)
        for op in ("CheckNumerics", "CheckNumericsV2")
        for values in (
            [1.0],
            [NAN],
            [INF],
            [-INF],
            [NAN, INF],
            [NAN, -INF],
            [INF, -INF],
            [NAN, INF, -INF],
        )
    ),
    *(case("Erf", REALS.astype(t), name=f"Erf_{np.dtype(t)}") for t in FLOATS),
    *(case("Erfc", REALS.astype(t), name=f"Erfc_{np.dtype(t)}") for t in FLOATS),
    *(case(op, WIDE.astype(np.float32), name=f"{op}_wide") for op in ("Erf", "Erfc")),
    *(
        case(op, np.linspace(-6, 6, 49), name=f"{op}_double", tolerance=1e-14)
        for op in ("Erf", "Erfc")
    ),
    *(case(op, np.float32(0.5), name=f"{op}_scalar") for op in ("Erf", "Erfc")),
    case("Erfc", np.linspace(-5, 9, 20000, dtype=np.float32)[::50], name="Erfc_line"),
)
