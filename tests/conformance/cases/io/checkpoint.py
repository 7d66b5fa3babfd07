"""Checkpoints: saved tensors are restored, whole or in slices; wrong arguments are rejected.

The cases write small files under /tmp, each with its own prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

PREFIX = "/tmp/runstep-conformance-checkpoint-"
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = np.array([b"", b"one", b"\x00\xfftwo" * 50], object)


def strings(*values: str) -> np.ndarray:
    """A vector of strings, possibly empty."""
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return array


def round_trip(
    name: str,
    saved: Sequence[tuple[str, str, np.ndarray]],
    restored: Sequence[tuple[str, str, np.ndarray]],
) -> Case:
    """Save (name, slice, value) in one step, restore (name, slice, example) in another."""
    graph = Graph()
    feeds: dict[str, np.ndarray] = {}
    prefix = np.array(f"{PREFIX}{name}".encode(), object)
    save_inputs = feed(graph, feeds, "saved", prefix, *columns(saved))
    graph.add("SaveV2", *save_inputs, [value for _, _, value in saved], name="save")
    restore_inputs = feed(graph, feeds, "restored", prefix, *columns(restored))
    dtypes = [example.dtype for _, _, example in restored]
    outputs = graph.add("RestoreV2", *restore_inputs, name="restore", dtypes=dtypes)
    steps = (Step(feeds, (), ("save",)), Step(feeds, tuple(output for output, _ in outputs)))
    return Case(name, graph.graph_def, steps, exact=True, message=True)


def columns(rows: Sequence[tuple[str, str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(names, slices) as vectors of strings."""
    return strings(*(name for name, _, _ in rows)), strings(*(spec for _, spec, _ in rows))


def feed(
    graph: Graph, feeds: dict[str, np.ndarray], name: str, *values: np.ndarray
) -> list[tuple[str, DataType]]:
    """Placeholders fed with strings: with constants, shape inference would reject wrong ones."""
    outputs = [graph.placeholder(DataType.STRING, f"{name}_{i}") for i in range(len(values))]
    feeds.update((output, value) for (output, _), value in zip(outputs, values, strict=True))
    return outputs


def restore(name: str, *inputs: np.ndarray) -> Case:
    """RestoreV2 of one float32 tensor."""
    graph = Graph()
    feeds: dict[str, np.ndarray] = {}
    arguments = feed(graph, feeds, "input", *inputs)
    outputs = graph.add("RestoreV2", *arguments, name="result", dtypes=[np.float32])
    return Case(name, graph.graph_def, (Step(feeds, (outputs[0][0],)),), message=True)


NUMBERS = (
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.complex64, np.complex128,
)  # fmt: skip
TYPES = tuple((np.dtype(d).name, "", MATRIX.astype(d)) for d in NUMBERS)
EDGES = (
    ("words", "", WORDS),
    ("word", "", WORDS[1:2].reshape(())),
    ("scalar", "", np.array(3, np.int32)),
    ("empty", "", np.zeros((0, 3), np.float32)),
)
PARTS = (("t", "4 3 0,2:-", MATRIX[:2]), ("t", "4 3 2,2:-", MATRIX[2:]))
WHOLE = (("t", "", MATRIX),)
# Slices requested from a bundle with one matrix `t`: valid ones, then invalid ones.
ASKED = (
    "", "4 3 -:-", "4 3 1,2:-", "4 3 0,1:2,1", "4 3 1,3:1,1",
    "3 3 -:-", "4 3 3,2:-", "4 3 -", "4 3 0,0:-", "4 3 a:-", "4 x -:-", "junk",
)  # fmt: skip
SAVED_WRONG = (
    ("t", "4 3 0,2:-", MATRIX), ("t", "4 3 3,2:-", MATRIX[2:]), ("t", "4 3 3,2", MATRIX[2:]),
    ("t", "4 3 0,2:- ", MATRIX[:2]), ("t", "junk", MATRIX),
)  # fmt: skip

CASES = (
    round_trip("types", TYPES, TYPES),
    round_trip("edges", EDGES, tuple(reversed(EDGES))),
    round_trip("twice", (("a", "", MATRIX), ("b", "", MATRIX)), (("b", "", MATRIX),) * 2),
    *(round_trip(f"whole_{i}", WHOLE, (("t", s, MATRIX),)) for i, s in enumerate(ASKED)),
    *(round_trip(f"parts_{i}", PARTS, (("t", s, MATRIX),)) for i, s in enumerate(ASKED)),
    *(round_trip(f"wrong_{i}", (saved,), WHOLE) for i, saved in enumerate(SAVED_WRONG)),
    round_trip("missing_slice", PARTS[:1], WHOLE),
    round_trip("same_name", WHOLE * 2, WHOLE),
    round_trip("other_name", WHOLE, (("zz", "", MATRIX),)),
    round_trip("other_type", WHOLE, (("t", "", MATRIX.astype(np.int32)),)),
    round_trip("string_slice", EDGES, (("words", "3 1,2", WORDS),)),
    *(
        restore(f"restore_{i}", *arguments)
        for i, arguments in enumerate(
            (
                (strings("/nope/nope/x").reshape(()), strings("a"), strings("")),
                (strings("/nope/nope/x", "y"), strings("a"), strings("")),
                (strings("/nope/nope/x"), strings("a", "b"), strings("")),
                (strings("/nope/nope/x"), strings("a", "b"), strings("", "")),
                (strings("/nope/nope/x"), strings("a").reshape(1, 1), strings("")),
            )
        )
    ),
    *(
        case("SaveV2", *arguments, message=True, name=f"save_{i}")
        for i, arguments in enumerate(
            (
                (strings("/nope/nope/x").reshape(()), strings("a"), strings(""), [MATRIX]),
                (strings("x", "y"), strings("a"), strings(""), [MATRIX]),
                (strings("x"), strings("a", "b"), strings("", ""), [MATRIX]),
                (strings("x"), strings("a"), strings("").reshape(()), [MATRIX]),
            )
        )
    ),
    case(
        "MergeV2Checkpoints",
        strings("/nope/nope/x"),
        strings("/tmp/runstep-y").reshape(()),
        message=True,
    ),
    case("MergeV2Checkpoints", strings(), strings("/tmp/runstep-y").reshape(()), message=True),
    case("MergeV2Checkpoints", strings("/nope/nope/x"), strings("/tmp/runstep-y"), message=True),
    case("MergeV2Checkpoints", strings("/x").reshape(()), strings("/y").reshape(()), message=True),
    *(
        case("ShardedFilename", strings("/a/b").reshape(()), np.int32(i), np.int32(n), message=True)
        for i, n in ((0, 1), (3, 10), (123456, -1), (-3, 0))
    ),
    case("ShardedFilename", strings("/a/b"), np.int32(0), np.int32(1), message=True),
    case("ShardedFilespec", strings("/a/b").reshape(()), np.int32(10)),
    case("ShardedFilespec", strings("/a/b").reshape(()), np.array([1, 2], np.int32)),
)
