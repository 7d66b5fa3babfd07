"""Warm starting: remappings of vocabularies, and matrices loaded through them.

The cases write small files under /tmp, each with its own name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

PREFIX = "/tmp/runstep-conformance-remapping-"
MATRIX = np.arange(20, dtype=np.float32).reshape(5, 4)
NEW = b"knitting\nlime\neminem\nx\nknitting\n"
OLD = b"lemon\nlime\nknitting\neminem\n"


def scalar(value: str | bytes) -> np.ndarray:
    return np.array(value.encode() if isinstance(value, str) else value, object)


def vector(value: str) -> np.ndarray:
    return scalar(value).reshape(1)


def remapping(name: str, new: bytes, old: bytes, **attrs: int) -> Case:
    """Write two vocabularies, then map one to the other."""
    graph = Graph()
    paths = [scalar(f"{PREFIX}{name}-{which}") for which in ("new", "old")]
    for path, contents in zip(paths, (new, old), strict=True):
        graph.add("WriteFile", path, scalar(contents), name=f"write_{len(graph.graph_def.node)}")
    writes = tuple(node.name for node in graph.graph_def.node if node.op == "WriteFile")
    outputs = graph.add("GenerateVocabRemapping", *paths, name="result", **attrs)
    steps = (Step({}, (), writes), Step({}, tuple(output for output, _ in outputs)))
    return Case(name, graph.graph_def, steps, message=True)


def matrix(
    name: str,
    rows: Any,
    columns: Any = (),
    initial: Any = (),
    *,
    tensor: str = "w",
    value: np.ndarray = MATRIX,
    **attrs: int,
) -> Case:
    """Save a tensor `w`, then load it remapped. Inputs are fed, so that kernels check them."""
    graph = Graph()
    path, names, slices = scalar(f"{PREFIX}{name}"), vector("w"), vector("")
    graph.add("SaveV2", path, names, slices, [value], name="save")
    inputs = {
        "rows": np.array(rows, np.int64),
        "columns": np.array(columns, np.int64),
        "initial": np.array(initial, np.float32),
    }
    fed = [
        graph.placeholder(DataType.FLOAT if key == "initial" else DataType.INT64, key)
        for key in inputs
    ]
    attrs = {"num_rows": 2, "num_cols": 4, **attrs}
    result = graph.add("LoadAndRemapMatrix", path, scalar(tensor), *fed, name="result", **attrs)
    feeds = {output: inputs[output.partition(":")[0]] for output, _ in fed}
    steps = (Step({}, (), ("save",)), Step(feeds, (result[0][0],)))
    return Case(name, graph.graph_def, steps, exact=True, message=True)


CASES = (
    *(
        remapping(f"remapping_{i}", NEW, OLD, new_vocab_offset=offset, num_new_vocab=count, **more)
        for i, (offset, count, more) in enumerate(
            (
                (0, 3, {}),
                (1, 4, {}),
                (0, 5, {}),
                (0, 0, {}),
                (5, 0, {}),
                (0, 6, {}),
                (5, 1, {}),
                (0, 3, {"old_vocab_size": 2}),
                (0, 3, {"old_vocab_size": 9}),
                (0, 3, {"old_vocab_size": 0}),
            )
        )
    ),
    *(
        remapping(f"lines_{i}", new, old, new_vocab_offset=0, num_new_vocab=1)
        for i, (new, old) in enumerate(
            ((b"b", b"a\r\nb"), (b"a\n", b""), (b"", b"a\n"), (b"a\n", b"a\nb\na\n"))
        )
    ),
    matrix("rows", [1, 0]),
    matrix("rows_apart", [4, 0]),
    matrix("chunks", [4, 0], max_rows_in_memory=1),
    matrix("missing_row", [-1, 1], initial=[9, 8, 7, 6]),
    matrix("no_rows", [], num_rows=0),
    matrix("all_missing", [-1, -1], initial=np.arange(8)),
    matrix("columns", [1, 0], [0, 3], num_cols=2),
    matrix("missing_column", [1, 0], [0, -1], [5, 6], num_cols=2),
    matrix("missing_both", [-1, 1], [0, -1], [5, 6, 7], num_cols=2),
    matrix("initial_matrix", [-1, 1], initial=[[9, 8], [7, 6]]),
    matrix("too_few", [1, -1], [0, -1], [5, 6], num_cols=2),
    matrix("too_many", [1, 0], initial=[1]),
    matrix("row_count", [1]),
    matrix("row_beyond", [7, 0]),
    matrix("row_twice", [1, 1]),
    matrix("column_twice", [1, 0], [1, 1], num_cols=2),
    matrix("column_count", [1, 0], [1], num_cols=2),
    matrix("width", [1, 0], num_cols=3),
    matrix("row_rank", [[1, 0]]),
    matrix("tensor_rank", [1, 0], value=MATRIX[0]),
    matrix("tensor_type", [1, 0], value=MATRIX.astype(np.int32)),
    matrix("tensor_name", [1, 0], tensor="zz"),
)
