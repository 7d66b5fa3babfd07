"""V1 checkpoints: saved by Save and SaveSlices, read by Restore, RestoreSlice and RestoreV2.

The cases write small files under /tmp, each with its own name.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step
from tests.conformance.cases.io.checkpoint import feed, strings

PREFIX = "/tmp/runstep-conformance-checkpoint-v1-"
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = np.array([b"", b"one", b"\x00\xfftwo" * 50], object)
Saved = Sequence[tuple[str, str, np.ndarray]]


def written(name: str, saved: Saved, restored: Saved, pattern: str = "", path: str = "") -> Case:
    """Save (name, slice, value), then restore (name, slice, example) singly and by RestoreV2."""
    graph = Graph()
    feeds: dict[str, np.ndarray] = {}
    filename = np.array((path or f"{PREFIX}{name}").encode(), object)
    names, specs = strings(*(row[0] for row in saved)), strings(*(row[1] for row in saved))
    values = [value for _, _, value in saved]
    if any(spec for _, spec, _ in saved):
        inputs = feed(graph, feeds, "saved", filename, names, specs)
        graph.add("SaveSlices", *inputs, values, name="save")
    else:
        inputs = feed(graph, feeds, "saved", filename, names)
        graph.add("Save", *inputs, values, name="save")
    steps = [Step(feeds, (), ("save",))]
    source = np.array((pattern or filename.item().decode()).encode(), object)
    for index, (key, spec, example) in enumerate(restored):
        dtype = DataType.FLOAT if example is MATRIX else None
        one = feed(graph, feeds, f"restored_{index}", source, *map(scalar, (key, spec)))
        arguments = one if spec else one[:2]
        op = "RestoreSlice" if spec else "Restore"
        result = graph.add(op, *arguments, name=f"restore_{index}", dt=dtype or example.dtype)
        steps.append(Step(feeds, (result[0][0],)))
    keys, slices = strings(*(r[0] for r in restored)), strings(*(r[1] for r in restored))
    again = feed(graph, feeds, "again", source, keys, slices)
    dtypes = [example.dtype for _, _, example in restored]
    outputs = graph.add("RestoreV2", *again, name="restore_v2", dtypes=dtypes)
    steps.append(Step(feeds, tuple(output for output, _ in outputs)))
    return Case(name, graph.graph_def, tuple(steps), exact=True, message=True)


def scalar(value: str) -> np.ndarray:
    return np.array(value.encode(), object)


NUMBERS = (
    np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.bool_, np.complex64, np.complex128,
)  # fmt: skip
TYPES = tuple((np.dtype(d).name, "", MATRIX.astype(d)) for d in NUMBERS)
EDGES = (
    ("words", "", WORDS),
    ("word", "", WORDS[1:2].reshape(())),
    ("scalar", "", np.array(3, np.int32)),
    ("empty", "", np.zeros((0, 3), np.float32)),
)
PARTS = (("t", "4 3 0,2:-", MATRIX[:2]), ("t", "4 3 2,2:-", MATRIX[2:]), ("u", "", MATRIX))
WHOLE = (("t", "", MATRIX),)
ASKED = (
    "", "4 3 1,2:-", "4 3 0,1:2,1", "4 3 1,3:1,1", "3 3 -:-", "4 3 3,2:-", "4 3 0,0:-", "junk",
)  # fmt: skip
SAVED_WRONG = (
    ("t", "4 3 0,2:-", MATRIX), ("t", "4 3 3,2:-", MATRIX[2:]), ("t", "junk", MATRIX),
    ("t", "", MATRIX.astype(ml_dtypes.bfloat16)), ("t", "", MATRIX.astype(np.uint32)),
)  # fmt: skip

CASES = (
    written("types", TYPES, TYPES),
    written("edges", EDGES, tuple(reversed(EDGES))),
    *(written(f"whole_{i}", WHOLE, (("t", s, MATRIX),)) for i, s in enumerate(ASKED)),
    *(written(f"parts_{i}", PARTS, (("t", s, MATRIX),)) for i, s in enumerate(ASKED)),
    *(written(f"wrong_{i}", (row,), WHOLE) for i, row in enumerate(SAVED_WRONG)),
    written("missing_slice", PARTS[:1], WHOLE),
    written("other_shape", (PARTS[0], ("t", "5 3 2,2:-", MATRIX[2:])), WHOLE),
    written("other_name", WHOLE, (("zz", "", MATRIX),)),
    written("other_type", WHOLE, (("t", "", MATRIX.astype(np.int32)),)),
    written("pattern", WHOLE, WHOLE, pattern=f"{PREFIX}patter?"),
    written("no_match", WHOLE, WHOLE, pattern=f"{PREFIX}nothing-*"),
    written("word_slice", (EDGES[0],), (("words", "3 1,2", WORDS),)),
)
