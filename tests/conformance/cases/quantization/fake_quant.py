"""FakeQuant ops and their gradients."""

import numpy as np

from tests.conformance.case import case

VALUES = np.float32([[-7, -1.5, -0.51, 0, 0.2], [0.5, 1.49, 2.5, 6.1, 9]])
SLOPES = np.arange(1, 11, dtype=np.float32).reshape(2, 5)
RANGES = ((-6.0, 6.0), (0.0, 6.0), (-0.3, 2.7), (1.0, 5.0), (-5.0, -1.0))
WIDTHS = ((8, False), (4, True), (16, False))
LOWS, HIGHS = np.float32([-6, -1, 0, 0, 1]), np.float32([6, 2, 1, 0, 5])
HALVES = np.arange(-4, 28, dtype=np.float32) / np.float32(7)
ODD_SLOPES = np.float32([[np.inf, np.nan, 1], [2, -np.inf, 3]])

CASES = (
    *(
        case("FakeQuantWithMinMaxArgs", VALUES, min=low, max=high, num_bits=bits,
             narrow_range=narrow)
        for low, high in RANGES
        for bits, narrow in WIDTHS
    ),
    *(
        case("FakeQuantWithMinMaxArgsGradient", SLOPES, VALUES, min=low, max=high, num_bits=bits,
             narrow_range=narrow)
        for low, high in RANGES
        for bits, narrow in WIDTHS
    ),
    *(
        case("FakeQuantWithMinMaxVars", VALUES, low, high, num_bits=bits, narrow_range=narrow,
             message=True)
        for low, high in (*RANGES, (0.0, 0.0), (np.float32([-1]), 1.0))
        for bits, narrow in WIDTHS
    ),
    *(
        case("FakeQuantWithMinMaxVarsGradient", SLOPES, VALUES, low, high, num_bits=bits,
             narrow_range=narrow, message=True)
        for low, high in (*RANGES, (0.0, 0.0), (np.float32([-1]), 1.0))
        for bits, narrow in WIDTHS
    ),
    *(
        case("FakeQuantWithMinMaxVarsPerChannel", value, low, high, num_bits=bits,
             narrow_range=narrow, message=True)
        for value, low, high in (
            (VALUES, LOWS, HIGHS), (VALUES[0], LOWS, HIGHS), (VALUES[:, None, None], LOWS, HIGHS),
            (VALUES, LOWS[:3], HIGHS), (VALUES, 0.0, HIGHS),
        )
        for bits, narrow in WIDTHS
    ),
    *(
        case("FakeQuantWithMinMaxVarsPerChannelGradient", slopes, value, low, high, num_bits=bits,
             narrow_range=narrow, message=True)
        for slopes, value, low, high in (
            (SLOPES, VALUES, LOWS, HIGHS), (SLOPES[0], VALUES[0], LOWS, HIGHS),
            (SLOPES[:, :2], VALUES, LOWS, HIGHS), (SLOPES, VALUES, LOWS[:3], HIGHS),
        )
        for bits, narrow in WIDTHS
    ),
    case(
        "FakeQuantWithMinMaxArgsGradient", np.float32([-np.inf, np.inf, -1, 2]),
        np.float32([-70, 0.5, 70, 1]), min=0.3, max=2.7,
    ),
    # A range from 0 to 0 gets a gradient of 0, even where the gradient of the output is NaN.
    case("FakeQuantWithMinMaxVarsGradient", ODD_SLOPES, -ODD_SLOPES, 0.0, 0.0),
    case("FakeQuantWithMinMaxVarsPerChannelGradient", ODD_SLOPES, -ODD_SLOPES,
         np.float32([0, 0, -1]), np.float32([0, 1, 1])),
    case("FakeQuantWithMinMaxArgs", np.float32([1, 2]), min=1.0, max=float("nan"), message=True),
    # Values halfway between steps, where multiplying by 1 / scale rounds unlike dividing by scale.
    case("FakeQuantWithMinMaxArgs", HALVES, min=1.0, max=5.0, num_bits=4, narrow_range=True),
    case("FakeQuantWithMinMaxArgs", HALVES * 3, min=-6.0, max=6.0, num_bits=4, narrow_range=True),
    case("FakeQuantWithMinMaxVars", HALVES, 1.0, 5.0, num_bits=4, narrow_range=True),
    case("FakeQuantWithMinMaxVars", HALVES * 3, -6.0, 6.0, num_bits=4, narrow_range=True),
    case("FakeQuantWithMinMaxVarsPerChannel", np.stack([HALVES, HALVES * 3], 1),
         np.float32([1, -6]), np.float32([5, 6]), num_bits=4, narrow_range=True),
)  # fmt: skip
