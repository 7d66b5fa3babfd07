"""ExtractGlimpse in both versions: windows inside, across and beyond the image's edge."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

IMAGES = np.arange(96, dtype=np.float32).reshape(2, 4, 6, 2)
OPS = ("ExtractGlimpse", "ExtractGlimpseV2")
OFFSETS = (
    ((0, 0), (1, 1)), ((-1, 0.5), (0.3, -0.7)), ((2, 1), (-2, -9)), ((1.5, 3), (-1.2, 2)),
    ((np.nan, 0), (1e30, -1e30)),
)  # fmt: skip
QUIET = {"uniform_noise": False, "noise": "zero"}


def glimpse(op: str, images: object, size: object, offsets: object, **attrs: object) -> Case:
    return case(
        op, images, np.asarray(size, np.int32), np.asarray(offsets, np.float32),
        **{**QUIET, **attrs},
    )  # fmt: skip


CASES = (
    *(
        glimpse(op, IMAGES, size, offsets, centered=centered, normalized=normalized)
        for op in OPS
        for size in ((3, 3), (2, 4), (0, 2), (7, 8))
        for offsets in OFFSETS
        for centered in (True, False)
        for normalized in (True, False)
    ),
    *(
        # Windows inside the image contain no noise of any kind.
        glimpse(op, IMAGES, (2, 2), ((0, 0), (0.1, 0.1)), uniform_noise=uniform, noise=noise)
        for op in OPS
        for uniform, noise in (
            (True, "uniform"), (False, "gaussian"), (False, ""), (False, "uniform"), (False, "x"),
        )
    ),
    *(
        case(op, images, np.asarray(size, np.int32), np.asarray(offsets, np.float32), message=True,
             **QUIET)
        for op in OPS
        for images, size, offsets in (
            (IMAGES[0], (2, 2), ((0, 0),)), (IMAGES, (2,), ((0, 0), (0, 0))),
            (IMAGES, (2, 2), (0, 0)), (IMAGES, (2, 2), ((0, 0),)), (IMAGES, (-1, 2), ((0, 0),) * 2),
        )
    ),
    glimpse("ExtractGlimpse", IMAGES[:, :0], (1, 2), ((0, 0), (0, 0))),
)  # fmt: skip
