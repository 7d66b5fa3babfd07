"""Random crops around boxes: compared exactly, since a seed gives TensorFlow's sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import Case, Graph, Step, case

SIZE = np.array([120, 200, 3], np.int32)
BOXES = np.array([[[0.1, 0.2, 0.8, 0.7], [0.5, 0.0, 1.0, 0.4]]], np.float32)
NO_BOXES = np.zeros((0, 0, 4), np.float32)
COVERED = np.float32(0.1)
V1, V2 = "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"
BY_SEED = "StatelessSampleDistortedBoundingBox"
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"area_range": [0.05, 0.3]},
    {"area_range": [0.9, 1.0], "aspect_ratio_range": [0.4, 2.5], "max_attempts": 3},
    {"aspect_ratio_range": [1.0, 1.0]},
)


def _several_steps(op: str, covered: float) -> Case:
    """Return a case of several steps: the random sequence continues from step to step."""
    graph = Graph()
    given = (SIZE, BOXES, np.float32(covered)) if op == V2 else (SIZE, BOXES)
    attrs = {} if op == V2 else {"min_object_covered": covered}
    crop = graph.add(op, *given, seed=5, seed2=9, **attrs)
    step = Step({}, tuple(name for name, _ in crop))
    return Case(f"{op}_again_{covered}", graph.graph_def, (step, step, step))


CASES = (
    *(_several_steps(op, covered) for op in (V1, V2) for covered in (0.1, 0.9)),
    *(
        case(BY_SEED, SIZE, BOXES, COVERED, np.array([seed, 7], np.int64), exact=True, **options)
        for seed in range(4)
        for options in OPTIONS
    ),
    *(
        case(BY_SEED, np.array([100, 90, 3], each), BOXES, COVERED, np.array([1, 2], np.int32))
        for each in (np.uint8, np.int8, np.int16, np.int64)
    ),
    *(
        case(op, np.array([100, 90, 3], each), BOXES, *covered, seed=3, seed2=4)
        for op, covered in ((V1, ()), (V2, (COVERED,)))
        for each in (np.uint8, np.int8, np.int16, np.int64)
    ),
    case(V2, SIZE, NO_BOXES, COVERED, seed=1, use_image_if_no_bounding_boxes=True),
    case(V2, np.array([3, 3, 3], np.int32), BOXES, COVERED, seed=1, max_attempts=100),
    *(
        case(op, *given, *(np.array([1, 2], np.int64),) * (op == BY_SEED), message=True)
        for op in (V2, BY_SEED)
        for given in (
            (SIZE, NO_BOXES, COVERED),
            (SIZE, np.zeros((1, 2, 0), np.float32), COVERED),
            (SIZE[:2], BOXES, COVERED),
            (SIZE[None], BOXES, COVERED),
            (SIZE, BOXES[0, 0], COVERED),
            (SIZE, BOXES[..., :3], COVERED),
            (SIZE, BOXES * 2, COVERED),
            (SIZE, BOXES, np.float32(-1)),
            (SIZE, BOXES, np.float32(1.5)),
            (SIZE, BOXES, np.array([0.1, 0.2], np.float32)),
            (SIZE * 0, BOXES, COVERED),
            (-SIZE, BOXES, COVERED),
        )
    ),
    *(
        case(V2, SIZE, BOXES, COVERED, message=True, **attrs)
        for attrs in (
            {"area_range": [0.5]},
            {"area_range": [0.5, 2]},
            {"area_range": [0, 1]},
            {"aspect_ratio_range": [-1, 2]},
            {"aspect_ratio_range": [1]},
            {"max_attempts": 0},
        )
    ),
    case(V1, SIZE, BOXES, min_object_covered=-1.0, message=True),
    case(BY_SEED, SIZE, BOXES, COVERED, np.array([1, 2, 3], np.int64), message=True),
)
