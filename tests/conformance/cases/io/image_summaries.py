"""ImageSummary: errors and shapes; tests/unit compares the pixels, as compression differs."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

PICTURES = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)

CASES = (
    case("ImageSummary", "i", PICTURES, shape_only=True),
    case("ImageSummary", "i", PICTURES.astype(np.float32), max_images=1, shape_only=True),
    case("ImageSummary", ["i"], PICTURES, message=True),
    case("ImageSummary", "i", PICTURES[..., :2], message=True),
    case("ImageSummary", "i", PICTURES[0], message=True),
    *(
        case("ImageSummary", "i", np.zeros(shape, np.float32), message=True)
        for shape in ((0, 2, 2, 3), (1, 0, 2, 3), (1, 2, 0, 3), (0, 0, 0, 1))
    ),
)
