"""DataFormatDimMap and DataFormatVecPermute."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

FORMATS = (
    ("NHWC", "NCHW"), ("HWNC", "NHWC"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"), ("DHWNC", "NDHWC"),
    ("NHW", "NWH"), ("NHWC", "NHW"), ("NHWC", "NHHC"), ("NHWC", "ABCD"),
    ("NCDE", "ENCD"), ("NCDEH", "ENCDH"),
)  # fmt: skip
ROWS = (
    [7, 4, 9, 3], [7, 4, 9, 3, 5], [[7, 4], [9, 3], [4, 5], [5, 1]], [1, 2], [[1, 2], [3, 4]],
    [1, 2, 3], [[1, 2, 3]] * 4, [[[1]]], 1, [[5, 1]] * 5,
)  # fmt: skip
DIMS = (0, [0, 1, 2, 3], [-4, -1], [[1, -2]], np.zeros((0, 2)))

CASES = (
    *(
        case("DataFormatVecPermute", np.asarray(x, np.int32), src_format=source, dst_format=target,
             message=True)
        for x in ROWS
        for source, target in FORMATS
    ),
    *(
        case("DataFormatDimMap", np.asarray(x, np.int32), src_format=source, dst_format=target,
             message=True)
        for x in DIMS
        for source, target in FORMATS
    ),
    case("DataFormatVecPermute", np.int64([7, 4, 9, 3])),
    case("DataFormatDimMap", np.int64([3, -3])),
)  # fmt: skip
