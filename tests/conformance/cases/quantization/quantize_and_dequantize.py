"""QuantizeAndDequantize and its versions."""

import numpy as np

from tests.conformance.case import case, from_producer

VALUES = np.float32([[-3, -1.5, -0.5, 0, 0.2], [0.5, 1.5, 2.5, 3, 7]])
WIDE = VALUES.astype(np.float64)
GIVEN = ((False, 0.0, 0.0), (True, -2.0, 4.0), (True, 0.0, 1.0), (True, 2.0, -2.0))

CASES = (
    *(
        from_producer(21, case(
            "QuantizeAndDequantize", VALUES, signed_input=signed, num_bits=8, range_given=given,
             input_min=low, input_max=high, message=True))
        for signed in (True, False)
        for given, low, high in GIVEN
    ),
    *(
        case(op, values, values.dtype.type(low), values.dtype.type(high), signed_input=signed,
             num_bits=bits, range_given=given, round_mode=rounding, narrow_range=narrow,
             message=True)
        for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
        for values, signed, bits, rounding, narrow in (
            (VALUES, True, 8, "HALF_TO_EVEN", False), (VALUES, False, 4, "HALF_UP", False),
            (VALUES, True, 3, "HALF_UP", True), (WIDE, True, 8, "HALF_TO_EVEN", True),
        )
        for given, low, high in GIVEN
    ),
    *(
        case("QuantizeAndDequantizeV3", VALUES, low, high, bits, signed_input=signed,
             range_given=given, message=True)
        for signed in (True, False)
        for given, low, high in GIVEN
        for bits in (8, 4)
    ),
    *(
        case("QuantizeAndDequantizeV4", VALUES, np.float32([-1] * size), np.float32([1] * size),
             axis=axis, num_bits=4, range_given=False)
        for axis, size in ((0, 2), (1, 5))
    ),
)  # fmt: skip
