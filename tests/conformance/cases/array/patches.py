"""ExtractImagePatches and ExtractVolumePatches."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

IMAGE = np.arange(1, 71, dtype=np.float32).reshape(1, 5, 7, 2)
VOLUME = np.arange(1, 121, dtype=np.float32).reshape(1, 4, 5, 3, 2)

CASES = (
    *(
        case(
            "ExtractImagePatches", value, ksizes=[1, *size, 1], strides=[1, *stride, 1],
            rates=[1, *rate, 1], padding=padding,
        )
        for padding in ("VALID", "SAME")
        for value, size, stride, rate in (
            (IMAGE, (3, 3), (1, 1), (1, 1)), (IMAGE, (2, 3), (2, 3), (1, 1)),
            (IMAGE, (2, 2), (1, 2), (2, 3)), (IMAGE, (3, 3), (5, 5), (1, 1)),
            (IMAGE, (1, 1), (2, 2), (1, 1)), (IMAGE[:0], (2, 2), (1, 1), (1, 1)),
            (IMAGE, (7, 2), (1, 1), (1, 1)), (IMAGE[0], (2, 2), (1, 1), (1, 1)),
        )
    ),
    *(
        case(
            "ExtractImagePatches", IMAGE.astype(t), ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1],
            rates=[1, 1, 1, 1], padding="SAME",
        )
        for t in (np.int8, np.uint8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float64)
    ),
    *(
        case(
            "ExtractVolumePatches", value, ksizes=[1, *size, 1], strides=[1, *stride, 1],
            padding=padding,
        )
        for padding in ("VALID", "SAME")
        for value, size, stride in (
            (VOLUME, (2, 2, 2), (1, 1, 1)), (VOLUME, (3, 2, 1), (2, 3, 1)),
            (VOLUME[0], (1, 1, 1), (1, 1, 1)),
        )
    ),
    case("ExtractVolumePatches", VOLUME[:, :0], ksizes=[1, 3, 2, 1, 1], strides=[1, 2, 3, 1, 1],
         padding="VALID"),
)  # fmt: skip
