"""Argmax of pooling windows and the gradients of pooling."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(6)
TYPES = (
    np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.int64, np.uint32, np.uint64,
)  # fmt: skip
Window = tuple[list[int], list[int], str]  # ksize, strides, padding
X2, X3 = (2, 5, 6, 3), (2, 3, 4, 5, 2)
WINDOWS_2D = (
    ([1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
    ([1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
    ([1, 3, 2, 1], [1, 1, 1, 1], "SAME"),
    ([1, 3, 3, 1], [1, 2, 1, 1], "VALID"),
    ([1, 1, 1, 1], [1, 3, 2, 1], "VALID"),
)
WINDOWS_3D = (
    ([1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
    ([1, 1, 3, 2, 1], [1, 1, 1, 2, 1], "SAME"),
    ([1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"),
)


def values(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Small integers, so that windows have ties."""
    return RNG.integers(0, 9, size=shape).astype(dtype)


def pooled_shape(
    shape: tuple[int, ...], window: tuple[list[int], list[int], str]
) -> tuple[int, ...]:
    ksize, strides, padding = window
    reach = [0 if padding == "SAME" else size - 1 for size in ksize]
    return tuple(
        -(-(size - less) // stride)
        for size, less, stride in zip(shape, reach, strides, strict=True)
    )


def attrs_of(window: Window) -> dict[str, Any]:
    return dict(zip(("ksize", "strides", "padding"), window, strict=True))


def windows_of(shape: tuple[int, ...]) -> Any:
    return WINDOWS_2D if len(shape) == 4 else WINDOWS_3D


def from_output(op: str, shape: tuple[int, ...], window: Any, dtype: Any = np.float32) -> Case:
    """Return a case of a gradient op, whose inputs are input, output and gradient."""
    x, pooled = values(shape, dtype), pooled_shape(shape, window)
    # MaxPool3DGrad compares the input with the output, so this must hold the true maxima.
    y = np.zeros(pooled, dtype)
    ksize, strides, padding = window
    before = [
        max(0, (out - 1) * step + size - whole) // 2 if padding == "SAME" else 0
        for out, step, size, whole in zip(pooled, strides, ksize, shape, strict=True)
    ]
    for index in np.ndindex(*pooled):
        starts = [i * s - b for i, s, b in zip(index, strides, before, strict=True)]
        ranges = tuple(
            slice(max(start, 0), start + size) for start, size in zip(starts, ksize, strict=True)
        )
        y[index] = x[ranges].max()
    gradient = values(shape if "GradGrad" in op else pooled, dtype)
    if op.endswith("V2"):
        return case(op, x, y, gradient, ksize, strides, padding=padding)
    return case(op, x, y, gradient, **attrs_of(window))


G = values((2, 3, 3, 3))
REFUSED = (
    (values(X2), G[:, :2], G), (values(X2), G, G[:, :2]), (values(X2)[0], G, G),
    (values(X2), G[0], G), (values(X2), G, G[0]),
)  # fmt: skip
ARGMAX = np.array([[[[0], [3]]]])
G3 = np.arange(96, dtype=np.float32).reshape(2, 2, 3, 4, 2)
REFUSED_3D = (
    ([1, 2, 2, 2, 2], [1, 1, 1, 1, 1], "VALID"), ([1, 2, 2, 2, 1], [1, 1, 1, 1, 2], "VALID"),
    ([2, 2, 2, 2, 2], [1, 1, 1, 1, 1], "VALID"), ([1, 2, 2, 2, 1], [0, 1, 1, 1, 1], "VALID"),
)  # fmt: skip
PAIRS = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "SAME"}
# Gradients of fewer or more elements than the output; windows larger than the input.
PAIRED, WIDE = ([1, 2, 2, 1], [1, 2, 2, 1], "SAME"), ([1, 5, 5, 1], [1, 1, 1, 1], "SAME")
ODD_GRADIENTS = (
    ((2, 4, 4, 2), WIDE), ((2, 2, 1, 2), PAIRED), ((1, 2, 2, 2), PAIRED), ((0, 2, 2, 2), PAIRED),
    ((3, 0, 2, 2), PAIRED), ((2, 4, 3, 2), PAIRED), ((2, 3, 3, 2), PAIRED), ((2, 3, 5, 2), WIDE),
)  # fmt: skip

CASES = (
    *(
        case("MaxPoolWithArgmax", values(X2), **attrs_of(window), include_batch_in_index=batch)
        for window in WINDOWS_2D
        for batch in (False, True)
    ),
    *(case("MaxPoolWithArgmax", values(X2, t), **attrs_of(WINDOWS_2D[0])) for t in TYPES),
    case("MaxPoolWithArgmax", values(X2), **attrs_of(WINDOWS_2D[0]), Targmax=np.int32),
    case(
        "MaxPoolWithArgmax",
        np.array([[[[np.nan], [1], [2], [np.nan], [-np.inf], [-np.inf]]]], np.float32),
        **PAIRS,
    ),
    case("MaxPoolWithArgmax", values(X2)[0], **attrs_of(WINDOWS_2D[0]), message=True),
    *(
        case("MaxPoolWithArgmax", values((2, 4, 4, 4)), **attrs_of(window), message=True)
        for window in (
            ([1, 1, 1, 2], [1, 1, 1, 2], "SAME"), ([1, 1, 1, 2], [1, 2, 2, 2], "VALID"),
            ([1, 1, 1, 2], [1, 1, 1, 4], "VALID"), ([1, 1, 1, 3], [1, 1, 1, 3], "VALID"),
            ([1, 2, 1, 2], [1, 1, 1, 2], "VALID"),
        )
    ),
    case(
        "AvgPoolGrad", np.int32([1, 1, 3, 1]), values((3, 1, 3, 1)), ksize=[1, 1, 1, 1],
        strides=[1, 1, 1, 1], padding="VALID", message=True,
    ),
    *(
        from_output(op, shape, window)
        for op, shape in (
            ("MaxPoolGrad", X2), ("MaxPoolGradGrad", X2), ("MaxPool3DGrad", X3),
            ("MaxPool3DGradGrad", X3),
        )
        for window in windows_of(shape)
    ),
    *(from_output("MaxPoolGrad", X2, WINDOWS_2D[2], t) for t in TYPES),
    *(from_output("MaxPoolGradGrad", X2, WINDOWS_2D[2], t) for t in TYPES),
    from_output("MaxPool3DGrad", X3, WINDOWS_3D[1], ml_dtypes.bfloat16),
    *(
        case("MaxPoolGrad", *inputs, **attrs_of(WINDOWS_2D[0]), message=True)
        for inputs in REFUSED
    ),
    *(from_output(op, X2, WINDOWS_2D[2]) for op in ("MaxPoolGradV2", "MaxPoolGradGradV2")),
    *(
        case(
            "MaxPoolGradWithArgmax", x, gradient, argmax, **PAIRS, message=True,
            include_batch_in_index=batch,
        )
        for x, gradient, argmax, batch in (
            (np.zeros((1, 1, 4, 1)), np.ones((1, 1, 2, 1)), ARGMAX, False),
            (np.zeros((1, 1, 4, 1)), np.ones((1, 1, 2, 1)), ARGMAX * 0, False),
            (np.zeros((2, 1, 4, 1)), np.ones((2, 1, 2, 1)), np.concatenate([ARGMAX] * 2), False),
            (np.zeros((2, 1, 4, 1)), np.ones((2, 1, 2, 1)), np.stack([ARGMAX, ARGMAX + 4])[:, 0],
             True),
            (np.zeros((1, 1, 4, 1)), np.ones((1, 1, 3, 1)), ARGMAX, False),
            (np.zeros((1, 1, 4, 1)), np.ones((1, 1, 2, 1)), ARGMAX[0], False),
            (np.zeros((1, 4, 1)), np.ones((1, 1, 2, 1)), ARGMAX, False),
        )
    ),
    *(
        case(op, np.int32(shape), values(pooled_shape(shape, window)), **attrs_of(window))
        for op, shape in (("AvgPoolGrad", X2), ("AvgPool3DGrad", X3))
        for window in windows_of(shape)
    ),
    *(
        case("AvgPoolGrad", np.int32(X2), values((2, 3, 3, 3), t), **attrs_of(WINDOWS_2D[0]))
        for t in TYPES[:3]
    ),
    *(
        case("AvgPoolGrad", np.int32([2, 4, 4, 2]), values(given), **attrs_of(window), message=True)
        for given, window in ODD_GRADIENTS
    ),
    *(
        case("AvgPoolGrad", np.int32(sizes), gradient, **attrs_of(WINDOWS_2D[0]), message=True)
        for sizes, gradient in (((5, 6, 3), G), (X2, G[0]), ((2, -5, 6, 3), G))
    ),
    *(
        case("AvgPoolGrad", np.int32(sizes), G, **attrs_of(window), message=True)
        for sizes, window in (
            ((2, 0, 6, 3), WINDOWS_2D[1]), (X2, ([1, 2, 2, 1], [2, 1, 1, 1], "SAME")),
            (X2, ([1, 2, 2, 2], [1, 1, 1, 1], "SAME")),
        )
    ),
    *(
        case("AvgPool3DGrad", np.int32(sizes), G3[:images], **attrs_of(window), message=True)
        for sizes, window, images in (
            (X3, WINDOWS_3D[2], 1), ((2, 5, 6), WINDOWS_3D[2], 2),
            *((X3, window, 2) for window in REFUSED_3D),
            (X3, ([1, -1, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"), 2),
        )
    ),
    *(
        case(op, values(X3), G3, gradient, **attrs_of(window), message=True)
        for op, gradient in (("MaxPool3DGrad", G3), ("MaxPool3DGradGrad", values(X3)))
        for window in REFUSED_3D
    ),
    *(
        case(op, values(X2), G, gradient, *window[:2], padding="SAME", message=True)
        for op, gradient in (("MaxPoolGradV2", G), ("MaxPoolGradGradV2", values(X2)))
        for window in (
            ([1, 2, 2, 1], [2, 0, 2, 1]), ([1, 2, 2, 1], [1, 0, 2, 1]),
            ([1, 2, 2, 1], [1, 2, 2, 0]), ([1, 2, 2, 2], [1, 2, 2, 1]),
        )
    ),
    *(
        case(op, values(X2), G, gradient, **attrs_of(window), message=True)
        for op, gradient in (("MaxPoolGrad", G), ("MaxPoolGradGrad", values(X2)))
        for window in (
            ([1, 2, 2, 1], [1, 2, 2, 2], "SAME"), ([1, 2, 2, 2], [1, 2, 2, 1], "SAME"),
        )
    ),
    case(
        "MaxPoolGrad", values(X2)[0], G, G, ksize=[2, 2, 2, 1], strides=[1, 2, 2, 1],
        padding="SAME", message=True,
    ),
)  # fmt: skip
