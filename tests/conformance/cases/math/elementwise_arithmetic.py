"""Element-wise arithmetic: every dtype, broadcasting, zero divisors, non-finite numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

HALVES = (np.float16, ml_dtypes.bfloat16)
FLOATS = (*HALVES, np.float32, np.float64)
COMPLEXES = (np.complex64, np.complex128)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
ALL = (*FLOATS, *COMPLEXES, *SIGNED, *UNSIGNED)
NAN, INF = np.nan, np.inf

# The dtypes that TensorFlow's CPU kernels accept.
DTYPES = {
    "Add": (*FLOATS, *COMPLEXES, *SIGNED, np.uint8),
    "AddV2": ALL,
    "Sub": ALL,
    "Mul": ALL,
    "Div": ALL,
    "RealDiv": (*FLOATS, *COMPLEXES),
    "FloorDiv": (*FLOATS, *SIGNED, *UNSIGNED),
    "TruncateDiv": (*FLOATS, *SIGNED, *UNSIGNED),
    "FloorMod": (*FLOATS, *SIGNED, *UNSIGNED),
    "TruncateMod": (np.float32, np.float64, np.int32, np.int64),
    "Mod": (np.float32, np.float64, np.int32, np.int64),
    "Pow": (*FLOATS, *COMPLEXES, *SIGNED),
    "Maximum": (*FLOATS, *SIGNED, *UNSIGNED),
    "Minimum": (*FLOATS, *SIGNED, *UNSIGNED),
    "SquaredDifference": (*FLOATS, *COMPLEXES, np.int32, np.int64),
    "Atan2": FLOATS,
    "NextAfter": (np.float32, np.float64),
    "DivNoNan": (*FLOATS, *COMPLEXES),
    "MulNoNan": (*FLOATS, *COMPLEXES),
    "Xdivy": (*FLOATS, *COMPLEXES),
    "Xlogy": (*FLOATS, *COMPLEXES),
    "Xlog1py": (*FLOATS, *COMPLEXES),
}
LEFT = [[5, 7, 2], [3, 6, 1]]
RIGHT = [[2, 3, 4]]
INTEGER_DIVISIONS = ("Div", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod", "Mod")
SPECIAL = np.array([7, -7, 7, -7, 1, -1, 0, INF, 5, -5, 5, NAN, 0, -0.0, INF], np.float32)
DIVISOR = np.array([2, 2, -2, -2, 0, 0, 0, 2, INF, INF, -INF, 1, NAN, 3, -INF], np.float32)


def of_every_type() -> list[Case]:
    return [
        case(op, np.array(LEFT, dtype), np.array(RIGHT, dtype), name=f"{op}_{np.dtype(dtype)}")
        for op, dtypes in DTYPES.items()
        for dtype in dtypes
    ]


def of_rounded_logarithms() -> list[Case]:
    """Ops for which the logarithm of half types is rounded before it is multiplied."""
    x, y = [0.1, 0.2, 3.5, -2, -5, 30], [0.1, 0.2, 3.5, 3.1, 0.7, 2]
    return [
        case(op, np.array(x, dtype), np.array(y, dtype), exact=True)
        for op in ("Xlogy", "Xlog1py")
        for dtype in HALVES
    ]


def of_shapes() -> list[Case]:
    shapes = (
        ((), ()),
        ((3,), ()),
        ((), (2, 1)),
        ((2, 1), (1, 3)),
        ((0, 2), (1,)),
        ((2, 0), (2, 1)),
    )
    return [
        case(
            op,
            np.full(left, 3, np.float32),
            np.full(right, 2, np.float32),
            name=f"{op}_{left}_{right}".replace(" ", ""),
        )
        for op in ("AddV2", "FloorMod", "DivNoNan", "Xlogy", "SquaredDifference")
        for left, right in shapes
    ]


def of_special_numbers() -> list[Case]:
    return [case(op, SPECIAL, DIVISOR, name=f"{op}_special") for op in DTYPES]


def of_integer_edges() -> list[Case]:
    signs = np.array([7, -7, 7, -7, -8, 0], np.int32), np.array([2, 2, -2, -2, 4, -5], np.int32)
    lowest = np.array([-(2**31), 2**31 - 1], np.int32), np.array([-1, -1], np.int32)
    small = np.array([-128, 127], np.int8), np.array([-1, 2], np.int8)
    cases = [
        case(op, *inputs, name=f"{op}_{label}")
        for op in INTEGER_DIVISIONS
        for label, inputs in (("signs", signs), ("lowest", lowest))
    ]
    cases += [
        case(op, *small, name=f"{op}_wraps") for op in ("AddV2", "Sub", "Mul", "Div", "FloorDiv")
    ]
    cases += [
        case(
            op,
            np.array([1, 0], np.int32),
            np.array([1, 0], np.int32),
            name=f"{op}_by_zero",
            message=True,
        )
        for op in INTEGER_DIVISIONS
    ]
    cases += [
        case(op, np.zeros(0, np.int32), np.zeros(1, np.int32), name=f"{op}_empty_by_zero")
        for op in INTEGER_DIVISIONS
    ]
    return cases


def of_errors() -> list[Case]:
    two, three = np.ones(2, np.float32), np.ones(3, np.float32)
    row = np.ones((1, 3), np.float32)
    mismatched = [case(op, two, three, name=f"{op}_incompatible", message=True) for op in DTYPES]
    return [
        *mismatched,
        case("AddV2", np.ones((4, 2), np.float32), row, message=True, name="AddV2_matrices"),
        case("Div", [1, 2], [0, 2, 3], message=True, name="Div_both"),
        case("Pow", [1, 2], [-1, 2, 3], message=True, name="Pow_both"),
        case("Pow", np.array([2, 3], np.int32), np.array([-3, 2], np.int32), message=True),
        case("RealDiv", np.array([2], np.int32), np.array([1], np.int32), name="RealDiv_int32"),
    ]


CASES: tuple[Case, ...] = (
    *of_every_type(),
    *of_shapes(),
    *of_rounded_logarithms(),
    *of_special_numbers(),
    *of_integer_edges(),
    *of_errors(),
    case("Add", np.array([b"a", b"bc"], object), np.array(b"x", object), name="Add_strings"),
    case("Add", np.array(b"a", object), np.array(b"x", object), name="Add_string_scalars"),
    case(
        "Add", np.array([b"a", b"b"]), np.array([b"x"] * 3), name="Add_string_error", message=True
    ),
    *(
        case(op, [np.array([1, 2], dtype)] * count, name=f"{op}_{np.dtype(dtype)}_{count}")
        for op in ("AddN",)
        for dtype in ALL
        for count in (1, 2, 3)
    ),
    case("AddN", [np.float32(1), np.float32(2), np.float32(4)], name="AddN_scalars"),
    case("AccumulateNV2", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], shape=(2,)),
    case("AddN", [np.ones(2, np.float32), np.ones(3, np.float32)], name="AddN_shapes"),
    case("ClipByValue", np.array([[1, 5, -3]], np.float32), np.float32(0), np.float32(2)),
    case("ClipByValue", np.array([1, NAN, INF], np.float32), np.float32(0), np.float32(2)),
    case("ClipByValue", [1, 5], [2, 1], [3, 4]),
    case("ClipByValue", [1, 5], np.int32(3), np.int32(2)),
    case("ClipByValue", [1, 5], [2], np.int32(3), message=True),
    case(
        "ClipByValue",
        np.array([1 - 1j, 5 + 1j, 2.5 + 9j]),
        np.array(2 + 2j),
        np.array(3 - 1j),
        name="clip_complex",
    ),
    case(
        "ClipByValue", np.array(5 + 1j), np.array(2 - 2j), np.array(3 + 2j), name="clip_complex_0"
    ),
    case("ClipByValue", [[1, 5]], [2, 1], np.int32(3), message=True),
    *(
        case("ClipByValue", np.array([1, 5], t), np.array(2, t), np.array(3, t))
        for t in (*FLOATS, *SIGNED, np.uint8)
    ),
)
